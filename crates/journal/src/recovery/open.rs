//! What is in the folder, and whether it fits together.

use super::{Recovery, damaged, io_error};
use crate::{
    Damage, Disk, DiskFile, FileEntry, Lsn, OpenError, OpenMode, Options,
    checkpoint::Table,
    disk::read_up_to,
    format::{
        FOLLOWED_LEN, FOLLOWED_OFFSET, HeaderError, SEGMENT_HEADER_USED, SegmentHeader, VERSION,
        followed,
    },
    log::Spare,
    names::{self, Named},
    replica::{Base, FoundCopy},
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
    options: Options,
    disk: Arc<dyn Disk>,
    lock: Box<dyn Any + Send + Sync>,
) -> Result<Recovery, OpenError> {
    open_as(dir, options, disk, lock, None)
}

/// Opens the log of a copy of a replicated log in `dir`, which `lock` keeps others out of.
pub fn open_copy(
    dir: &Path,
    options: Options,
    disk: Arc<dyn Disk>,
    lock: Box<dyn Any + Send + Sync>,
    copy: &FoundCopy,
) -> Result<Recovery, OpenError> {
    open_as(dir, options, disk, lock, Some(copy))
}

fn open_as(
    dir: &Path,
    mut options: Options,
    disk: Arc<dyn Disk>,
    lock: Box<dyn Any + Send + Sync>,
    copy: Option<&FoundCopy>,
) -> Result<Recovery, OpenError> {
    let segment_bytes = options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
    options.segment_bytes = segment_bytes.next_multiple_of(4096);
    let files = disk.list(dir).map_err(|error| io_error("list", dir, error))?;
    if copy.is_none() && files.iter().any(|file| file.name == names::REPLICA) {
        return Err(OpenError::Replica(dir.to_owned()));
    }
    let mut recovery = Recovery {
        dir: dir.to_owned(),
        options,
        disk,
        lock,
        id: 0,
        group: copy.map(|copy| copy.identity.group),
        base: Base::default(),
        checkpoint: None,
        durable: Lsn(0),
        survived: Vec::new(),
        unsound: Vec::new(),
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
            Some(Named::Checkpoint(number)) => checkpoints.push((number, file.size_bytes)),
            Some(Named::Spare(number)) => recovery.add_spare(number, file),
            None if names::is_being_written(&file.name) => recovery.leftovers.push(file.name),
            None => {}
        }
    }
    headers.sort_by_key(|header| header.start);
    checkpoints.sort_unstable();
    let table = recovery.take_checkpoints(&checkpoints, &headers)?;
    if headers.is_empty() && copy.is_some_and(|copy| copy.begun) {
        return Err(recovery.missing(recovery.replay_start()));
    }
    let taken = recovery.take_segments(&headers, table);
    taken.map_err(|error| recovery.without_checkpoint(error))?;
    Ok(recovery)
}

/// The number of the journal that most of the files are of, `first` if there are as many of another.
pub fn vote(first: Option<u64>, ids: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let votes = |id: u64| ids.clone().filter(|other| *other == id).count();
    let mut best = first.map(|id| (votes(id), id));
    for id in ids.clone() {
        // Nearly always all of them agree.
        if best.is_none_or(|(most, best)| id != best && votes(id) > most) {
            best = Some((votes(id), id));
        }
    }
    best.map(|(_, id)| id)
}

/// Whether the segment in `file`, which starts at `start`, says that there was a next one.
pub fn has_followed(file: &dyn DiskFile, id: u64, start: Lsn) -> io::Result<bool> {
    let mut note = [0; FOLLOWED_LEN];
    read_up_to(file, &mut note, FOLLOWED_OFFSET)?;
    Ok(note == followed(id, start))
}

/// Reads and checks the header of the segment in `path` that should start at `start`.
pub fn read_segment_header(
    disk: &dyn Disk,
    path: &Path,
    start: Lsn,
    size_bytes: u64,
) -> Result<SegmentHeader, OpenError> {
    let file = disk.open(path, OpenMode::Read).map_err(|error| io_error("open", path, error))?;
    let mut bytes = [0; SEGMENT_HEADER_USED];
    read_up_to(&*file, &mut bytes, 0).map_err(|error| io_error("read", path, error))?;
    let damage = match SegmentHeader::decode(&bytes) {
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

    fn take_segments(&mut self, headers: &[SegmentHeader], table: Table) -> Result<(), OpenError> {
        if headers.is_empty() {
            if let Some(found) = &self.checkpoint {
                return Err(self.missing(found.start));
            }
            if !self.unsound.is_empty() {
                return Err(self.missing(Lsn(0)));
            }
            let id = self.group.map_or_else(|| self.disk.fresh_id(), Ok);
            self.id = id.map_err(|error| io_error("draw a number for", &self.dir, error))?;
            return Ok(());
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
                segment.set_holes(entry.holes);
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
        let last = &chain[chain.len() - 1];
        let path = self.dir.join(names::segment(last.start));
        let followed = self
            .disk
            .open(&path, OpenMode::Read)
            .and_then(|file| has_followed(&*file, self.id, last.start));
        if followed.map_err(|error| io_error("read", &path, error))? {
            return Err(self.missing(last.end()));
        }
        Ok(())
    }
}
