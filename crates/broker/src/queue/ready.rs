//! The messages of a queue that wait for a consumer, in the queue's order.

use courser_store::Location;
use std::collections::{BTreeMap, VecDeque};

/// Set in [`Location::marks`] once a message has been delivered and came back.
pub(crate) const REDELIVERED: u32 = 1;

/// A deque emptied of a backlog keeps at most this many places.
const KEPT_PLACES: usize = 1024;

/// Every message that has to wait gets the queue's next sequence number. What has never been
/// delivered lies in one deque with consecutive numbers, which therefore need not be kept; what
/// came back goes into a small map in front of it. All numbers in the map are below those of the
/// deque, so a message that is requeued returns to its original place.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    returned: BTreeMap<u64, Location>,
    fresh: VecDeque<Location>,
    fresh_first: u64,
    next_sequence: u64,
}

impl Ready {
    pub fn len(&self) -> usize {
        self.returned.len() + self.fresh.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.returned.is_empty()
    }

    /// The number for a message that is handed out without ever lying here.
    #[inline]
    pub fn pass_by(&mut self) -> u64 {
        debug_assert!(self.fresh.is_empty());
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// Adds a new message at the end.
    pub fn push(&mut self, location: Location) {
        if self.fresh.is_empty() {
            self.fresh_first = self.next_sequence;
        }
        self.fresh.push_back(location);
        self.next_sequence += 1;
    }

    /// Puts a message back where it was.
    pub fn put_back(&mut self, sequence: u64, mut location: Location) {
        location.marks |= REDELIVERED;
        debug_assert!(self.fresh.is_empty() || sequence < self.fresh_first);
        self.returned.insert(sequence, location);
    }

    /// The oldest message and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        if let Some((sequence, location)) = self.returned.first_key_value() {
            return Some((*sequence, location));
        }
        Some((self.fresh_first, self.fresh.front()?))
    }

    /// Takes the oldest message and its number.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        if !self.returned.is_empty() {
            return self.returned.pop_first();
        }
        let location = self.fresh.pop_front()?;
        let sequence = self.fresh_first;
        self.fresh_first += 1;
        if self.fresh.is_empty() {
            self.fresh.shrink_to(KEPT_PLACES);
        }
        Some((sequence, location))
    }

    /// Takes everything. The caller drops it, better without the queue's lock.
    pub fn take_all(&mut self) -> Ready {
        let rest = Ready { next_sequence: self.next_sequence, ..Ready::default() };
        std::mem::replace(self, rest)
    }
}
