//! The arguments of `basic.consume`.

use super::{QueueType, value};
use crate::fault::{Fault, Resource};
use courser_codec::FieldTable;

const PRIORITY: &str = "x-priority";
const TIMEOUT: &str = "x-consumer-timeout";

/// The priority of a consumer with these arguments; the higher, the earlier.
pub(crate) fn consumer_priority(arguments: &FieldTable, queue: Resource<'_>) -> Result<i64, Fault> {
    let Some(value) = arguments.get(PRIORITY) else { return Ok(0) };
    value::integer(value).map_err(|why| invalid(PRIORITY, queue, &why))
}

/// How long a consumer with these arguments may take to acknowledge a message, if that is its own matter,
/// as it may be in quorum queues.
pub(crate) fn consumer_timeout_ms(
    arguments: &FieldTable,
    queue_type: QueueType,
    queue: Resource<'_>,
) -> Result<Option<u64>, Fault> {
    let Some(value) = arguments.get(TIMEOUT) else { return Ok(None) };
    if queue_type != QueueType::Quorum {
        return Err(Fault::precondition_failed(format_args!(
            "invalid arg '{TIMEOUT}' for {queue} of queue type {}",
            queue_type.printed()
        )));
    }
    value::expiry(value, arguments).map_err(|why| invalid(TIMEOUT, queue, &why))?;
    Ok(value.as_integer().and_then(|ms| ms.try_into().ok()))
}

fn invalid(name: &str, queue: Resource<'_>, why: &str) -> Fault {
    Fault::precondition_failed(format_args!("invalid arg '{name}' for {queue}: {why}"))
}
