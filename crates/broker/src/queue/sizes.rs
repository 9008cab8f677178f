//! How large the messages of a queue are whose bytes are bounded: known without reading any, so that
//! one that can't be read any more takes its bytes along when it leaves.

use courser_store::Location;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// Reads how large a message is; none if enough has been read.
pub(super) type SizeOf<'a> = dyn FnMut(&Location) -> Option<u32> + 'a;

/// The sizes of the messages of a backlog, but for the oldest ones as long as these have yet to be read.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Of all together.
    total_bytes: u64,
    /// Of the last slots in the line, in their order; 0 for a gap.
    line: VecDeque<u32>,
    /// Of those that came back, by their numbers.
    returned: FxHashMap<u64, u32>,
    /// The numbers of those that came back and have yet to be read.
    unread: BTreeSet<u64>,
}

impl Sizes {
    /// Knows no size yet of what came back before, with these ascending numbers, nor of what is in the line.
    pub fn without(returned: impl Iterator<Item = u64>) -> Self {
        Sizes { unread: returned.collect(), ..Sizes::default() }
    }

    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// What it uses itself.
    pub fn used_bytes(&self) -> usize {
        self.line.capacity() * size_of::<u32>()
            + self.returned.capacity() * size_of::<(u64, u32)>()
            + self.unread.len() * 2 * size_of::<u64>()
    }

    /// How many of a line of so many slots have yet to be read: the oldest.
    pub fn unread_of(&self, slots: usize) -> usize {
        slots - self.line.len()
    }

    /// Whether any have yet to be read, beside a line of so many slots.
    pub fn lacks_some(&self, slots: usize) -> bool {
        self.line.len() < slots || !self.unread.is_empty()
    }

    /// The newest of the line that had to be read has been.
    pub fn push_front(&mut self, bytes: u32) {
        self.line.push_front(bytes);
        self.total_bytes += u64::from(bytes);
    }

    /// Takes the newest of those that came back and have to be read: [`Sizes::put_back`] follows.
    pub fn pop_unread(&mut self) -> Option<u64> {
        self.unread.pop_last()
    }

    /// A message comes to the end of the line.
    pub fn push(&mut self, bytes: u32) {
        self.line.push_back(bytes);
        self.total_bytes += u64::from(bytes);
    }

    /// A message comes back to its place; none if it has yet to be read.
    pub fn put_back(&mut self, sequence: u64, bytes: Option<u32>) {
        match bytes {
            Some(bytes) => drop(self.returned.insert(sequence, bytes)),
            None => drop(self.unread.insert(sequence)),
        }
        self.total_bytes += u64::from(bytes.unwrap_or(0));
    }

    /// The first of a line of so many slots leaves.
    pub fn pop(&mut self, slots: usize) {
        if self.unread_of(slots) > 0 {
            return;
        }
        let bytes = self.line.pop_front().unwrap_or(0);
        self.total_bytes -= u64::from(bytes);
        if self.line.is_empty() {
            self.line.shrink_to(0);
        }
    }

    /// The message in the slot with this number, counted from the end of the line, leaves a gap.
    pub fn leave_gap(&mut self, from_end: usize) {
        let slot = self.line.len().checked_sub(from_end);
        if let Some(bytes) = slot.and_then(|slot| self.line.get_mut(slot)) {
            self.total_bytes -= u64::from(std::mem::take(bytes));
        }
    }

    /// So many gaps leave the front of a line of so many slots.
    pub fn drop_gaps(&mut self, gaps: usize, slots: usize) {
        let unread = self.unread_of(slots);
        self.line.drain(..gaps.saturating_sub(unread));
        if self.line.is_empty() {
            self.line.shrink_to(0);
        }
    }

    /// One that came back leaves.
    pub fn pop_returned(&mut self, sequence: u64) {
        self.unread.remove(&sequence);
        let bytes = self.returned.remove(&sequence).unwrap_or(0);
        self.total_bytes -= u64::from(bytes);
        if self.returned.len() * 4 <= self.returned.capacity() {
            self.returned.shrink_to(2 * self.returned.len());
        }
    }

    /// That of one that came back, or of the first of a line of so many slots; none if it has yet to be read.
    pub fn of(&self, returned: Option<u64>, slots: usize) -> Option<u32> {
        match returned {
            Some(sequence) => self.returned.get(&sequence).copied(),
            None => self.line.front().copied().filter(|_| self.unread_of(slots) == 0),
        }
    }
}
