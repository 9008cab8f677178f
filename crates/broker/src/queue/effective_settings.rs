//! What a queue does beyond keeping messages in order, parsed from its arguments.

use super::bounds::{Bounds, Overflow};
use super::retry::DelayedRetry;
use crate::arguments::QueueType;
use crate::policy::QueuePolicies;
use crate::stream;
use courser_codec::{FieldTable, FieldValue, ShortString};
use std::sync::Arc;

/// The effective settings of a queue. One that asks for nothing special has none of this, and that
/// is all that its messages have to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveSettings {
    /// How long it lives without being used (`x-expires`).
    pub expires_ms: Option<u64>,
    /// How long a message may wait in it (`x-message-ttl`).
    pub message_ttl_ms: Option<u64>,
    /// How much may wait in it.
    pub bounds: Option<Bounds>,
    /// Where messages go that leave it without having been consumed.
    pub dead_letter: Option<Arc<DeadLetterTo>>,
    /// How often a message may come back from consumers (`x-delivery-limit`); the largest number to
    /// count that without a limit. None where that is not counted.
    pub delivery_limit: Option<u64>,
    /// How long a consumer may take to acknowledge a message (`x-consumer-timeout`).
    pub consumer_timeout_ms: Option<u64>,
    /// How long messages wait that come back (`x-delayed-retry-type`).
    pub delayed_retry: Option<DelayedRetry>,
    /// How old messages of a stream become (`x-max-age`).
    pub age_max_ms: Option<u64>,
    /// Bytes that leave a stream in one piece at most (`x-stream-max-segment-size-bytes`).
    pub segment_bytes_max: Option<u64>,
    /// In a cluster, messages are delivered before they are committed (`x-deliver-before-commit`).
    pub delivers_before_commit: bool,
}

/// Where dead letters go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterTo {
    /// `x-dead-letter-exchange`.
    pub exchange: ShortString,
    /// `x-dead-letter-routing-key`, instead of the message's own.
    pub routing_key: Option<ShortString>,
    /// `x-dead-letter-strategy`, beside `x-overflow: reject-publish`: a letter stays with its queue until another one has taken it.
    pub at_least_once: bool,
}

impl EffectiveSettings {
    /// What these arguments ask for together with policies.
    pub(crate) fn with(policies: &QueuePolicies, arguments: &FieldTable) -> Option<Arc<Self>> {
        let given = policies.effective(arguments);
        EffectiveSettings::of(given.as_ref().unwrap_or(arguments))
    }

    /// What these arguments, which have been found good, ask for; none if it is nothing special.
    pub fn of(arguments: &FieldTable) -> Option<Arc<Self>> {
        let traits = EffectiveSettings {
            expires_ms: number(arguments, "x-expires"),
            message_ttl_ms: number(arguments, "x-message-ttl"),
            bounds: bounds(arguments),
            dead_letter: dead_letter(arguments).map(Arc::new),
            delivery_limit: delivery_limit(arguments),
            consumer_timeout_ms: consumer_timeout_ms(arguments),
            delayed_retry: DelayedRetry::asked_by(arguments),
            age_max_ms: arguments
                .get("x-max-age")
                .and_then(FieldValue::as_long_str)
                .and_then(stream::parse_interval_ms),
            segment_bytes_max: number(arguments, "x-stream-max-segment-size-bytes"),
            delivers_before_commit: arguments
                .get("x-deliver-before-commit")
                .and_then(FieldValue::as_bool)
                .unwrap_or(false),
        };
        (traits != EffectiveSettings::default()).then(|| Arc::new(traits))
    }
}

fn number(arguments: &FieldTable, name: &str) -> Option<u64> {
    arguments.get(name).and_then(FieldValue::as_integer).and_then(|number| number.try_into().ok())
}

/// The limit of a quorum queue that names none.
const QUORUM_DELIVERY_LIMIT: u64 = 20;

/// How long consumers of a quorum queue that says nothing else have for a message.
const QUORUM_CONSUMER_TIMEOUT_MS: u64 = 30 * 60 * 1000;

fn consumer_timeout_ms(arguments: &FieldTable) -> Option<u64> {
    let is_quorum = QueueType::of(arguments) == QueueType::Quorum;
    let default = is_quorum.then_some(QUORUM_CONSUMER_TIMEOUT_MS);
    number(arguments, "x-consumer-timeout").or(default)
}

/// Any negative number stands for no limit.
fn delivery_limit(arguments: &FieldTable) -> Option<u64> {
    match arguments.get("x-delivery-limit").and_then(FieldValue::as_integer) {
        Some(limit) => Some(u64::try_from(limit).unwrap_or(u64::MAX)),
        None => (QueueType::of(arguments) == QueueType::Quorum).then_some(QUORUM_DELIVERY_LIMIT),
    }
}

fn dead_letter(arguments: &FieldTable) -> Option<DeadLetterTo> {
    let text = |name| arguments.get(name).and_then(FieldValue::as_long_str);
    // An exchange of a longer name can't be there.
    let exchange = ShortString::new(text("x-dead-letter-exchange")?).ok()?;
    let routing_key = text("x-dead-letter-routing-key").and_then(|key| ShortString::new(key).ok());
    // As in RabbitMQ: what is kept counts for the limits of a queue that refuses what is too much, and would escape those of one
    // that drops it.
    let at_least_once = text("x-dead-letter-strategy") == Some(b"at-least-once")
        && overflow(arguments) == Overflow::RejectPublish;
    Some(DeadLetterTo { exchange, routing_key, at_least_once })
}

fn bounds(arguments: &FieldTable) -> Option<Bounds> {
    let messages = number(arguments, "x-max-length");
    let bytes = number(arguments, "x-max-length-bytes");
    let overflow = overflow(arguments);
    (messages.is_some() || bytes.is_some()).then_some(Bounds { messages, bytes, overflow })
}

fn overflow(arguments: &FieldTable) -> Overflow {
    match arguments.get("x-overflow").and_then(FieldValue::as_str) {
        Some("reject-publish") => Overflow::RejectPublish,
        Some("reject-publish-dlx") => Overflow::RejectPublishDlx,
        _ => Overflow::DropHead,
    }
}
