//! Reading a file front to back, a block at a time.

use super::{Scrubbing, Stop, frames::PAGE_BYTES};
use crate::{DiskFile, disk::read_up_to};
use std::{collections::BTreeMap, io, ops::Range, sync::Arc};

/// Bytes that are read at once.
pub const BLOCK_BYTES: usize = 256 << 10;

/// A file that is read.
pub struct Blocks<'a> {
    pub by: &'a mut dyn Scrubbing,
    file: Arc<dyn DiskFile>,
    /// Bytes that were read so far.
    pub read_bytes: u64,
    /// Nothing is read from here on.
    limit: u64,
    block: Vec<u8>,
    /// Offset of its first byte.
    block_at: u64,
    /// Up to here, a page is read at a time: the system has refused to read a block of it.
    small_to: u64,
    /// Where the system refuses to read: offsets, with what it says. What is there reads as the end of the file.
    pub refused: BTreeMap<u64, Refused>,
}

/// Something that the system refuses to read.
pub struct Refused {
    end: u64,
    error: String,
}

impl<'a> Blocks<'a> {
    pub fn new(file: Arc<dyn DiskFile>, limit: u64, by: &'a mut dyn Scrubbing) -> Self {
        Blocks {
            by,
            file,
            read_bytes: 0,
            limit,
            block: Vec::new(),
            block_at: 0,
            small_to: 0,
            refused: BTreeMap::new(),
        }
    }

    /// Reads anew what is read next.
    pub fn forget(&mut self) {
        self.block.clear();
        self.refused.clear();
    }

    /// What the system says where it refuses to read some of this range, and where the first such place is.
    pub fn refusal(&self, range: Range<u64>) -> Option<(u64, String)> {
        let mut before_end = self.refused.range(..range.end);
        let (at, refused) = before_end.find(|(_, refused)| refused.end > range.start)?;
        Some(((*at).max(range.start), refused.error.clone()))
    }

    /// `N` bytes at an offset; none if the file ends before.
    pub fn array<const N: usize>(&mut self, at: u64) -> Result<Option<[u8; N]>, Stop> {
        let mut out = [0; N];
        let mut done = 0;
        while done < N {
            let piece = self.piece(at + done as u64, N - done)?;
            if piece.is_empty() {
                return Ok(None);
            }
            out[done..done + piece.len()].copy_from_slice(piece);
            done += piece.len();
        }
        Ok(Some(out))
    }

    /// Goes on with the sum of what is from `at` to before `end`; none if the file ends before.
    pub fn sum(&mut self, mut sum: u32, at: u64, end: u64) -> Result<Option<u32>, Stop> {
        let read = self.each_piece(at, end, &mut |piece| {
            sum = crc32c::crc32c_append(sum, piece);
        })?;
        Ok(read.then_some(sum))
    }

    /// Whether all is zero from `at` to before `end`.
    pub fn are_zeros(&mut self, at: u64, end: u64) -> Result<bool, Stop> {
        let mut zeros = true;
        let read = self.each_piece(at, end, &mut |piece| {
            zeros &= piece.iter().all(|byte| *byte == 0);
        })?;
        Ok(read && zeros)
    }

    fn each_piece(
        &mut self,
        mut at: u64,
        end: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Stop> {
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            let piece = self.piece(at, most)?;
            if piece.is_empty() {
                return Ok(false);
            }
            each(piece);
            at += piece.len() as u64;
        }
        Ok(true)
    }

    /// From one to `most` bytes at an offset; none at the end.
    fn piece(&mut self, at: u64, most: usize) -> Result<&[u8], Stop> {
        let is_there = at >= self.block_at && at < self.block_at + self.block.len() as u64;
        if !is_there {
            if self.refusal(at..at + 1).is_some() {
                return Ok(&[]);
            }
            self.fill(at)?;
        }
        let from = (at - self.block_at) as usize;
        let rest = &self.block[from..];
        Ok(&rest[..rest.len().min(most)])
    }

    fn fill(&mut self, at: u64) -> Result<(), Stop> {
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        // What is unreadable may lie behind what is wanted.
        let page = (PAGE_BYTES - at % PAGE_BYTES) as usize;
        let len = left.min(if at < self.small_to { page } else { BLOCK_BYTES });
        if !self.by.may_read(len as u64) {
            return Err(Stop::Ended);
        }
        self.read_bytes += len as u64;
        self.block_at = at;
        if self.read(at, len).is_err() {
            self.small_to = self.small_to.max(at + len as u64);
            let len = len.min(page);
            if let Err(error) = self.read(at, len) {
                let refused = Refused { end: at + len as u64, error: error.to_string() };
                self.refused.insert(at, refused);
            }
        }
        Ok(())
    }

    fn read(&mut self, at: u64, len: usize) -> io::Result<()> {
        self.block.resize(len, 0);
        // What memory has of the file says nothing of the disk; and what is read here is needed once only.
        self.file.forget(at, len as u64);
        let found = read_up_to(&*self.file, &mut self.block, at);
        self.file.forget(at, len as u64);
        self.block.truncate(*found.as_ref().unwrap_or(&0));
        found.map(drop)
    }
}
