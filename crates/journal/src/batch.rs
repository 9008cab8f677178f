//! Collecting the records of a batch.

use crate::Lsn;
use crate::format::{
    FRAME_ALIGN, FRAME_HEADER_LEN, FrameHeader, FrameKind, RECORD_HEAD_LEN, frame_len, mask,
    record_sum, start_sum, u32_at,
};

/// Records beyond this many bytes in one batch are not even copied; no journal takes them.
const BATCH_LEN_MAX: usize = 1 << 31;

/// A batch keeps no more memory than this while it is empty: its thread may be one of many.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Records that go into the log together: after a crash all of them are there, or none.
///
/// Made to be used again and again: it keeps its memory, unless that is much. The records' bytes are copied and
/// summed by [`Batch::push`], outside the log's lock.
#[derive(Default)]
pub struct Batch {
    /// The frame: room for its header, then the records.
    frame: Vec<u8>,
    /// Where in `frame` each record's head is.
    heads: Vec<u32>,
    /// Bytes pushed, if they were too many to be kept.
    too_large: Option<u64>,
    /// What is here was appended; the next push starts anew.
    spent: bool,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one record, the bytes of `parts` one behind the other, and returns its index.
    ///
    /// The first push after an append starts a new batch.
    pub fn push(&mut self, parts: &[&[u8]]) -> usize {
        if self.spent || self.frame.is_empty() {
            self.clear();
            self.frame.resize(FRAME_HEADER_LEN, 0);
        }
        let index = self.heads.len();
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let after = self.frame.len().saturating_add(RECORD_HEAD_LEN).saturating_add(len);
        if after > BATCH_LEN_MAX || self.too_large.is_some() {
            self.too_large = Some(self.too_large.unwrap_or(0).max(after as u64));
            return index;
        }
        self.heads.push(self.frame.len() as u32);
        self.frame.reserve(RECORD_HEAD_LEN + len + FRAME_ALIGN);
        self.frame.extend_from_slice(&(len as u32).to_le_bytes());
        self.frame.extend_from_slice(&record_sum(parts, len as u32).to_le_bytes());
        for part in parts {
            self.frame.extend_from_slice(part);
        }
        index
    }

    /// Takes everything out, and gives back what is more memory than an ordinary batch needs.
    pub fn clear(&mut self) {
        self.frame.clear();
        self.heads.clear();
        if self.frame.capacity() + self.heads.capacity() * size_of::<u32>() > KEPT_BYTES_MAX {
            (self.frame, self.heads) = (Vec::new(), Vec::new());
        }
        self.too_large = None;
        self.spent = false;
    }

    /// Records in it.
    pub fn len(&self) -> usize {
        if self.spent { 0 } else { self.heads.len() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes it takes in the log.
    pub fn size_bytes(&self) -> u64 {
        if self.is_empty() && self.too_large.is_none() {
            return 0;
        }
        self.too_large.unwrap_or_else(|| frame_len(self.frame.len() - FRAME_HEADER_LEN) as u64)
    }

    /// Turns the records into the frame that goes to `lsn`.
    pub(crate) fn seal(&mut self, lsn: Lsn, durable: Lsn, id: u64) {
        let payload_len = (self.frame.len() - FRAME_HEADER_LEN) as u32;
        let header = FrameHeader {
            lsn,
            durable,
            payload_len,
            records: self.heads.len() as u32,
            kind: FrameKind::Batch,
            sum: 0,
        };
        header.encode(&mut self.frame);
        let mut sum = start_sum(id, &self.frame);
        for &head in &self.heads {
            let at = head as usize;
            let check = u32_at(&self.frame, at + 4) ^ mask(lsn.plus(u64::from(head)), id);
            self.frame[at + 4..at + 8].copy_from_slice(&check.to_le_bytes());
            sum = crc32c::crc32c_append(sum, &self.frame[at..at + RECORD_HEAD_LEN]);
        }
        self.frame[FRAME_HEADER_LEN - 4..FRAME_HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
        self.frame.resize(self.frame.len().next_multiple_of(FRAME_ALIGN), 0);
    }

    /// The frame, once it is sealed; a caller that takes it away leaves an empty buffer here.
    pub(crate) fn frame(&mut self) -> &mut Vec<u8> {
        &mut self.frame
    }

    /// Says that the frame is in the log.
    pub(crate) fn appended(&mut self, start: Lsn, end: Lsn) -> Appended<'_> {
        self.spent = true;
        Appended { heads: &self.heads, start, end }
    }
}

/// Where an appended batch went.
#[derive(Clone, Copy, Debug)]
pub struct Appended<'b> {
    heads: &'b [u32],
    start: Lsn,
    end: Lsn,
}

impl Appended<'_> {
    /// Where the batch starts.
    pub fn start(&self) -> Lsn {
        self.start
    }

    /// The batch is durable when [`Journal::durable`](crate::Journal::durable) has reached this.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// The position of the record that [`Batch::push`] gave `index`.
    ///
    /// # Panics
    /// If there was no such record.
    pub fn position(&self, index: usize) -> Lsn {
        self.start.plus(u64::from(self.heads[index]))
    }
}
