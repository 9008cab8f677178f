//! Pages of queues in the orders that people look at them, without making what a page shows for
//! every queue that there is.

use super::only::Only;
use super::order::{Key, Order};
use crate::Api;
use courser_broker::admin::{DelayedStatus, Listing, QueueContents, QueueGlance, QueueView};

/// What queues are sorted by: a key of each.
type KeyOf<'a> = Box<dyn Fn(&QueueGlance<'_>) -> Key + 'a>;

/// Which queues are wanted, as far as that can be told by a glance at each.
struct Wanted<'a> {
    kind: Option<&'a str>,
    state: Option<&'a str>,
    has: Option<KeyOf<'a>>,
}

impl<'a> Wanted<'a> {
    fn new(only: &'a Only) -> Option<Self> {
        let has = match only.has.as_deref() {
            None => None,
            Some(column) => Some(key_by(column)?),
        };
        Some(Wanted { kind: only.kind.as_deref(), state: only.state.as_deref(), has })
    }

    fn lets_through(&self, queue: &QueueGlance<'_>) -> bool {
        self.kind.is_none_or(|kind| queue.queue_type() == kind)
            && self
                .state
                .is_none_or(|state| state_name(queue.is_paused(), || queue.is_held()) == state)
            && self.has.as_ref().is_none_or(|key| key(queue).says_something())
    }
}

/// The state of a queue as lists show it.
pub(crate) fn state_name(is_paused: bool, is_held: impl FnOnce() -> bool) -> &'static str {
    match is_paused {
        true => "paused",
        false if is_held() => "held",
        false => "running",
    }
}

/// The first queues in an order by what every queue has at hand, as keys and ranks.
pub(super) fn ranks_in(
    list: &Listing<QueueView>,
    filter: Option<&dyn Fn(&str) -> bool>,
    most: usize,
    order: Option<&Order>,
    only: &Only,
    api: &Api,
) -> Option<(usize, Vec<(Key, usize)>)> {
    looked(order, only, api, |is_reversed, key| list.ranks_by(filter, most, is_reversed, key))
}

/// Has `look` look at all queues by their keys, if a glance at each is enough.
fn looked<R>(
    order: Option<&Order>,
    only: &Only,
    api: &Api,
    look: impl FnOnce(bool, &mut dyn FnMut(&QueueGlance<'_>) -> Option<Key>) -> R,
) -> Option<R> {
    let wanted = Wanted::new(only)?;
    let is_reversed = order.is_some_and(|order| order.is_reversed);
    let by = |key: &mut dyn FnMut(&QueueGlance<'_>) -> Key| {
        look(is_reversed, &mut |one| wanted.lets_through(one).then(|| key(one)))
    };
    let Some(Order { column, .. }) = order else { return Some(by(&mut |_| Key::MISSING)) };
    Some(match column.as_str() {
        "name" => by(&mut |one| Key::Text(String::from_utf8_lossy(one.name().as_bytes()).into())),
        // The order of lists, and what is the same of all queues.
        "vhost" | "reductions" | "internal" | "internal_owner" => by(&mut |_| Key::MISSING),
        // The same of all queues here, and not of those of another broker.
        "node" => by(&mut |_| Key::Text(api.settings.node.name.clone())),
        column => match column.strip_suffix("_details.rate").and_then(counter) {
            Some(counter) => {
                let sweep = api.sweeps.begin(&api.admin, column, api.now_ms());
                by(&mut |one| number(counter(one).map(|count| sweep.rate(one.id(), count) as f64)))
            }
            None => by(&mut *key_by(column)?),
        },
    })
}

/// The key of a column. `None` if a glance does not tell what it says.
fn key_by(column: &str) -> Option<KeyOf<'_>> {
    if let Some(path) = within("arguments", column) {
        return Some(Box::new(move |queue| argument(queue, path)));
    }
    if let Some(path) = within("effective_policy_definition", column) {
        return Some(Box::new(move |queue| Key::within(&queue.effective_definition(), path)));
    }
    if let Some(counter) = counter(column) {
        return Some(Box::new(move |queue| number(counter(queue).map(|count| count as f64))));
    }
    let key: fn(&QueueGlance<'_>) -> Key = match column {
        "type" => |queue| Key::Text(queue.queue_type().to_owned()),
        "policy" => |queue| queue.policy().map_or(Key::MISSING, Key::Text),
        "operator_policy" => |queue| queue.operator_policy().map_or(Key::MISSING, Key::Text),
        "state" => |queue| Key::Text(state_name(queue.is_paused(), || queue.is_held()).to_owned()),
        "consumers" => |queue| Key::Number(queue.status().consumers as f64),
        "consumer_capacity" | "consumer_utilisation" => |queue| number(queue.consumer_capacity()),
        "delivery_limit" => |queue| match queue.delivery_limit() {
            None => Key::MISSING,
            Some(u64::MAX) => Key::Text("unlimited".to_owned()),
            Some(limit) => Key::Number(limit as f64),
        },
        "memory" => |queue| number(queue.memory_bytes().map(|bytes| bytes as f64)),
        "message_bytes" => |queue| key_of(queue, |contents| contents.bytes()),
        "message_bytes_ready" => |queue| key_of(queue, |contents| contents.ready_bytes),
        "message_bytes_unacknowledged" => |queue| key_of(queue, |contents| contents.unacked_bytes),
        "message_bytes_persistent" => |queue| key_of(queue, |contents| contents.persistent_bytes),
        "message_bytes_ram" => |queue| key_of(queue, |contents| Some(contents.in_memory().bytes)),
        "messages_persistent" => |queue| key_of(queue, |contents| Some(contents.persistent)),
        "messages_ram" => |queue| key_of(queue, |contents| Some(contents.in_memory().messages)),
        "messages_delayed" => |queue| of_delayed(queue, |it| Some(it.messages as u64)),
        "next_delayed_at" => |queue| of_delayed(queue, |it| it.next_ms),
        "last_delayed_at" => |queue| of_delayed(queue, |it| it.last_ms),
        "durable" => |queue| Key::Flag(queue.is_durable()),
        "auto_delete" => |queue| Key::Flag(queue.is_auto_delete()),
        "exclusive" => |queue| Key::Flag(queue.is_exclusive()),
        _ => return None,
    };
    Some(Box::new(key))
}

/// The key of a number, if it is known.
fn number(number: Option<f64>) -> Key {
    number.map_or(Key::MISSING, Key::Number)
}

/// The key of a queue by what its messages amount to.
fn key_of(queue: &QueueGlance<'_>, of: fn(&QueueContents) -> Option<u64>) -> Key {
    number(queue.contents().as_ref().and_then(of).map(|number| number as f64))
}

/// The key of a quorum queue by what waits for its next try.
fn of_delayed(queue: &QueueGlance<'_>, of: fn(&DelayedStatus) -> Option<u64>) -> Key {
    match queue.queue_type() {
        "quorum" => number(of(&queue.status().delayed).map(|number| number as f64)),
        _ => Key::MISSING,
    }
}

/// What a column says of a member: the path within it, empty if it is the member itself.
fn within<'a>(member: &str, column: &'a str) -> Option<&'a str> {
    match column.strip_prefix(member)? {
        "" => Some(""),
        path => path.strip_prefix('.'),
    }
}

/// The key of a queue by its arguments, which are shown with its type even if it was declared without one.
fn argument(queue: &QueueGlance<'_>, path: &str) -> Key {
    let arguments = queue.arguments();
    match (path, arguments.get("x-queue-type")) {
        ("", None) => Key::List(arguments.len() + 1),
        ("x-queue-type", None) => Key::Text(queue.queue_type().to_owned()),
        _ => Key::within(arguments, path),
    }
}

/// What is counted, and has a rate, where it is known.
type Counter = fn(&QueueGlance<'_>) -> Option<u64>;

fn counter(column: &str) -> Option<Counter> {
    let counter: Counter = match column {
        "messages" => |queue| Some(queue.status().messages() as u64),
        "messages_ready" => |queue| Some(queue.status().ready as u64),
        "messages_unacknowledged" => |queue| Some(queue.status().unacked as u64),
        _ => return count(column.strip_prefix("message_stats.")?),
    };
    Some(counter)
}

fn count(column: &str) -> Option<Counter> {
    let counter: Counter = match column {
        "publish" => |queue| Some(queue.counts()?.published),
        "deliver" => |queue| Some(queue.counts()?.deliveries.delivered),
        "deliver_no_ack" => |queue| Some(queue.counts()?.deliveries.delivered_no_ack),
        "get" => |queue| Some(queue.counts()?.deliveries.got),
        "get_no_ack" => |queue| Some(queue.counts()?.deliveries.got_no_ack),
        "get_empty" => |queue| Some(queue.counts()?.deliveries.got_empty),
        "redeliver" => |queue| Some(queue.counts()?.deliveries.redelivered),
        "ack" => |queue| Some(queue.counts()?.deliveries.acknowledged),
        "deliver_get" => |queue| Some(queue.counts()?.deliveries.handed_out()),
        _ => return None,
    };
    Some(counter)
}
