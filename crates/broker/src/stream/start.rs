//! Where a consumer begins to read: the argument `x-stream-offset`.

use super::arguments::parse_interval_ms;
use crate::fault::{Fault, Resource};
use courser_codec::{FieldTable, FieldValue};

/// The argument of `basic.consume` that says where.
pub(crate) const OFFSET: &str = "x-stream-offset";

/// A place in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The oldest message.
    First,
    /// The newest message.
    Last,
    /// What comes from now on.
    Next,
    /// The message with this offset, or the oldest if it has left.
    Offset(u64),
    /// The first message that arrived at this time or later, in milliseconds since 1970.
    Time(u64),
}

impl Start {
    /// What a consumer's arguments ask for; `next` where they do not say.
    pub(crate) fn parse(
        arguments: &FieldTable,
        now_ms: u64,
        queue: &Resource<'_>,
    ) -> Result<Self, Fault> {
        let Some(value) = arguments.get(OFFSET) else { return Ok(Start::Next) };
        if let FieldValue::Timestamp(seconds) = value {
            return Ok(Start::Time(seconds.saturating_mul(1000)));
        }
        if let Some(offset) = value.as_integer() {
            return Ok(Start::Offset(u64::try_from(offset).unwrap_or(0)));
        }
        let text = value.as_long_str();
        let start = match text {
            Some(b"first") => Some(Start::First),
            Some(b"last") => Some(Start::Last),
            Some(b"next") => Some(Start::Next),
            Some(interval) => parse_interval_ms(interval)
                .map(|interval_ms| Start::Time(now_ms.saturating_sub(interval_ms))),
            None => None,
        };
        start.ok_or_else(|| {
            let printed = match text {
                Some(text) => format!("<<\"{}\">>", String::from_utf8_lossy(text)),
                None => "_".to_owned(),
            };
            Fault::precondition_failed(format_args!(
                "invalid arg '{OFFSET}' for {queue}: {{invalid_stream_offset_arg,{{{},{printed}}}}}",
                value.type_name()
            ))
        })
    }
}
