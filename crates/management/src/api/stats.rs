//! The member `message_stats`: counters of messages with their rates.
//!
//! It is there once something was counted. Of its two groups, publishes and deliveries, each is there
//! whole as soon as one of its counters is not 0.

use crate::call::Call;
use crate::json::Fields;
use crate::rates::Range;
use courser_broker::admin::{
    ChannelCounts, DeliveryCounts, ExchangeCounts, MessageCounts, PublishCounts, QueueCounts,
};

/// Counters that are shown together or not at all.
type Group = Vec<(&'static str, u64)>;

/// What was counted of a queue.
pub(super) fn of_queue(counts: &QueueCounts) -> Vec<Group> {
    vec![vec![("publish", counts.published)], deliveries(&counts.deliveries)]
}

/// What was counted of an exchange.
pub(super) fn of_exchange(counts: &ExchangeCounts) -> Vec<Group> {
    let ExchangeCounts { published_in, published_out } = *counts;
    vec![vec![("publish_in", published_in), ("publish_out", published_out)]]
}

/// What was counted of a channel.
pub(super) fn of_channel(counts: &ChannelCounts) -> Vec<Group> {
    vec![publishes(&counts.publishes), deliveries(&counts.deliveries)]
}

/// What was counted of a vhost or of the broker.
pub(super) fn of_messages(counts: &MessageCounts) -> Vec<Group> {
    vec![publishes(&counts.publishes), deliveries(&counts.deliveries())]
}

fn publishes(counts: &PublishCounts) -> Group {
    vec![
        ("publish", counts.published),
        ("confirm", counts.confirmed),
        ("return_unroutable", counts.returned),
        ("drop_unroutable", counts.dropped),
    ]
}

fn deliveries(counts: &DeliveryCounts) -> Group {
    vec![
        ("deliver", counts.delivered),
        ("deliver_no_ack", counts.delivered_no_ack),
        ("get", counts.got),
        ("get_no_ack", counts.got_no_ack),
        ("get_empty", counts.got_empty),
        ("redeliver", counts.redelivered),
        ("ack", counts.acknowledged),
        ("deliver_get", counts.handed_out()),
    ]
}

/// Adds counters as `message_stats`, if there are any. `object` is their own among all objects.
pub(super) fn put(
    call: &Call,
    fields: &mut Fields,
    object: &str,
    groups: &[Group],
    range: Option<Range>,
) {
    let is_counted = |group: &Group| group.iter().any(|(_, value)| *value > 0);
    if !groups.iter().any(is_counted) || !fields.wants("message_stats") {
        return;
    }
    // What is not shown yet is seen all the same: its first rate needs something to compare with.
    let values: Vec<u64> = groups.iter().flatten().map(|(_, value)| *value).collect();
    let object = format!("messages of {object}");
    let details = call.api.rates.observe(call.user(), &object, call.api.now_ms(), &values, range);
    let mut details = details.into_iter();
    let mut stats = Fields::default();
    for group in groups {
        let is_shown = is_counted(group);
        for ((name, value), details) in group.iter().zip(details.by_ref().take(group.len())) {
            if is_shown {
                stats.put(name, *value).put(&format!("{name}_details"), details);
            }
        }
    }
    fields.put("message_stats", stats.finish());
}
