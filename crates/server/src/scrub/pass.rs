//! One pass: how fast it reads, and what it has found.

use super::Scrubber;
use courser_journal::{Damaged, Part, Scrubbing};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Bytes a second that are read at least: little data is read in less than the time that it may take.
const BYTES_PER_S_MIN: u64 = 256 << 10;
/// Bytes a second that are read at most.
const BYTES_PER_S_MAX: u64 = 64 << 20;
/// The rest behind something that the system refuses to read.
const REST: Duration = Duration::from_secs(2);
/// What is told of a pass at most, each by itself.
const TOLD_MAX: usize = 1024;

/// A pass that goes on.
pub(super) struct Reading<'a> {
    scrubber: &'a Scrubber,
    /// The journal that is read.
    journal: String,
    bytes_per_s: u64,
    is_hurried: bool,
    /// When the next block may be read.
    next: Instant,
    found: BTreeSet<(String, Part)>,
}

/// How many bytes a second are read so that so many take as long as is said; without it, as many as may be.
fn bytes_per_s(total: u64, takes: Option<Duration>) -> u64 {
    let wanted = takes.map_or(u64::MAX, |takes| total / takes.as_secs().max(1));
    wanted.clamp(BYTES_PER_S_MIN, BYTES_PER_S_MAX)
}

impl<'a> Reading<'a> {
    pub fn new(scrubber: &'a Scrubber, total: u64, takes: Option<Duration>) -> Self {
        let (is_hurried, next) = (takes.is_none(), Instant::now());
        Reading {
            scrubber,
            journal: String::new(),
            bytes_per_s: bytes_per_s(total, takes),
            is_hurried,
            next,
            found: BTreeSet::new(),
        }
    }

    /// Goes on with this journal.
    pub fn begin(&mut self, journal: &str) {
        journal.clone_into(&mut self.journal);
    }

    /// What was found.
    pub fn finish(self) -> BTreeSet<(String, Part)> {
        self.found
    }
}

impl Scrubbing for Reading<'_> {
    fn may_read(&mut self, bytes: u64) -> bool {
        let mut state = self.scrubber.state.lock();
        loop {
            // An operator who wants a pass now gets a whole one.
            if state.stop || state.asked && !self.is_hurried {
                return false;
            }
            if Instant::now() >= self.next {
                break;
            }
            self.scrubber.called.wait_until(&mut state, self.next);
        }
        state.shown.read_bytes += bytes;
        state.shown.scrubbed_bytes += bytes;
        let takes = Duration::from_nanos(
            (u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s)) as u64,
        );
        self.next = self.next.max(Instant::now()) + takes;
        true
    }

    fn found(&mut self, damaged: Damaged) {
        if damaged.error.is_some() {
            self.next = Instant::now() + REST;
        }
        let mut state = self.scrubber.state.lock();
        state.shown.damaged += 1;
        state.shown.damaged_total += 1;
        if self.found.len() >= TOLD_MAX {
            return;
        }
        let named = (self.journal.clone(), damaged.part);
        if !state.told.contains(&named) {
            tracing::error!(journal = self.journal, "the disk has damaged the journal: {damaged}");
            self.scrubber.notices.journal_is_damaged(true);
        }
        self.found.insert(named);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_read_in_the_time_that_it_may_take_within_bounds() {
        let week = Some(Duration::from_secs(7 * 24 * 3600));
        assert_eq!(bytes_per_s(0, week), BYTES_PER_S_MIN);
        assert_eq!(bytes_per_s(100 << 30, week), BYTES_PER_S_MIN);
        let tebibyte = 1 << 40;
        assert_eq!(bytes_per_s(tebibyte, week), tebibyte / (7 * 24 * 3600));
        assert_eq!(bytes_per_s(1 << 50, week), BYTES_PER_S_MAX);
        assert_eq!(bytes_per_s(0, None), BYTES_PER_S_MAX);
    }
}
