//! The arguments of `basic.consume`.

use super::known::Effect;
use super::{QueueType, value};
use crate::fault::{Fault, Resource};
use crate::stream;
use courser_codec::FieldTable;

const PRIORITY: &str = "x-priority";
const TIMEOUT: &str = "x-consumer-timeout";

const C: u8 = QueueType::Classic as u8;
const Q: u8 = QueueType::Quorum as u8;
const S: u8 = QueueType::Stream as u8;

/// The arguments that mean something, and the types of queue that take them, their bits. All have an effect.
const KNOWN: [(&str, u8); 5] = [
    (PRIORITY, C | Q),
    (TIMEOUT, Q),
    (stream::OFFSET, S),
    (stream::FILTER, S),
    (stream::MATCH_UNFILTERED, S),
];

/// The name of each, and what comes of it.
pub(super) fn effects() -> impl Iterator<Item = (&'static str, Effect)> {
    KNOWN.iter().map(|(name, _)| (*name, Effect::Done))
}

/// Refuses arguments that are for consumers of other types of queue.
pub(crate) fn check_consumer(
    arguments: &FieldTable,
    queue_type: QueueType,
    queue: Resource<'_>,
) -> Result<(), Fault> {
    let is_other = |(name, types): &&(&str, u8)| {
        types & queue_type as u8 == 0 && arguments.get(name).is_some()
    };
    KNOWN.iter().find(is_other).map_or(Ok(()), |(name, _)| {
        Err(Fault::precondition_failed(format_args!(
            "invalid arg '{name}' for {queue} of queue type {}",
            queue_type.printed()
        )))
    })
}

/// The priority of a consumer with these arguments; the higher, the earlier.
pub(crate) fn consumer_priority(arguments: &FieldTable, queue: Resource<'_>) -> Result<i64, Fault> {
    let Some(value) = arguments.get(PRIORITY) else { return Ok(0) };
    value::integer(value).map_err(|why| invalid(PRIORITY, queue, &why))
}

/// How long a consumer with these arguments may take to acknowledge a message, if that is its own matter,
/// as it may be in quorum queues.
pub(crate) fn consumer_timeout_ms(
    arguments: &FieldTable,
    queue: Resource<'_>,
) -> Result<Option<u64>, Fault> {
    let Some(value) = arguments.get(TIMEOUT) else { return Ok(None) };
    value::expiry(value, arguments).map_err(|why| invalid(TIMEOUT, queue, &why))?;
    Ok(value.as_integer().and_then(|ms| ms.try_into().ok()))
}

fn invalid(name: &str, queue: Resource<'_>, why: &str) -> Fault {
    Fault::precondition_failed(format_args!("invalid arg '{name}' for {queue}: {why}"))
}
