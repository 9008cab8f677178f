//! The arguments of `queue.declare`.

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

/// The types by name, and whether this broker has them.
const TYPES: [(&str, QueueType, bool); 3] = [
    ("classic", QueueType::Classic, true),
    ("quorum", QueueType::Quorum, true),
    ("stream", QueueType::Stream, true),
];

/// An argument that means something.
struct Known {
    name: &'static str,
    check: Check,
    /// The types of queue that take it, their bits.
    types: u8,
    /// Whether this broker does what it asks for. If not, it is refused, not ignored.
    supported: bool,
}

const C: u8 = QueueType::Classic as u8;
const Q: u8 = QueueType::Quorum as u8;
const S: u8 = QueueType::Stream as u8;

const fn known(name: &'static str, check: Check, types: u8, supported: bool) -> Known {
    Known { name, check, types, supported }
}

/// In the order in which they are checked and compared. Where RabbitMQ restricts an argument that
/// works with any queue here to one type, all that it makes sense for take it.
const KNOWN: [Known; 26] = [
    known("x-expires", value::expiry, C | Q, true),
    known("x-message-ttl", value::time_to_live, C | Q, true),
    known(DEAD_LETTER_EXCHANGE, value::any_text, C | Q, true),
    known("x-dead-letter-routing-key", dead_letter_routing_key, C | Q, true),
    known("x-dead-letter-strategy", value::dead_letter_strategy, C | Q, true),
    known("x-max-length", value::not_negative, C | Q, true),
    known("x-max-length-bytes", value::not_negative, C | Q | S, true),
    known(MAX_PRIORITY, value::max_priority, C | Q, true),
    known("x-overflow", value::overflow, C | Q, true),
    known("x-queue-mode", value::queue_mode, C, true),
    known("x-queue-version", value::queue_version, C, true),
    known(SINGLE_ACTIVE_CONSUMER, value::flag, C | Q, true),
    known("x-delivery-limit", value::delivery_limit, C | Q, true),
    known("x-consumer-timeout", value::expiry, C | Q, true),
    known(deduplication::ARGUMENT, value::flag, C | Q, true),
    known(deduplication::HEADER, value::header_name, C | Q, true),
    known(deduplication::CACHE_SIZE, value::cache_size, C | Q, true),
    known(deduplication::CACHE_TTL, value::expiry, C | Q, true),
    known("x-quorum-initial-group-size", value::positive, Q, true),
    known("x-quorum-target-group-size", value::positive, Q, true),
    known("x-max-age", value::max_age, S, true),
    known("x-stream-max-segment-size-bytes", value::not_negative, S, true),
    known("x-stream-filter-size-bytes", value::not_negative, S, true),
    known("x-initial-cluster-size", value::positive, S, true),
    known("x-queue-leader-locator", value::leader_locator, C | Q | S, true),
    known("x-queue-master-locator", value::any_text, C, true),
];

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
        let found = TYPES.iter().find(|(name, ..)| Some(*name) == named);
        found.map_or(QueueType::Classic, |(_, known, _)| *known)
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        TYPES.iter().find(|(known, ..)| *known == name).map(|(_, known, _)| *known)
    }

    /// What `x-queue-type` calls it.
    pub fn name(self) -> &'static str {
        let found = TYPES.iter().find(|(_, known, _)| *known == self);
        found.map_or("classic", |(name, ..)| name)
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
    // A stream does everything that it takes.
    let does = |known: &Known| known.supported || queue_type == QueueType::Stream;
    match present.iter().find(|(known, _)| !does(known)) {
        Some((known, _)) => Err(invalid(known.name, &queue, super::NOT_SUPPORTED)),
        None => Ok(()),
    }
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
        Some(text) => match TYPES.iter().find(|(name, ..)| name.as_bytes() == text) {
            Some((.., true)) => return Ok(()),
            Some((name, ..)) => format!("'{name}' is {}", super::NOT_SUPPORTED),
            None => format!("\"unsupported queue type '{}'\"", String::from_utf8_lossy(text)),
        },
    };
    Err(invalid(QUEUE_TYPE, queue, &why))
}

/// Whether queues of this type take an argument.
pub(crate) fn takes(name: &str, queue_type: QueueType) -> bool {
    KNOWN.iter().any(|known| known.name == name && known.types & queue_type as u8 != 0)
}

/// Checks an argument that a policy gives to queues, or to streams only.
pub(crate) fn check_given(
    name: &str,
    value: &FieldValue,
    streams_only: bool,
) -> Result<(), String> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        return Err("is unknown".to_owned());
    };
    // Where dead letters go may be an argument's business.
    let others = FieldTable::new().with(DEAD_LETTER_EXCHANGE, "");
    (known.check)(value, &others).map_err(|why| format!("is not good: {why}"))?;
    let for_streams = known.types == S || streams_only && known.types & S != 0;
    if known.supported || for_streams {
        return Ok(());
    }
    Err(format!("is {}", super::NOT_SUPPORTED))
}

fn invalid(name: &str, queue: &Resource<'_>, why: &str) -> Fault {
    Fault::precondition_failed(format_args!("invalid arg '{name}' for {queue}: {why}"))
}

/// Checks a redeclaration of a queue against the arguments it has. Only arguments that mean
/// something count; no type means `classic`.
pub(crate) fn check_equivalent_queue(
    current: &FieldTable,
    received: &FieldTable,
    queue: Resource<'_>,
) -> Result<(), Fault> {
    let mut names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
    let is_type = |value: &FieldValue| TYPES.iter().any(|(name, ..)| Some(*name) == value.as_str());
    let no_type = received.get(QUEUE_TYPE).is_some_and(|value| !is_type(value));
    if no_type || QueueType::of(current) != QueueType::of(received) {
        names.push(QUEUE_TYPE);
    }
    super::check_equivalent(current, received, names.into_iter(), queue)
}
