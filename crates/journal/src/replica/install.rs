//! Installing a copy that another machine sends.
//!
//! A mark in the folder says that not all of it is there; it is made before anything else is changed,
//! and removed when everything is synced. A start that finds it refuses, and the copy is sent again from
//! the beginning. The vote stays where it is all the time.
//!
//! What the checkpoint says to be holes of a segment is not written: the copy needs no more room than the log that is copied.
//!
//! The mark says where the log ended that was here before, if that was whole, since others may count on what it had. Else it is
//! empty.
//!
//! ```text
//!   0  8  term of the last entry
//!   8  8  its index
//!  16  4  sum of these
//! ```

use super::{
    BootstrapError, Chunk, EntryId, Identity, Vote,
    chunk::Part,
    sent_segment::SentSegment,
    state::{State, StateError, StateFile},
};
use crate::{
    Disk, DiskFile, Lsn, OpenMode,
    checkpoint::{FileError, SegmentEntry, copy as copy_checkpoint},
    disk::{read_up_to, write_all},
    format::{SegmentHeader, u32_at, u64_at},
    names,
    recovery::{lock, open_checkpoint},
};
use std::{
    any::Any,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Segments of more bytes are none.
const CAPACITY_MAX: u64 = 1 << 32;

/// A copy that is being installed.
pub struct Installer {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    identity: Identity,
    state: StateFile,
    next: u64,
    upto: u64,
    checkpoint: Option<(u64, Arc<dyn DiskFile>)>,
    segment: Option<SentSegment>,
    /// What the checkpoint says about segments, once all of it has come.
    table: Option<Vec<SegmentEntry>>,
    end: Option<Lsn>,
    _lock: Box<dyn Any + Send + Sync>,
}

/// Bytes of a mark that says where the log ended.
const MARK_LEN: usize = 20;

/// Makes the mark in `dir`, durable but for its name. One that says the same stays as it is.
fn set_mark(disk: &dyn Disk, dir: &Path, last: Option<EntryId>) -> io::Result<()> {
    let path = dir.join(names::BEING_INSTALLED);
    let Some(EntryId { term, index }) = last else {
        return disk.open(&path, OpenMode::Create)?.sync_data();
    };
    if read_mark(disk, &path) == last {
        return Ok(());
    }
    let mut mark = [0; MARK_LEN];
    mark[..8].copy_from_slice(&term.to_le_bytes());
    mark[8..16].copy_from_slice(&index.to_le_bytes());
    let sum = crc32c::crc32c(&mark[..16]);
    mark[16..].copy_from_slice(&sum.to_le_bytes());
    // A mark without all of its bytes would say that the log is lost, and that is still whole.
    let being_written = dir.join(names::MARK_BEING_WRITTEN);
    let write = || {
        let file = disk.open(&being_written, OpenMode::Create)?;
        write_all(&*file, &mark, 0)?;
        file.sync_data()?;
        disk.rename(&being_written, &path)
    };
    write().inspect_err(|_| drop(disk.remove(&being_written)))
}

/// Where the log ended that was there before the copy, if the mark at `path` says it.
pub fn read_mark(disk: &dyn Disk, path: &Path) -> Option<EntryId> {
    let file = disk.open(path, OpenMode::Read).ok()?;
    let mut mark = [0; MARK_LEN];
    let is_whole = read_up_to(&*file, &mut mark, 0).ok()? == MARK_LEN;
    let is_sound = is_whole && crc32c::crc32c(&mark[..16]) == u32_at(&mark, 16);
    is_sound.then(|| EntryId { term: u64_at(&mark, 0), index: u64_at(&mark, 8) })
}

impl Installer {
    /// Takes everything out of `dir` that another copy has left there, its vote excepted, and gets ready
    /// for the first chunk. `vote` is what this member has voted, or that of a new one; `last` is where the log has ended that
    /// it had before, if that was whole.
    ///
    /// # Errors
    /// When the folder is in use or can't be written to, or what it has voted is lost.
    pub fn begin(
        dir: &Path,
        disk: Arc<dyn Disk>,
        identity: Identity,
        vote: &Vote,
        last: Option<EntryId>,
    ) -> Result<Self, BootstrapError> {
        disk.create_dir(dir).map_err(|error| io_error("create", dir, error))?;
        let lock = lock(&*disk, dir)?;
        let mark = dir.join(names::BEING_INSTALLED);
        set_mark(&*disk, dir, last).map_err(|error| io_error("write to", &mark, error))?;
        disk.sync_dir(dir).map_err(|error| io_error("sync", dir, error))?;
        let state = begin_state(&*disk, dir, identity, vote)?;
        remove_all(&*disk, dir)?;
        disk.sync_dir(dir).map_err(|error| io_error("sync", dir, error))?;
        Ok(Installer {
            dir: dir.to_owned(),
            disk,
            identity,
            state,
            next: 0,
            upto: 0,
            checkpoint: None,
            segment: None,
            table: None,
            end: None,
            _lock: lock,
        })
    }

    /// Writes the next chunk.
    ///
    /// # Errors
    /// When it is not the next one, or can't be written. The copy has to be sent from the beginning then; without room for
    /// it, others that share the disk get back what it has taken.
    pub fn chunk(&mut self, chunk: Chunk) -> Result<(), BootstrapError> {
        let done = self.take(chunk);
        self.give_back_without_room(done)
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), BootstrapError> {
        let bad = BootstrapError::BadChunk { number: self.next };
        let is_first = matches!(chunk.part, Part::Begin { .. });
        if chunk.number != self.next || is_first != (self.next == 0) || self.end.is_some() {
            return Err(bad);
        }
        match chunk.part {
            Part::Begin { group, segment_bytes, upto } => {
                if (Identity { group, segment_bytes }) != self.identity {
                    return Err(bad);
                }
                self.upto = upto;
            }
            Part::Checkpoint { number, offset, bytes } => {
                self.write_checkpoint(number, offset, &bytes)?
            }
            Part::Segment { start, capacity, previous_end } => {
                let id = self.identity.group;
                let (start, previous_end) = (Lsn(start), Lsn(previous_end));
                let header = SegmentHeader { id, start, capacity, previous_end };
                // As it is read again.
                let sound = SegmentHeader::decode(&header.encode()) == Ok(header);
                let follows = self.segment.as_ref().is_none_or(|last| last.header.end() <= start);
                if !sound || !follows || capacity > CAPACITY_MAX {
                    return Err(bad);
                }
                self.begin_segment(header)?;
            }
            Part::Log { offset, bytes } => {
                let Some(segment) = &mut self.segment else { return Err(bad) };
                let end = offset.checked_add(bytes.len() as u64);
                if end.is_none_or(|end| end > segment.header.capacity) {
                    return Err(bad);
                }
                segment.put(offset, &bytes)?;
            }
            Part::End { end } => self.end = Some(Lsn(end)),
        }
        self.next += 1;
        Ok(())
    }

    /// Makes what was written a copy, durably: [`Replica::open`](super::Replica::open) finds it from now on.
    ///
    /// # Errors
    /// When chunks are missing, or something can't be written.
    pub fn finish(mut self) -> Result<(), BootstrapError> {
        let done = self.complete();
        self.give_back_without_room(done)?;
        // It is whole, and stays.
        self.sync_dir()
    }

    fn give_back_without_room(
        &self,
        done: Result<(), BootstrapError>,
    ) -> Result<(), BootstrapError> {
        if done.as_ref().is_err_and(BootstrapError::lacks_room) {
            // What stays is removed when it is sent again.
            let _ = remove_all(&*self.disk, &self.dir);
        }
        done
    }

    fn complete(&mut self) -> Result<(), BootstrapError> {
        let (Some(end), Some((number, checkpoint))) = (self.end, self.checkpoint.take()) else {
            return Err(BootstrapError::Incomplete);
        };
        if let Some(last) = self.segment.take() {
            // Its zeros are many: no node waits for that any more.
            last.end(None)?;
        }
        checkpoint.sync_data().map_err(|error| io_error("sync", &self.dir, error))?;
        // A start wants two.
        let second = self.dir.join(names::checkpoint(number + 1));
        let file = self.disk.open(&second, OpenMode::Create);
        let file = file.map_err(|error| io_error("write to", &second, error))?;
        copy_checkpoint(&*checkpoint, &*file, number + 1).map_err(|error| match error {
            FileError::Io(error) => io_error("write to", &second, error),
            FileError::Version(_) | FileError::Bad(_) => {
                BootstrapError::Damaged { path: second.clone(), offset: 0 }
            }
        })?;
        self.sync_dir()?;
        let state = State {
            commit: self.upto,
            synced: end,
            cut: None,
            begun: true,
            clean: false,
            ..self.state.state.clone()
        };
        let path = self.dir.join(names::REPLICA);
        self.state.write(state).map_err(|error| io_error("write to", &path, error))?;
        let mark = self.dir.join(names::BEING_INSTALLED);
        // If it came back after a loss of power, others would count on more than it says.
        let cleared = set_mark(&*self.disk, &self.dir, None);
        cleared.map_err(|error| io_error("write to", &mark, error))?;
        self.disk.remove(&mark).map_err(|error| io_error("remove", &mark, error))
    }

    fn sync_dir(&self) -> Result<(), BootstrapError> {
        self.disk.sync_dir(&self.dir).map_err(|error| io_error("sync", &self.dir, error))
    }

    fn write_checkpoint(
        &mut self,
        number: u64,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), BootstrapError> {
        let path = self.dir.join(names::checkpoint(number));
        let file = match &self.checkpoint {
            Some((same, file)) if *same == number => Arc::clone(file),
            Some(_) => return Err(BootstrapError::BadChunk { number: self.next }),
            None => self
                .disk
                .open(&path, OpenMode::Create)
                .map_err(|error| io_error("write to", &path, error))?,
        };
        write_all(&*file, bytes, offset).map_err(|error| io_error("write to", &path, error))?;
        self.checkpoint = Some((number, file));
        Ok(())
    }

    fn begin_segment(&mut self, header: SegmentHeader) -> Result<(), BootstrapError> {
        if let Some(last) = self.segment.take() {
            last.end(Some(header.start))?;
        }
        let holes = self.holes_of(header.start)?;
        self.segment = Some(SentSegment::begin(&*self.disk, &self.dir, header, holes)?);
        Ok(())
    }

    /// The holes of a segment, by the checkpoint, which comes before all segments.
    fn holes_of(&mut self, start: Lsn) -> Result<Vec<Range<u32>>, BootstrapError> {
        if self.table.is_none()
            && let Some((number, _)) = &self.checkpoint
        {
            let (_, table) =
                open_checkpoint(&*self.disk, &self.dir.join(names::checkpoint(*number)))?;
            self.table = Some(table.segments);
        }
        let found = self.table.iter().flatten().find(|entry| entry.start == start);
        Ok(found.map(|entry| entry.holes.clone()).unwrap_or_default())
    }
}

/// Removes all files of a log, but not what is beside it.
fn remove_all(disk: &dyn Disk, dir: &Path) -> Result<(), BootstrapError> {
    let files = disk.list(dir).map_err(|error| io_error("list", dir, error))?;
    for file in files {
        if names::parse(&file.name).is_some() || names::is_being_written(&file.name) {
            let path = dir.join(&file.name);
            disk.remove(&path).map_err(|error| io_error("remove", &path, error))?;
        }
    }
    Ok(())
}

/// Makes the file beside the log, or takes the one that is there.
fn begin_state(
    disk: &dyn Disk,
    dir: &Path,
    identity: Identity,
    vote: &Vote,
) -> Result<StateFile, BootstrapError> {
    let path = dir.join(names::REPLICA);
    let failed = |error: StateError| {
        let error = match error {
            StateError::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        };
        io_error("read", &path, error)
    };
    let found = match StateFile::open(disk, dir) {
        Err(StateError::Missing) => {
            let state = State::new(identity, vote.clone());
            StateFile::create(disk, dir, &state)
                .map_err(|error| io_error("write to", &path, error))?;
            StateFile::open(disk, dir)
        }
        found => found,
    };
    let mut file = found.map_err(failed)?;
    let before = file.state.vote.clone();
    // A vote is never taken back.
    let vote = if before.term > vote.term { before } else { vote.clone() };
    let state = State { begun: true, cut: None, ..State::new(identity, vote) };
    file.write(state).map_err(|error| io_error("write to", &path, error))?;
    Ok(file)
}

pub fn io_error(action: &'static str, path: &Path, error: io::Error) -> BootstrapError {
    BootstrapError::Io { action, path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::{super::sent_segment::SYNC_BYTES, *};
    use crate::testing::{FakeDisk, Faults};
    use bytes::Bytes;

    const CAPACITY: u64 = 16 << 20;
    const CHUNK_BYTES: u64 = 1 << 20;

    #[test]
    fn a_large_segment_is_synced_in_parts_as_it_comes_and_filled_at_its_end() {
        let disk = FakeDisk::new(1);
        let identity = Identity { group: 7, segment_bytes: CAPACITY };
        let (dir, on) = (Path::new("copy"), Arc::new(disk.clone()));
        let mut installer = Installer::begin(dir, on, identity, &Vote::default(), None).unwrap();
        let mut install = |part| {
            let number = installer.next;
            installer.chunk(Chunk { number, part })
        };
        install(Part::Begin { group: 7, segment_bytes: CAPACITY, upto: 1 }).unwrap();
        let before = disk.written_bytes();
        install(Part::Segment { start: 0, capacity: CAPACITY, previous_end: 0 }).unwrap();
        let written = disk.written_bytes() - before;
        assert!(written < CHUNK_BYTES, "{written} bytes are written before any has come");
        disk.set_faults(Faults { fail_sync_after: Some(0), ..Faults::default() });
        let mut log = |nth: u64| {
            let bytes = Bytes::from(vec![1; CHUNK_BYTES as usize]);
            install(Part::Log { offset: nth * CHUNK_BYTES, bytes })
        };
        let unsynced = (0..8).take_while(|nth| log(*nth).is_ok()).count() as u64;
        assert!(unsynced * CHUNK_BYTES < SYNC_BYTES, "{unsynced} chunks are synced at once");
        disk.set_faults(Faults::default());
        install(Part::Segment { start: CAPACITY, capacity: CAPACITY, previous_end: 0 }).unwrap();
        let path = dir.join(names::segment(Lsn(0)));
        assert_eq!(disk.contents(&path).unwrap().len() as u64, CAPACITY);
    }
}
