//! Entries: their bytes, and the frame that ends each of them.
//!
//! The payload of that frame:
//!
//! ```text
//!  0  8  greatest index known to be committed when this copy wrote it; zero outside a file
//!  8  8  index
//! 16  8  term
//! 24  8  term of the entry before
//! 32  8  start: position of the first frame of the entry, or of this one
//! 40  4  kind
//! 44  4  zeros
//! 48     note
//! ```
//! `durable` in the frame's header is how far this copy was synced when it wrote the frame, and zero
//! outside a file; in the frames before it is always zero.

use crate::{
    Lsn,
    format::{
        FRAME_HEADER_LEN, FrameHeader, FrameKind, Records, check_frame, frame_len, start_sum,
        u32_at, u64_at,
    },
};
use bytes::Bytes;
use std::fmt;

/// Bytes of a closing frame without its note.
pub const CLOSING_LEN: u64 = (FRAME_HEADER_LEN + NOTE_AT) as u64;
/// What a segment always keeps free behind the frames of an entry: room for the closing frame, with the
/// longest note.
pub const RESERVED_LEN: u64 = 2048;
/// Bytes of a note, at most.
pub const NOTE_BYTES_MAX: usize = (RESERVED_LEN - CLOSING_LEN) as usize;

const NOTE_AT: usize = 48;

/// Which entry: they are counted from 1, without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    /// The term of the leader who has placed it.
    pub term: u64,
    /// Its number.
    pub index: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of term {}", self.index, self.term)
    }
}

/// Where the entries end that a checkpoint stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The last of them.
    pub id: EntryId,
    /// Where it ends.
    pub end: Lsn,
}

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Batches of the journal.
    Batch,
    /// The first of a leader.
    Start,
    /// A change of the members, in the note.
    Members,
}

impl EntryKind {
    fn code(self) -> u32 {
        match self {
            EntryKind::Batch => 0,
            EntryKind::Start => 1,
            EntryKind::Members => 2,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        [EntryKind::Batch, EntryKind::Start, EntryKind::Members]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// An entry that was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which one.
    pub id: EntryId,
    /// What it is for.
    pub kind: EntryKind,
    /// All of its bytes: frames of the journal and the closing frame.
    pub frame: Bytes,
}

/// Bytes that are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what was received is no entry of this log: the frame at offset {offset} is not what was written"
)]
pub struct BadEntry {
    /// Where the first frame is that is none.
    pub offset: usize,
}

impl Entry {
    /// Reads an entry of `group`, and checks all of its sums.
    ///
    /// # Errors
    /// With the offset of what is wrong.
    pub fn parse(frame: Bytes, group: u64) -> Result<Self, BadEntry> {
        if frame.len() < FRAME_HEADER_LEN {
            return Err(BadEntry { offset: 0 });
        }
        let start = Lsn(u64_at(&frame, 0));
        let mut offset = 0;
        loop {
            let bad = BadEntry { offset };
            let at = Lsn(start.0.checked_add(offset as u64).ok_or(bad)?);
            let rest = &frame[offset..];
            let header = FrameHeader::decode(rest, at).ok_or(bad)?;
            let len = usize::try_from(header.frame_len()).ok().filter(|len| *len <= rest.len());
            let len = len.ok_or(bad)?;
            // What is behind the records is in no sum, and copies are equal in it too.
            let padding = &rest[..len][FRAME_HEADER_LEN + header.payload_len as usize..];
            let is_padded = padding.iter().all(|byte| *byte == 0);
            if header.durable != Lsn(0) || !is_padded || !check_frame(&header, rest, group) {
                return Err(bad);
            }
            offset += len;
            match header.kind {
                FrameKind::Batch => {}
                FrameKind::Entry => {
                    let closing =
                        Closing::decode(&rest[FRAME_HEADER_LEN..][..header.payload_len as usize]);
                    let closing = closing.filter(|closing| closing.start == start).ok_or(bad)?;
                    if offset != frame.len() || closing.commit != 0 {
                        return Err(bad);
                    }
                    return Ok(Entry { id: closing.id, kind: closing.kind, frame });
                }
                FrameKind::Gap | FrameKind::Close => return Err(bad),
            }
        }
    }

    /// Where it begins.
    pub fn start(&self) -> Lsn {
        Lsn(u64_at(&self.frame, 0))
    }

    /// Where it ends.
    pub fn end(&self) -> Lsn {
        self.start().plus(self.frame.len() as u64)
    }

    /// Calls `each` with the position and the bytes of every record in it.
    pub fn for_each_record(&self, each: &mut dyn FnMut(Lsn, &[u8])) {
        let start = self.start();
        let mut offset = 0;
        while let Some(header) =
            FrameHeader::decode(&self.frame[offset..], start.plus(offset as u64))
        {
            if header.kind == FrameKind::Batch {
                let from = offset + FRAME_HEADER_LEN;
                let payload = &self.frame[from..from + header.payload_len as usize];
                for (at, _, bytes) in Records::new(payload) {
                    each(start.plus((from + at) as u64), bytes);
                }
            }
            offset += header.frame_len() as usize;
        }
    }

    /// How many records it has.
    pub(crate) fn record_count(&self) -> u64 {
        let start = self.start();
        let (mut offset, mut count) = (0, 0);
        while let Some(header) = self
            .frame
            .get(offset..)
            .and_then(|rest| FrameHeader::decode(rest, start.plus(offset as u64)))
        {
            count += u64::from(header.records);
            offset += header.frame_len() as usize;
        }
        count
    }

    /// What it says besides records.
    pub fn note(&self) -> &[u8] {
        self.closing_at().map_or(&[], |at| {
            let payload_len = u32_at(&self.frame, at + 16) as usize;
            &self.frame[at + FRAME_HEADER_LEN + NOTE_AT..at + FRAME_HEADER_LEN + payload_len]
        })
    }

    /// What the closing frame says.
    pub(crate) fn closing(&self) -> Option<Closing> {
        let at = self.closing_at()?;
        let payload_len = u32_at(&self.frame, at + 16) as usize;
        Closing::decode(self.frame.get(at + FRAME_HEADER_LEN..)?.get(..payload_len)?)
    }

    /// Where the closing frame is.
    pub(crate) fn closing_at(&self) -> Option<usize> {
        let start = self.start();
        let mut offset = 0;
        loop {
            let rest = self.frame.get(offset..)?;
            let header = FrameHeader::decode(rest, start.plus(offset as u64))?;
            if header.kind == FrameKind::Entry {
                return Some(offset);
            }
            offset += usize::try_from(header.frame_len()).ok()?;
        }
    }
}

/// What a closing frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    pub commit: u64,
    pub id: EntryId,
    pub term_before: u64,
    pub start: Lsn,
    pub kind: EntryKind,
}

impl Closing {
    /// Reads the payload of a closing frame.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        if payload.len() < NOTE_AT || payload.len() > NOTE_AT + NOTE_BYTES_MAX {
            return None;
        }
        Some(Closing {
            commit: u64_at(payload, 0),
            id: EntryId { index: u64_at(payload, 8), term: u64_at(payload, 16) },
            term_before: u64_at(payload, 24),
            start: Lsn(u64_at(payload, 32)),
            kind: EntryKind::from_code(u32_at(payload, 40))?,
        })
    }

    /// Appends the closing frame to the frames of its entry, which begin at `start`.
    pub fn append(&self, frames: &mut Vec<u8>, note: &[u8], group: u64) {
        let at = frames.len();
        let payload_len = NOTE_AT + note.len();
        frames.resize(at + frame_len(payload_len), 0);
        let header = FrameHeader {
            lsn: self.start.plus(at as u64),
            durable: Lsn(0),
            payload_len: payload_len as u32,
            records: 0,
            kind: FrameKind::Entry,
            sum: 0,
        };
        let closing = &mut frames[at..];
        header.encode(closing);
        let payload = &mut closing[FRAME_HEADER_LEN..];
        payload[..8].copy_from_slice(&self.commit.to_le_bytes());
        payload[8..16].copy_from_slice(&self.id.index.to_le_bytes());
        payload[16..24].copy_from_slice(&self.id.term.to_le_bytes());
        payload[24..32].copy_from_slice(&self.term_before.to_le_bytes());
        payload[32..40].copy_from_slice(&self.start.0.to_le_bytes());
        payload[40..44].copy_from_slice(&self.kind.code().to_le_bytes());
        payload[NOTE_AT..payload_len].copy_from_slice(note);
        sum_closing(closing, group);
    }
}

/// Bytes of a closing frame with this note.
pub fn closing_len(note: &[u8]) -> u64 {
    frame_len(NOTE_AT + note.len()) as u64
}

/// Writes what is this copy's own into a closing frame.
pub fn make_own(closing: &mut [u8], synced: Lsn, commit: u64, group: u64) {
    closing[8..16].copy_from_slice(&synced.0.to_le_bytes());
    closing[FRAME_HEADER_LEN..FRAME_HEADER_LEN + 8].copy_from_slice(&commit.to_le_bytes());
    sum_closing(closing, group);
}

fn sum_closing(closing: &mut [u8], group: u64) {
    let payload_len = u32_at(closing, 16) as usize;
    let sum = start_sum(group, closing);
    let payload = &closing[FRAME_HEADER_LEN..FRAME_HEADER_LEN + payload_len];
    let sum = crc32c::crc32c_append(sum, payload);
    closing[FRAME_HEADER_LEN - 4..FRAME_HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
}
