//! A segment of a copy that is sent, as it is written from front to back.

use super::{BootstrapError, install::io_error};
use crate::{
    Disk, DiskFile, Lsn, OpenMode,
    disk::write_all,
    format::{FOLLOWED_OFFSET, SegmentHeader, followed},
    names,
    recovery::clear,
};
use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes that are synced at once: who sends the copy waits meanwhile, and gives a slow disk up.
pub const SYNC_BYTES: u64 = 4 << 20;

/// The segment, which is synced as it comes.
pub struct SentSegment {
    pub header: SegmentHeader,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Ranges of offsets in which nothing is needed: they take no room.
    holes: Vec<Range<u32>>,
    /// Where it ends, as far as it is written.
    filled: u64,
    /// Bytes that are not synced yet.
    unsynced: u64,
}

impl SentSegment {
    /// Makes the file in `dir`.
    pub fn begin(
        disk: &dyn Disk,
        dir: &Path,
        header: SegmentHeader,
        holes: Vec<Range<u32>>,
    ) -> Result<Self, BootstrapError> {
        let path = dir.join(names::segment(header.start));
        let encoded = header.encode();
        let make = || {
            let file = disk.open(&path, OpenMode::Create)?;
            write_all(&*file, &encoded, 0)?;
            Ok(file)
        };
        let file = make().map_err(|error| io_error("write to", &path, error))?;
        let len = encoded.len() as u64;
        Ok(SentSegment { header, path, file, holes, filled: len, unsynced: len })
    }

    /// Writes bytes that were sent, and zeros where some before them were not.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BootstrapError> {
        self.fill_up_to(offset)?;
        for part in self.next_parts(offset..offset + bytes.len() as u64) {
            let [from, to] = [part.start, part.end].map(|at| (at - offset) as usize);
            self.written(write_all(&*self.file, &bytes[from..to], part.start))?;
        }
        self.sync_much()
    }

    /// Writes zeros up to its end, and which segment follows.
    pub fn end(mut self, next: Option<Lsn>) -> Result<(), BootstrapError> {
        let SegmentHeader { id, start, capacity, .. } = self.header;
        self.fill_up_to(capacity)?;
        let end = || {
            if next == Some(self.header.end()) {
                write_all(&*self.file, &followed(id, start), FOLLOWED_OFFSET)?;
            }
            // A hole at the end gives the file no length.
            if self.file.size_bytes()? < capacity {
                write_all(&*self.file, &[0], capacity - 1)?;
            }
            Ok(())
        };
        self.written(end())?;
        self.sync()
    }

    fn fill_up_to(&mut self, end: u64) -> Result<(), BootstrapError> {
        while self.filled < end {
            let to = end.min(self.filled + SYNC_BYTES);
            for part in self.next_parts(self.filled..to) {
                self.written(clear(&*self.file, part.start, part.end))?;
            }
            self.sync_much()?;
        }
        Ok(())
    }

    /// Those parts of a range that are in no hole, which are written next.
    fn next_parts(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        self.filled = self.filled.max(range.end);
        let parts = outside(&self.holes, range);
        self.unsynced += parts.iter().map(|part| part.end - part.start).sum::<u64>();
        parts
    }

    fn written(&self, done: io::Result<()>) -> Result<(), BootstrapError> {
        done.map_err(|error| io_error("write to", &self.path, error))
    }

    fn sync_much(&mut self) -> Result<(), BootstrapError> {
        if self.unsynced >= SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), BootstrapError> {
        self.file.sync_data().map_err(|error| io_error("sync", &self.path, error))?;
        self.unsynced = 0;
        Ok(())
    }
}

/// The parts of a range that are in none of these holes, which ascend.
fn outside(holes: &[Range<u32>], range: Range<u64>) -> Vec<Range<u64>> {
    let (mut from, mut parts) = (range.start, Vec::new());
    for hole in holes {
        parts.push(from..range.end.min(hole.start.into()));
        from = from.max(hole.end.into());
    }
    parts.push(from..range.end);
    parts.retain(|part| !part.is_empty());
    parts
}
