//! The deliveries of a channel that wait for an acknowledgement, by delivery tag.

use crate::work;
use std::collections::VecDeque;

/// A slot that no channel has.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// One delivery that has not been acknowledged. The message itself is with its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unacked {
    /// The channel's slot for the queue and consumer it came through; [`NO_SLOT`] if it has returned already.
    pub slot: u32,
    /// Its number in the queue.
    pub sequence: u64,
}

/// Sorted by tag. Acknowledging the oldest is cheapest; settled entries in the middle stay as gaps
/// until they reach the front or outnumber the others, so memory is bounded by what is unacked.
#[derive(Debug, Default)]
pub(crate) struct UnackedList {
    entries: VecDeque<(u64, Option<Unacked>)>,
    live: usize,
    /// The capacity when that was asked for last.
    counted: usize,
}

/// Fewer entries than this are not worth compacting.
const COMPACT_MIN_ENTRIES: usize = 64;
/// An empty list keeps room for as many.
const KEPT_ENTRIES: usize = 4096;

impl UnackedList {
    /// Adds a delivery; tags come in ascending order. Returns whether the list uses more memory by it,
    /// or less than it did.
    #[inline]
    pub fn push(&mut self, tag: u64, unacked: Unacked) -> bool {
        debug_assert!(self.entries.back().is_none_or(|(last, _)| *last < tag));
        self.entries.push_back((tag, Some(unacked)));
        self.live += 1;
        self.has_changed()
    }

    /// Whether it uses more or less than when that was asked for last.
    #[inline]
    pub fn has_changed(&mut self) -> bool {
        let has_changed = self.entries.capacity() != self.counted;
        if has_changed {
            self.counted = self.entries.capacity();
        }
        has_changed
    }

    /// What it uses, and what the books of the queues use for the same messages.
    pub fn used_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u64, Option<Unacked>)>()
    }

    /// Puts deliveries back that were taken, in any order. Takes no longer than taking them has: most
    /// have left a gap, or were the oldest.
    pub fn put_back(&mut self, mut taken: Vec<(u64, Unacked)>) {
        taken.sort_unstable_by_key(|(tag, _)| *tag);
        self.live += taken.len();
        work::count(taken.len());
        let mut without_gap = Vec::new();
        for (tag, unacked) in taken.into_iter().rev() {
            if self.entries.front().is_none_or(|(oldest, _)| tag < *oldest) {
                self.entries.push_front((tag, Some(unacked)));
                continue;
            }
            match self.entries.binary_search_by_key(&tag, |(tag, _)| *tag) {
                Ok(gap) => self.entries[gap].1 = Some(unacked),
                Err(_) => without_gap.push((tag, Some(unacked))),
            }
        }
        if !without_gap.is_empty() {
            // The gaps were dropped when they outnumbered the others, so all are not many more.
            self.entries.extend(without_gap);
            work::count(self.entries.len());
            self.entries.make_contiguous().sort_unstable_by_key(|(tag, _)| *tag);
        }
    }

    /// Takes the delivery with this tag.
    pub fn take(&mut self, tag: u64) -> Option<Unacked> {
        let index = match self.entries.front() {
            Some((front, _)) if *front == tag => 0,
            _ => self.entries.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?,
        };
        let taken = self.entries[index].1.take()?;
        self.live -= 1;
        self.trim();
        Some(taken)
    }

    /// Takes all deliveries up to and with `tag` (all there are, for tag 0), oldest first.
    pub fn take_through(&mut self, tag: u64, mut each: impl FnMut(u64, Unacked)) {
        let before = self.entries.len();
        while let Some((front, _)) = self.entries.front() {
            if tag != 0 && *front > tag {
                break;
            }
            if let Some((tag, Some(unacked))) = self.entries.pop_front() {
                self.live -= 1;
                each(tag, unacked);
            }
        }
        work::count(before - self.entries.len());
        self.trim();
    }

    /// Marks the delivery with this tag as returned if it waits and came through this slot: its number in the queue.
    pub fn take_away(&mut self, tag: u64, slot: u32) -> Option<u64> {
        work::count(1);
        let index = self.entries.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        let unacked = self.entries[index].1.as_mut().filter(|unacked| unacked.slot == slot)?;
        unacked.slot = NO_SLOT;
        Some(unacked.sequence)
    }

    /// How many deliveries wait.
    pub fn len(&self) -> usize {
        self.live
    }

    /// The tag of the oldest delivery.
    pub fn oldest(&self) -> Option<u64> {
        self.entries.front().map(|(tag, _)| *tag)
    }

    /// The tag of the newest delivery.
    pub fn newest(&self) -> Option<u64> {
        self.entries.back().map(|(tag, _)| *tag)
    }

    /// The deliveries that wait behind this tag, oldest first.
    pub fn behind(&self, tag: u64) -> impl Iterator<Item = (u64, Unacked)> {
        let from = self.entries.partition_point(|(one, _)| *one <= tag);
        let rest = self.entries.range(from..);
        rest.filter_map(|(tag, unacked)| Some((*tag, (*unacked)?)))
    }

    /// Whether a delivery with this tag waits.
    pub fn contains(&self, tag: u64) -> bool {
        match self.entries.binary_search_by_key(&tag, |(tag, _)| *tag) {
            Ok(index) => self.entries[index].1.is_some(),
            Err(_) => false,
        }
    }

    fn trim(&mut self) {
        while matches!(self.entries.front(), Some((_, None))) {
            self.entries.pop_front();
        }
        if self.entries.len() >= COMPACT_MIN_ENTRIES && self.live * 2 < self.entries.len() {
            work::count(self.entries.len());
            self.entries.retain(|(_, unacked)| unacked.is_some());
            self.entries.shrink_to(self.live * 2);
        }
        if self.entries.is_empty() && self.entries.capacity() > KEPT_ENTRIES {
            self.entries.shrink_to(KEPT_ENTRIES);
        }
    }
}
