//! Where the messages of a queue are in the log, to be looked at without the queue's lock.

use super::backlog::Backlog;
use super::packed::{PAGE_LOCATIONS, Packed};
use courser_store::{BodySize, Location, Position};
use std::collections::VecDeque;
use std::{mem, vec};

/// The position in the log, the marks, and the size of the body of a message.
pub(crate) type Entry = (Position, u16, BodySize);

/// The position in the log of a message, and the size of its body.
pub(crate) type Placed = (Position, BodySize);

/// The messages of a queue that are in the log. The many in the middle are shared with the queue.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub first: Vec<Entry>,
    pub packed: VecDeque<Packed>,
    pub last: Vec<Entry>,
    /// Those that are elsewhere for the moment, in any order. They came between the others, whose positions tell where.
    pub away: Vec<Entry>,
}

impl Logged {
    /// Those in a line of their own.
    pub fn line(of: &Backlog) -> Self {
        let mut logged = Logged::default();
        of.add_logged(&mut logged);
        logged
    }

    /// All of them, in the queue's order; what is packed is unpacked piece by piece.
    pub fn into_entries(self) -> Entries {
        Entries { runs: Runs::of(self), run: Vec::new().into_iter() }
    }

    /// Calls `each` with runs of them, in the queue's order.
    pub fn for_each_run(self, each: &mut dyn FnMut(&[Entry])) {
        let (mut runs, mut run) = (Runs::of(self), Vec::new());
        while runs.next_into(&mut run) {
            each(&run);
        }
    }
}

/// Messages of a queue that are in the log, run by run.
#[derive(Debug)]
struct Runs {
    first: Vec<Entry>,
    packed: VecDeque<Packed>,
    last: Vec<Entry>,
    /// By their positions.
    away: VecDeque<Entry>,
}

impl Runs {
    fn of(Logged { first, packed, last, mut away }: Logged) -> Self {
        away.sort_unstable();
        Runs { first, packed, last, away: away.into() }
    }

    /// Puts the next ones into `run` instead of what is in it, with those that are away and came before the newest of
    /// them. Returns whether there were any.
    fn next_into(&mut self, run: &mut Vec<Entry>) -> bool {
        run.clear();
        if !self.first.is_empty() {
            *run = mem::take(&mut self.first);
        } else if let Some(packed) = self.packed.pop_front() {
            run.reserve(PAGE_LOCATIONS);
            packed.for_each_logged(&mut |entry| run.push(entry));
        } else if !self.last.is_empty() {
            run.append(&mut self.last);
        } else {
            run.extend(self.away.drain(..));
            return !run.is_empty();
        }
        if !self.away.is_empty() {
            let newest = run.iter().map(|(position, ..)| *position).max();
            let before =
                self.away.partition_point(|one| newest.is_some_and(|newest| one.0 < newest));
            if before > 0 {
                run.extend(self.away.drain(..before));
                run.sort_unstable();
            }
        }
        true
    }
}

/// Messages of a queue that are in the log, one after the other.
#[derive(Debug)]
pub(crate) struct Entries {
    runs: Runs,
    run: vec::IntoIter<Entry>,
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.run.next() {
                return Some(entry);
            }
            let mut run = Vec::new();
            if !self.runs.next_into(&mut run) {
                return None;
            }
            self.run = run.into_iter();
        }
    }
}

/// The entry of a message that is in the log.
pub(crate) fn logged(location: &Location) -> Option<Entry> {
    location.position().map(|position| (position, location.marks(), location.body_size()))
}
