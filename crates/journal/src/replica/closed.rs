//! A copy that no process has open: what is in it. Nothing is changed.

use super::{
    EntryId, Identity, ReplicaError, Vote,
    open::{exists, read_error},
    recover::Copy,
    state::{State, StateFile},
};
use crate::{
    Disk, Lsn, OpenError, Options, Recovery, names,
    recovery::{lock as lock_folder, open_copy},
};
use std::{any::Any, path::Path, sync::Arc};

/// What is in a copy that no process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// What all copies of the log have in common.
    pub identity: Identity,
    /// What this one has voted, and who the members are.
    pub vote: Vote,
    /// The last entry.
    pub last: EntryId,
    /// Where it ends.
    pub end: Lsn,
    /// The greatest index that is known to be committed. More may have been.
    pub committed: u64,
    /// Whether it was closed by intention.
    pub clean: bool,
    /// Whether there are remains of an entry behind the last one.
    pub torn: bool,
}

impl Contents {
    /// Reads the copy in `dir`.
    ///
    /// # Errors
    /// What keeps a node from starting with it; [`ReplicaError::CutBegun`] besides.
    pub fn read(dir: &Path, disk: Arc<dyn Disk>) -> Result<Self, ReplicaError> {
        let lock = lock_folder(&*disk, dir)?;
        ClosedCopy::open(dir, disk, lock)?.contents()
    }
}

/// A copy whose files are read and not written.
pub struct ClosedCopy {
    pub recovery: Recovery,
    state: State,
}

impl ClosedCopy {
    /// Opens the copy in `dir`, which `lock` keeps others out of.
    pub fn open(
        dir: &Path,
        disk: Arc<dyn Disk>,
        lock: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, ReplicaError> {
        let state = StateFile::read(&*disk, dir).map_err(|error| read_error(dir, error))?;
        let marker = dir.join(names::BEING_INSTALLED);
        let is_half = exists(&*disk, dir, names::BEING_INSTALLED)
            .map_err(|error| OpenError::Io { action: "list", path: marker.clone(), error })?;
        if is_half {
            let last = super::install::read_mark(&*disk, &marker);
            let (dir, vote) = (dir.to_owned(), state.vote);
            return Err(ReplicaError::HalfInstalled { dir, vote, last });
        }
        if state.cut.is_some() {
            return Err(ReplicaError::CutBegun(dir.to_owned()));
        }
        let segment_bytes = state.identity.segment_bytes;
        let options = Options { segment_bytes, ..Options::default() };
        let opened = open_copy(dir, options, disk, lock, &Copy::from(&state));
        let recovery = opened.map_err(|error| ReplicaError::of_log(error, &state.vote))?;
        Ok(ClosedCopy { recovery, state })
    }

    /// Reads all entries from the checkpoint's start on.
    pub fn contents(&self) -> Result<Contents, ReplicaError> {
        let walked = self.recovery.walk_entries(&Copy::from(&self.state));
        let (tail, entries) =
            walked.map_err(|error| ReplicaError::of_log(error, &self.state.vote))?;
        Ok(Contents {
            identity: self.state.identity,
            vote: self.state.vote.clone(),
            last: entries.last,
            end: entries.end,
            committed: entries.commit_hint,
            clean: self.state.clean,
            torn: tail.replayed.torn,
        })
    }
}
