//! What is in the folder, and whether it fits together.

use super::{Found, Recovery, checkpoint_error, damaged, io_error};
use crate::{
    Damage, Disk, FileEntry, Lsn, OpenError, OpenMode, Options,
    checkpoint::{CheckpointReader, Table},
    disk::read_up_to,
    format::{HeaderError, SEGMENT_HEADER_USED, SegmentHeader, VERSION},
    log::Spare,
    names::{self, Named},
    segments::{Segment, Segments},
};
use std::{
    any::Any,
    io,
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Segments are not smaller than this.
const SEGMENT_BYTES_MIN: u64 = 16 << 10;
/// Nor larger than this: an offset in a segment has 32 bits.
const SEGMENT_BYTES_MAX: u64 = 1 << 31;

/// See [`Journal::open`](crate::Journal::open).
pub fn open(dir: &Path, options: Options, disk: Arc<dyn Disk>) -> Result<Recovery, OpenError> {
    disk.create_dir(dir).map_err(|error| io_error("create", dir, error))?;
    let lock = lock(&*disk, dir)?;
    open_locked(dir, options, disk, lock)
}

/// Keeps other processes out of the journal in `dir`, until the result is dropped.
pub fn lock(disk: &dyn Disk, dir: &Path) -> Result<Box<dyn Any + Send + Sync>, OpenError> {
    let path = dir.join(names::LOCK);
    disk.lock(&path).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked(dir.to_owned()),
        _ => io_error("lock", &path, error),
    })
}

/// Opens the journal in `dir`, which `lock` keeps others out of.
pub fn open_locked(
    dir: &Path,
    mut options: Options,
    disk: Arc<dyn Disk>,
    lock: Box<dyn Any + Send + Sync>,
) -> Result<Recovery, OpenError> {
    let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
    options.segment_bytes = segment_bytes.next_multiple_of(4096);
    let files = disk.list(dir).map_err(|error| io_error("list", dir, error))?;
    let mut recovery = Recovery {
        dir: dir.to_owned(),
        options,
        disk,
        lock,
        id: 0,
        checkpoint: None,
        chain: Vec::new(),
        segments: Segments::default(),
        spares: Vec::new(),
        next_number: 0,
        leftovers: Vec::new(),
        tail: Default::default(),
    };
    let (mut headers, mut checkpoints) = (Vec::new(), Vec::new());
    for file in files {
        match names::parse(&file.name) {
            Some(Named::Segment(start)) => headers.push(recovery.read_header(&file, start)?),
            Some(Named::Checkpoint(start)) => checkpoints.push((start, file.size_bytes)),
            Some(Named::Spare(number)) => recovery.add_spare(number, file),
            None if file.name == names::CHECKPOINT_BEING_WRITTEN => {
                recovery.leftovers.push(file.name);
            }
            None => {}
        }
    }
    headers.sort_by_key(|header| header.start);
    checkpoints.sort_unstable();
    let table = recovery.take_checkpoint(&checkpoints)?;
    recovery.take_segments(&headers, table)?;
    Ok(recovery)
}

/// Opens a checkpoint's file and reads the journal's own part of it.
pub fn open_checkpoint(
    disk: &dyn Disk,
    path: &Path,
) -> Result<(CheckpointReader, Table), OpenError> {
    let file = disk.open(path, OpenMode::Read).map_err(|error| io_error("open", path, error))?;
    CheckpointReader::open(file).map_err(|error| checkpoint_error(path, error))
}

/// Reads and checks the header of the segment in `path` that should start at `start`.
pub fn read_segment_header(
    disk: &dyn Disk,
    path: &Path,
    start: Lsn,
    size_bytes: u64,
) -> Result<SegmentHeader, OpenError> {
    let file = disk.open(path, OpenMode::Read).map_err(|error| io_error("open", path, error))?;
    let mut octets = [0; SEGMENT_HEADER_USED];
    read_up_to(&*file, &mut octets, 0).map_err(|error| io_error("read", path, error))?;
    let damage = match SegmentHeader::decode(&octets) {
        Ok(header) if header.start != start => Damage::SegmentHeader,
        Ok(header) if header.capacity > size_bytes => Damage::SegmentShort(header.capacity),
        Ok(header) => return Ok(header),
        Err(HeaderError::Version(found)) => {
            let path = path.to_owned();
            return Err(OpenError::UnknownVersion { path, found, known: VERSION });
        }
        Err(HeaderError::Bad) => Damage::SegmentHeader,
    };
    Err(damaged(path, 0, damage))
}

impl Recovery {
    fn read_header(&self, file: &FileEntry, start: Lsn) -> Result<SegmentHeader, OpenError> {
        read_segment_header(&*self.disk, &self.dir.join(&file.name), start, file.size_bytes)
    }

    fn add_spare(&mut self, number: u64, file: FileEntry) {
        self.next_number = self.next_number.max(number.saturating_add(1));
        if file.size_bytes == self.options.segment_bytes {
            self.spares.push(Spare { number, capacity: file.size_bytes });
        } else {
            self.leftovers.push(file.name);
        }
    }

    /// Takes the newest checkpoint; older ones were on their way out when the journal stopped.
    fn take_checkpoint(&mut self, found: &[(Lsn, u64)]) -> Result<Table, OpenError> {
        let Some((&(start, size_bytes), older)) = found.split_last() else {
            return Ok(Table::default());
        };
        self.leftovers.extend(older.iter().map(|(start, _)| names::checkpoint(*start)));
        let path = self.dir.join(names::checkpoint(start));
        let (reader, table) = open_checkpoint(&*self.disk, &path)?;
        if reader.start() != start {
            return Err(damaged(&path, 0, Damage::Checkpoint));
        }
        self.id = reader.id();
        self.checkpoint = Some(Found { start, durable: table.durable, size_bytes });
        Ok(table)
    }

    fn take_segments(&mut self, headers: &[SegmentHeader], table: Table) -> Result<(), OpenError> {
        let Some(newest) = headers.last() else {
            return match &self.checkpoint {
                Some(found) => Err(self.missing(found.start)),
                None => {
                    self.id = self
                        .disk
                        .fresh_id()
                        .map_err(|error| io_error("draw a number for", &self.dir, error))?;
                    Ok(())
                }
            };
        };
        if self.checkpoint.is_none() {
            self.id = newest.id;
        }
        for header in headers {
            if header.id != self.id {
                let path = self.dir.join(names::segment(header.start));
                return Err(damaged(&path, 0, Damage::SegmentForeign));
            }
            self.segments.push(Arc::new(Segment::new(header.start, header.capacity)));
        }
        for entry in table.segments {
            if let Some(segment) = self.segments.find(entry.start) {
                segment.records.store(entry.records, Relaxed);
                *segment.holes.lock() = entry.holes;
            }
        }
        self.take_chain(headers)
    }

    /// The segments from the checkpoint's start on have to follow each other.
    fn take_chain(&mut self, headers: &[SegmentHeader]) -> Result<(), OpenError> {
        let start = self.checkpoint.as_ref().map_or(Lsn(0), |found| found.start);
        let behind = headers.partition_point(|header| header.start <= start);
        let Some(first) = behind.checked_sub(1).filter(|first| start <= headers[*first].end())
        else {
            return Err(self.missing(start));
        };
        let chain = &headers[first..];
        for pair in chain.windows(2) {
            let (header, next) = (&pair[0], &pair[1]);
            if next.start != header.end() {
                return Err(self.missing(header.end()));
            }
            if next.previous_end < header.first_frame() || next.previous_end > header.end() {
                let path = self.dir.join(names::segment(next.start));
                return Err(damaged(&path, 0, Damage::SegmentHeader));
            }
        }
        for header in chain {
            if let Some(segment) = self.segments.find(header.start) {
                self.chain.push((segment, *header));
            }
        }
        Ok(())
    }

    fn missing(&self, start: Lsn) -> OpenError {
        damaged(&self.dir, 0, Damage::SegmentMissing(start))
    }
}
