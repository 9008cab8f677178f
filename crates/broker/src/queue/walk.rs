//! A walk along a queue, past any number of messages: a bounded part of the way under each hold of its lock.

use crate::work;
use courser_store::Location;

/// Messages that are looked at under one hold of a queue's lock, before others have their turn. A page that
/// is looked at is looked at to its end.
pub(super) const WALKED_AT_ONCE: usize = 4096;

/// Where to look at a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Behind the message with this number, which need not be there any more; or at the head.
    pub behind: Option<u64>,
    /// So many more are passed.
    pub skip: usize,
}

impl Cursor {
    /// Behind so many messages.
    pub fn skipping(skip: usize) -> Self {
        Cursor { behind: None, skip }
    }

    /// Behind the message with this number.
    pub fn behind(number: u64) -> Self {
        Cursor { behind: Some(number), skip: 0 }
    }
}

/// One hold of the lock.
pub(super) struct Walk<'f> {
    pub cursor: &'f mut Cursor,
    /// How many messages are to be found altogether.
    count: usize,
    found: &'f mut Vec<(u64, Location)>,
    steps_left: usize,
}

impl<'f> Walk<'f> {
    /// Adds the numbers and places of messages to `found` until there are `count`.
    pub fn new(cursor: &'f mut Cursor, count: usize, found: &'f mut Vec<(u64, Location)>) -> Self {
        Walk { cursor, count, found, steps_left: WALKED_AT_ONCE }
    }

    /// Whether the hold may go on, and has to.
    pub fn goes_on(&self) -> bool {
        self.steps_left > 0 && self.wants_more()
    }

    /// Whether it has stopped where others are to have their turn, before there was enough.
    pub fn is_interrupted(&self) -> bool {
        self.steps_left == 0 && self.wants_more()
    }

    fn wants_more(&self) -> bool {
        self.found.len() < self.count
    }

    /// Comes to a message. Returns whether more are wanted.
    pub fn pass(&mut self, number: u64, location: &Location) -> bool {
        match self.cursor.skip.checked_sub(1) {
            Some(skip) => self.cursor.skip = skip,
            None => self.found.push((number, location.clone())),
        }
        self.cursor.behind = Some(number);
        self.wants_more()
    }

    /// Passes so many messages at once, if all of them are to be skipped. `last` is no less than their numbers,
    /// and less than those that follow.
    pub fn passes_all(&mut self, len: usize, last: u64) -> bool {
        let Some(skip) = self.cursor.skip.checked_sub(len) else { return false };
        *self.cursor = Cursor { behind: Some(last), skip };
        true
    }

    /// Counts what has been looked at. Returns whether the hold goes on.
    pub fn spend(&mut self, steps: usize) -> bool {
        work::count(steps);
        self.steps_left = self.steps_left.saturating_sub(steps);
        self.goes_on()
    }
}
