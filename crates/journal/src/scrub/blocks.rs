//! Reading a file front to back, a block at a time.

use super::{Scrubbing, Stop};
use crate::{DiskFile, disk::read_up_to};
use std::{io, sync::Arc};

/// Bytes that are read at once.
pub const BLOCK_BYTES: usize = 256 << 10;
/// Bytes that are read at once where a block can't be read: what is unreadable may lie behind what is wanted.
const SMALL_BYTES: usize = 4 << 10;

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
}

impl<'a> Blocks<'a> {
    pub fn new(file: Arc<dyn DiskFile>, limit: u64, by: &'a mut dyn Scrubbing) -> Self {
        Blocks { by, file, read_bytes: 0, limit, block: Vec::new(), block_at: 0 }
    }

    /// Reads anew what is read next.
    pub fn forget(&mut self) {
        self.block.clear();
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
            self.fill(at)?;
        }
        let from = (at - self.block_at) as usize;
        let rest = &self.block[from..];
        Ok(&rest[..rest.len().min(most)])
    }

    fn fill(&mut self, at: u64) -> Result<(), Stop> {
        let left = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX);
        let len = left.min(BLOCK_BYTES);
        if !self.by.may_read(len as u64) {
            return Err(Stop::Ended);
        }
        self.read_bytes += len as u64;
        self.block_at = at;
        if self.read(at, len).is_err() {
            self.read(at, len.min(SMALL_BYTES)).map_err(|error| Stop::Unreadable(at, error))?;
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
