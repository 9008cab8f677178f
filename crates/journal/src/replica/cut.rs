//! Cutting off a tail that is not committed.
//!
//! First the file beside the log says where the cut is, then the log is cut, then the file says that it
//! was: a start in between cuts once more. The log thread does this, as a step among its others; in memory the tail is gone at
//! once. When it is done, nothing behind the cut names its own
//! position any more, so that no frame of an older term can follow what is appended there.

use super::{CutError, Shared, Vote, state::State};
use crate::{
    Disk, DiskFile, Failure, Lsn, OpenMode,
    core::Core,
    disk::write_all,
    format::{FOLLOWED_LEN, FOLLOWED_OFFSET},
    log::{Cut, FOLLOWS, Failed, Log, Writer},
    names::{self, Named},
    recovery::clear,
};
use parking_lot::MutexGuard;
use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering::Release},
};

impl Core {
    /// Cuts the log, and has the log thread cut its files before it writes what is appended next: until that is done, and has
    /// its ticket, a start may find what was cut. Waits for what is not synced yet, see [`Core::room_for`].
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
        let mut log = self.synced_log(replica).map_err(CutError::Failed)?;
        for later in self.segments.all() {
            if later.start >= at {
                self.segments.remove(later.start);
            }
        }
        let Some(segment) = self.segments.find(Lsn(at.0 - 1)) else {
            drop(log);
            self.fail("cut", &self.dir, io::ErrorKind::NotFound.into());
            return self
                .failed
                .get()
                .map_or(Ok(()), |failure| Err(CutError::Failed(failure.clone())));
        };
        replica.entries.lock().cut(after, at);
        replica.aside.forget();
        let end = log.end.min(segment.end());
        (log.end, log.queued, log.sync_to) = (at, at, at);
        log.segment = Arc::clone(&segment);
        log.ticket += 1;
        log.cuts += 1;
        log.buffer.cut(Cut { at, segment, end });
        self.end.store(at.0, Release);
        self.written.store(at.0, Release);
        replica.synced_ends_at(at);
        self.work.notify_one();
        Ok(())
    }

    /// The log, when all that has got a ticket is on the disk.
    fn synced_log(&self, replica: &Shared) -> Result<MutexGuard<'_, Log>, Failure> {
        loop {
            if let Some(failure) = self.failed.get() {
                return Err(failure.clone());
            }
            let log = self.log.lock();
            if replica.synced_ticket() >= log.ticket {
                return Ok(log);
            }
            drop(log);
            self.flush_once();
        }
    }

    /// Waits until all that was done so far is on the disk.
    pub fn wait_synced(&self) -> Result<(), Failure> {
        self.replica.as_ref().map_or(Ok(()), |replica| self.synced_log(replica).map(drop))
    }

    /// Cuts the files, and has the log thread go on there.
    pub fn cut_files_of(&self, writer: &mut Writer, cut: &Cut) -> Result<(), Failed> {
        let Cut { at, segment, end } = cut;
        self.sync(writer)?;
        self.note_cut(|state| {
            state.cut = Some(*at);
            state.synced = state.synced.min(*at);
        })?;
        cut_files(&*self.disk, &self.dir, *at, Some(*end))?;
        let path = segment.path(&self.dir);
        let file = self.disk.open(&path, OpenMode::Write).map_err(|error| ("open", path, error))?;
        *writer = Writer { segment: Arc::clone(segment), file, unsynced_bytes: 0 };
        self.note_cut(|state| (state.cut, state.synced) = (None, *at))
    }

    fn note_cut(&self, change: impl FnOnce(&mut State)) -> Result<(), Failed> {
        self.save_state(change).map_err(into_failed)
    }

    /// Saves the vote that the log thread was given.
    pub fn save_vote_of_log(&self, vote: Option<Vote>) -> Result<(), Failed> {
        let Some(vote) = vote else { return Ok(()) };
        self.save_state(|state| state.vote = vote).map_err(into_failed)
    }
}

fn into_failed(failure: Failure) -> Failed {
    (failure.action, failure.path, io::Error::other(failure.error.to_string()))
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
