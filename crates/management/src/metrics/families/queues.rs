//! Queues: each by itself, or all together.

use crate::metrics::table::{Family, Metric, counter, gauge, none, uncounted};
use crate::metrics::text::Kind::{Counter, Gauge};
use crate::metrics::text::Value;
use courser_broker::admin::{QueueContents, QueueFigures};

type Row = QueueFigures;

const CONSUMERS: Metric<Row> =
    gauge("queue_consumers", "Consumers on a queue", |queue| queue.consumers.into());

pub(crate) const FAMILIES: &[Family<Row>] = &[
    Family { name: "queue_coarse_metrics", metrics: COARSE },
    Family { name: "queue_consumer_count", metrics: &[CONSUMERS] },
    Family { name: "queue_metrics", metrics: DETAILS },
    Family { name: "queue_delivery_metrics", metrics: DELIVERIES },
];

/// The families that are known of a queue that is held, too.
pub(crate) const KNOWN: [&str; 2] = ["queue_coarse_metrics", "queue_consumer_count"];

const COARSE: &[Metric<Row>] = &[
    gauge("queue_messages_ready", "Messages that wait for a consumer", |queue| queue.ready.into()),
    gauge("queue_messages_unacked", "Messages delivered and not acknowledged", |queue| {
        queue.unacked.into()
    }),
    gauge("queue_messages_delayed", "Messages that came back and wait for another try", |queue| {
        queue.delayed.into()
    }),
    gauge("queue_messages", "Messages that wait or are not acknowledged", |queue| {
        (queue.ready + queue.unacked + queue.delayed).into()
    }),
    counter("queue_process_reductions_total", "Always 0: there are no Erlang processes", none),
];

/// What the messages of a queue amount to, where it is known.
fn of(queue: &Row, number: fn(&QueueContents) -> Option<u64>) -> Value {
    queue.contents.as_ref().and_then(number).into()
}

const DETAILS: &[Metric<Row>] = &[
    CONSUMERS,
    uncounted("queue_consumer_capacity", Gauge, "In the HTTP API only"),
    uncounted("queue_consumer_utilisation", Gauge, "In the HTTP API only"),
    gauge(
        "queue_process_memory_bytes",
        "Memory of a queue: its places and books, and bodies of messages in memory",
        |queue| queue.memory_bytes.into(),
    ),
    gauge("queue_messages_ram", "Messages in memory", |queue| {
        of(queue, |contents| Some(contents.in_memory().messages))
    }),
    gauge("queue_messages_ram_bytes", "Bytes of the bodies of messages in memory", |queue| {
        of(queue, |contents| Some(contents.in_memory().bytes))
    }),
    gauge(
        "queue_messages_ready_ram",
        "Messages in memory that wait for a consumer or for another try",
        |queue| of(queue, |contents| Some(contents.ready_in_memory.messages)),
    ),
    gauge("queue_messages_unacked_ram", "Messages in memory that are not acknowledged", |queue| {
        of(queue, |contents| Some(contents.unacked_in_memory.messages))
    }),
    gauge("queue_messages_persistent", "Messages that survive a restart", |queue| {
        of(queue, |contents| Some(contents.persistent))
    }),
    gauge(
        "queue_messages_persistent_bytes",
        "Bytes of the bodies of messages that survive a restart",
        |queue| of(queue, |contents| contents.persistent_bytes),
    ),
    gauge("queue_messages_bytes", "Bytes of the bodies of all messages", |queue| {
        of(queue, |contents| contents.bytes())
    }),
    gauge(
        "queue_messages_ready_bytes",
        "Bytes of the bodies of messages that wait for a consumer or for another try",
        |queue| of(queue, |contents| contents.ready_bytes),
    ),
    gauge(
        "queue_messages_unacked_bytes",
        "Bytes of the bodies of messages that are not acknowledged",
        |queue| of(queue, |contents| contents.unacked_bytes),
    ),
    gauge(
        "queue_head_message_timestamp",
        "The timestamp of the first message, in seconds since 1970, if it has one and is in memory",
        |queue| queue.head_timestamp.into(),
    ),
    uncounted("queue_disk_reads_total", Counter, "Not counted by queue"),
    uncounted("queue_disk_writes_total", Counter, "Not counted by queue"),
    uncounted("stream_segments", Gauge, "Streams have no files of their own"),
];

const DELIVERIES: &[Metric<Row>] = &[
    counter("queue_get_ack_total", "Answers to basic.get that have to be acknowledged", |queue| {
        queue.counts.deliveries.got.into()
    }),
    counter("queue_get_total", "Answers to basic.get that have not to be acknowledged", |queue| {
        queue.counts.deliveries.got_no_ack.into()
    }),
    counter(
        "queue_messages_delivered_ack_total",
        "Messages delivered to consumers that acknowledge",
        |queue| queue.counts.deliveries.delivered.into(),
    ),
    counter(
        "queue_messages_delivered_total",
        "Messages delivered to consumers that do not acknowledge",
        |queue| queue.counts.deliveries.delivered_no_ack.into(),
    ),
    counter("queue_messages_redelivered_total", "Messages delivered again", |queue| {
        queue.counts.deliveries.redelivered.into()
    }),
    counter("queue_messages_acked_total", "Messages acknowledged", |queue| {
        queue.counts.deliveries.acknowledged.into()
    }),
    counter("queue_get_empty_total", "basic.get of an empty queue", |queue| {
        queue.counts.deliveries.got_empty.into()
    }),
];
