//! The state that entries are applied to: that of the last checkpoint, or of the one before where the disk has damaged it.
//!
//! What the one before needs of the log is kept, and no hole of the last one is in it. But after a start the entries between
//! the two are not known one by one: they are read frame by frame.

use super::{Entry, EntryId, ReadEntryError, entry::Base};
use crate::{
    Lsn, OpenError, ReadError,
    checkpoint::{CheckpointReader, FileError, Header, Table},
    core::Core,
    format::{FrameHeader, FrameKind, SEGMENT_HEADER_LEN},
    names,
    recovery::{checkpoint_error, open_checkpoint},
};

/// What a checkpoint stands for.
pub struct Checkpointed {
    /// The owner's data.
    pub data: Vec<u8>,
    /// Records before this are in it.
    pub start: Lsn,
    pub(super) base: Base,
}

impl Checkpointed {
    /// The last entry that it stands for as a whole: what it does not have is in entries behind this one.
    pub fn last(&self) -> EntryId {
        self.base.id
    }
}

impl Core {
    /// See [`Replica::checkpointed`](super::Replica::checkpointed).
    pub fn checkpointed(&self) -> Result<Checkpointed, OpenError> {
        let _stays = self.checkpointing.lock();
        let taken = self.newest_checkpoint(&mut |_, reader, table| {
            let (start, base) = (reader.start(), table.base);
            Ok(Checkpointed { data: reader.read_all()?, start, base })
        })?;
        if let Some(replica) = &self.replica {
            replica.damage.lock().needed_from = Some(taken.base.end);
        }
        Ok(taken)
    }

    /// Takes the last checkpoint, or the one before if that can't be read, which is told.
    pub(super) fn newest_checkpoint<T>(
        &self,
        take: &mut dyn FnMut(u64, CheckpointReader, Table) -> Result<T, FileError>,
    ) -> Result<T, OpenError> {
        let mut of = |number: u64| {
            let path = self.dir.join(names::checkpoint(number));
            let (reader, table) = open_checkpoint(&*self.disk, &path)?;
            let Header { number: found, id, .. } = reader.header();
            let is_it = (found, id) == (number, self.id);
            let taken = if is_it { take(number, reader, table) } else { Err(FileError::Bad(0)) };
            taken.map_err(|error| checkpoint_error(&path, error))
        };
        let [first, second] = self.latest.in_order();
        of(first).or_else(|error| {
            // Why the other one can't be read either says less.
            let Ok(taken) = of(second) else { return Err(error) };
            tracing::warn!(%error, "a checkpoint can't be read: the one beside it is used");
            Ok(taken)
        })
    }

    /// See [`Replica::read_kept`](super::Replica::read_kept).
    pub(super) fn read_kept(
        &self,
        behind: Base,
        visit: &mut dyn FnMut(&Entry) -> bool,
    ) -> Result<(), ReadEntryError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let (cuts, last) = (self.cuts(), replica.entries.lock().base.index);
        let mut end = behind.end;
        for index in behind.id.index + 1..=last {
            let start = self.start_behind(end);
            let entry = self.kept_entry(index, start);
            let entry = entry.inspect_err(|_| self.want_frame_of_entry(start, cuts))?;
            if !visit(&entry) {
                break;
            }
            end = entry.end();
        }
        Ok(())
    }

    /// Where the entry begins that follows one that ends here: there, unless the segment ends.
    fn start_behind(&self, end: Lsn) -> Lsn {
        let next = match self.segments.find(end).filter(|segment| segment.start < end) {
            Some(segment) => self.segments.find(segment.end()),
            // The segment in which it ends may be freed.
            None => return self.segments.next_from(end).map_or(end, |next| first_in(next.start)),
        };
        let next = next.and_then(|next| self.header_of(&next));
        let is_behind = next.filter(|next| next.previous_end == end);
        is_behind.map_or(end, |next| first_in(next.start))
    }

    fn kept_entry(&self, index: u64, start: Lsn) -> Result<Entry, ReadEntryError> {
        let mut bytes = Vec::new();
        loop {
            let at = start.plus(bytes.len() as u64);
            let frame = self.whole_frame(at).map_err(|error| match error {
                ReadError::Io { path, error } => ReadEntryError::Io { path, error },
                ReadError::Bad { .. } | ReadError::Gone(_) => self.damaged_at(index, at),
            })?;
            bytes.extend_from_slice(&frame);
            let header = FrameHeader::decode(&frame, at);
            if header.is_none_or(|header| header.kind == FrameKind::Entry) {
                break;
            }
        }
        let entry = Entry::parse(bytes.into(), self.id).ok();
        let entry = entry.filter(|entry| entry.id.index == index);
        entry.ok_or_else(|| self.damaged_at(index, start))
    }
}

/// Where the frames of a segment begin.
fn first_in(segment: Lsn) -> Lsn {
    segment.plus(SEGMENT_HEADER_LEN)
}
