//! How the effect of each argument is seen.

use super::worlds::{
    of_binding, of_consumer, of_copied_queue, of_exchange, of_queue, of_retries, of_stream,
};
use courser_broker::admin::ArgumentOf::{self, Binding, Consumer, Exchange, Queue};
use courser_broker::admin::PolicyKind;
use courser_codec::{FieldTable, FieldValue};

/// How the effect of an argument is seen: what else is given with it, its value, and what a world shows.
pub struct Trial {
    pub of: ArgumentOf,
    pub name: &'static str,
    pub with: fn() -> FieldTable,
    pub value: fn() -> FieldValue,
    pub seen: fn(Given<'_>) -> Vec<String>,
}

/// What a trial is made with.
pub struct Given<'a> {
    pub arguments: &'a FieldTable,
    pub policy: Option<&'a (PolicyKind, FieldTable)>,
}

const fn trial(
    of: ArgumentOf,
    name: &'static str,
    with: fn() -> FieldTable,
    value: fn() -> FieldValue,
    seen: fn(Given<'_>) -> Vec<String>,
) -> Trial {
    Trial { of, name, with, value, seen }
}

pub fn none() -> FieldTable {
    FieldTable::new()
}

pub fn quorum() -> FieldTable {
    none().with("x-queue-type", "quorum")
}

pub fn stream() -> FieldTable {
    none().with("x-queue-type", "stream")
}

fn letters() -> FieldTable {
    none().with("x-dead-letter-exchange", "letters")
}

fn apart() -> FieldTable {
    none().with("x-message-deduplication", true)
}

pub const TRIALS: &[Trial] = &[
    trial(Queue, "x-queue-type", none, || "quorum".into(), of_queue),
    trial(Queue, "x-expires", none, || 5_000.into(), of_queue),
    trial(Queue, "x-message-ttl", none, || 5_000.into(), of_queue),
    trial(Queue, "x-dead-letter-exchange", none, || "letters".into(), of_queue),
    trial(Queue, "x-dead-letter-routing-key", letters, || "other".into(), of_queue),
    trial(Queue, "x-dead-letter-strategy", to_no_queue, || "at-least-once".into(), of_queue),
    trial(Queue, "x-max-length", none, || 2.into(), of_queue),
    trial(Queue, "x-max-length-bytes", none, || 8.into(), of_queue),
    trial(Queue, "x-max-priority", none, || 5.into(), of_queue),
    trial(
        Queue,
        "x-overflow",
        || none().with("x-max-length", 2),
        || "reject-publish".into(),
        of_queue,
    ),
    trial(Queue, "x-single-active-consumer", none, || true.into(), of_queue),
    trial(Queue, "x-delivery-limit", none, || 1.into(), of_queue),
    trial(Queue, "x-consumer-timeout", none, || 5_000.into(), of_queue),
    trial(Queue, "x-deliver-before-commit", none, || true.into(), of_copied_queue),
    trial(Queue, "x-delayed-retry-type", at_least_a_second, || "all".into(), of_retries),
    trial(Queue, "x-delayed-retry-min", retried, || 1_000.into(), of_retries),
    trial(Queue, "x-delayed-retry-max", all_after_a_second, || 2_000.into(), of_retries),
    trial(Queue, "x-message-deduplication", none, || true.into(), of_queue),
    trial(Queue, "x-deduplication-header", apart, || "id".into(), of_queue),
    trial(Queue, "x-cache-size", apart, || 10.into(), of_queue),
    trial(Queue, "x-cache-ttl", || apart().with("x-cache-size", 10), || 1_000.into(), of_queue),
    trial(Queue, "x-max-age", stream, || "1h".into(), of_stream),
    trial(Queue, "x-stream-max-segment-size-bytes", large_stream, || 5_000.into(), of_stream),
    trial(Exchange, "alternate-exchange", || of_type("direct"), || "spare".into(), of_exchange),
    trial(Exchange, "x-message-deduplication", || of_type("fanout"), || true.into(), of_exchange),
    trial(
        Exchange,
        "x-deduplication-header",
        || of_type("fanout").with("x-message-deduplication", true),
        || "id".into(),
        of_exchange,
    ),
    trial(
        Exchange,
        "x-cache-size",
        || of_type("fanout").with("x-message-deduplication", true),
        || 1.into(),
        of_exchange,
    ),
    trial(
        Exchange,
        "x-cache-ttl",
        || of_type("fanout").with("x-message-deduplication", true),
        || 1_000.into(),
        of_exchange,
    ),
    trial(Exchange, "hash-header", || of_type("x-consistent-hash"), || "id".into(), of_exchange),
    trial(
        Exchange,
        "hash-property",
        || of_type("x-consistent-hash"),
        || "message_id".into(),
        of_exchange,
    ),
    trial(
        Exchange,
        "x-recent-history-length",
        || of_type("x-recent-history"),
        || 1.into(),
        of_exchange,
    ),
    trial(
        Exchange,
        "x-delayed-type",
        || of_type("x-delayed-message"),
        || "fanout".into(),
        of_exchange,
    ),
    trial(Binding, "x-match", || none().with("a", 1).with("b", 1), || "any".into(), of_binding),
    trial(Consumer, "x-priority", none, || 5.into(), of_consumer),
    trial(Consumer, "x-consumer-timeout", quorum, || 5_000.into(), of_consumer),
    trial(Consumer, "x-stream-offset", stream, || "first".into(), of_consumer),
    trial(Consumer, "x-stream-filter", from_the_first, || "wanted".into(), of_consumer),
    trial(
        Consumer,
        "x-stream-match-unfiltered",
        || from_the_first().with("x-stream-filter", "wanted"),
        || true.into(),
        of_consumer,
    ),
];

/// To a queue that comes later.
fn to_no_queue() -> FieldTable {
    none()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "late")
        .with("x-overflow", "reject-publish")
}

fn at_least_a_second() -> FieldTable {
    quorum().with("x-delayed-retry-min", 1_000)
}

fn retried() -> FieldTable {
    quorum().with("x-delayed-retry-type", "all")
}

fn all_after_a_second() -> FieldTable {
    at_least_a_second().with("x-delayed-retry-type", "all")
}

fn large_stream() -> FieldTable {
    stream().with("x-max-length-bytes", 100_000)
}

/// A consumer's arguments say of the queue what is not for a consumer.
fn from_the_first() -> FieldTable {
    stream().with("x-stream-offset", "first")
}

/// The type of the exchange goes with its arguments.
pub fn of_type(kind: &str) -> FieldTable {
    none().with("type", kind)
}
