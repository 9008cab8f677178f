//! One pass: how fast it reads, and what it has found.

use super::{Readable, Scrubber};
use courser_journal::{Damaged, Scrubbing};
use std::time::{Duration, Instant};

/// Bytes a second that are read at least: little data is read in less than the time that it may take.
const BYTES_PER_S_MIN: u64 = 256 << 10;
/// Bytes a second that are read at most.
const BYTES_PER_S_MAX: u64 = 64 << 20;
/// The rest behind something that the system refuses to read.
const REST: Duration = Duration::from_secs(2);
/// What is told of a pass at most, each by itself.
const TOLD_MAX: usize = 1024;

/// How fast a pass reads.
pub(super) struct Pace {
    bytes_per_s: u64,
    is_hurried: bool,
    /// When the next block may be read.
    next: Instant,
}

impl Pace {
    pub fn new(total: u64, takes: Option<Duration>) -> Self {
        let (bytes_per_s, is_hurried) = (bytes_per_s(total, takes), takes.is_none());
        Pace { bytes_per_s, is_hurried, next: Instant::now() }
    }

    fn has_read(&mut self, bytes: u64) {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        self.next = self.next.max(Instant::now()) + Duration::from_nanos(nanos as u64);
    }
}

/// A journal that is read in a pass.
pub(super) struct Reading<'a> {
    pub scrubber: &'a Scrubber,
    pub name: &'a str,
    pub journal: &'a dyn Readable,
    pub pace: &'a mut Pace,
}

/// How many bytes a second are read so that so many take as long as is said; without it, as many as may be.
fn bytes_per_s(total: u64, takes: Option<Duration>) -> u64 {
    let wanted = takes.map_or(u64::MAX, |takes| total / takes.as_secs().max(1));
    wanted.clamp(BYTES_PER_S_MIN, BYTES_PER_S_MAX)
}

impl Scrubbing for Reading<'_> {
    fn may_read(&mut self, bytes: u64) -> bool {
        let mut state = self.scrubber.state.lock();
        loop {
            // An operator who wants a pass now gets a whole one.
            if state.stop || state.let_go || state.asked && !self.pace.is_hurried {
                return false;
            }
            if Instant::now() >= self.pace.next {
                break;
            }
            self.scrubber.called.wait_until(&mut state, self.pace.next);
        }
        state.shown.read_bytes += bytes;
        state.shown.scrubbed_bytes += bytes;
        self.pace.has_read(bytes);
        true
    }

    fn found(&mut self, damaged: Damaged) {
        if damaged.error.is_some() {
            self.pace.next = Instant::now() + REST;
        }
        let named = (self.name.to_owned(), damaged.part);
        let mut state = self.scrubber.state.lock();
        state.in_repair = Some(named.clone());
        // What waits for the end of this does not wait for repairs, which may take seconds each.
        let ends = state.stop || state.let_go;
        drop(state);
        let is_repaired = !ends && self.journal.repair(damaged.part);
        let mut state = self.scrubber.state.lock();
        // It may have been written again by what repairs at other times.
        let is_repaired = state.in_repair.take().is_none() || is_repaired;
        state.shown.damaged += 1;
        state.shown.damaged_total += 1;
        if is_repaired {
            state.shown.repaired += 1;
            state.shown.repaired_total += 1;
            state.told.remove(&named);
        } else if state.found.len() < TOLD_MAX {
            if !state.told.contains(&named) {
                tracing::error!(journal = self.name, "the disk has damaged the journal: {damaged}");
            }
            if state.told.len() < TOLD_MAX {
                state.told.insert(named.clone());
            }
            state.found.insert(named);
        }
        self.scrubber.tell(&state);
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
