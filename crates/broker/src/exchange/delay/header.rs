//! The header `x-delay`: how long a message wants to wait.

use crate::headers;
use courser_codec::{Properties, RawProperties, ShortStr, Value};

const X_DELAY: ShortStr<'static> = ShortStr::from_static("x-delay");

/// The longest time that a message can wait: ten years. What asks for more does not wait at all.
const DELAY_MAX_MS: i64 = 315_360_000_000;

/// How long a message with these properties has to wait, in milliseconds; none if it goes on at
/// once. Text and fractions count as numbers, where they are some.
pub(crate) fn delay_ms(properties: RawProperties<'_>) -> Option<u64> {
    if properties.flags() & Properties::HEADERS_FLAG == 0 {
        return None;
    }
    let headers = properties.headers().ok()??;
    let value = headers::find(headers, |name| name == X_DELAY.as_bytes()).ok()??;
    let delay_ms = match (value.as_integer(), value) {
        (Some(number), _) => number,
        (None, Value::LongStr(text)) => std::str::from_utf8(text).ok()?.parse().ok()?,
        (None, Value::F64(number)) => number.round() as i64,
        (None, Value::F32(number)) => number.round() as i64,
        _ => return None,
    };
    (1..=DELAY_MAX_MS).contains(&delay_ms).then_some(delay_ms as u64)
}

/// The content header of a message that has waited: `x-delay` is negative, so that it does not wait
/// again at another exchange, and still says how long it was.
pub(super) fn with_delay_over(header: &[u8], delay_ms: u64) -> Option<Vec<u8>> {
    let negative = -i64::try_from(delay_ms).ok()?;
    // The first one counts.
    let mut turned = Some(i32::try_from(negative).map_or(Value::I64(negative), Value::I32));
    let keep = |name: &[u8], value| match name == X_DELAY.as_bytes() {
        true => turned.take().or(Some(value)),
        false => Some(value),
    };
    let mut over = Vec::new();
    headers::rewrite(header, keep, |_| {}, &mut over).ok()?;
    Some(over)
}
