//! Sending a copy to a machine that has none: the last checkpoint, and the segments with what is live.

use super::{BootstrapError, Chunk, EntryId, Shared, chunk::Part, entry::Base};
use crate::{
    DiskFile, Lsn, OpenMode,
    checkpoint::CheckpointReader,
    core::Core,
    disk::read_up_to,
    format::{SEGMENT_HEADER_LEN, SEGMENT_HEADER_USED, SegmentHeader},
    names::{self, Named},
    recovery::checkpoint_error,
    segments::Segment,
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes of entries that are read at once before they are sent.
const CHECK_BYTES: u64 = 4 << 20;

/// A copy that is sent: [chunks](Chunk) for an [`Installer`](super::Installer), in order. While it is
/// there, segments are neither freed nor punched.
pub struct Bootstrap {
    pinned: Pinned,
    upto: EntryId,
    /// Entries that are sent behind the checkpoint are whole up to this one.
    whole: Base,
    end: Lsn,
    number: u64,
    /// With what checks it on the way.
    checkpoint: Option<(OpenFile, CheckpointReader)>,
    checkpoint_number: u64,
    /// The number of the last checkpoint when this began.
    last_checkpoint: u64,
    segments: VecDeque<Arc<Segment>>,
    segment: Option<(Lsn, OpenFile)>,
    ended: bool,
}

/// A file that is being sent.
struct OpenFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    offset: u64,
    end: u64,
}

impl OpenFile {
    /// The next bytes, `max_bytes` at most, and where they are.
    fn next(&mut self, max_bytes: usize) -> Result<(u64, Vec<u8>), BootstrapError> {
        let len = (self.end - self.offset).min(max_bytes as u64) as usize;
        let mut bytes = vec![0; len];
        let found = read_up_to(&*self.file, &mut bytes, self.offset)
            .map_err(|error| io_error("read", &self.path, error))?;
        if found < len {
            let offset = self.offset + found as u64;
            return Err(BootstrapError::Damaged { path: self.path.clone(), offset });
        }
        let offset = self.offset;
        self.offset += len as u64;
        Ok((offset, bytes))
    }
}

impl Bootstrap {
    /// Of everything that is committed, and at least of what the last checkpoint starts behind.
    pub(super) fn new(core: Arc<Core>) -> Result<Self, BootstrapError> {
        let pinned = Pinned::new(core);
        let core = &pinned.0;
        let _no_checkpoint = core.checkpointing.lock();
        let (number, reader, table) =
            core.newest_checkpoint(&mut |number, reader, table| Ok((number, reader, table)))?;
        let (upto, end) = core.committed_behind(reader.start().max(table.durable))?;
        while core.written() < end {
            if let Some(failure) = core.failed.get() {
                return Err(BootstrapError::Failed(failure.clone()));
            }
            core.flush_once();
        }
        let path = core.dir.join(names::checkpoint(number));
        let file = core.disk.open(&path, OpenMode::Read);
        let file = file.map_err(|error| io_error("open", &path, error))?;
        let size_bytes = file.size_bytes().map_err(|error| io_error("read", &path, error))?;
        let checkpoint = Some((OpenFile { file, path, offset: 0, end: size_bytes }, reader));
        let last_checkpoint = core.latest.number();
        let segments = core.segments.starting_before(end).into();
        drop(_no_checkpoint);
        Ok(Bootstrap {
            pinned,
            upto,
            whole: table.base,
            end,
            number: 0,
            checkpoint,
            checkpoint_number: number,
            last_checkpoint,
            segments,
            segment: None,
            ended: false,
        })
    }

    /// The last entry in it: the log goes on behind it.
    pub fn upto(&self) -> EntryId {
        self.upto
    }

    /// Whether the disk has no room, and this keeps what a checkpoint would have given back that was made since it began.
    pub fn keeps_disk_full(&self) -> bool {
        let core = &self.pinned.0;
        !core.has_room() && core.latest.number() > self.last_checkpoint
    }

    /// The next chunk, with `max_bytes` of files at most; none after the last.
    ///
    /// # Errors
    /// When something can't be read.
    pub fn next_chunk(&mut self, max_bytes: usize) -> Result<Option<Chunk>, BootstrapError> {
        let part = self.next_part(max_bytes.max(1))?;
        Ok(part.map(|part| {
            self.number += 1;
            Chunk { number: self.number - 1, part }
        }))
    }

    fn next_part(&mut self, max_bytes: usize) -> Result<Option<Part>, BootstrapError> {
        if self.number == 0 {
            let core = &self.pinned.0;
            let (group, segment_bytes) = (core.id, core.options.segment_bytes);
            return Ok(Some(Part::Begin { group, segment_bytes, upto: self.upto.index }));
        }
        if let Some((file, check)) = &mut self.checkpoint {
            let (offset, bytes) = file.next(max_bytes)?;
            if !bytes.is_empty() {
                let number = self.checkpoint_number;
                let checked = check.check_to(offset + bytes.len() as u64);
                checked.map_err(|error| {
                    self.pinned.0.latest.note_unsound(number);
                    checkpoint_error(&file.path, error)
                })?;
                let bytes = Bytes::from(bytes);
                return Ok(Some(Part::Checkpoint { number, offset, bytes }));
            }
            self.checkpoint = None;
        }
        while let Some((start, file)) = &mut self.segment {
            let (offset, bytes) = file.next(max_bytes)?;
            let to = Lsn(start.0 + offset + bytes.len() as u64);
            if bytes.is_empty() {
                self.segment = None;
            } else if bytes.iter().all(|byte| *byte == 0) {
                // The other side has zeros where nothing is sent.
                continue;
            }
            // Part by part: the other side waits for each no longer than it would for a node that is silent.
            self.check_entries(to)?;
            if !bytes.is_empty() {
                return Ok(Some(Part::Log { offset, bytes: bytes.into() }));
            }
        }
        if let Some(segment) = self.segments.pop_front() {
            return self.begin_segment(&segment).map(Some);
        }
        let is_last = !std::mem::replace(&mut self.ended, true);
        Ok(is_last.then_some(Part::End { end: self.end.0 }))
    }

    fn begin_segment(&mut self, segment: &Segment) -> Result<Part, BootstrapError> {
        let core = &self.pinned.0;
        let path = segment.path(&core.dir);
        let file = core.disk.open(&path, OpenMode::Read);
        let file = file.map_err(|error| io_error("open", &path, error))?;
        let mut header = [0; SEGMENT_HEADER_USED];
        read_up_to(&*file, &mut header, 0).map_err(|error| io_error("read", &path, error))?;
        let header = SegmentHeader::decode(&header).ok().filter(|header| {
            (header.start, header.capacity, header.id) == (segment.start, segment.capacity, core.id)
        });
        let Some(header) = header else { return Err(BootstrapError::Damaged { path, offset: 0 }) };
        let end = header.end().min(self.end).0 - header.start.0;
        let file = OpenFile { file, path, offset: SEGMENT_HEADER_LEN, end };
        self.segment = Some((header.start, file));
        Ok(Part::Segment {
            start: header.start.0,
            capacity: header.capacity,
            previous_end: header.previous_end.0,
        })
    }

    /// The entry before the first that is known.
    fn first(&self) -> u64 {
        self.pinned.0.replica.as_ref().map_or(0, |replica| replica.entries.lock().base.index)
    }

    /// Reads the entries up to a position that the other side will read when it opens the copy: it could not open one with damage,
    /// and would ask for the same again. What is damaged other copies are asked for.
    fn check_entries(&mut self, to: Lsn) -> Result<(), BootstrapError> {
        while self.whole.end < to && self.whole.id.index < self.upto.index {
            if self.whole.id.index < self.first() {
                let (core, whole) = (&self.pinned.0, &mut self.whole);
                core.read_kept(*whole, &mut |entry| {
                    *whole = Base { id: entry.id, end: entry.end() };
                    whole.end < to
                })?;
                continue;
            }
            let next = self.whole.id.index + 1;
            let max_bytes = CHECK_BYTES.min(to.0 - self.whole.end.0);
            let read = self.pinned.0.read_entries(next, self.upto.index + 1, max_bytes)?;
            let Some(last) = read.last() else { return Ok(()) };
            self.whole = Base { id: last.id, end: last.end() };
        }
        Ok(())
    }
}

impl Core {
    /// The last entry that is committed for certain, and where it ends: one that reaches to `covered`, as
    /// does the last checkpoint.
    fn committed_behind(&self, covered: Lsn) -> Result<(EntryId, Lsn), BootstrapError> {
        let Some(replica) = &self.replica else { return Ok((EntryId::default(), self.durable())) };
        let mut index = replica.entries.lock().commit;
        let mut end = self.end_of(index)?;
        while end < covered {
            index += 1;
            end = self.end_of(index)?;
        }
        let term = replica.entries.lock().term(index).unwrap_or_default();
        Ok((EntryId { term, index }, end))
    }

    /// Whether a copy is being sent.
    pub fn is_pinned(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.pins.lock().count > 0)
    }

    /// Removes the checkpoints that were kept for a copy that was sent.
    fn remove_old_checkpoints(&self) -> io::Result<()> {
        let _only_one = self.checkpointing.lock();
        let last = self.latest.number();
        for file in self.disk.list(&self.dir)? {
            if let Some(Named::Checkpoint(number)) = names::parse(&file.name)
                && number + 1 < last
            {
                self.disk.remove(&self.dir.join(file.name))?;
            }
        }
        Ok(())
    }
}

/// What is kept for copies that are being sent.
#[derive(Default)]
pub struct Pins {
    /// How many copies.
    pub count: u64,
    /// Entries up to here are kept for them alone: neither of the two last checkpoints needs their segments.
    pub base: Base,
}

impl Pins {
    /// Forgets the entries that no copy needs, which can't be read once their segments are freed.
    pub fn trim(&self, replica: &Shared) {
        if self.count == 0 {
            replica.entries.lock().trim(self.base);
        }
    }
}

/// Keeps segments and checkpoints as they are.
struct Pinned(Arc<Core>);

impl Pinned {
    fn new(core: Arc<Core>) -> Self {
        {
            // Nothing that has begun to free or punch segments goes on after this.
            let _upkeep = core.upkeeping.lock();
            if let Some(replica) = &core.replica {
                replica.pins.lock().count += 1;
            }
        }
        Pinned(core)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Some(replica) = &self.0.replica else { return };
        let left = {
            let mut pins = replica.pins.lock();
            pins.count -= 1;
            // Their segments may be freed from now on.
            pins.trim(replica);
            pins.count
        };
        if left == 0 {
            // A checkpoint may free now what it could not before.
            self.0.latest.look_again();
        }
        if left == 0 && self.0.failed.get().is_none() {
            // What stays is removed at the next start.
            let _ = self.0.remove_old_checkpoints();
            if self.0.options.threads {
                self.0.wake_upkeep();
            }
        }
    }
}

fn io_error(action: &'static str, path: &Path, error: io::Error) -> BootstrapError {
    BootstrapError::Io { action, path: path.to_owned(), error }
}
