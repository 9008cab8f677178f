//! When messages should be sent.
//!
//! The schedule is fixed when a producer starts: message `n` is due `n / rate` seconds later, however the broker is
//! doing. A producer that was held up sends what is overdue at once, each message stamped with the time at which it was
//! due. So the latency of a stall shows in every message that the stall has delayed, and not only in the one that
//! happened to be under way (what is called coordinated omission).

/// The schedule of one producer.
#[derive(Clone, Debug)]
pub struct Pacer {
    start_ns: u64,
    rate: u64,
    sent: u64,
}

/// With more than 10,000 messages a second, a producer wakes this often and sends what is due.
pub const TICK_NS: u64 = 100_000;

impl Pacer {
    /// `rate` messages a second from `start_ns` on; 0 is without limit.
    #[must_use]
    pub fn new(start_ns: u64, rate: u64) -> Self {
        Self { start_ns, rate, sent: 0 }
    }

    /// Whether there is a schedule at all.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.rate != 0
    }

    /// How many messages are due by `now_ns` and not yet sent.
    #[must_use]
    pub fn due(&self, now_ns: u64) -> u64 {
        if self.rate == 0 {
            return u64::MAX;
        }
        let Some(elapsed_ns) = now_ns.checked_sub(self.start_ns) else { return 0 };
        let whole = u128::from(elapsed_ns) * u128::from(self.rate) / 1_000_000_000;
        (whole as u64).saturating_add(1).saturating_sub(self.sent)
    }

    /// The moment that stands for the next message: when it is due, or `now_ns` if there is no schedule. Counts it as
    /// sent.
    #[inline]
    pub fn next_stamp_ns(&mut self, now_ns: u64) -> u64 {
        let number = self.sent;
        self.sent += 1;
        if self.rate == 0 { now_ns } else { self.due_at_ns(number) }
    }

    /// When to look again: the time of the next message that is not due yet, at least a tick from `now_ns`.
    #[must_use]
    pub fn wake_at_ns(&self, now_ns: u64) -> u64 {
        let next_ns = self.due_at_ns(self.sent);
        if self.rate > 1_000_000_000 / TICK_NS { next_ns.max(now_ns + TICK_NS) } else { next_ns }
    }

    /// The time of the message with this number, rounded up to the nanosecond.
    fn due_at_ns(&self, number: u64) -> u64 {
        let offset = (u128::from(number) * 1_000_000_000).div_ceil(u128::from(self.rate.max(1)));
        self.start_ns.saturating_add(offset as u64)
    }
}
