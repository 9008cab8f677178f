//! Priorities: messages with a higher one overtake the others, those with the same keep their order.

use super::backlog::Backlog;
use super::logged::{Entry, Logged};
use super::sizes::SizeOf;
use super::walk::Walk;
use crate::memory::Charge;
use courser_codec::ContentHeader;
use courser_store::{Location, MessageRef};
use std::collections::BTreeMap;

/// How a queue looks at priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// From 0 to this one, which everything above it counts as.
    UpTo(u8),
    /// From 0 to 31, as a quorum queue does; what says nothing counts as 4.
    Quorum,
}

/// The level in a quorum queue of what says nothing, and the highest one.
const QUORUM_NORMAL: u8 = 4;
const QUORUM_HIGHEST: u8 = 31;

impl Ranks {
    /// The level that a message with this priority has.
    fn level(self, priority: Option<u8>) -> u8 {
        match self {
            Ranks::UpTo(highest) => priority.unwrap_or(0).min(highest),
            Ranks::Quorum => priority.unwrap_or(QUORUM_NORMAL).min(QUORUM_HIGHEST),
        }
    }
}

/// What a message says of its priority.
pub(crate) fn priority_of(message: &MessageRef<'_>) -> Option<u8> {
    ContentHeader::parse(message.header).ok()?.properties.priority().ok()?
}

/// Room for so many lines is kept when they are empty.
const KEPT_LINES: usize = 4;
/// Bits of a sequence number below the level, which stands in front.
const LEVEL_SHIFT: u32 = 56;

/// A line of messages for each priority that some message waits with. Of levels that nothing waits in
/// no more is kept than room for a few lines.
///
/// A message's number in the queue is its level and its number in that level's line. A line that is
/// begun again goes on with a number that none of that level has had.
#[derive(Debug)]
pub(super) struct Levels {
    ranks: Ranks,
    /// Ascending by level; no line is empty.
    backlogs: Vec<(u8, Backlog)>,
    len: usize,
    counts_bytes: bool,
    /// Above every number given out in any level.
    next_sequence: u64,
    /// Counts the room for lines; each line has one like it for what is in it.
    charge: Charge,
}

/// Where the lines of a queue ended at some moment: what has come since has higher numbers.
#[derive(Debug)]
pub(super) struct Ends {
    /// The next number of each level that had messages then.
    lines: Vec<(u8, u64)>,
    /// A line that is begun later begins here, or above.
    others: u64,
}

impl Ends {
    /// Of a queue without priorities.
    pub fn of_line(next: u64) -> Self {
        Ends { lines: Vec::new(), others: next }
    }

    /// Whether the message with this number had come by then.
    pub fn are_behind(&self, number: u64) -> bool {
        let line = self.lines.iter().find(|(level, _)| *level == level_of(number));
        sequence_of(number) < line.map_or(self.others, |(_, end)| *end)
    }
}

impl Levels {
    pub fn new(ranks: Ranks, charge: Charge) -> Self {
        let (backlogs, counts_bytes) = (Vec::new(), false);
        Levels { ranks, backlogs, len: 0, counts_bytes, next_sequence: 0, charge }
    }

    /// The level of a message that says this of its priority.
    pub fn level(&self, priority: Option<u8>) -> u8 {
        self.ranks.level(priority)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that the lines use.
    pub fn used_bytes(&self) -> usize {
        let lines = self.backlogs.iter().map(|(_, backlog)| backlog.used_bytes());
        lines.sum::<usize>() + self.charge.bytes()
    }

    /// Counts the room for lines, after that has changed.
    #[cold]
    fn count_room(&mut self) {
        self.charge.set(self.backlogs.capacity() * size_of::<(u8, Backlog)>());
    }

    /// Ends an empty line. Gives room back when hardly any is needed.
    fn end_line(&mut self, index: usize) {
        self.backlogs.remove(index);
        let (lines, room) = (self.backlogs.len(), self.backlogs.capacity());
        if room > KEPT_LINES && lines * 4 <= room {
            self.backlogs.shrink_to(KEPT_LINES.max(2 * lines));
            self.count_room();
        }
    }

    pub fn pass_by(&mut self, level: u8) -> u64 {
        debug_assert!(self.len == 0);
        let sequence = number(level, self.next_sequence);
        self.next_sequence += 1;
        sequence
    }

    pub fn bytes(&self) -> u64 {
        self.backlogs.iter().map(|(_, backlog)| backlog.bytes()).sum()
    }

    pub fn front_bytes(&self) -> Option<u32> {
        self.backlogs.last()?.1.front_bytes()
    }

    pub fn count_bytes(&mut self) {
        self.counts_bytes = true;
        self.backlogs.iter_mut().for_each(|(_, backlog)| backlog.count_bytes());
    }

    pub fn lacks_sizes(&self) -> bool {
        self.backlogs.iter().any(|(_, backlog)| backlog.lacks_sizes())
    }

    /// As [`Backlog::read_sizes`]: those first whose turn comes last.
    pub fn read_sizes(&mut self, most: usize, size_of: &mut SizeOf<'_>) -> usize {
        let read = |read, (_, backlog): &mut (u8, Backlog)| {
            read + backlog.read_sizes(most - read, size_of)
        };
        self.backlogs.iter_mut().fold(0, read)
    }

    pub fn count_no_bytes(&mut self) {
        self.counts_bytes = false;
        self.backlogs.iter_mut().for_each(|(_, backlog)| backlog.count_no_bytes());
    }

    pub fn push(&mut self, location: Location, level: u8, bytes: u32) {
        let backlog = self.backlog(level);
        backlog.push(location, bytes);
        let next = backlog.next_sequence();
        self.next_sequence = self.next_sequence.max(next);
        self.len += 1;
    }

    pub fn put_back(&mut self, sequence: u64, location: Location, bytes: Option<u32>) {
        self.backlog(level_of(sequence)).put_back(sequence_of(sequence), location, bytes);
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
            self.end_line(self.backlogs.len() - 1);
        }
        self.len -= 1;
        Some((sequence, location))
    }

    pub fn ends(&self) -> Ends {
        let next = |(level, backlog): &(u8, Backlog)| (*level, backlog.next_sequence());
        Ends { lines: self.backlogs.iter().map(next).collect(), others: self.next_sequence }
    }

    /// Takes the message of those before `ends` whose turn it is.
    pub fn pop_before(&mut self, ends: &Ends) -> Option<Location> {
        let index = self.backlogs.iter().rposition(|(level, backlog)| {
            backlog.front().is_some_and(|(at, _)| ends.are_behind(number(*level, at)))
        })?;
        let (_, location) = self.backlogs[index].1.pop()?;
        if self.backlogs[index].1.is_empty() {
            self.end_line(index);
        }
        self.len -= 1;
        Some(location)
    }

    pub fn take_all(&mut self) -> Levels {
        let rest = Levels::new(self.ranks, self.charge.another());
        let (next_sequence, counts_bytes) = (self.next_sequence, self.counts_bytes);
        let rest = Levels { next_sequence, counts_bytes, ..rest };
        std::mem::replace(self, rest)
    }

    /// As [`Backlog::walk`], through the levels whose turn comes behind the cursor.
    pub fn walk(&self, walk: &mut Walk<'_>) {
        let behind = walk.cursor.behind.map(|at| (level_of(at), sequence_of(at) + 1));
        for (level, backlog) in self.backlogs.iter().rev() {
            let from = match behind {
                Some((passed, _)) if *level > passed => continue,
                Some((passed, from)) if *level == passed => from,
                _ => 0,
            };
            backlog.walk(from, number(*level, 0), walk);
            if !walk.goes_on() {
                break;
            }
        }
    }

    /// As [`Backlog::take`]: those of the level that the first has.
    pub fn take(&mut self, numbers: &[u64], each: &mut dyn FnMut(u64, Location)) -> usize {
        let Some(level) = numbers.first().copied().map(level_of) else { return 0 };
        let of_level = numbers.iter().copied().take_while(|at| level_of(*at) == level);
        let sequences: Vec<u64> = of_level.map(sequence_of).collect();
        let Ok(index) = self.backlogs.binary_search_by_key(&level, |(level, _)| *level) else {
            return sequences.len();
        };
        let backlog = &mut self.backlogs[index].1;
        let before = backlog.len();
        let done = backlog.take(&sequences, &mut |at, location| each(number(level, at), location));
        self.len -= before - backlog.len();
        if backlog.is_empty() {
            self.end_line(index);
        }
        done
    }

    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.backlogs.iter().for_each(|(_, backlog)| backlog.for_each(each));
    }

    pub fn lines_with(&self, away: impl Iterator<Item = (u8, Entry)>) -> BTreeMap<u8, Logged> {
        let mut lines: BTreeMap<u8, Logged> =
            self.backlogs.iter().map(|(level, backlog)| (*level, Logged::line(backlog))).collect();
        for (level, entry) in away {
            lines.entry(level).or_default().away.push(entry);
        }
        lines
    }

    fn backlog(&mut self, level: u8) -> &mut Backlog {
        let index = match self.backlogs.binary_search_by_key(&level, |(level, _)| *level) {
            Ok(index) => index,
            Err(index) => {
                let mut backlog = Backlog::starting_at(self.next_sequence, self.charge.another());
                if self.counts_bytes {
                    backlog.count_bytes();
                }
                let room = self.backlogs.capacity();
                self.backlogs.insert(index, (level, backlog));
                if self.backlogs.capacity() != room {
                    self.count_room();
                }
                index
            }
        };
        &mut self.backlogs[index].1
    }
}

fn number(level: u8, sequence: u64) -> u64 {
    u64::from(level) << LEVEL_SHIFT | sequence
}

pub(super) fn level_of(number: u64) -> u8 {
    (number >> LEVEL_SHIFT) as u8
}

fn sequence_of(number: u64) -> u64 {
    number & ((1 << LEVEL_SHIFT) - 1)
}
