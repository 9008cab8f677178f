//! Messages that have never been delivered, oldest first, with consecutive numbers, which therefore need
//! not be kept.
//!
//! The line is open at both ends, and packed in between, so that a long backlog costs a few bytes
//! a message. A message that is taken out of the middle leaves a gap, so that those around it keep their
//! numbers; a page has no place for its gaps.

use super::packed::{PAGE_LOCATIONS, Packed, Slots};
use courser_store::Location;
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Line {
    /// Begins with a message whenever there is one in the line.
    oldest: Slots,
    packed: VecDeque<Packed>,
    newest: Slots,
    /// Messages in it.
    len: usize,
    /// The number of its first slot.
    first: u64,
    /// Bytes of what is packed.
    packed_bytes: usize,
}

/// Some slots of a line that lie together.
#[derive(Clone, Copy)]
pub(super) enum Part<'l> {
    Open(&'l Slots),
    Packed(&'l Packed),
}

impl Part<'_> {
    /// Calls `each` with every location and its slot, until it has enough. Returns whether it wants more.
    pub fn all(self, each: &mut dyn FnMut(usize, &Location) -> bool) -> bool {
        match self {
            Part::Packed(packed) => packed.all(each),
            Part::Open(slots) => slots.iter().enumerate().all(|(slot, location)| match location {
                Some(location) => each(slot, location),
                None => true,
            }),
        }
    }

    /// What it takes to look at all of it.
    pub fn weight(self) -> usize {
        match self {
            Part::Open(slots) => slots.len(),
            Part::Packed(packed) => packed.len(),
        }
    }

    fn slots(self) -> usize {
        match self {
            Part::Open(slots) => slots.len(),
            Part::Packed(_) => PAGE_LOCATIONS,
        }
    }
}

impl Line {
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Messages and gaps.
    pub fn slots(&self) -> usize {
        self.oldest.len() + self.packed.len() * PAGE_LOCATIONS + self.newest.len()
    }

    /// The number of the first slot.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// What it uses itself.
    pub fn used_bytes(&self) -> usize {
        let open = self.oldest.capacity() + self.newest.capacity();
        let packed = self.packed.capacity() * size_of::<Packed>() + self.packed_bytes;
        open * size_of::<Location>() + packed
    }

    /// Adds a message, which gets this number. Returns whether it uses more than before.
    #[inline]
    pub fn push(&mut self, number: u64, location: Location) -> bool {
        if self.len == 0 {
            debug_assert_eq!(self.slots(), 0);
            self.first = number;
        }
        self.len += 1;
        if self.packed.is_empty() && self.newest.is_empty() && self.oldest.len() < PAGE_LOCATIONS {
            let grows = self.oldest.len() == self.oldest.capacity();
            self.oldest.push_back(Some(location));
            return grows;
        }
        let grows = self.newest.len() == self.newest.capacity();
        self.newest.push_back(Some(location));
        if self.newest.len() < PAGE_LOCATIONS {
            return grows;
        }
        let packed = Packed::pack(&mut self.newest);
        self.packed_bytes += packed.size_bytes();
        self.packed.push_back(packed);
        true
    }

    /// The oldest message and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        Some((self.first, self.oldest.front()?.as_ref()?))
    }

    /// Takes the oldest message and its number. [`Line::refill`] follows if it [lacks a
    /// front](Line::lacks_front).
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        let location = self.oldest.pop_front()??;
        let number = self.first;
        self.first += 1;
        self.len -= 1;
        Some((number, location))
    }

    /// Whether it does not begin with a message.
    #[inline]
    pub fn lacks_front(&self) -> bool {
        !matches!(self.oldest.front(), Some(Some(_)))
    }

    /// Makes it begin with a message if there is one. Returns how many gaps were in front of that.
    pub fn refill(&mut self) -> usize {
        let first = self.first;
        loop {
            while let Some(None) = self.oldest.front() {
                self.oldest.pop_front();
                self.first += 1;
            }
            if !self.oldest.is_empty() {
                break;
            }
            match self.packed.pop_front() {
                Some(packed) => {
                    self.packed_bytes -= packed.size_bytes();
                    match packed.len() {
                        0 => self.first += PAGE_LOCATIONS as u64,
                        _ => packed.unpack(&mut self.oldest),
                    }
                }
                None if self.newest.is_empty() => break,
                None => self.oldest.append(&mut self.newest),
            }
        }
        if self.oldest.is_empty() && self.oldest.capacity() > PAGE_LOCATIONS / 16 {
            // A burst is over; what it needed is given back.
            self.oldest.shrink_to(PAGE_LOCATIONS / 16);
            self.newest.shrink_to(PAGE_LOCATIONS / 16);
            self.packed.shrink_to(0);
        }
        (self.first - first) as usize
    }

    /// Takes those of `numbers`, all of one part, that are there, and calls `each` with them. Returns how
    /// many slots were looked at. [`Line::refill`] follows.
    pub fn take(&mut self, numbers: &[u64], each: &mut dyn FnMut(u64, Location)) -> usize {
        let Some(first) = numbers.first() else { return 0 };
        let part = self.part_index(*first);
        let start = self.part(part).0.start;
        let mut unpacked = Slots::default();
        let slots = match part.checked_sub(1) {
            None => &mut self.oldest,
            Some(page) => match self.packed.get(page) {
                None => &mut self.newest,
                Some(packed) => {
                    packed.unpack(&mut unpacked);
                    &mut unpacked
                }
            },
        };
        let before = self.len;
        for number in numbers {
            let slot = slots.get_mut((number - start) as usize);
            if let Some(location) = slot.and_then(Option::take) {
                self.len -= 1;
                each(*number, location);
            }
        }
        if unpacked.is_empty() {
            return numbers.len();
        }
        let page = &mut self.packed[part - 1];
        if self.len < before {
            let repacked = Packed::pack(&mut unpacked);
            self.packed_bytes = self.packed_bytes + repacked.size_bytes() - page.size_bytes();
            *page = repacked;
        }
        PAGE_LOCATIONS
    }

    /// Its parts, and the numbers of their slots, from the one with this number on.
    pub fn parts_from(&self, number: u64) -> impl Iterator<Item = (Range<u64>, Part<'_>)> {
        (self.part_index(number)..self.packed.len() + 2).map(|index| self.part(index))
    }

    /// The part that has this number, if any has.
    fn part_index(&self, number: u64) -> usize {
        let slot = number.saturating_sub(self.first);
        match slot.checked_sub(self.oldest.len() as u64) {
            None => 0,
            Some(behind) => {
                let page = behind / PAGE_LOCATIONS as u64;
                1 + usize::try_from(page)
                    .map_or(self.packed.len(), |page| page.min(self.packed.len()))
            }
        }
    }

    fn part(&self, index: usize) -> (Range<u64>, Part<'_>) {
        let (before, part) = match index.checked_sub(1) {
            None => (0, Part::Open(&self.oldest)),
            Some(page) => {
                let before = self.oldest.len() + page * PAGE_LOCATIONS;
                (before, self.packed.get(page).map_or(Part::Open(&self.newest), Part::Packed))
            }
        };
        let start = self.first + before as u64;
        (start..start + part.slots() as u64, part)
    }
}
