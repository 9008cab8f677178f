//! What has happened to messages, by protocol and by type of queue.
//!
//! Dashboards add and subtract these, and a sum without one of its parts is nothing: so all that there
//! could be is there from the start, at 0.

use crate::metrics::table::{Histogram, Metric, Page, counter, gauge, none};
use crate::metrics::text::Labels;
use courser_broker::admin::{
    DeadCounts, DeliveryCounts, MessageCounts, MessageSizes, PublishCounts, SIZE_LIMITS,
};

const PREFIX: &str = "rabbitmq_global_";
/// The protocol that this broker speaks, and others that are spoken elsewhere.
const PROTOCOL: &str = "amqp091";
const OTHER_PROTOCOLS: [&str; 2] = ["amqp10", "local-shovel"];
const STREAM_PROTOCOL: &str = "stream";

/// What clients of one protocol have published, and how many there are.
#[derive(Default)]
struct ProtocolRow {
    publishers: u64,
    consumers: u64,
    publishes: PublishCounts,
    routed: u64,
}

const OF_PROTOCOL: &[Metric<ProtocolRow>] = &[
    gauge("publishers", "Channels that have published", |row| row.publishers.into()),
    gauge("consumers", "Consumers", |row| row.consumers.into()),
    counter("messages_received_total", "Messages published", |row| row.publishes.published.into()),
    counter(
        "messages_received_confirm_total",
        "Messages published on channels in confirm mode",
        |row| row.publishes.to_confirm.into(),
    ),
    counter("messages_routed_total", "Copies of messages that went to queues", |row| {
        row.routed.into()
    }),
    counter("messages_confirmed_total", "Messages confirmed", |row| row.publishes.confirmed.into()),
    counter(
        "messages_unroutable_dropped_total",
        "Messages that no queue got, dropped as not mandatory",
        |row| row.publishes.dropped.into(),
    ),
    counter(
        "messages_unroutable_returned_total",
        "Messages that no queue got, returned to their publishers",
        |row| row.publishes.returned.into(),
    ),
];

const OF_TYPE: &[Metric<DeliveryCounts>] = &[
    counter("messages_delivered_total", "Messages delivered or got", |row| row.handed_out().into()),
    counter(
        "messages_delivered_consume_auto_ack_total",
        "Messages delivered to consumers that do not acknowledge",
        |row| row.delivered_no_ack.into(),
    ),
    counter(
        "messages_delivered_consume_manual_ack_total",
        "Messages delivered to consumers that acknowledge",
        |row| row.delivered.into(),
    ),
    counter(
        "messages_delivered_get_auto_ack_total",
        "Answers to basic.get not to be acknowledged",
        |row| row.got_no_ack.into(),
    ),
    counter(
        "messages_delivered_get_manual_ack_total",
        "Answers to basic.get to be acknowledged",
        |row| row.got.into(),
    ),
    counter("messages_get_empty_total", "basic.get of an empty queue", |row| row.got_empty.into()),
    counter("messages_redelivered_total", "Messages delivered again", |row| row.redelivered.into()),
    counter("messages_acknowledged_total", "Messages acknowledged", |row| row.acknowledged.into()),
];

const DEAD: &[Metric<DeadCounts>] = &[
    counter(
        "messages_dead_lettered_maxlen_total",
        "Messages that left a queue because it was too long",
        |row| row.max_len.into(),
    ),
    counter(
        "messages_dead_lettered_expired_total",
        "Messages that left a queue because their time was over",
        |row| row.expired.into(),
    ),
    counter(
        "messages_dead_lettered_rejected_total",
        "Messages that left a queue because a consumer refused them",
        |row| row.rejected.into(),
    ),
    counter(
        "messages_dead_lettered_delivery_limit_total",
        "Messages that left a queue because they came back too often",
        |row| row.delivery_limit.into(),
    ),
    counter(
        "messages_dead_lettered_confirmed_total",
        "Always 0: the log makes sure of dead letters, no confirm",
        none,
    ),
];

/// Errors of a protocol that this broker does not listen for.
const STREAM_ERRORS: &[Metric<()>] = &[
    stream_error("stream_error_access_refused_total"),
    stream_error("stream_error_authentication_failure_total"),
    stream_error("stream_error_frame_too_large_total"),
    stream_error("stream_error_internal_error_total"),
    stream_error("stream_error_precondition_failed_total"),
    stream_error("stream_error_publisher_does_not_exist_total"),
    stream_error("stream_error_sasl_authentication_failure_loopback_total"),
    stream_error("stream_error_sasl_challenge_total"),
    stream_error("stream_error_sasl_error_total"),
    stream_error("stream_error_sasl_mechanism_not_supported_total"),
    stream_error("stream_error_stream_already_exists_total"),
    stream_error("stream_error_stream_does_not_exist_total"),
    stream_error("stream_error_stream_not_available_total"),
    stream_error("stream_error_subscription_id_already_exists_total"),
    stream_error("stream_error_subscription_id_does_not_exist_total"),
    stream_error("stream_error_unknown_frame_total"),
    stream_error("stream_error_vhost_access_failure_total"),
];

const fn stream_error(name: &'static str) -> Metric<()> {
    counter(name, "Always 0: there is no listener for the stream protocol", none)
}

/// The names that RabbitMQ has for types of queue.
pub(crate) fn type_label(queue_type: &str) -> String {
    format!("rabbit_{queue_type}_queue")
}

/// Adds everything of this module to a page.
pub(crate) fn add(
    page: &mut Page,
    counts: &MessageCounts,
    sizes: &MessageSizes,
    publishers: u64,
    consumers: u64,
) {
    let protocol = |name: &str| Labels::default().with("protocol", name);
    let MessageCounts { publishes, routed, .. } = *counts;
    let mut rows =
        vec![(protocol(PROTOCOL), ProtocolRow { publishers, consumers, publishes, routed })];
    rows.extend(OTHER_PROTOCOLS.map(|name| (protocol(name), ProtocolRow::default())));
    page.rows(PREFIX, OF_PROTOCOL, &rows);

    let mut rows = Vec::new();
    for name in [PROTOCOL].into_iter().chain(OTHER_PROTOCOLS) {
        for (queue_type, of_type) in counts.by_type() {
            let labels = protocol(name).with("queue_type", type_label(queue_type));
            let is_ours = name == PROTOCOL;
            rows.push((labels, if is_ours { of_type.deliveries } else { Default::default() }));
        }
    }
    page.rows(PREFIX, OF_TYPE, &rows);

    let mut rows = Vec::new();
    for (queue_type, of_type) in counts.by_type().take(2) {
        let strategies = [
            ("disabled", of_type.discarded),
            ("at_most_once", of_type.dead_lettered),
            ("at_least_once", DeadCounts::default()),
        ];
        for (strategy, dead) in strategies {
            let labels = Labels::default()
                .with("queue_type", type_label(queue_type))
                .with("dead_letter_strategy", strategy);
            rows.push((labels, dead));
        }
    }
    page.rows(PREFIX, DEAD, &rows);
    page.rows(PREFIX, STREAM_ERRORS, &[(protocol(STREAM_PROTOCOL), ())]);

    let borders: Vec<f64> = SIZE_LIMITS.iter().map(|limit| *limit as f64).collect();
    let histogram = |counts: Vec<u64>, sum| Histogram { borders: borders.clone(), counts, sum };
    let ours = histogram(sizes.messages.to_vec(), sizes.bytes as f64);
    let empty = histogram(vec![0; sizes.messages.len()], 0.0);
    page.histogram(
        ("rabbitmq_", "message_size_bytes"),
        "Bytes of the bodies of messages published",
        &[(protocol(PROTOCOL), ours), (protocol(OTHER_PROTOCOLS[0]), empty)],
    );
}
