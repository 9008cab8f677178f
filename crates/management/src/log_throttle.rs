//! Keeps what users of the API do from filling the log, and from driving out of it what else it says.

use parking_lot::Mutex;

const INTERVAL_MS: u64 = 10_000;
/// Lines of one kind in an interval, as over AMQP.
const LINES_MAX: u32 = 100;

/// Bounds the lines of one kind, whichever users cause them.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    /// The interval in which they are counted.
    interval: u64,
    lines: u32,
    suppressed: u64,
}

impl LogThrottle {
    /// Whether a line may be written: with how many were not since the last one, if there are any.
    pub fn allow(&self, now_ms: u64) -> Option<Option<u64>> {
        let mut said = self.0.lock();
        let interval = now_ms / INTERVAL_MS;
        if said.interval != interval {
            (said.interval, said.lines) = (interval, 0);
        }
        if said.lines >= LINES_MAX {
            said.suppressed += 1;
            return None;
        }
        said.lines += 1;
        Some(Some(std::mem::take(&mut said.suppressed)).filter(|&count| count > 0))
    }
}
