//! Messages that wait, oldest first: a queue's, or those of one priority.

use super::packed::Packed;
use super::sizes::Sizes;
use crate::memory::Charge;
use courser_store::{Location, Position};
use std::collections::{BTreeMap, VecDeque};

/// Set in [`Location::marks`] once a message has been delivered and came back.
pub(crate) const REDELIVERED: u16 = 1;
/// Set for a message that is in the log for want of memory alone, and does not survive a restart.
pub(crate) const SPILLED: u16 = 2;

/// Locations that are packed together once neither end of the queue needs them.
const PAGE_LOCATIONS: usize = 1024;

/// What one that came back uses: number, place, and its part of a tree's nodes that are half full.
const RETURNED_BYTES: usize = 2 * (size_of::<(u64, Location)>() + 8);

/// Every message that has to wait gets the next sequence number. What has never been
/// delivered lies in one line with consecutive numbers, which therefore need not be kept; what came
/// back goes into a small map in front of it. All numbers in the map are below those of the line,
/// so a message that is requeued returns to its original place.
///
/// The line is open at both ends, and packed in between, so that a long backlog costs a few bytes
/// a message.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    returned: BTreeMap<u64, Location>,
    oldest: VecDeque<Location>,
    packed: VecDeque<Packed>,
    newest: VecDeque<Location>,
    /// Messages in the line.
    len: usize,
    first: u64,
    next_sequence: u64,
    /// Bytes of what is packed.
    packed_bytes: usize,
    /// How many in `returned` are counted.
    returned_charged: usize,
    /// There where bytes are bounded.
    sizes: Option<Box<Sizes>>,
    charge: Charge,
}

impl Backlog {
    /// An empty line whose numbers begin here.
    pub fn starting_at(sequence: u64, charge: Charge) -> Self {
        Backlog { next_sequence: sequence, charge, ..Backlog::default() }
    }

    /// Counts what it uses. To be called when some of its parts grow or shrink, not for each message.
    #[cold]
    #[inline(never)]
    fn count_memory(&mut self) {
        let open = self.oldest.capacity() + self.newest.capacity();
        let packed = self.packed.capacity() * size_of::<Packed>() + self.packed_bytes;
        let returned = self.returned_charged * RETURNED_BYTES;
        let sizes = self.sizes.as_ref().map_or(0, |sizes| sizes.used_bytes());
        self.charge.set(open * size_of::<Location>() + packed + returned + sizes);
    }

    /// The number of the next message.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub fn len(&self) -> usize {
        self.returned.len() + self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.returned.is_empty()
    }

    /// The number for a message that is handed out without ever lying here.
    #[inline]
    pub fn pass_by(&mut self) -> u64 {
        debug_assert!(self.is_empty());
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// Bytes of the bodies that wait, where they are counted.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.sizes.as_ref().map_or(0, |sizes| sizes.total_bytes())
    }

    /// Bytes of the oldest message's body, where they are counted and known.
    pub fn front_bytes(&self) -> Option<u32> {
        let returned = self.returned.first_key_value().map(|(sequence, _)| *sequence);
        self.sizes.as_ref()?.of(returned, self.len)
    }

    /// Counts bytes from now on: of what waits already as far as [`Backlog::read_sizes`] has read it.
    pub fn count_bytes(&mut self) {
        self.sizes = Some(Box::new(Sizes::without(self.returned.keys().copied())));
        self.count_memory();
    }

    /// Whether bytes are counted, and some have yet to be read.
    pub fn lacks_sizes(&self) -> bool {
        self.sizes.as_ref().is_some_and(|sizes| sizes.lacks_some(self.len))
    }

    /// Counts the bytes of messages that have yet to be read, the newest first, so that what is beyond a
    /// limit is always older. `size_of` reads; no more than `most`. Returns how many those were.
    pub fn read_sizes(&mut self, most: usize, size_of: &mut dyn FnMut(&Location) -> u32) -> usize {
        let Backlog { returned, oldest, packed, newest, len, sizes: Some(sizes), .. } = self else {
            return 0;
        };
        let mut read = 0;
        while read < most && sizes.unread_of(*len) > 0 {
            let last = sizes.unread_of(*len) - 1;
            let behind = last.checked_sub(oldest.len());
            let (page, end) = match behind {
                None => (None, last + 1),
                Some(behind) => (packed.get(behind / PAGE_LOCATIONS), behind % PAGE_LOCATIONS + 1),
            };
            let first = end.saturating_sub(most - read);
            let mut run = Vec::with_capacity(end - first);
            match (behind, page) {
                (None, _) => run.extend(oldest.range(first..end).map(&mut *size_of)),
                (_, None) => run.extend(newest.range(first..end).map(&mut *size_of)),
                (_, Some(page)) => page.for_each_in(first..end, &mut |one| run.push(size_of(one))),
            }
            read += run.len();
            run.into_iter().rev().for_each(|bytes| sizes.push_front(bytes));
        }
        while read < most
            && let Some(sequence) = sizes.pop_unread()
        {
            let bytes = returned.get(&sequence).map_or(0, &mut *size_of);
            sizes.put_back(sequence, Some(bytes));
            read += 1;
        }
        self.count_memory();
        read
    }

    /// Counts bytes no more.
    pub fn count_no_bytes(&mut self) {
        self.sizes = None;
        self.count_memory();
    }

    /// Adds a new message at the end, with a body of so many bytes.
    pub fn push(&mut self, location: Location, bytes: u32) {
        if let Some(sizes) = &mut self.sizes {
            sizes.push(bytes);
        }
        if self.len == 0 {
            self.first = self.next_sequence;
        }
        self.next_sequence += 1;
        self.len += 1;
        if self.packed.is_empty() && self.newest.is_empty() && self.oldest.len() < PAGE_LOCATIONS {
            let grows = self.oldest.len() == self.oldest.capacity();
            self.oldest.push_back(location);
            if grows {
                self.count_memory();
            }
            return;
        }
        self.newest.push_back(location);
        if self.newest.len() == PAGE_LOCATIONS {
            let packed = Packed::pack(&mut self.newest);
            self.packed_bytes += packed.size_bytes();
            self.packed.push_back(packed);
            self.count_memory();
        }
    }

    /// Puts a message back where it was, with a body of so many bytes if that is known.
    pub fn put_back(&mut self, sequence: u64, location: Location, bytes: Option<u32>) {
        if let Some(sizes) = &mut self.sizes {
            sizes.put_back(sequence, bytes);
        }
        debug_assert!(self.len == 0 || sequence < self.first);
        self.returned.insert(sequence, location);
        if self.returned.len() > self.returned_charged {
            self.returned_charged = self.returned.len().next_power_of_two();
            self.count_memory();
        }
    }

    /// The oldest message and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        if let Some((sequence, location)) = self.returned.first_key_value() {
            return Some((*sequence, location));
        }
        Some((self.first, self.oldest.front()?))
    }

    /// Takes the oldest message and its number.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        if !self.returned.is_empty() {
            return self.pop_returned();
        }
        let location = self.oldest.pop_front()?;
        if let Some(sizes) = &mut self.sizes {
            sizes.pop(self.len);
        }
        let sequence = self.first;
        self.first += 1;
        self.len -= 1;
        if self.oldest.is_empty() {
            self.refill();
        }
        Some((sequence, location))
    }

    fn pop_returned(&mut self) -> Option<(u64, Location)> {
        let popped = self.returned.pop_first();
        if let (Some(sizes), Some((sequence, _))) = (&mut self.sizes, &popped) {
            sizes.pop_returned(*sequence);
        }
        if self.returned.is_empty() {
            self.returned_charged = 0;
            self.count_memory();
        }
        popped
    }

    /// Keeps the promise that the oldest of the line are open whenever there are any.
    #[cold]
    fn refill(&mut self) {
        match self.packed.pop_front() {
            Some(packed) => {
                self.packed_bytes -= packed.size_bytes();
                packed.unpack(&mut self.oldest);
            }
            None => self.oldest.append(&mut self.newest),
        }
        if self.oldest.is_empty() {
            if self.oldest.capacity() <= PAGE_LOCATIONS / 16 {
                // There was no burst.
                return;
            }
            // A burst is over; what it needed is given back.
            self.oldest.shrink_to(PAGE_LOCATIONS / 16);
            self.newest.shrink_to(PAGE_LOCATIONS / 16);
            self.packed.shrink_to(0);
        }
        self.count_memory();
    }

    /// Takes everything. The caller drops it, better without the queue's lock.
    pub fn take_all(&mut self) -> Backlog {
        let mut rest = Backlog::starting_at(self.next_sequence, self.charge.another());
        rest.sizes = self.sizes.as_ref().map(|_| Box::default());
        std::mem::replace(self, rest)
    }

    /// Adds the numbers and places of the oldest messages behind `skip` others until there are `count`
    /// in `found`; takes from `skip` what has been skipped.
    pub fn first(&self, skip: &mut usize, count: usize, found: &mut Vec<(u64, Location)>) {
        let mut look_at = |sequence: u64, location: &Location| {
            if *skip > 0 {
                *skip -= 1;
            } else if found.len() < count {
                found.push((sequence, location.clone()));
            }
            found.len() < count
        };
        if !self.returned.iter().all(|(sequence, location)| look_at(*sequence, location)) {
            return;
        }
        let mut sequence = self.first;
        let mut look_at = |location: &Location| {
            sequence += 1;
            look_at(sequence - 1, location)
        };
        if !self.oldest.iter().all(&mut look_at) {
            return;
        }
        for packed in &self.packed {
            let mut wants_more = true;
            packed.for_each(&mut |location| wants_more = look_at(location));
            if !wants_more {
                return;
            }
        }
        self.newest.iter().all(look_at);
    }

    /// Calls `each` with the place of every message.
    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.returned.values().chain(&self.oldest).for_each(&mut *each);
        self.packed.iter().for_each(|packed| packed.for_each(each));
        self.newest.iter().for_each(each);
    }

    /// Adds to `all` where the messages are that are in the log.
    pub fn add_logged(&self, all: &mut Logged) {
        all.first.extend(self.returned.values().chain(&self.oldest).filter_map(logged));
        all.packed.extend(self.packed.iter().cloned());
        all.last.extend(self.newest.iter().filter_map(logged));
    }
}

/// The position in the log and the marks of a message.
pub(crate) type Entry = (Position, u16);

/// The messages of a queue that are in the log. The many in the middle are shared with the queue.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub first: Vec<Entry>,
    packed: VecDeque<Packed>,
    last: Vec<Entry>,
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
