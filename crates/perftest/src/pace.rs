//! When messages should be sent.
//!
//! The schedule is fixed when a producer starts: message `n` is due `n / rate` seconds later, however the broker is
//! doing. A producer that was held up sends what is overdue at once, each message stamped with the time at which it was
//! due. So the latency of a stall shows in every message that the stall has delayed, and not only in the one that
//! happened to be under way (what is called coordinated omission).

use crate::options::steps::Step;

/// The schedule of one producer.
#[derive(Clone, Debug)]
pub struct Pacer {
    start_ns: u64,
    /// Rates that follow each other, and begin again; empty without a limit.
    phases: Vec<Phase>,
    sent: u64,
}

/// A time with one rate.
#[derive(Clone, Copy, Debug)]
struct Phase {
    rate: u64,
    length_ns: u64,
    /// How many messages are due in it.
    count: u64,
}

impl Phase {
    fn new(rate: u64, length_ns: u64) -> Self {
        let count = (u128::from(rate) * u128::from(length_ns)).div_ceil(SECOND_NS);
        Self { rate, length_ns, count: u64::try_from(count).unwrap_or(u64::MAX) }
    }

    /// How many messages are due so long after its beginning: the first one at once.
    fn due(self, elapsed_ns: u64) -> u64 {
        let whole = u128::from(elapsed_ns) * u128::from(self.rate) / SECOND_NS;
        (whole as u64).saturating_add(1).min(self.count)
    }

    /// When the message with this number is due, rounded up to the nanosecond.
    fn due_at_ns(self, number: u64) -> u64 {
        (u128::from(number) * SECOND_NS).div_ceil(u128::from(self.rate.max(1))) as u64
    }
}

const SECOND_NS: u128 = 1_000_000_000;

/// With more than 10,000 messages a second, a producer wakes this often and sends what is due.
pub const TICK_NS: u64 = 100_000;

impl Pacer {
    /// `rate` messages a second from `start_ns` on; 0 is without limit.
    #[must_use]
    pub fn new(start_ns: u64, rate: u64) -> Self {
        let phases = if rate == 0 { Vec::new() } else { vec![Phase::new(rate, u64::MAX)] };
        Self { start_ns, phases, sent: 0 }
    }

    /// Rates that follow each other from `start_ns` on, at least one of them more than 0.
    #[must_use]
    pub fn in_steps(start_ns: u64, steps: &[Step]) -> Self {
        let phase = |step: &Step| Phase::new(step.value, step.time.as_nanos() as u64);
        Self { start_ns, phases: steps.iter().map(phase).collect(), sent: 0 }
    }

    /// Whether there is a schedule at all.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.phases.is_empty()
    }

    /// How many messages are due by `now_ns` and not yet sent.
    #[must_use]
    pub fn due(&self, now_ns: u64) -> u64 {
        if self.phases.is_empty() {
            return u64::MAX;
        }
        let Some(elapsed_ns) = now_ns.checked_sub(self.start_ns) else { return 0 };
        let (round_ns, round_count) = self.round();
        let mut due = (elapsed_ns / round_ns).saturating_mul(round_count);
        let mut left_ns = elapsed_ns % round_ns;
        for phase in &self.phases {
            due = due.saturating_add(phase.due(left_ns));
            if left_ns < phase.length_ns {
                break;
            }
            left_ns -= phase.length_ns;
        }
        due.saturating_sub(self.sent)
    }

    /// The moment that stands for the next message: when it is due, or `now_ns` if there is no schedule. Counts it as
    /// sent.
    #[inline]
    pub fn next_stamp_ns(&mut self, now_ns: u64) -> u64 {
        let number = self.sent;
        self.sent += 1;
        if self.phases.is_empty() { now_ns } else { self.due_at(number).0 }
    }

    /// When to look again: the time of the next message that is not due yet, at least a tick from `now_ns`.
    #[must_use]
    pub fn wake_at_ns(&self, now_ns: u64) -> u64 {
        let (next_ns, rate) = self.due_at(self.sent);
        if rate > 1_000_000_000 / TICK_NS { next_ns.max(now_ns + TICK_NS) } else { next_ns }
    }

    /// Length of all phases together, and messages in them.
    fn round(&self) -> (u64, u64) {
        self.phases.iter().fold((0, 0), |(length_ns, count): (u64, u64), phase| {
            (length_ns.saturating_add(phase.length_ns), count.saturating_add(phase.count))
        })
    }

    /// When the message with this number is due, and the rate at that time.
    fn due_at(&self, number: u64) -> (u64, u64) {
        let (round_ns, round_count) = self.round();
        let rounds = number.checked_div(round_count).unwrap_or(0);
        let mut begun_ns = self.start_ns.saturating_add(rounds.saturating_mul(round_ns));
        let mut left = number.checked_rem(round_count).unwrap_or(0);
        for phase in &self.phases {
            if left < phase.count {
                return (begun_ns.saturating_add(phase.due_at_ns(left)), phase.rate);
            }
            left -= phase.count;
            begun_ns = begun_ns.saturating_add(phase.length_ns);
        }
        (begun_ns, 0)
    }
}
