//! Messages that are due within the same span of time, in the order in which they came.

use crate::queue::SPILLED;
use courser_store::delayed::PairCoder;
use courser_store::{Location, Position};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;
/// A pair has fewer: two varints.
const PAIR_BYTES_MAX: usize = 20;

/// Read at one end, written at the other. What is in the log, which is most of it, takes a few
/// bytes a message; the rest is kept as it is.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    packed: Packed,
    writer: PairCoder,
    /// Pairs that have been put into `packed`, and read from it.
    pairs_in: u64,
    pairs_out: u64,
    plain: VecDeque<Plain>,
}

/// A message that is not packed.
#[derive(Debug)]
struct Plain {
    /// How many pairs have been packed before it.
    pairs_before: u64,
    due_ms: u64,
    location: Location,
}

/// The position, the time and the marks of a message in the log.
pub(super) type Entry = (Position, u64, u16);

/// Pairs of positions and times: full pages, which others may read meanwhile, and what follows on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Packed {
    pages: VecDeque<Arc<[u8]>>,
    last: Vec<u8>,
    /// Bytes of the first of these that have been read.
    read: usize,
    reader: PairCoder,
}

impl Bucket {
    pub fn push(&mut self, due_ms: u64, location: Location) {
        match location {
            Location::Log { position, marks: marks @ (0 | SPILLED), .. } => {
                self.packed.put(&mut self.writer, (position, due_ms, marks));
                self.pairs_in += 1;
            }
            location => {
                debug_assert!(location.position().is_none(), "a checkpoint finds it in no page");
                let pairs_before = self.pairs_in;
                self.plain.push_back(Plain { pairs_before, due_ms, location });
            }
        }
    }

    /// What it uses besides itself.
    pub fn heap_bytes(&self) -> usize {
        self.packed.heap_bytes() + self.plain.capacity() * size_of::<Plain>()
    }

    /// Takes out the message that came first, with the time at which it is due.
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        if let Some(plain) = self.plain.pop_front_if(|plain| plain.pairs_before == self.pairs_out) {
            return Some((plain.due_ms, plain.location));
        }
        let (position, due_ms, marks) = self.packed.next()?;
        self.pairs_out += 1;
        let mut location = Location::logged(position);
        *location.marks_mut() = marks;
        Some((due_ms, location))
    }

    /// What is in the log of it, in order. Only what is not in a full page is copied.
    pub fn logged(&self) -> Packed {
        self.packed.clone()
    }
}

impl Packed {
    fn put(&mut self, writer: &mut PairCoder, (position, due_ms, marks): Entry) {
        let coded = Position(position.0 << 1 | u64::from(marks != 0));
        writer.put(&mut self.last, coded, due_ms);
        if self.last.len() > PAGE_BYTES - PAIR_BYTES_MAX {
            self.pages.push_back(Arc::from(&self.last[..]));
            self.last.clear();
        }
    }

    fn heap_bytes(&self) -> usize {
        // A page is full but for a pair.
        self.pages.len() * PAGE_BYTES
            + self.pages.capacity() * size_of::<Arc<[u8]>>()
            + self.last.capacity()
    }
}

impl Iterator for Packed {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let first = self.pages.front().map_or(&self.last[..], |page| page);
        let mut rest = &first[self.read..];
        let (coded, due_ms) = self.reader.take(&mut rest)?;
        self.read = first.len() - rest.len();
        if rest.is_empty() {
            self.read = 0;
            if self.pages.pop_front().is_none() {
                self.last.clear();
            }
        }
        let marks = if coded.0 & 1 == 1 { SPILLED } else { 0 };
        Some((Position(coded.0 >> 1), due_ms, marks))
    }
}
