//! Where the messages of a queue are in the log, to be looked at without the queue's lock.

use super::backlog::Backlog;
use super::packed::{PAGE_LOCATIONS, Packed};
use courser_store::{Location, Position};
use std::collections::VecDeque;

/// The position in the log and the marks of a message.
pub(crate) type Entry = (Position, u16);

/// The messages of a queue that are in the log. The many in the middle are shared with the queue.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub first: Vec<Entry>,
    pub packed: VecDeque<Packed>,
    pub last: Vec<Entry>,
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
        Entries { open: self.first.into_iter(), packed: self.packed, last: self.last }
    }

    /// Calls `each` with runs of them, in the queue's order.
    pub fn for_each_run(self, each: &mut dyn FnMut(&[Entry])) {
        each(&self.first);
        let mut run = Vec::with_capacity(PAGE_LOCATIONS);
        for packed in self.packed {
            run.clear();
            packed.for_each_logged(&mut |position, marks| run.push((position, marks)));
            each(&run);
        }
        each(&self.last);
    }
}

/// Messages of a queue that are in the log, one after the other.
#[derive(Debug)]
pub(crate) struct Entries {
    open: std::vec::IntoIter<Entry>,
    packed: VecDeque<Packed>,
    last: Vec<Entry>,
}

impl Iterator for Entries {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.open.next() {
                return Some(entry);
            }
            let run = match self.packed.pop_front() {
                Some(packed) => {
                    let mut run = Vec::with_capacity(PAGE_LOCATIONS);
                    packed.for_each_logged(&mut |position, marks| run.push((position, marks)));
                    run
                }
                None if self.last.is_empty() => return None,
                None => std::mem::take(&mut self.last),
            };
            self.open = run.into_iter();
        }
    }
}

/// The position and the marks of a message that is in the log.
pub(crate) fn logged(location: &Location) -> Option<Entry> {
    location.position().map(|position| (position, location.marks()))
}
