//! Pages of queues in the orders that people look at them, without making what a page shows for
//! every queue that there is.

use super::only::Only;
use super::order::Order;
use crate::Api;
use courser_broker::admin::{Listing, Page, PageRequest, QueueGlance, QueueView};

/// What queues are sorted by: a number of each.
type Number = fn(&QueueGlance<'_>) -> u64;

/// Which queues are wanted, as far as that can be told by a glance at each.
struct Wanted<'a> {
    kind: Option<&'a str>,
    state: Option<&'a str>,
    has: Option<Number>,
}

impl<'a> Wanted<'a> {
    fn new(only: &'a Only) -> Option<Self> {
        let has = match only.has.as_deref() {
            None => None,
            // A number stands for its name.
            Some("state") => return None,
            Some(column) => Some(number(column)?),
        };
        Some(Wanted { kind: only.kind.as_deref(), state: only.state.as_deref(), has })
    }

    fn lets_through(&self, queue: &QueueGlance<'_>) -> bool {
        self.kind.is_none_or(|kind| queue.queue_type() == kind)
            && self.state.is_none_or(|state| state_name(queue.is_paused()) == state)
            && self.has.is_none_or(|number| number(queue) > 0)
    }
}

/// The state of a queue as lists show it.
pub(crate) fn state_name(is_paused: bool) -> &'static str {
    if is_paused { "paused" } else { "running" }
}

/// A page in an order by what every queue has at hand.
pub(super) fn page_in(
    list: &Listing<QueueView>,
    request: &PageRequest<'_>,
    order: Option<&Order>,
    only: &Only,
    api: &Api,
) -> Option<Page<QueueView>> {
    let wanted = Wanted::new(only)?;
    let Some(Order { column, is_reversed }) = order else {
        return Some(page_by(list, request, false, &wanted, |_| ()));
    };
    let reversed = *is_reversed;
    let page = match column.as_str() {
        "name" => page_by(list, request, reversed, &wanted, |one| one.name().as_bytes().to_vec()),
        "type" => page_by(list, request, reversed, &wanted, |one| one.queue_type()),
        "policy" => page_by(list, request, reversed, &wanted, |one| one.policy()),
        // The order of lists, and what is the same of all queues.
        "vhost"
        | "node"
        | "memory"
        | "reductions"
        | "consumer_capacity"
        | "consumer_utilisation"
        | "internal"
        | "internal_owner" => page_by(list, request, reversed, &wanted, |_| ()),
        column => match column.strip_suffix("_details.rate").and_then(counter) {
            Some(counter) => {
                let mut sweep = api.sweeps.begin(column, api.now_ms(), list.len());
                let rate = |one: &QueueGlance<'_>| sweep.rate(one.id(), counter(one));
                let page = page_by(list, request, reversed, &wanted, rate);
                api.sweeps.end(column, sweep);
                page
            }
            None => page_by(list, request, reversed, &wanted, number(column)?),
        },
    };
    Some(page)
}

fn page_by<K: Ord>(
    list: &Listing<QueueView>,
    request: &PageRequest<'_>,
    is_reversed: bool,
    wanted: &Wanted<'_>,
    mut key: impl FnMut(&QueueGlance<'_>) -> K,
) -> Page<QueueView> {
    list.page_by(request, is_reversed, |one| wanted.lets_through(one).then(|| key(one)))
}

/// What has a rate.
fn counter(column: &str) -> Option<Number> {
    match column {
        "consumers" | "durable" | "auto_delete" | "exclusive" | "state" => None,
        _ => number(column),
    }
}

fn number(column: &str) -> Option<Number> {
    let number: Number = match column {
        "messages" => |queue| {
            let status = queue.status();
            (status.ready + status.unacked) as u64
        },
        "messages_ready" => |queue| queue.status().ready as u64,
        "messages_unacknowledged" => |queue| queue.status().unacked as u64,
        "consumers" => |queue| queue.status().consumers as u64,
        "durable" => |queue| u64::from(queue.is_durable()),
        "auto_delete" => |queue| u64::from(queue.is_auto_delete()),
        "exclusive" => |queue| u64::from(queue.is_exclusive()),
        // By their names: paused ones come before those that run.
        "state" => |queue| u64::from(!queue.is_paused()),
        _ => return count(column.strip_prefix("message_stats.")?),
    };
    Some(number)
}

fn count(column: &str) -> Option<Number> {
    let number: Number = match column {
        "publish" => |queue| queue.counts().published,
        "deliver" => |queue| queue.counts().deliveries.delivered,
        "deliver_no_ack" => |queue| queue.counts().deliveries.delivered_no_ack,
        "get" => |queue| queue.counts().deliveries.got,
        "get_no_ack" => |queue| queue.counts().deliveries.got_no_ack,
        "get_empty" => |queue| queue.counts().deliveries.got_empty,
        "redeliver" => |queue| queue.counts().deliveries.redelivered,
        "ack" => |queue| queue.counts().deliveries.acknowledged,
        "deliver_get" => |queue| queue.counts().deliveries.handed_out(),
        _ => return None,
    };
    Some(number)
}
