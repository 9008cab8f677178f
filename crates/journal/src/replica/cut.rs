//! Cutting off a tail that is not committed.
//!
//! First the file beside the log says where the cut is, then the log is cut, then the file says that it
//! was: a start in between cuts once more. When it is done, nothing behind the cut names its own
//! position any more, so that no frame of an older term can follow what is appended there.

use super::CutError;
use crate::{
    Disk, DiskFile, Lsn, OpenMode,
    core::Core,
    disk::write_all,
    format::{FOLLOWED_LEN, FOLLOWED_OFFSET},
    log::{FOLLOWS, Writer},
    names::{self, Named},
    recovery::clear,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Release},
};

/// An operation that failed, and on what.
type Failed = (&'static str, PathBuf, io::Error);

impl Core {
    /// See [`Replica::cut`](super::Replica::cut).
    pub fn cut(&self, after: u64) -> Result<(), CutError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        if self.log.lock().epoch != FOLLOWS {
            return Err(CutError::Leads);
        }
        let (last, committed) = {
            let entries = replica.entries.lock();
            (entries.last, entries.commit.max(entries.commit_hint))
        };
        if after >= last.index {
            return Ok(());
        }
        if after < committed {
            return Err(CutError::Committed { after, committed });
        }
        let at = self.end_of(after)?;
        let term = replica.entries.lock().term(after);
        let after = super::EntryId { index: after, term: term.unwrap_or_default() };
        // What is buffered is written first: then there is one kind of tail only.
        let _not_freed = self.upkeeping.lock();
        let mut writer = self.writer.lock();
        let flushed = self.write_buffer(&mut writer);
        let begun = flushed.and_then(|()| self.begin_cut(at));
        let done = begun.and_then(|()| self.cut_live(&mut writer, at));
        if let Err(failed) = done {
            drop(writer);
            self.fail(failed.0, &failed.1, failed.2);
        } else {
            let mut log = self.log.lock();
            replica.entries.lock().cut(after, at);
            (log.end, log.queued, log.sync_to) = (at, at, at);
            log.segment = Arc::clone(&writer.segment);
            log.ticket += 1;
            self.end.store(at.0, Release);
            self.written.store(at.0, Release);
            replica.synced_by_cut(at, log.ticket);
        }
        let ended = self.save_state(|state| (state.cut, state.synced) = (None, at));
        ended.map_err(CutError::Failed)
    }

    fn write_buffer(&self, writer: &mut Writer) -> Result<(), Failed> {
        let steps = self.log.lock().buffer.take();
        self.take_steps(writer, &steps)?;
        self.log.lock().buffer.written(steps);
        Ok(())
    }

    fn begin_cut(&self, at: Lsn) -> Result<(), Failed> {
        let begun = self.save_state(|state| {
            state.cut = Some(at);
            state.synced = state.synced.min(at);
        });
        begun.map_err(|failure| {
            (failure.action, failure.path, io::Error::other(failure.error.to_string()))
        })
    }

    /// Cuts the log at `at`, and has the log thread go on there.
    fn cut_live(&self, writer: &mut Writer, at: Lsn) -> Result<(), Failed> {
        let Some(segment) = self.segments.find(Lsn(at.0 - 1)) else {
            return Err(("cut", self.dir.clone(), io::ErrorKind::NotFound.into()));
        };
        for later in self.segments.all() {
            if later.start >= at {
                self.segments.remove(later.start);
            }
        }
        let end = self.end().min(segment.end());
        cut_files(&*self.disk, &self.dir, at, Some(end))?;
        let path = segment.path(&self.dir);
        let file = self.disk.open(&path, OpenMode::Write).map_err(|error| ("open", path, error))?;
        *writer = Writer { segment, file, unsynced_bytes: 0 };
        Ok(())
    }
}

/// Removes the segments that begin at `at` or behind, newest first, and overwrites what is behind `at` in
/// the one that has it, up to `end`, with zeros. Done twice, it does the same.
pub fn cut_files(disk: &dyn Disk, dir: &Path, at: Lsn, end: Option<Lsn>) -> Result<(), Failed> {
    let files = disk.list(dir).map_err(|error| ("list", dir.to_owned(), error))?;
    let mut starts = Vec::new();
    for file in files {
        if let Some(Named::Segment(start)) = names::parse(&file.name) {
            starts.push((start, file.size_bytes));
        }
    }
    starts.sort_unstable();
    while let Some((start, _)) = starts.pop_if(|(start, _)| *start >= at) {
        let path = dir.join(names::segment(start));
        disk.remove(&path).map_err(|error| ("remove", path, error))?;
    }
    disk.sync_dir(dir).map_err(|error| ("sync", dir.to_owned(), error))?;
    let Some((start, size_bytes)) = starts.pop() else { return Ok(()) };
    let path = dir.join(names::segment(start));
    let clear_tail = || {
        let file: Arc<dyn DiskFile> = disk.open(&path, OpenMode::Write)?;
        let end = end.map_or(size_bytes, |end| end.0 - start.0);
        clear(&*file, at.0 - start.0, end)?;
        // No other segment follows it now.
        write_all(&*file, &[0; FOLLOWED_LEN], FOLLOWED_OFFSET)?;
        file.sync_data()
    };
    clear_tail().map_err(|error| ("write to", path.clone(), error))
}
