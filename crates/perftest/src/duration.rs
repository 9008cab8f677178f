//! Durations on the command line: `30s`, `1m30s`, `500ms`, `1.5h`; a bare number is seconds.

use std::time::Duration;

/// Text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write 30s, 500ms, 1m30s or 2h")]
pub struct DurationError {
    text: String,
}

/// Units and their nanoseconds. `ms` comes before `m`, which it begins with.
const UNITS: [(&str, f64); 6] =
    [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// Reads a duration.
///
/// # Errors
/// When the text is none, or it is longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let mut total_ns = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(error());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| error())?;
        rest = &rest[digits..];
        if rest.is_empty() && digits == text.trim().len() {
            total_ns += number * 1e9;
            break;
        }
        let unit = UNITS.iter().find_map(|(name, ns)| Some((rest.strip_prefix(name)?, ns)));
        let (behind, ns) = unit.ok_or_else(error)?;
        total_ns += number * ns;
        rest = behind;
    }
    const LONGEST_NS: f64 = 366.0 * 24.0 * 3600e9;
    if total_ns > LONGEST_NS {
        return Err(error());
    }
    Ok(Duration::from_nanos(total_ns.round() as u64))
}
