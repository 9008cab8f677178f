//! Keeps what clients do from filling the log: some lines in an interval are let through, the others counted.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(10);
/// Lines of one connection in an interval.
const OWN_MAX: u32 = 10;
/// Lines of one kind, of all connections together, in an interval.
const ALL_MAX: u32 = 100;

/// How many lines of its kind a line stands for that were not written, if there are any.
pub(crate) type Suppressed = Option<u64>;

/// The lines that clients can cause, by kind: no kind takes the place of another.
#[derive(Debug, Default)]
pub(crate) struct Throttles {
    /// Requests that were refused.
    pub refused: Throttle,
    /// Logins that were refused, and handshakes that failed.
    pub logins: Throttle,
    /// Connections that there was no room for.
    pub connections: Throttle,
    /// Connections that have ended with what their users had logged in with.
    pub expired: Throttle,
}

/// Bounds the lines of one kind, whichever connections cause them.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<(Allowance, u64)>);

impl Throttle {
    /// Whether a line may be written.
    pub fn allow(&self, now: Instant) -> Option<Suppressed> {
        let (allowance, suppressed) = &mut *self.0.lock();
        if !allowance.take(ALL_MAX, now) {
            *suppressed += 1;
            return None;
        }
        Some(Some(std::mem::take(suppressed)).filter(|&count| count > 0))
    }

    /// The same for a connection with an allowance of its own, so that one that is refused again and again does not
    /// hide what happens to others.
    pub fn allow_own(&self, own: &mut Allowance, now: Instant) -> Option<Suppressed> {
        if own.take(OWN_MAX, now) {
            return self.allow(now);
        }
        self.0.lock().1 += 1;
        None
    }
}

/// Lines in the current interval.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    since: Option<Instant>,
    taken: u32,
}

impl Allowance {
    fn take(&mut self, most: u32, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= INTERVAL) {
            (self.since, self.taken) = (Some(now), 0);
        }
        self.taken += 1;
        self.taken <= most
    }
}
