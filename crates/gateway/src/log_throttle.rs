//! Keeps what peers do, and what lasts, from filling the log.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often something is said in an interval.
const SAID_MAX: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(10);
/// When a reason that has not changed is said again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// Lets ten lines through in ten seconds.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    since: Option<Instant>,
    times: u32,
    suppressed: u64,
}

impl LogThrottle {
    /// Whether something may be said: with how many times it was not, before.
    pub fn may_say(&self) -> Option<u64> {
        let mut said = self.0.lock().ok()?;
        if said.since.is_none_or(|since| since.elapsed() >= INTERVAL) {
            (said.since, said.times) = (Some(Instant::now()), 0);
        }
        if said.times >= SAID_MAX {
            said.suppressed += 1;
            return None;
        }
        said.times += 1;
        Some(std::mem::take(&mut said.suppressed))
    }
}

/// Lets a reason through when it is another than the last one, or a minute later.
#[derive(Debug, Default)]
pub(crate) struct Once(Mutex<Option<(String, Instant)>>);

impl Once {
    /// Whether a reason may be said.
    pub fn may_say(&self, reason: &str) -> bool {
        let Ok(mut last) = self.0.lock() else { return false };
        if last.as_ref().is_some_and(|(said, at)| said == reason && at.elapsed() < REPEAT_INTERVAL)
        {
            return false;
        }
        *last = Some((reason.to_owned(), Instant::now()));
        true
    }
}
