//! Reading records back.

use crate::{
    DiskFile, Lsn, ReadError,
    core::Core,
    disk::read_up_to,
    format::{RECORD_HEAD_LEN, record_is_valid, u32_at},
    segments::Segment,
};
use courser_store::blocking;
use std::{ops::Range, sync::Arc, time::Instant};

/// Bytes that are read at once to begin with, and after a jump.
const BLOCK_BYTES_MIN: usize = 16 << 10;
/// Bytes that are read at once, and asked for ahead, by who reads one record after the other.
const BLOCK_BYTES_MAX: usize = 256 << 10;
/// A larger buffer, for a larger record, is given back with the next block.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// What one reader has read ahead: a block of a segment. Bounded: 16 KiB, 256 KiB once it reads in
/// order, or the largest record read if that is more. Costs no memory before the first read.
#[derive(Default)]
pub struct ReadCache {
    bytes: Vec<u8>,
    /// Position of the first byte.
    start: Lsn,
    /// How many bytes are valid.
    len: usize,
    /// How much was read at once the last time.
    block_bytes: usize,
    /// The file that the block came from, kept open for the next one.
    file: Option<(Arc<Segment>, Arc<dyn DiskFile>)>,
}

impl ReadCache {
    /// Gives the memory and the open file back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes that it takes, however many of them are valid.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all of the record at `position` is cached.
    pub(crate) fn has(&self, position: Lsn) -> bool {
        self.find(position).is_some()
    }

    /// What is cached from `position` on.
    fn cached_from(&self, position: Lsn) -> &[u8] {
        let offset = position.0.checked_sub(self.start.0).and_then(|o| usize::try_from(o).ok());
        offset.and_then(|offset| self.bytes[..self.len].get(offset..)).unwrap_or_default()
    }

    /// Where the bytes of the record at `position` are, if all of it is cached.
    fn find(&self, position: Lsn) -> Option<Range<usize>> {
        let rest = self.cached_from(position);
        let len = record_len(rest)?;
        let from = (position.0 - self.start.0) as usize;
        (len <= rest.len()).then_some(from + RECORD_HEAD_LEN..from + len)
    }

    fn make_room(&mut self, len: usize) {
        self.len = 0;
        if self.bytes.len() < len || self.bytes.len() > BUFFER_KEPT_BYTES {
            self.bytes = vec![0; len.max(self.block_bytes)];
        }
    }

    /// How much to read at once from `position` on: more and more while the reader goes on where
    /// the last block ended, or not far behind.
    fn next_block_bytes(&mut self, position: Lsn) -> usize {
        let end = self.start.plus(self.len as u64);
        let in_order = position >= self.start && position < end.plus(self.block_bytes as u64);
        let wanted = if in_order { self.block_bytes * 4 } else { 0 };
        self.block_bytes = wanted.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        self.block_bytes
    }
}

/// Bytes of the record that `bytes` starts with, its head included.
fn record_len(bytes: &[u8]) -> Option<usize> {
    (bytes.len() >= RECORD_HEAD_LEN).then(|| RECORD_HEAD_LEN + u32_at(bytes, 0) as usize)
}

impl Core {
    /// See [`Journal::read`](crate::Journal::read).
    pub fn read<'c>(&self, position: Lsn, cache: &'c mut ReadCache) -> Result<&'c [u8], ReadError> {
        let range = self.locate(position, cache)?;
        let check = u32_at(&cache.bytes, range.start - 4);
        if record_is_valid(&cache.bytes[range.clone()], check, position, self.id) {
            return Ok(&cache.bytes[range]);
        }
        // The next try shall look at the disk again.
        cache.len = 0;
        Err(match self.segments.find(position) {
            Some(segment) => self.bad(&segment, position),
            None => ReadError::Gone(position),
        })
    }

    /// Gets the record at `position` into the cache.
    fn locate(&self, position: Lsn, cache: &mut ReadCache) -> Result<Range<usize>, ReadError> {
        if let Some(range) = cache.find(position) {
            return Ok(range);
        }
        if position >= self.written() && self.copy_from_buffer(position, cache) {
            return cache.find(position).ok_or(ReadError::Gone(position));
        }
        // What was in the buffer until now is in the file, or was never appended.
        let limit = self.written();
        if position >= limit {
            return Err(ReadError::Gone(position));
        }
        let segment = self.segments.find(position).ok_or(ReadError::Gone(position))?;
        let rest = limit.min(segment.end()).0 - position.0;
        let block_bytes = cache.next_block_bytes(position) as u64;
        if self.fill(&segment, position, rest.min(block_bytes) as usize, cache).is_err() {
            // What is unreadable may lie behind the record. Large blocks would come upon it again.
            cache.block_bytes = 0;
            self.fill(&segment, position, rest.min(RECORD_HEAD_LEN as u64) as usize, cache)?;
        }
        let len = record_len(cache.cached_from(position)).filter(|len| *len as u64 <= rest);
        let len = len.ok_or_else(|| self.bad(&segment, position))?;
        if len > cache.len {
            self.fill(&segment, position, len, cache)?;
        }
        cache.find(position).ok_or_else(|| self.bad(&segment, position))
    }

    fn copy_from_buffer(&self, position: Lsn, cache: &mut ReadCache) -> bool {
        let log = self.log.lock();
        let gathered = || log.lead.as_ref().and_then(|lead| lead.find(position));
        let Some(rest) = log.buffer.find(position).or_else(gathered) else { return false };
        let Some(len) = record_len(rest).filter(|len| *len <= rest.len()) else { return false };
        // What follows is likely to be read next. Little of it: appends wait meanwhile.
        let len = rest.len().min(BLOCK_BYTES_MIN).max(len);
        cache.make_room(len);
        cache.bytes[..len].copy_from_slice(&rest[..len]);
        cache.start = position;
        cache.len = len;
        true
    }

    /// Reads `len` bytes from `position` on, and asks for what follows them.
    fn fill(
        &self,
        segment: &Arc<Segment>,
        position: Lsn,
        len: usize,
        cache: &mut ReadCache,
    ) -> Result<(), ReadError> {
        let failed = |error| ReadError::Io { path: segment.path(&self.dir), error };
        let file = match &cache.file {
            Some((of, file)) if Arc::ptr_eq(of, segment) => Arc::clone(file),
            _ => segment.open(&*self.disk, &self.dir).map_err(failed)?,
        };
        cache.make_room(len);
        let offset = position.0 - segment.start.0;
        let before = Instant::now();
        let out = &mut cache.bytes[..len];
        let found = match file.read_cached(out, offset) {
            true => len,
            false => blocking::wait_for_disk(|| read_up_to(&*file, out, offset)).map_err(failed)?,
        };
        self.done.read(before.elapsed(), found);
        if found == BLOCK_BYTES_MAX {
            file.will_need(offset + found as u64, found as u64);
        }
        cache.start = position;
        cache.len = found;
        cache.file = Some((Arc::clone(segment), file));
        Ok(())
    }

    fn bad(&self, segment: &Segment, position: Lsn) -> ReadError {
        let offset = position.0 - segment.start.0;
        ReadError::Bad { path: segment.path(&self.dir), offset }
    }
}
