//! Locations in the middle of a long backlog, packed.

use super::backlog::logged;
use courser_store::change::{put_varint, take_varint};
use courser_store::{Location, Position};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A run of locations that nobody looks at for a while.
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    /// Unmarked messages in the log: the differences of their positions, zigzag-coded.
    Positions(Arc<[u8]>),
    /// Anything else, as it is.
    Plain(Arc<[Location]>),
}

impl Packed {
    /// Packs everything in `locations`, leaving it empty.
    pub fn pack(locations: &mut VecDeque<Location>) -> Self {
        let unmarked = |location: &Location| match location {
            Location::Log { position, marks: 0 } => Some(*position),
            _ => None,
        };
        let positions: Option<Vec<Position>> = locations.iter().map(unmarked).collect();
        let Some(positions) = positions else {
            return Packed::Plain(locations.drain(..).collect());
        };
        locations.clear();
        let mut bytes = Vec::with_capacity(positions.len() * 3);
        let mut before = 0i64;
        for position in positions {
            let difference = (position.0 as i64).wrapping_sub(before);
            put_varint(&mut bytes, ((difference << 1) ^ (difference >> 63)) as u64);
            before = position.0 as i64;
        }
        Packed::Positions(bytes.into())
    }

    /// Bytes that it uses besides itself.
    pub fn size_bytes(&self) -> usize {
        match self {
            Packed::Positions(bytes) => bytes.len(),
            Packed::Plain(plain) => size_of_val(&**plain),
        }
    }

    /// Appends what was packed to `locations`.
    pub fn unpack(self, locations: &mut VecDeque<Location>) {
        match self {
            Packed::Positions(bytes) => {
                for_each_position(&bytes, &mut |position| {
                    locations.push_back(Location::Log { position, marks: 0 });
                });
            }
            Packed::Plain(plain) => locations.extend(plain.iter().cloned()),
        }
    }

    /// Calls `each` with every location.
    pub fn for_each(&self, each: &mut dyn FnMut(&Location)) {
        match self {
            Packed::Positions(bytes) => for_each_position(bytes, &mut |position| {
                each(&Location::Log { position, marks: 0 });
            }),
            Packed::Plain(plain) => plain.iter().for_each(each),
        }
    }

    /// Calls `each` with the locations from the one with this number to that with this number.
    pub fn for_each_in(&self, range: Range<usize>, each: &mut dyn FnMut(&Location)) {
        let mut number = 0;
        self.for_each(&mut |location| {
            if range.contains(&number) {
                each(location);
            }
            number += 1;
        });
    }

    /// Calls `each` with the position and the marks of every message that is in the log.
    pub fn for_each_logged(&self, each: &mut dyn FnMut(Position, u16)) {
        match self {
            Packed::Positions(bytes) => for_each_position(bytes, &mut |at| each(at, 0)),
            Packed::Plain(plain) => {
                plain.iter().filter_map(logged).for_each(|(position, marks)| each(position, marks));
            }
        }
    }
}

fn for_each_position(mut bytes: &[u8], each: &mut dyn FnMut(Position)) {
    let mut position = 0i64;
    while let Some(coded) = take_varint(&mut bytes) {
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        position = position.wrapping_add(difference);
        each(Position(position as u64));
    }
}
