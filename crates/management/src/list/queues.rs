//! Pages of queues in the orders that people look at them, without making what a page shows for
//! every queue that there is.

use super::order::Order;
use courser_broker::admin::{Listing, Page, PageRequest, QueueGlance, QueueView};

/// What queues are sorted by: a number of each.
type Number = fn(&QueueGlance<'_>) -> u64;

/// A page in an order by the name or by a number that every queue has at hand.
pub(super) fn page_in(
    list: &Listing<QueueView>,
    request: &PageRequest<'_>,
    order: &Order,
) -> Option<Page<QueueView>> {
    if order.column == "name" {
        let page = list.page_by(request, order.is_reversed, |one| one.name().as_bytes().to_vec());
        return Some(page);
    }
    if order.column == "type" {
        return Some(list.page_by(request, order.is_reversed, |one| one.queue_type()));
    }
    let number = number(&order.column)?;
    Some(list.page_by(request, order.is_reversed, number))
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
