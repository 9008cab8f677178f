//! What values an argument takes. A refusal says what is wrong in the words that RabbitMQ's clients
//! know, which are Erlang terms.

use crate::routing::deduplication::CACHE_SIZE_MAX;
use courser_codec::{FieldTable, FieldValue};

/// The longest expiry or time to live that is accepted: ten years.
pub(crate) const MAX_EXPIRY_MS: i64 = 315_360_000_000;

/// Looks at the value of one argument, and at the others where they matter.
pub(super) type Check = fn(&FieldValue, &FieldTable) -> Result<(), String>;

pub(super) fn integer(value: &FieldValue) -> Result<i64, String> {
    value.as_integer().ok_or_else(|| format!("\"expected integer, got {}\"", value.type_name()))
}

fn unacceptable_type(value: &FieldValue) -> String {
    format!("{{unacceptable_type,{}}}", value.type_name())
}

fn text(value: &FieldValue) -> Result<&[u8], String> {
    value.as_long_str().ok_or_else(|| unacceptable_type(value))
}

/// One of a few texts, or `problem`.
fn one_of(value: &FieldValue, choices: &[&str], problem: &str) -> Result<(), String> {
    let text = text(value)?;
    let known = choices.iter().any(|choice| choice.as_bytes() == text);
    if known { Ok(()) } else { Err(problem.to_owned()) }
}

/// The name of a header.
pub(super) fn header_name(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    if text(value)?.len() <= 255 { Ok(()) } else { Err("longer than a name".to_owned()) }
}

/// A number of messages to remember.
pub(super) fn cache_size(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    positive(value, all)?;
    match integer(value)? {
        large if large > CACHE_SIZE_MAX => Err(format!("{{value_too_large,{large}}}")),
        _ => Ok(()),
    }
}

/// What is remembered is in memory only.
pub(super) fn cache_persistence(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    one_of(value, &["memory"], "only 'memory' is supported by this broker")
}

/// Negative ones are no limit.
pub(super) fn any_integer(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    integer(value).map(drop)
}

pub(super) fn not_negative(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    match integer(value)? {
        negative if negative < 0 => Err(format!("{{value_negative,{negative}}}")),
        _ => Ok(()),
    }
}

pub(super) fn positive(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    not_negative(value, all)?;
    if integer(value)? == 0 { Err("{value_zero,0}".to_owned()) } else { Ok(()) }
}

/// The highest priority; 0 means that there are none.
pub(super) fn max_priority(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    not_negative(value, all)?;
    match integer(value)? {
        large if large > i64::from(u8::MAX) => Err(format!("{{max_value_exceeded,{large}}}")),
        _ => Ok(()),
    }
}

/// Milliseconds; 0 means at once.
pub(super) fn time_to_live(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    not_negative(value, all)?;
    match integer(value)? {
        long if long > MAX_EXPIRY_MS => Err(format!("{{value_too_large,{long}}}")),
        _ => Ok(()),
    }
}

/// Milliseconds, at least one.
pub(super) fn expiry(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    if integer(value)? == 0 {
        return Err("{value_zero,0}".to_owned());
    }
    time_to_live(value, all)
}

pub(super) fn flag(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    value.as_bool().map(drop).ok_or_else(|| unacceptable_type(value))
}

pub(super) fn any_text(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    text(value).map(drop)
}

pub(super) fn dead_letter_strategy(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    one_of(value, &["at-most-once", "at-least-once"], "invalid_dlx_strategy")
}

pub(super) fn delayed_retry_type(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    let choices = ["all", "failed", "returned", "disabled"];
    one_of(value, &choices, "must be one of: all, failed, returned, disabled")
}

pub(super) fn overflow(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    one_of(value, &["drop-head", "reject-publish", "reject-publish-dlx"], "invalid_overflow")
}

/// Where the leader of a replicated queue is to be; the two old names are still taken.
pub(super) fn leader_locator(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    let choices = ["client-local", "balanced", "random", "least-leaders"];
    one_of(value, &choices, "invalid_queue_locator_arg")
}

pub(super) fn queue_mode(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    let printed = String::from_utf8_lossy(text(value)?);
    one_of(value, &["default", "lazy"], &format!("\"unsupported queue mode '{printed}'\""))
}

pub(super) fn queue_version(value: &FieldValue, all: &FieldTable) -> Result<(), String> {
    not_negative(value, all)?;
    match integer(value)? {
        1 | 2 => Ok(()),
        other => Err(format!("\"unsupported queue version '{other}'\"")),
    }
}

/// A positive number and one of the units Y, M, D, h, m, s.
pub(super) fn max_age(value: &FieldValue, _: &FieldTable) -> Result<(), String> {
    let good = match text(value)?.split_last() {
        Some((b'Y' | b'M' | b'D' | b'h' | b'm' | b's', digits)) => {
            let number = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
            number.and_then(|text| text.parse::<u64>().ok()).is_some_and(|number| number > 0)
        }
        _ => false,
    };
    if good { Ok(()) } else { Err("invalid_max_age".to_owned()) }
}
