//! The clock that stamps are made of: monotonic nanoseconds, the same in all processes of a machine.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some moment before the machine's programs began.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}
