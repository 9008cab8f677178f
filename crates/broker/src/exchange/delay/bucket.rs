//! Messages that are due within the same span of time, in the order in which they came.

use courser_store::delayed::{PairCoder, pairs};
use courser_store::{Location, Position};
use std::collections::VecDeque;

/// Read at one end, written at the other. What is in the log, which is most of it, takes a few
/// bytes a message; the rest is kept as it is.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    packed: Vec<u8>,
    writer: PairCoder,
    reader: PairCoder,
    /// Bytes of `packed` that have been read.
    read: usize,
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

impl Bucket {
    pub fn push(&mut self, due_ms: u64, location: Location) {
        match location {
            Location::Log { position, marks: 0, .. } => {
                self.writer.put(&mut self.packed, position, due_ms);
                self.pairs_in += 1;
            }
            location => {
                let pairs_before = self.pairs_in;
                self.plain.push_back(Plain { pairs_before, due_ms, location });
            }
        }
    }

    /// What it uses besides itself.
    pub fn heap_bytes(&self) -> usize {
        self.packed.capacity() + self.plain.capacity() * size_of::<Plain>()
    }

    /// Takes out the message that came first, with the time at which it is due.
    pub fn pop(&mut self) -> Option<(u64, Location)> {
        if let Some(plain) = self.plain.pop_front_if(|plain| plain.pairs_before == self.pairs_out) {
            return Some((plain.due_ms, plain.location));
        }
        let mut rest = &self.packed[self.read..];
        let (position, due_ms) = self.reader.take(&mut rest)?;
        self.read = self.packed.len() - rest.len();
        self.pairs_out += 1;
        Some((due_ms, Location::logged(position)))
    }

    /// Calls `each` with the position of every message that is in the log.
    pub fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        let packed = pairs(self.reader, &self.packed[self.read..]);
        let plain = self.plain.iter().filter_map(|plain| plain.location.position());
        packed.map(|(position, _)| position).chain(plain).for_each(each);
    }

    /// What is in the log of it: packed as it is, and the position, time and marks of the others.
    pub fn logged(&self, packed: &mut Vec<PackedPairs>, open: &mut Vec<(Position, u64, u16)>) {
        let bytes = self.packed[self.read..].into();
        packed.push(PackedPairs { bytes, read: 0, before: self.reader });
        open.extend(self.plain.iter().filter_map(|plain| {
            let position = plain.location.position()?;
            Some((position, plain.due_ms, plain.location.marks()))
        }));
    }
}

/// Pairs of positions and times that follow on a pair read before.
#[derive(Debug)]
pub(super) struct PackedPairs {
    bytes: Box<[u8]>,
    /// Bytes that have been read.
    read: usize,
    before: PairCoder,
}

impl Iterator for PackedPairs {
    type Item = (Position, u64);

    fn next(&mut self) -> Option<(Position, u64)> {
        let mut rest = &self.bytes[self.read..];
        let pair = self.before.take(&mut rest)?;
        self.read = self.bytes.len() - rest.len();
        Some(pair)
    }
}

impl PackedPairs {
    /// The position of each message, and when it is due.
    pub fn iter(&self) -> impl Iterator<Item = (Position, u64)> {
        pairs(self.before, &self.bytes[self.read..])
    }
}
