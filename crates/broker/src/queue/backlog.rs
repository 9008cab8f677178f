//! Messages that wait, oldest first: a queue's, or those of one priority.

use super::line::{Line, Part};
use super::logged::{Logged, logged};
use super::packed::{Packed, Slots};
use super::sizes::{SizeOf, Sizes};
use super::walk::{WALKED_AT_ONCE, Walk};
use crate::memory::Charge;
use crate::work;
use courser_store::Location;
use std::collections::BTreeMap;
use std::ops::Range;

/// Set in [`Location::marks`] once a message has been delivered and came back.
pub(crate) const REDELIVERED: u16 = 1;
/// Set once a client may have failed on the message: it came back, or was refused for good, in a way that counts for a delivery
/// limit; or it is the dead letter of such a message.
pub(crate) const FAILED: u16 = 4;
/// Set for a message that is in the log only because memory was short, and does not survive a restart.
pub(crate) const SPILLED: u16 = 2;

/// What one that came back uses: number, place, and its part of a tree's nodes that are half full.
const RETURNED_BYTES: usize = 2 * (size_of::<(u64, Location)>() + 8);

/// Every message that has to wait gets the next sequence number. What has never been
/// delivered lies in one line; what came back goes into a small map, by its number, so that it
/// returns to its original place. That is in front of the line, or, for what has been taken out of its middle,
/// in the gap that it left.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    returned: BTreeMap<u64, Location>,
    line: Line,
    next_sequence: u64,
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
        let returned = self.returned_charged * RETURNED_BYTES;
        let sizes = self.sizes.as_ref().map_or(0, |sizes| sizes.used_bytes());
        self.charge.set(self.line.used_bytes() + returned + sizes);
    }

    /// Another charge in the same books.
    pub fn charge(&self) -> Charge {
        self.charge.another()
    }

    /// Bytes of memory that it uses.
    pub fn used_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// The number of the next message.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub fn len(&self) -> usize {
        self.returned.len() + self.line.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.line.len() == 0 && self.returned.is_empty()
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
        let returned = self.front_returned().map(|(sequence, _)| sequence);
        self.sizes.as_ref()?.of(returned, self.line.slots())
    }

    /// Counts bytes from now on: of what waits already as far as [`Backlog::read_sizes`] has read it.
    pub fn count_bytes(&mut self) {
        self.sizes = Some(Box::new(Sizes::without(self.returned.keys().copied())));
        self.count_memory();
    }

    /// Whether bytes are counted, and some have yet to be read.
    pub fn lacks_sizes(&self) -> bool {
        self.sizes.as_ref().is_some_and(|sizes| sizes.lacks_some(self.line.slots()))
    }

    /// Counts the bytes of messages that have yet to be read, the newest first, so that what is beyond a
    /// limit is always older. `size_of` reads, or says that it is enough; no more than `most`. Returns how many those were.
    pub fn read_sizes(&mut self, most: usize, size_of: &mut SizeOf<'_>) -> usize {
        let Backlog { returned, line, sizes: Some(sizes), .. } = self else { return 0 };
        let mut read = 0;
        while read < most && sizes.unread_of(line.slots()) > 0 {
            let end = line.first() + sizes.unread_of(line.slots()) as u64;
            let Some((numbers, part)) = line.parts_from(end - 1).next() else { break };
            let first = end.saturating_sub((most - read) as u64).max(numbers.start);
            let mut run = vec![None; (end - first) as usize];
            part.all(&mut |slot, location| {
                let number = numbers.start + slot as u64;
                if (first..end).contains(&number) {
                    run[(number - first) as usize] = Some(location.clone());
                }
                number < end
            });
            for location in run.into_iter().rev() {
                let Some(bytes) = location.map_or(Some(0), |location| size_of(&location)) else {
                    self.count_memory();
                    return read;
                };
                sizes.push_front(bytes);
                read += 1;
            }
        }
        while read < most
            && let Some(sequence) = sizes.pop_unread()
        {
            let bytes = returned.get(&sequence).map_or(Some(0), &mut *size_of);
            sizes.put_back(sequence, bytes);
            if bytes.is_none() {
                break;
            }
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
        let grows = self.line.push(self.next_sequence, location);
        self.next_sequence += 1;
        if grows {
            self.count_memory();
        }
    }

    /// Puts a message back where it was, with a body of so many bytes if that is known.
    pub fn put_back(&mut self, sequence: u64, location: Location, bytes: Option<u32>) {
        if let Some(sizes) = &mut self.sizes {
            sizes.put_back(sequence, bytes);
        }
        self.returned.insert(sequence, location);
        if self.returned.len() > self.returned_charged {
            self.returned_charged = self.returned.len().next_power_of_two();
            self.count_memory();
        }
    }

    /// The oldest message and its number.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Location)> {
        self.front_returned().or_else(|| self.line.front())
    }

    /// The oldest message, if it is one that came back.
    #[inline]
    fn front_returned(&self) -> Option<(u64, &Location)> {
        let (sequence, location) = self.returned.first_key_value()?;
        (*sequence < self.line_first()).then_some((*sequence, location))
    }

    /// The number that the line begins with; above all if it is empty.
    #[inline]
    fn line_first(&self) -> u64 {
        if self.line.len() == 0 { u64::MAX } else { self.line.first() }
    }

    /// Takes the oldest message and its number.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        if !self.returned.is_empty()
            && let Some((sequence, _)) = self.front_returned()
        {
            return self.take_returned(sequence).map(|location| (sequence, location));
        }
        if let Some(sizes) = &mut self.sizes
            && self.line.len() > 0
        {
            sizes.pop(self.line.slots());
        }
        let popped = self.line.pop()?;
        if self.line.lacks_front() {
            self.refill();
        }
        Some(popped)
    }

    /// Takes one that came back.
    fn take_returned(&mut self, sequence: u64) -> Option<Location> {
        let location = self.returned.remove(&sequence)?;
        if let Some(sizes) = &mut self.sizes {
            sizes.pop_returned(sequence);
        }
        if self.returned.len() * 4 <= self.returned_charged {
            self.returned_charged = match self.returned.len() {
                0 => 0,
                len => len.next_power_of_two(),
            };
            self.count_memory();
        }
        Some(location)
    }

    /// Keeps the promise that the line begins with a message whenever there is one in it.
    #[cold]
    fn refill(&mut self) {
        let (slots, used) = (self.line.slots(), self.line.used_bytes());
        let gaps = self.line.refill();
        if let Some(sizes) = &mut self.sizes {
            sizes.drop_gaps(gaps, slots);
        }
        if self.line.used_bytes() != used {
            self.count_memory();
        }
    }

    /// Takes messages with these ascending numbers, as many as may be under one hold of the lock, and calls
    /// `each` with those that are there. Returns how many numbers those were.
    pub fn take(&mut self, numbers: &[u64], each: &mut dyn FnMut(u64, Location)) -> usize {
        let (mut done, mut walked) = (0, 0);
        while walked < WALKED_AT_ONCE
            && let Some(number) = numbers.get(done)
        {
            if let Some(location) = self.take_returned(*number) {
                each(*number, location);
                (done, walked) = (done + 1, walked + 1);
                continue;
            }
            let part = self.line.parts_from(*number).next().map_or(0..0, |(numbers, _)| numbers);
            let in_part = numbers[done..]
                .iter()
                .take_while(|at| part.contains(*at) && !self.returned.contains_key(*at))
                .count();
            let end = self.line.first() + self.line.slots() as u64;
            let Backlog { line, sizes, .. } = self;
            walked += 1 + line.take(&numbers[done..done + in_part], &mut |number, location| {
                if let Some(sizes) = sizes {
                    sizes.leave_gap((end - number) as usize);
                }
                each(number, location);
            });
            // One that is not there any more is in no part.
            done += in_part.max(1);
        }
        work::count(walked);
        self.refill();
        self.count_memory();
        done
    }

    /// Takes everything. The caller drops it, better without the queue's lock.
    pub fn take_all(&mut self) -> Backlog {
        let mut rest = Backlog::starting_at(self.next_sequence, self.charge.another());
        rest.sizes = self.sizes.as_ref().map(|_| Box::default());
        std::mem::replace(self, rest)
    }

    /// Walks along the messages, from the one with this number on. `level` is added to the numbers.
    pub fn walk(&self, from: u64, level: u64, walk: &mut Walk<'_>) {
        if from == 0
            && let Some(last) = self.next_sequence.checked_sub(1)
            && walk.passes_all(self.len(), level | last)
        {
            walk.spend(1);
            return;
        }
        let from_line = from.max(self.line_first());
        for (sequence, location) in self.returned.range(from..from_line) {
            let wants_more = walk.pass(level | sequence, location);
            if !walk.spend(1) || !wants_more {
                return;
            }
        }
        for (numbers, part) in self.line.parts_from(from_line) {
            let (start, last) = (numbers.start, level | numbers.end.saturating_sub(1));
            let is_mixed = self.has_returned_in(&numbers);
            let goes_on = match part {
                Part::Packed(packed)
                    if from_line <= start && !is_mixed && walk.passes_all(packed.len(), last) =>
                {
                    walk.spend(1)
                }
                part => {
                    let mixed = if is_mixed { (numbers.end - start) as usize } else { 0 };
                    let wants_more = self.all_in(numbers, part, &mut |sequence, location| {
                        sequence < from_line || walk.pass(level | sequence, location)
                    });
                    walk.spend(part.weight() + mixed) && wants_more
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Whether messages have come back into gaps between these numbers.
    fn has_returned_in(&self, numbers: &Range<u64>) -> bool {
        let last = self.returned.last_key_value().map(|(sequence, _)| *sequence);
        last.is_some_and(|last| last >= numbers.start)
            && self.returned.range(numbers.clone()).next().is_some()
    }

    /// The slots of a part, with what has come back into its gaps.
    fn filled(&self, numbers: &Range<u64>, part: Part<'_>) -> Slots {
        let mut slots: Slots = numbers.clone().map(|_| None).collect();
        part.all(&mut |slot, location| {
            slots[slot] = Some(location.clone());
            true
        });
        for (sequence, location) in self.returned.range(numbers.clone()) {
            slots[(sequence - numbers.start) as usize] = Some(location.clone());
        }
        slots
    }

    /// Calls `each` with the messages that have these numbers, those of a part, until it has enough. Returns
    /// whether it wants more.
    fn all_in(
        &self,
        numbers: Range<u64>,
        part: Part<'_>,
        each: &mut dyn FnMut(u64, &Location) -> bool,
    ) -> bool {
        let mut each = |slot, location: &Location| each(numbers.start + slot as u64, location);
        match self.has_returned_in(&numbers) {
            true => Part::Open(&self.filled(&numbers, part)).all(&mut each),
            false => part.all(&mut each),
        }
    }

    /// Calls `each` with the place of every message.
    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        self.returned.values().for_each(&mut *each);
        for (_, part) in self.line.parts_from(0) {
            part.all(&mut |_, location| {
                each(location);
                true
            });
        }
    }

    /// Adds to `all` where the messages are that are in the log.
    pub fn add_logged(&self, all: &mut Logged) {
        all.first.extend(self.returned.range(..self.line_first()).filter_map(|(_, at)| logged(at)));
        for (index, (numbers, part)) in self.line.parts_from(0).enumerate() {
            match part {
                Part::Packed(packed) if !self.has_returned_in(&numbers) => {
                    all.packed.push_back(packed.clone());
                }
                Part::Packed(_) => {
                    all.packed.push_back(Packed::pack(&mut self.filled(&numbers, part)));
                }
                Part::Open(_) => {
                    let entries = if index == 0 { &mut all.first } else { &mut all.last };
                    self.all_in(numbers, part, &mut |_, location| {
                        entries.extend(logged(location));
                        true
                    });
                }
            }
        }
    }
}
