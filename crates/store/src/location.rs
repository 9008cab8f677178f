//! Where a message is kept.

use crate::chunk::Chunk;
use crate::{MessageRef, Position};
use std::sync::Arc;

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
        /// Notes of the holder.
        marks: u16,
    },
}

impl Location {
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
