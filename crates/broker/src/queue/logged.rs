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
        let Logged { first, packed, mut last, away } = self;
        last.extend(away);
        Entries { open: first.into_iter(), packed, last }
    }

    /// Calls `each` with runs of them, in the queue's order.
    pub fn for_each_run(self, each: &mut dyn FnMut(&[Entry])) {
        let Logged { first, packed, last, mut away } = self;
        away.sort_unstable();
        let mut away = away.into_iter().peekable();
        let mut with_those_away = |run: &mut Vec<Entry>| {
            let newest = run.iter().map(|(position, _)| *position).max();
            let before = |one: &Entry| newest.is_some_and(|newest| one.0 < newest);
            run.extend(std::iter::from_fn(|| away.next_if(before)));
            each(run);
        };
        let mut run = first;
        run.reserve_exact(PAGE_LOCATIONS.saturating_sub(run.len()));
        with_those_away(&mut run);
        for packed in packed {
            run.clear();
            packed.for_each_logged(&mut |position, marks| run.push((position, marks)));
            with_those_away(&mut run);
        }
        run = last;
        with_those_away(&mut run);
        each(&away.collect::<Vec<_>>());
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
