//! Keeps what fails, and is tried again and again, from filling the log.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// One line in this time says it.
const INTERVAL: Duration = Duration::from_secs(10);

/// Failures of one kind.
#[derive(Debug, Default)]
pub struct Repeated(Mutex<(Option<Instant>, u64)>);

impl Repeated {
    /// It has failed: how many others have failed that no line tells of, if there is to be a line now. There is one in ten seconds.
    pub fn line(&self, now: Instant) -> Option<u64> {
        let (last, others) = &mut *self.0.lock();
        if last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            *others += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_one_line_in_ten_seconds_that_counts_the_others() {
        let (failures, start) = (Repeated::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(failures.line(start), Some(0));
        (0..500).for_each(|ms| assert_eq!(failures.line(after(ms)), None));
        assert_eq!(failures.line(after(9_999)), None);
        assert_eq!(failures.line(after(10_000)), Some(501));
        assert_eq!(failures.line(after(10_001)), None);
        assert_eq!(failures.line(after(60_000)), Some(1));
    }
}
