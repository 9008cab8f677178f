//! What was appended and is not written yet.

use crate::{Lsn, segments::Segment};
use bytes::Bytes;
use std::{mem, ops::Deref, sync::Arc};

/// Small batches are gathered in pieces of this size, each of which costs one write.
const PIECE_BYTES: usize = 256 << 10;
/// Batches from this size on become a piece of their own instead of being copied.
const OWN_PIECE_BYTES: usize = 64 << 10;
/// Buffers larger than this are not kept for another use.
const POOLED_BYTES_MAX: usize = 1 << 20;
/// Buffers kept for another use.
const POOLED_MAX: usize = 16;

/// What the log thread has to do next.
pub enum Step {
    /// Write bytes to the current segment.
    Write(Piece),
    /// Go on in the next segment.
    Switch(Switch),
    /// Go on where the log was cut, when its files are too.
    Cut(Cut),
}

/// Bytes that follow each other in one segment.
pub struct Piece {
    /// Position of the first one.
    pub start: Lsn,
    /// Whole frames.
    pub bytes: Content,
}

/// Bytes that are to be written.
pub enum Content {
    /// In a buffer of the log.
    Own(Vec<u8>),
    /// Where they were received.
    Shared(Bytes),
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Content::Own(bytes) => bytes,
            Content::Shared(bytes) => bytes,
        }
    }
}

/// The change to a new segment.
pub struct Switch {
    /// The new segment.
    pub segment: Arc<Segment>,
    /// The file that is to become it.
    pub spare: Spare,
    /// Where the last frame of the old one ends.
    pub previous_end: Lsn,
}

/// A tail of a copy of a replicated log that goes.
pub struct Cut {
    /// Where the log goes on.
    pub at: Lsn,
    /// The segment that has the byte before.
    pub segment: Arc<Segment>,
    /// Where in that segment what was there ends.
    pub end: Lsn,
}

/// A pre-written file that no log is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// The number in its name.
    pub number: u64,
    /// Its size.
    pub capacity: u64,
}

/// The log buffer: steps for the log thread, and those that it is taking now, in which records
/// can be read meanwhile.
#[derive(Default)]
pub struct Buffer {
    queued: Vec<Step>,
    taken: Arc<Vec<Step>>,
    bytes: usize,
    pool: Vec<Vec<u8>>,
}

impl Buffer {
    /// Bytes that are not written yet.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Queues whole frames that start at `start`; may swap `frame` for another empty buffer.
    pub fn put(&mut self, start: Lsn, frame: &mut Vec<u8>) {
        if self.extend(frame) {
            return;
        }
        let mut bytes = self.pool.pop().unwrap_or_default();
        if frame.len() >= OWN_PIECE_BYTES {
            mem::swap(&mut bytes, frame);
        } else {
            bytes.reserve(PIECE_BYTES);
            bytes.extend_from_slice(frame);
        }
        self.push(start, Content::Own(bytes));
    }

    /// The same for frames that others have as well.
    pub fn put_shared(&mut self, start: Lsn, frames: &Bytes) {
        if frames.len() >= OWN_PIECE_BYTES {
            self.push(start, Content::Shared(frames.clone()));
        } else if !self.extend(frames) {
            let mut bytes = self.pool.pop().unwrap_or_default();
            bytes.reserve(PIECE_BYTES);
            bytes.extend_from_slice(frames);
            self.push(start, Content::Own(bytes));
        }
    }

    /// Copies frames behind the last piece, if that has room.
    fn extend(&mut self, frames: &[u8]) -> bool {
        let Some(Step::Write(Piece { bytes: Content::Own(bytes), .. })) = self.queued.last_mut()
        else {
            return false;
        };
        let has_room = bytes.capacity() - bytes.len() >= frames.len();
        if has_room {
            bytes.extend_from_slice(frames);
            self.bytes += frames.len();
        }
        has_room
    }

    fn push(&mut self, start: Lsn, bytes: Content) {
        self.bytes += bytes.len();
        self.queued.push(Step::Write(Piece { start, bytes }));
    }

    /// Queues the change to another segment.
    pub fn switch(&mut self, switch: Switch) {
        self.queued.push(Step::Switch(switch));
    }

    /// Queues a cut. Nothing else waits: steps stay in the order of their positions.
    pub fn cut(&mut self, cut: Cut) {
        debug_assert!(self.queued.is_empty() && self.taken.is_empty(), "written before it is cut");
        self.queued.push(Step::Cut(cut));
    }

    /// Takes all that is queued; what was taken before has to be given back first.
    pub fn take(&mut self) -> Arc<Vec<Step>> {
        debug_assert!(self.taken.is_empty(), "taken while something is being written");
        self.taken = Arc::new(mem::take(&mut self.queued));
        Arc::clone(&self.taken)
    }

    /// Forgets what was taken, because it is written; `steps` is what [`Buffer::take`] returned.
    pub fn written(&mut self, steps: Arc<Vec<Step>>) {
        self.taken = Arc::default();
        // It is shared with no reader: they copy from the buffer under its lock.
        let Ok(mut steps) = Arc::try_unwrap(steps) else { return };
        for step in steps.drain(..) {
            let Step::Write(Piece { bytes, .. }) = step else { continue };
            self.bytes -= bytes.len();
            if let Content::Own(mut bytes) = bytes
                && bytes.capacity() <= POOLED_BYTES_MAX
                && self.pool.len() < POOLED_MAX
            {
                bytes.clear();
                self.pool.push(bytes);
            }
        }
        if self.queued.is_empty() {
            self.queued = steps;
        }
    }

    /// The bytes from `position` to the end of the piece that has it, if one has.
    pub fn find(&self, position: Lsn) -> Option<&[u8]> {
        let found = find_in(&self.queued, position);
        found.or_else(|| find_in(&self.taken, position))
    }
}

fn find_in(steps: &[Step], position: Lsn) -> Option<&[u8]> {
    // Steps are in the order of their positions.
    let starts_at = |step: &Step| match step {
        Step::Write(piece) => piece.start,
        Step::Switch(switch) => switch.segment.start,
        Step::Cut(cut) => cut.at,
    };
    let behind = steps.partition_point(|step| starts_at(step) <= position);
    let Step::Write(piece) = steps.get(behind.checked_sub(1)?)? else { return None };
    piece.bytes.get((position.0 - piece.start.0) as usize..).filter(|rest| !rest.is_empty())
}
