//! Priorities: messages with a higher one overtake the others, those with the same keep their order.

use super::backlog::{Backlog, Logged};
use crate::memory::Charge;
use courser_codec::ContentHeader;
use courser_store::{Location, MessageRef};

/// How a queue looks at priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// From 0 to this one, which everything above it counts as.
    UpTo(u8),
    /// Two levels: what says nothing or less than 5, and the rest.
    NormalAndHigh,
}

/// The lowest priority that is high where there are two levels.
const HIGH: u8 = 5;

impl Ranks {
    /// The level that a message with this priority has; no priority counts as 0.
    fn level(self, priority: Option<u8>) -> u8 {
        let priority = priority.unwrap_or(0);
        match self {
            Ranks::UpTo(highest) => priority.min(highest),
            Ranks::NormalAndHigh => u8::from(priority >= HIGH),
        }
    }
}

/// Bits of a sequence number below the level, which stands in front.
const LEVEL_SHIFT: u32 = 56;

/// A line of messages for each priority that some message waits with. Levels that nothing waits in
/// cost nothing.
///
/// A message's number in the queue is its level and its number in that level's line. A line that is
/// begun again goes on with a number that none of that level has had.
#[derive(Debug)]
pub(super) struct Levels {
    ranks: Ranks,
    /// Ascending by level; no line is empty.
    backlogs: Vec<(u8, Backlog)>,
    len: usize,
    /// Above every number given out in any level.
    next_sequence: u64,
    /// Counts nothing itself; each line has one like it.
    charge: Charge,
}

impl Levels {
    pub fn new(ranks: Ranks, charge: Charge) -> Self {
        Levels { ranks, backlogs: Vec::new(), len: 0, next_sequence: 0, charge }
    }

    pub fn rank(&self, message: &MessageRef<'_>) -> u8 {
        let header = ContentHeader::parse(message.header).ok();
        let priority = header.and_then(|header| header.properties.priority().ok()).flatten();
        self.ranks.level(priority)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn pass_by(&mut self, level: u8) -> u64 {
        debug_assert!(self.len == 0);
        let sequence = number(level, self.next_sequence);
        self.next_sequence += 1;
        sequence
    }

    pub fn push(&mut self, location: Location, level: u8) {
        let backlog = self.backlog(level);
        backlog.push(location);
        let next = backlog.next_sequence();
        self.next_sequence = self.next_sequence.max(next);
        self.len += 1;
    }

    pub fn put_back(&mut self, sequence: u64, location: Location) {
        let level = (sequence >> LEVEL_SHIFT) as u8;
        self.backlog(level).put_back(sequence & ((1 << LEVEL_SHIFT) - 1), location);
        self.len += 1;
    }

    pub fn front(&self) -> Option<(u64, &Location)> {
        let (level, backlog) = self.backlogs.last()?;
        let (sequence, location) = backlog.front()?;
        Some((number(*level, sequence), location))
    }

    pub fn pop(&mut self) -> Option<(u64, Location)> {
        let (level, backlog) = self.backlogs.last_mut()?;
        let (sequence, location) = backlog.pop()?;
        let sequence = number(*level, sequence);
        if backlog.is_empty() {
            self.backlogs.pop();
        }
        self.len -= 1;
        Some((sequence, location))
    }

    pub fn take_all(&mut self) -> Levels {
        let rest = Levels::new(self.ranks, self.charge.another());
        let rest = Levels { next_sequence: self.next_sequence, ..rest };
        std::mem::replace(self, rest)
    }

    /// Adds the places of the messages whose turn it is next, as [`Backlog::first`] does.
    pub fn first(&self, skip: &mut usize, count: usize, found: &mut Vec<(u64, Location)>) {
        for (level, backlog) in self.backlogs.iter().rev() {
            let before = found.len();
            backlog.first(skip, count, found);
            found[before..].iter_mut().for_each(|(at, _)| *at = number(*level, *at));
        }
    }

    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.backlogs.iter().for_each(|(_, backlog)| backlog.for_each(each));
    }

    pub fn lines(&self) -> Vec<Logged> {
        self.backlogs.iter().map(|(_, backlog)| Logged::line(backlog)).collect()
    }

    pub fn add_logged(&self, all: &mut Logged) {
        self.backlogs.iter().for_each(|(_, backlog)| backlog.add_logged(all));
    }

    fn backlog(&mut self, level: u8) -> &mut Backlog {
        let index = match self.backlogs.binary_search_by_key(&level, |(level, _)| *level) {
            Ok(index) => index,
            Err(index) => {
                let backlog = Backlog::starting_at(self.next_sequence, self.charge.another());
                self.backlogs.insert(index, (level, backlog));
                index
            }
        };
        &mut self.backlogs[index].1
    }
}

fn number(level: u8, sequence: u64) -> u64 {
    u64::from(level) << LEVEL_SHIFT | sequence
}
