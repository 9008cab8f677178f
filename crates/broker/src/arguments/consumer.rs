//! The arguments of `basic.consume`.

use super::value;
use crate::fault::{Fault, Resource};
use courser_codec::FieldTable;

const PRIORITY: &str = "x-priority";

/// The priority of a consumer with these arguments; the higher, the earlier.
pub(crate) fn consumer_priority(arguments: &FieldTable, queue: Resource<'_>) -> Result<i64, Fault> {
    let Some(value) = arguments.get(PRIORITY) else { return Ok(0) };
    value::integer(value).map_err(|why| {
        Fault::precondition_failed(format_args!("invalid arg '{PRIORITY}' for {queue}: {why}"))
    })
}
