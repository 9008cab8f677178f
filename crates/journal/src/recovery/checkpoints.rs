//! Which of the checkpoints a start uses, and making them two again.

use super::{Found, Recovery, damaged, io_error};
use crate::{
    Damage, Disk, Lsn, OpenError, OpenMode, Survived,
    checkpoint::{CheckpointReader, CheckpointWriter, FileError, Header, Table, copy},
    disk::{aside, is_bad_sector},
    format::{SEGMENT_HEADER_LEN, SegmentHeader, VERSION},
    names,
    recovery::{scan::Scanner, vote},
};
use std::{io, path::Path};

/// Opens a checkpoint's file and reads the journal's own part of it.
pub fn open_checkpoint(
    disk: &dyn Disk,
    path: &Path,
) -> Result<(CheckpointReader, Table), OpenError> {
    let file = disk.open(path, OpenMode::Read).map_err(|error| io_error("open", path, error))?;
    CheckpointReader::open(file).map_err(|error| checkpoint_error(path, error))
}

/// What it means that a checkpoint's file is not what was written, or can't be read.
pub fn checkpoint_error(path: &Path, error: FileError) -> OpenError {
    match error {
        FileError::Version(found) => {
            OpenError::UnknownVersion { path: path.to_owned(), found, known: VERSION }
        }
        FileError::Bad(offset) => damaged(path, offset, Damage::Checkpoint),
        FileError::Io(error) => io_error("read", path, error),
    }
}

/// A checkpoint that is what was written, all of it.
struct Sound {
    header: Header,
    table: Table,
    size_bytes: u64,
}

/// A checkpoint that is not, and where that shows.
struct Unsound {
    number: u64,
    offset: u64,
}

impl Recovery {
    /// Takes the newest checkpoint that is sound; what is older than the one before it was on its way
    /// out when the journal stopped.
    ///
    /// `found` has the numbers and sizes of all of them, in order. Reads each to its end: what is found
    /// out only when it is needed comes too late.
    pub(super) fn take_checkpoints(
        &mut self,
        found: &[(u64, u64)],
        segments: &[SegmentHeader],
    ) -> Result<Table, OpenError> {
        let (mut sound, mut unsound) = (Vec::new(), Vec::new());
        for &(number, size_bytes) in found {
            match self.examine(number, size_bytes)? {
                Ok(checkpoint) => sound.push(checkpoint),
                Err(offset) => unsound.push(Unsound { number, offset }),
            }
        }
        let ids = segments.iter().map(|segment| segment.id);
        let ids = ids.chain(sound.iter().map(|checkpoint| checkpoint.header.id));
        let last = sound.last().map(|checkpoint| checkpoint.header.id);
        self.id = self.group.or_else(|| vote(last, ids)).unwrap_or_default();
        sound.retain(|checkpoint| {
            let number = checkpoint.header.number;
            let ours = checkpoint.header.id == self.id;
            if !ours {
                unsound.push(Unsound { number, offset: 16 });
            }
            ours
        });
        self.note_survived(&sound, &unsound, segments)?;
        self.unsound.extend(unsound.iter().map(|one| names::checkpoint(one.number)));
        let Some(newest) = sound.pop() else { return Ok(Table::default()) };
        let Header { number, start, .. } = newest.header;
        self.durable = newest.table.durable;
        self.base = newest.table.base;
        let before = sound.pop_if(|before| before.header.number + 1 == number);
        let before = before.map(|before| before.header.start);
        self.leftovers.extend(sound.iter().map(|older| names::checkpoint(older.header.number)));
        self.checkpoint = Some(Found { number, start, size_bytes: newest.size_bytes, before });
        Ok(newest.table)
    }

    /// Reads a checkpoint to its end; the offset of the damage if it is not what was written.
    fn examine(&self, number: u64, size_bytes: u64) -> Result<Result<Sound, u64>, OpenError> {
        let path = self.dir.join(names::checkpoint(number));
        let read = || {
            let file = self.disk.open(&path, OpenMode::Read)?;
            let (reader, table) = CheckpointReader::open(file)?;
            let header = reader.header();
            reader.check()?;
            // A file under another one's name.
            let sound = Sound { header, table, size_bytes };
            if header.number == number { Ok(sound) } else { Err(FileError::Bad(32)) }
        };
        match read() {
            Ok(sound) => Ok(Ok(sound)),
            Err(FileError::Bad(offset)) => Ok(Err(offset)),
            Err(FileError::Io(error)) if is_bad_sector(&error) => Ok(Err(0)),
            Err(error) => Err(checkpoint_error(&path, error)),
        }
    }

    /// Notes which of the last two checkpoints is not there as it should be.
    fn note_survived(
        &mut self,
        sound: &[Sound],
        unsound: &[Unsound],
        segments: &[SegmentHeader],
    ) -> Result<(), OpenError> {
        for &Unsound { number, offset } in unsound {
            let path = self.dir.join(names::checkpoint(number));
            self.survived.push(Survived::CheckpointDamaged { path, offset });
        }
        let sound = sound.iter().map(|checkpoint| checkpoint.header.number);
        let mut numbers: Vec<u64> = sound.chain(unsound.iter().map(|one| one.number)).collect();
        numbers.sort_unstable();
        let complete = matches!(numbers[..], [.., before, last] if before + 1 == last);
        if !complete && !self.is_untouched(segments)? {
            self.survived.push(Survived::CheckpointMissing(self.dir.clone()));
        }
        Ok(())
    }

    /// Whether nothing was ever appended: a crash may have come before there were checkpoints.
    fn is_untouched(&self, segments: &[SegmentHeader]) -> Result<bool, OpenError> {
        let [only] = segments else { return Ok(segments.is_empty()) };
        let path = self.dir.join(names::segment(only.start));
        let touched = || -> io::Result<bool> {
            let file = self.disk.open(&path, OpenMode::Read)?;
            let from = only.start.plus(SEGMENT_HEADER_LEN);
            Ok(Scanner::new(file, only.id, only.start, from, only.end()).rest()?.frames)
        };
        let touched = touched().map_err(|error| io_error("read", &path, error))?;
        Ok(only.start == Lsn(0) && !touched)
    }

    /// What to say instead of `error`, which the segments gave, if what is wrong are the checkpoints.
    pub(super) fn without_checkpoint(&self, error: OpenError) -> OpenError {
        let missing = matches!(error, OpenError::Damaged { damage: Damage::SegmentMissing(_), .. });
        if !missing || self.checkpoint.is_some() {
            return error;
        }
        match self.survived.first() {
            Some(Survived::CheckpointDamaged { path, offset }) => {
                damaged(path, *offset, Damage::Checkpoint)
            }
            Some(Survived::CheckpointMissing(_)) => {
                damaged(&self.dir, 0, Damage::CheckpointMissing)
            }
            None => error,
        }
    }

    /// Sets checkpoints aside that are not sound, and makes a copy of the last one if it is alone. In a
    /// new journal these are two that know nothing.
    pub(crate) fn settle_checkpoints(&mut self) -> Result<(), OpenError> {
        for name in self.unsound.drain(..) {
            let path = self.dir.join(&name);
            let renamed = aside(&*self.disk, &path).and_then(|to| self.disk.rename(&path, &to));
            renamed.map_err(|error| io_error("set aside", &path, error))?;
        }
        if self.checkpoint.is_none() {
            let header = Header { id: self.id, start: Lsn(0), number: 1 };
            let size_bytes = self.install(header.number, &|disk, path| {
                let file = disk.open(path, OpenMode::Create)?;
                CheckpointWriter::new(file, header)?.finish(Table::default())
            })?;
            let (number, start) = (header.number, header.start);
            self.checkpoint = Some(Found { number, start, size_bytes, before: None });
        }
        let Some(last) = self.checkpoint.filter(|last| last.before.is_none()) else {
            return Ok(());
        };
        let from = self.dir.join(names::checkpoint(last.number));
        let number = last.number + 1;
        self.install(number, &|disk, path| {
            let to = disk.open(path, OpenMode::Create)?;
            let copied = copy(&*disk.open(&from, OpenMode::Read)?, &*to, number);
            copied.map(|()| last.size_bytes).map_err(|error| match error {
                FileError::Io(error) => error,
                _ => io::ErrorKind::InvalidData.into(),
            })
        })?;
        self.checkpoint = Some(Found { number, before: Some(last.start), ..last });
        self.survived.clear();
        Ok(())
    }

    /// Writes a checkpoint and gives it its name. Returns its size.
    fn install(
        &self,
        number: u64,
        write: &dyn Fn(&dyn Disk, &Path) -> io::Result<u64>,
    ) -> Result<u64, OpenError> {
        let path = self.dir.join(names::CHECKPOINT_BEING_WRITTEN);
        let size_bytes = write(&*self.disk, &path);
        let size_bytes = size_bytes.map_err(|error| io_error("write to", &path, error))?;
        let name = self.dir.join(names::checkpoint(number));
        let renamed = self.disk.rename(&path, &name);
        renamed.map_err(|error| io_error("rename to", &name, error))?;
        self.sync_dir()?;
        Ok(size_bytes)
    }
}
