//! The arguments of `queue.declare`.

use super::known::Effect;
use super::value::{self, Check};
use crate::fault::{Fault, Resource};
use crate::queue::Ranks;
use crate::routing::deduplication;
use courser_codec::{FieldTable, FieldValue};

pub(crate) const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
pub(crate) const QUEUE_TYPE: &str = "x-queue-type";
const MAX_PRIORITY: &str = "x-max-priority";
const SINGLE_ACTIVE_CONSUMER: &str = "x-single-active-consumer";

/// What `x-queue-type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueType {
    Classic = 1,
    Quorum = 2,
    Stream = 4,
}

/// The types by name.
const TYPES: [(&str, QueueType); 3] =
    [("classic", QueueType::Classic), ("quorum", QueueType::Quorum), ("stream", QueueType::Stream)];

/// An argument that means something.
struct Known {
    name: &'static str,
    check: Check,
    /// The types of queue that take it, their bits.
    types: u8,
    /// What comes of it in these.
    effect: Effect,
}

const C: u8 = QueueType::Classic as u8;
const Q: u8 = QueueType::Quorum as u8;
const S: u8 = QueueType::Stream as u8;

const fn known(name: &'static str, check: Check, types: u8) -> Known {
    Known { name, check, types, effect: Effect::Done }
}

/// What is so by itself, or has no meaning here: every durable queue is on all nodes of a cluster, its consumers are on the
/// leader's node, there is one kind of classic queue and of stream filter, and what waits in memory is bounded for all queues
/// together.
const fn without_effect(name: &'static str, check: Check, types: u8) -> Known {
    Known { name, check, types, effect: Effect::None }
}

/// In the order in which they are checked and compared. Where RabbitMQ restricts an argument that
/// works with any queue here to one type, all that it makes sense for take it.
const KNOWN: [Known; 33] = [
    known("x-expires", value::expiry, C | Q),
    known("x-message-ttl", value::time_to_live, C | Q),
    known(DEAD_LETTER_EXCHANGE, value::any_text, C | Q),
    known("x-dead-letter-routing-key", dead_letter_routing_key, C | Q),
    known("x-dead-letter-strategy", value::dead_letter_strategy, C | Q),
    known("x-max-length", value::not_negative, C | Q),
    known("x-max-length-bytes", value::not_negative, C | Q | S),
    known(MAX_PRIORITY, value::max_priority, C | Q),
    known("x-overflow", value::overflow, C | Q),
    without_effect("x-queue-mode", value::queue_mode, C),
    without_effect("x-queue-version", value::queue_version, C),
    known(SINGLE_ACTIVE_CONSUMER, value::flag, C | Q),
    known("x-delivery-limit", value::any_integer, C | Q),
    known("x-consumer-timeout", value::expiry, C | Q),
    known("x-deliver-before-commit", value::flag, C | Q),
    known(deduplication::ARGUMENT, value::flag, C | Q),
    known(deduplication::HEADER, value::header_name, C | Q),
    known(deduplication::CACHE_SIZE, value::cache_size, C | Q),
    known(deduplication::CACHE_TTL, value::expiry, C | Q),
    without_effect("x-quorum-initial-group-size", value::positive, Q),
    without_effect("x-quorum-target-group-size", value::positive, Q),
    without_effect("x-max-in-memory-length", value::not_negative, Q),
    without_effect("x-max-in-memory-bytes", value::not_negative, Q),
    known("x-max-age", value::max_age, S),
    known("x-stream-max-segment-size-bytes", value::not_negative, S),
    without_effect("x-stream-filter-size-bytes", value::not_negative, S),
    without_effect("x-initial-cluster-size", value::positive, S),
    without_effect("x-queue-leader-locator", value::leader_locator, C | Q | S),
    without_effect("x-queue-master-locator", value::any_text, C),
    known("x-delayed-retry-type", value::delayed_retry_type, Q),
    known("x-delayed-retry-min", value::expiry, Q),
    known("x-delayed-retry-max", value::any_integer, Q),
    without_effect("x-consumer-disconnected-timeout", value::not_negative, Q),
];

/// The name of each, and what comes of it.
pub(super) fn effects() -> impl Iterator<Item = (&'static str, Effect)> {
    let of_type = std::iter::once((QUEUE_TYPE, Effect::Done));
    of_type.chain(KNOWN.iter().map(|known| (known.name, known.effect)))
}

/// It makes sense with an exchange only.
fn dead_letter_routing_key(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    value::any_text(value, all)?;
    match all.get(DEAD_LETTER_EXCHANGE) {
        Some(_) => Ok(()),
        None => Err("routing_key_but_no_dlx_defined".to_owned()),
    }
}

impl QueueType {
    /// The type that a queue with these arguments has; `classic` where they do not say.
    pub fn of(arguments: &FieldTable) -> Self {
        let named = arguments.get(QUEUE_TYPE).and_then(FieldValue::as_str);
        named.and_then(QueueType::named).unwrap_or(QueueType::Classic)
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        TYPES.iter().find(|(known, _)| *known == name).map(|(_, known)| *known)
    }

    /// What `x-queue-type` calls it.
    pub fn name(self) -> &'static str {
        let found = TYPES.iter().find(|(_, known)| *known == self);
        found.map_or("classic", |(name, _)| name)
    }

    /// How an explanation calls it.
    pub fn printed(self) -> &'static str {
        match self {
            QueueType::Classic => "rabbit_classic_queue",
            QueueType::Quorum => "rabbit_quorum_queue",
            QueueType::Stream => "rabbit_stream_queue",
        }
    }
}

/// Checks the arguments of a queue that is to be made.
pub(crate) fn check_queue(arguments: &FieldTable, queue: Resource<'_>) -> Result<(), Fault> {
    super::check_size(arguments)?;
    if let Some(value) = arguments.get(DEAD_LETTER_EXCHANGE)
        && value.as_long_str().is_none()
    {
        return Err(Fault::precondition_failed(format_args!(
            "invalid type '{}' for arg '{DEAD_LETTER_EXCHANGE}' in {queue}",
            value.type_name()
        )));
    }
    check_type(arguments, &queue)?;
    let queue_type = QueueType::of(arguments);
    let present: Vec<(&Known, &FieldValue)> = KNOWN
        .iter()
        .filter_map(|known| arguments.get(known.name).map(|value| (known, value)))
        .collect();
    let takes = |known: &Known| known.types & queue_type as u8 != 0;
    for (known, value) in present.iter().filter(|(known, _)| takes(known)) {
        (known.check)(value, arguments).map_err(|why| invalid(known.name, &queue, &why))?;
    }
    if let Some((known, _)) = present.iter().find(|(known, _)| !takes(known)) {
        return Err(Fault::precondition_failed(format_args!(
            "invalid arg '{}' for {queue} of queue type {}",
            known.name,
            queue_type.printed()
        )));
    }
    Ok(())
}

/// How a queue with these arguments looks at priorities, if it does.
pub(crate) fn ranks(arguments: &FieldTable) -> Option<Ranks> {
    match arguments.get(MAX_PRIORITY).and_then(FieldValue::as_integer) {
        Some(highest @ 1..) => u8::try_from(highest).ok().map(Ranks::UpTo),
        _ => (QueueType::of(arguments) == QueueType::Quorum).then_some(Ranks::Quorum),
    }
}

/// Whether only one consumer at a time of a queue with these arguments gets messages, and then
/// whether one with a higher priority takes its place.
pub(crate) fn single_active(arguments: &FieldTable) -> Option<bool> {
    let wanted = arguments.get(SINGLE_ACTIVE_CONSUMER).and_then(FieldValue::as_bool)?;
    wanted.then(|| QueueType::of(arguments) == QueueType::Quorum)
}

fn check_type(arguments: &FieldTable, queue: &Resource<'_>) -> Result<(), Fault> {
    let Some(value) = arguments.get(QUEUE_TYPE) else { return Ok(()) };
    let why = match value.as_long_str() {
        None => format!("{{unacceptable_type,{}}}", value.type_name()),
        Some(b"") => return Ok(()),
        Some(text) if TYPES.iter().any(|(name, _)| name.as_bytes() == text) => return Ok(()),
        Some(text) => {
            format!("\"unsupported queue type '{}'\"", String::from_utf8_lossy(text))
        }
    };
    Err(invalid(QUEUE_TYPE, queue, &why))
}

/// Whether queues of this type take an argument.
pub(crate) fn takes(name: &str, queue_type: QueueType) -> bool {
    KNOWN.iter().any(|known| known.name == name && known.types & queue_type as u8 != 0)
}

/// Checks an argument that a policy gives to queues.
pub(crate) fn check_given(name: &str, value: &FieldValue) -> Result<(), String> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        return Err("is unknown".to_owned());
    };
    // Where dead letters go may be an argument's business.
    let others = FieldTable::new().with(DEAD_LETTER_EXCHANGE, "");
    (known.check)(value, &others).map_err(|why| format!("is not good: {why}"))
}

fn invalid(name: &str, queue: &Resource<'_>, why: &str) -> Fault {
    Fault::precondition_failed(format_args!("invalid arg '{name}' for {queue}: {why}"))
}

/// Whether arguments name a type: an empty text names none.
pub(crate) fn names_type(arguments: &FieldTable) -> bool {
    arguments.get(QUEUE_TYPE).is_some_and(|value| value.as_long_str() != Some(b""))
}

/// Checks a redeclaration of a queue against the arguments it has. Only arguments that queues of its
/// type take count; no type means `classic`.
pub(crate) fn check_equivalent_queue(
    current: &FieldTable,
    received: &FieldTable,
    queue: Resource<'_>,
) -> Result<(), Fault> {
    let queue_type = QueueType::of(current);
    let taken = KNOWN.iter().filter(|known| known.types & queue_type as u8 != 0);
    let mut names: Vec<&str> = taken.map(|known| known.name).collect();
    let is_type = |value: &FieldValue| TYPES.iter().any(|(name, _)| Some(*name) == value.as_str());
    let names_unknown = names_type(received) && !received.get(QUEUE_TYPE).is_some_and(is_type);
    if names_unknown || queue_type != QueueType::of(received) {
        names.push(QUEUE_TYPE);
    }
    super::check_equivalent(current, received, names.into_iter(), queue)
}
