//! What a stream is declared with, and what it may be consumed with.

use crate::fault::{Fault, Resource};
use crate::queue::EffectiveSettings;
use courser_codec::{FieldTable, FieldValue};
use courser_store::stream::{PageLimits, Retention};

/// Pages are so fine that retention is exact to this part of its limit.
const PAGES_PER_LIMIT: u64 = 16;
/// The least that pages are cut to, in bytes and in milliseconds, whatever is asked for: a page costs some hundred bytes of
/// memory, however few messages it has.
const PAGE_BYTES_MIN: u64 = 4096;
const PAGE_SPAN_MS_MIN: u64 = 1000;

/// The settings of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// `x-max-length-bytes`.
    size_bytes_max: Option<u64>,
    /// `x-max-age`.
    pub age_max_ms: Option<u64>,
    /// `x-stream-max-segment-size-bytes`.
    segment_bytes_max: Option<u64>,
}

impl Settings {
    pub fn of(traits: Option<&EffectiveSettings>) -> Self {
        let Some(traits) = traits else { return Settings::default() };
        Settings {
            size_bytes_max: traits.bounds.as_ref().and_then(|bounds| bounds.bytes),
            age_max_ms: traits.age_max_ms,
            segment_bytes_max: traits.segment_bytes_max,
        }
    }

    /// When the pages of the index end.
    pub fn pages(&self) -> PageLimits {
        let mut pages = PageLimits::default();
        let of_limit = self.size_bytes_max.map(|most| most / PAGES_PER_LIMIT);
        for most in of_limit.into_iter().chain(self.segment_bytes_max) {
            pages.size_bytes = pages.size_bytes.min(most).max(PAGE_BYTES_MIN);
        }
        if let Some(most) = self.age_max_ms {
            pages.span_ms = (most / PAGES_PER_LIMIT).max(PAGE_SPAN_MS_MIN);
        }
        pages
    }

    /// What is to be kept at this time.
    pub fn retention(&self, now_ms: u64) -> Retention {
        Retention {
            size_bytes_max: self.size_bytes_max,
            arrived_before_ms: self.age_max_ms.map(|age_ms| now_ms.saturating_sub(age_ms)),
            now_ms,
        }
    }
}

/// A number and one of the units Y, M, D, h, m, s, in milliseconds.
pub(crate) fn parse_interval_ms(text: &[u8]) -> Option<u64> {
    let (unit, digits) = text.split_last()?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = match unit {
        b'Y' => 365 * 86_400,
        b'M' => 30 * 86_400,
        b'D' => 86_400,
        b'h' => 3_600,
        b'm' => 60,
        b's' => 1,
        _ => return None,
    };
    let number: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(seconds * 1000).filter(|ms| *ms > 0)
}

/// Refuses sizes that a stream can't have.
pub(crate) fn check_sizes(arguments: &FieldTable) -> Result<(), Fault> {
    const SEGMENT_BYTES_MAX: i64 = 3_000_000_000;
    let number = |name| arguments.get(name).and_then(FieldValue::as_integer);
    if number("x-stream-max-segment-size-bytes").is_some_and(|bytes| bytes > SEGMENT_BYTES_MAX) {
        return Err(Fault::precondition_failed(
            "Exceeded max value for x-stream-max-segment-size-bytes",
        ));
    }
    if number("x-stream-filter-size-bytes").is_some_and(|bytes| !(16..=255).contains(&bytes)) {
        return Err(Fault::precondition_failed("Invalid value for x-stream-filter-size-bytes"));
    }
    Ok(())
}

/// Refuses a consumer that a stream can't have: one without a limit or without acknowledgements.
pub(crate) fn check_consumer(
    prefetch: u32,
    no_ack: bool,
    queue: &Resource<'_>,
) -> Result<(), Fault> {
    if no_ack {
        return Err(Fault::not_implemented(format_args!(
            "automatic acknowledgement not supported by stream {queue}"
        )));
    }
    if prefetch == 0 {
        return Err(Fault::precondition_failed(format_args!(
            "consumer prefetch count is not set for stream {queue}"
        )));
    }
    Ok(())
}
