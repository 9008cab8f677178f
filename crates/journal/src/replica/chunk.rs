//! What a copy is sent in: pieces with a number and a sum each.
//!
//! ```text
//!  0  8  number, from 0
//!  8  4  kind
//! 12  4  sum of everything else
//! 16  8  three numbers, by kind
//! 40     bytes
//! ```

use crate::format::{u32_at, u64_at};
use bytes::Bytes;

const HEAD_LEN: usize = 40;

/// A piece of a copy that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub(super) number: u64,
    pub(super) part: Part,
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first one: which log this is, and the last entry that is sent.
    Begin { group: u64, segment_bytes: u64, upto: u64 },
    /// Bytes of the checkpoint with this number.
    Checkpoint { number: u64, offset: u64, bytes: Bytes },
    /// The next segment, and where the one before it ends.
    Segment { start: u64, capacity: u64, previous_end: u64 },
    /// Bytes of that segment.
    Log { offset: u64, bytes: Bytes },
    /// The last one: where the last entry ends.
    End { end: u64 },
}

impl Chunk {
    /// Its bytes, for the way to the other machine.
    pub fn encode(&self) -> Bytes {
        let (kind, numbers, bytes) = match &self.part {
            Part::Begin { group, segment_bytes, upto } => {
                (0, [*group, *segment_bytes, *upto], None)
            }
            Part::Checkpoint { number, offset, bytes } => (1, [*number, *offset, 0], Some(bytes)),
            Part::Segment { start, capacity, previous_end } => {
                (2, [*start, *capacity, *previous_end], None)
            }
            Part::Log { offset, bytes } => (3, [*offset, 0, 0], Some(bytes)),
            Part::End { end } => (4, [*end, 0, 0], None),
        };
        let mut out = Vec::with_capacity(HEAD_LEN + bytes.map_or(0, Bytes::len));
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&u32::to_le_bytes(kind));
        out.extend_from_slice(&[0; 4]);
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend_from_slice(bytes.map_or(&[], |bytes| bytes));
        let sum = crc32c::crc32c(&out);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        out.into()
    }

    /// Reads what [`Chunk::encode`] wrote; none if it is anything else.
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        if bytes.len() < HEAD_LEN {
            return None;
        }
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &[0; 4]);
        if crc32c::crc32c_append(sum, &bytes[16..]) != u32_at(bytes, 12) {
            return None;
        }
        let [a, b, c] = [16, 24, 32].map(|offset| u64_at(bytes, offset));
        let rest = bytes.slice(HEAD_LEN..);
        let part = match u32_at(bytes, 8) {
            0 => Part::Begin { group: a, segment_bytes: b, upto: c },
            1 => Part::Checkpoint { number: a, offset: b, bytes: rest },
            2 => Part::Segment { start: a, capacity: b, previous_end: c },
            3 => Part::Log { offset: a, bytes: rest },
            4 => Part::End { end: a },
            _ => return None,
        };
        Some(Chunk { number: u64_at(bytes, 0), part })
    }
}
