//! Values that change during a run: `100:60s,1000:10s` is 100 for a minute, then 1000 for ten seconds, then 100 again.

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use crate::duration::parse_duration;

/// A value, and how long it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The value.
    pub value: u64,
    /// How long it holds; more than nothing.
    pub time: Duration,
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("{text:?} is not VALUE:TIME; write 100:60s");
        let (value, time) = text.split_once(':').ok_or_else(error)?;
        let value = value.trim().parse().map_err(|_| error())?;
        let time = parse_duration(time).map_err(|error| error.to_string())?;
        if time.is_zero() {
            return Err(format!("{text:?}: the time must be more than nothing"));
        }
        Ok(Self { value, time })
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{:?}", self.value, self.time)
    }
}

/// The value at this moment, counted from the beginning; the steps begin again when they are over.
#[must_use]
pub fn value_at(steps: &[Step], elapsed_ns: u64) -> Option<u64> {
    let length_ns: u128 = steps.iter().map(|step| step.time.as_nanos()).sum();
    let mut left_ns = u128::from(elapsed_ns) % length_ns.max(1);
    for step in steps {
        match left_ns.checked_sub(step.time.as_nanos()) {
            None => return Some(step.value),
            Some(left) => left_ns = left,
        }
    }
    None
}
