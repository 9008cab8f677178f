//! The messages of a queue that wait for a consumer, in the queue's order.

use super::amounts::Amounts;
use super::backlog::Backlog;
use super::logged::{Entry, Logged};
use super::priority::{Ends, Levels, Ranks, level_of, priority_of};
use super::sizes::SizeOf;
use super::walk::{Cursor, Walk};
use crate::memory::Charge;
use courser_store::{Location, MessageRef};
use std::collections::BTreeMap;

/// What waits: one line, or one for each priority if the queue looks at them.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    backlog: Backlog,
    /// There for a queue with priorities, which leaves `line` empty.
    levels: Option<Box<Levels>>,
    counts_bytes: bool,
    amounts: Amounts,
}

impl Ready {
    /// Nothing waits. What it uses is counted by `charge`.
    pub fn new(ranks: Option<Ranks>, charge: Charge) -> Self {
        let levels = ranks.map(|ranks| Box::new(Levels::new(ranks, charge.another())));
        let backlog = Backlog::starting_at(0, charge);
        Ready { backlog, levels, ..Ready::default() }
    }

    /// Another charge in the books in which what it uses is counted.
    pub fn charge(&self) -> Charge {
        self.backlog.charge()
    }

    /// Whether the place of a message depends on its priority.
    #[inline]
    pub fn has_levels(&self) -> bool {
        self.levels.is_some()
    }

    /// The level of a message; 0 in a queue without priorities.
    #[inline]
    pub fn rank(&self, message: Option<MessageRef<'_>>) -> u8 {
        let said = || message.as_ref().and_then(priority_of);
        self.levels.as_ref().map_or(0, |levels| levels.level(said()))
    }

    /// The level of a message that says this of its priority; 0 in a queue without priorities.
    pub fn level(&self, priority: Option<u8>) -> u8 {
        self.levels.as_ref().map_or(0, |levels| levels.level(priority))
    }

    /// The level of a message that has this number; 0 in a queue without priorities.
    #[inline]
    pub fn rank_of(&self, number: u64) -> u8 {
        if self.levels.is_some() { level_of(number) } else { 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.levels.as_ref().map_or_else(|| self.backlog.len(), |levels| levels.len())
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.is_empty() && self.levels.as_ref().is_none_or(|levels| levels.len() == 0)
    }

    /// The number for a message that is handed out without ever lying here.
    #[inline]
    pub fn pass_by<'m>(&mut self, message: impl FnOnce() -> Option<MessageRef<'m>>) -> u64 {
        match &mut self.levels {
            None => self.backlog.pass_by(),
            Some(levels) => {
                let rank = message().map_or(0, |message| levels.level(priority_of(&message)));
                levels.pass_by(rank)
            }
        }
    }

    /// Bytes of the bodies that wait, where they are counted.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.levels.as_ref().map_or_else(|| self.backlog.bytes(), |levels| levels.bytes())
    }

    /// Bytes of the body whose turn it is, where they are counted and known.
    pub fn front_bytes(&self) -> Option<u32> {
        self.levels.as_ref().map_or_else(|| self.backlog.front_bytes(), |one| one.front_bytes())
    }

    /// Whether bytes are counted.
    pub fn counts_bytes(&self) -> bool {
        self.counts_bytes
    }

    /// Counts bytes from now on: of what waits already as far as [`Ready::read_sizes`] has read it.
    pub fn count_bytes(&mut self) {
        self.counts_bytes = true;
        match &mut self.levels {
            None => self.backlog.count_bytes(),
            Some(levels) => levels.count_bytes(),
        }
    }

    /// Whether bytes are counted, and some have yet to be read.
    #[inline]
    pub fn lacks_sizes(&self) -> bool {
        self.counts_bytes
            && match &self.levels {
                None => self.backlog.lacks_sizes(),
                Some(levels) => levels.lacks_sizes(),
            }
    }

    /// Counts the bytes of `most` messages that have yet to be read; `size_of` reads, or says that it is enough. Returns how
    /// many those were.
    pub fn read_sizes(&mut self, most: usize, size_of: &mut SizeOf<'_>) -> usize {
        match &mut self.levels {
            None => self.backlog.read_sizes(most, size_of),
            Some(levels) => levels.read_sizes(most, size_of),
        }
    }

    /// Counts bytes no more.
    pub fn count_no_bytes(&mut self) {
        self.counts_bytes = false;
        match &mut self.levels {
            None => self.backlog.count_no_bytes(),
            Some(levels) => levels.count_no_bytes(),
        }
    }

    /// How many messages wait, and how large they are.
    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// Bytes of memory that the places of the messages use.
    pub fn used_bytes(&self) -> usize {
        let levels = self.levels.as_ref().map_or(0, |levels| levels.used_bytes());
        self.backlog.used_bytes() + levels
    }

    /// Adds a new message at the end of its level, with a body of so many bytes.
    #[inline]
    pub fn push(&mut self, location: Location, rank: u8, body_bytes: usize) {
        self.amounts.add(&location);
        let bytes = u32::try_from(body_bytes).unwrap_or(u32::MAX);
        match &mut self.levels {
            None => self.backlog.push(location, bytes),
            Some(levels) => levels.push(location, rank, bytes),
        }
    }

    /// Puts a message back where it was, with a body of so many bytes if that is known.
    pub fn put_back(&mut self, sequence: u64, location: Location, bytes: Option<u32>) {
        self.amounts.add(&location);
        match &mut self.levels {
            None => self.backlog.put_back(sequence, location, bytes),
            Some(levels) => levels.put_back(sequence, location, bytes),
        }
    }

    /// The message whose turn it is, and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        match &self.levels {
            None => self.backlog.front(),
            Some(levels) => levels.front(),
        }
    }

    /// Takes the message whose turn it is, and its number.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        let popped = match &mut self.levels {
            None => self.backlog.pop(),
            Some(levels) => levels.pop(),
        };
        if let Some((_, location)) = &popped {
            self.amounts.sub(location);
        }
        popped
    }

    /// Where in each line stands what comes from now on.
    pub fn ends(&self) -> Ends {
        match &self.levels {
            None => Ends::of_line(self.backlog.next_sequence()),
            Some(levels) => levels.ends(),
        }
    }

    /// Takes the message of those before `ends` whose turn it is.
    pub fn pop_before(&mut self, ends: &Ends) -> Option<Location> {
        let location = match &mut self.levels {
            None => {
                let (number, _) = self.backlog.front()?;
                ends.are_behind(number).then(|| self.backlog.pop())??.1
            }
            Some(levels) => levels.pop_before(ends)?,
        };
        self.amounts.sub(&location);
        Some(location)
    }

    /// Takes everything. The caller drops it, better without the queue's lock.
    pub fn take_all(&mut self) -> Ready {
        let levels = self.levels.as_mut().map(|levels| Box::new(levels.take_all()));
        let amounts = std::mem::take(&mut self.amounts);
        let counts_bytes = self.counts_bytes;
        Ready { backlog: self.backlog.take_all(), levels, counts_bytes, amounts }
    }

    /// Calls `each` with the place of every message.
    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.backlog.for_each(each);
        if let Some(levels) = &self.levels {
            levels.for_each(each);
        }
    }

    /// Adds the numbers and places of messages to `found`, from `cursor` on, in the order of their turns, until
    /// there are `count`; the cursor goes along. Returns whether it has stopped for others to have their turn.
    pub fn walk(
        &self,
        cursor: &mut Cursor,
        count: usize,
        found: &mut Vec<(u64, Location)>,
    ) -> bool {
        if cursor.behind.is_none() && cursor.skip >= self.len() {
            return false;
        }
        let from = cursor.behind.map_or(0, |behind| behind + 1);
        let mut walk = Walk::new(cursor, count, found);
        if walk.goes_on() {
            match &self.levels {
                None => self.backlog.walk(from, 0, &mut walk),
                Some(levels) => levels.walk(&mut walk),
            }
        }
        walk.is_interrupted()
    }

    /// Takes messages with these numbers, which are in the order of their turns, as many as may be under one
    /// hold of the lock, and calls `each` with those that are there. Returns how many numbers those were.
    pub fn take(&mut self, numbers: &[u64], each: &mut dyn FnMut(u64, Location)) -> usize {
        let Ready { backlog, levels, amounts, .. } = self;
        let each = &mut |number, location: Location| {
            amounts.sub(&location);
            each(number, location);
        };
        match levels {
            None => backlog.take(numbers, each),
            Some(levels) => levels.take(numbers, each),
        }
    }

    /// Where the messages are that are in the log, those of each priority by themselves; with those that are elsewhere for the
    /// moment, by their levels.
    pub fn lines_with(&self, away: impl Iterator<Item = (u8, Entry)>) -> BTreeMap<u8, Logged> {
        match &self.levels {
            None => {
                let away = away.map(|(_, entry)| entry).collect();
                BTreeMap::from([(0, Logged { away, ..Logged::line(&self.backlog) })])
            }
            Some(levels) => levels.lines_with(away),
        }
    }
}

#[cfg(test)]
mod tests;
