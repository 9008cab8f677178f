//! Where a message is kept.

use crate::chunk::Chunk;
use crate::{MessageRef, Position};
use std::fmt;
use std::sync::Arc;

/// Bytes of a body that are not known.
const UNKNOWN: u32 = u32::MAX;

/// Where one message is kept: 16 bytes, which is all a waiting message costs its queue.
///
/// `marks` belong to the holder: the broker notes there what it has to remember about this copy of
/// the message in this queue. A store neither reads nor changes them.
#[derive(Clone, Debug)]
pub enum Location {
    /// In memory, together with others.
    Memory {
        /// The chunk that holds it.
        chunk: Arc<Chunk>,
        /// Where its record begins in the chunk.
        offset: u32,
        /// Notes of the holder.
        marks: u16,
    },
    /// In the log.
    Log {
        /// Where in its shard's log.
        position: Position,
        /// How large the body is, as far as that is known.
        body: BodySize,
        /// Notes of the holder.
        marks: u16,
    },
}

const _: () = assert!(size_of::<Location>() == 16);

/// How many bytes the body of a message has, if that is known without reading it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BodySize(u32);

impl BodySize {
    /// Not known.
    pub const UNKNOWN: BodySize = BodySize(UNKNOWN);

    /// So many bytes.
    pub fn of(bytes: usize) -> Self {
        BodySize(u32::try_from(bytes).unwrap_or(UNKNOWN))
    }

    /// The number that stands for it in what is kept compactly.
    #[inline]
    pub fn coded(self) -> u32 {
        self.0
    }

    /// What [`BodySize::coded`] has given.
    #[inline]
    pub fn from_coded(coded: u32) -> Self {
        BodySize(coded)
    }

    /// Bytes, if they are known.
    #[inline]
    pub fn bytes(self) -> Option<u32> {
        (self != Self::UNKNOWN).then_some(self.0)
    }
}

impl fmt::Debug for BodySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl Location {
    /// In the log at this position, with a body of unknown size and without notes.
    pub fn logged(position: Position) -> Self {
        Location::Log { position, body: BodySize::UNKNOWN, marks: 0 }
    }

    /// How large the body is, as far as that is known.
    #[inline]
    pub fn body_size(&self) -> BodySize {
        match self {
            Location::Memory { chunk, offset, .. } => BodySize(chunk.body_len(*offset)),
            Location::Log { body, .. } => *body,
        }
    }

    /// Notes how large the body is, where that was not known.
    #[inline]
    pub fn set_body_size(&mut self, size: BodySize) {
        if let Location::Log { body, .. } = self {
            *body = size;
        }
    }

    /// Notes of the holder.
    #[inline]
    pub fn marks(&self) -> u16 {
        match self {
            Location::Memory { marks, .. } | Location::Log { marks, .. } => *marks,
        }
    }

    /// Where the holder puts its notes.
    #[inline]
    pub fn marks_mut(&mut self) -> &mut u16 {
        match self {
            Location::Memory { marks, .. } | Location::Log { marks, .. } => marks,
        }
    }

    /// The position in the log, for a message that is there.
    #[inline]
    pub fn position(&self) -> Option<Position> {
        match self {
            Location::Memory { .. } => None,
            Location::Log { position, .. } => Some(*position),
        }
    }

    /// The message, if it is in memory.
    #[inline]
    pub fn in_memory(&self) -> Option<MessageRef<'_>> {
        match self {
            Location::Memory { chunk, offset, .. } => Some(chunk.message(*offset)),
            Location::Log { .. } => None,
        }
    }
}
