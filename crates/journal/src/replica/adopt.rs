//! Making a journal that stands alone the first copy of a replicated log.
//!
//! The log stays where it is, byte for byte: records keep their positions, and the group has the
//! journal's number. All that was appended counts as its first entry, which no copy ever reads, as both
//! checkpoints stand for it. The file beside the log makes it a copy, at once and as a whole; without it,
//! what is there is still the journal that it was.

use super::{
    AdoptError, EntryId, Identity, Vote,
    entry::Base,
    open::exists,
    state::{State, StateFile},
};
use crate::{CheckpointError, Disk, EachLive, Journal, Lsn, core::Core, log::ALONE, names};
use std::{io, path::Path};

/// What stands for all that there was.
const FIRST: EntryId = EntryId { term: 1, index: 1 };

/// A journal that is about to be a copy: nothing can be appended to it any more.
pub struct Adoption<'a> {
    core: &'a Core,
    end: Lsn,
}

/// Whether the folder has a copy of a replicated log.
///
/// # Errors
/// When it can't be read.
pub fn is_copy(disk: &dyn Disk, dir: &Path) -> io::Result<bool> {
    match exists(disk, dir, names::REPLICA) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found,
    }
}

impl<'a> Adoption<'a> {
    /// Ends the journal, with two checkpoints of the state as of its end. `live` and `write` are as for
    /// [`Journal::checkpoint`]; both may be called more than once.
    ///
    /// # Errors
    /// It is a journal that stands alone then, as before.
    pub fn begin(
        journal: &'a Journal,
        live: &mut dyn FnMut(EachLive<'_>),
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<Self, AdoptError> {
        let core = &*journal.core;
        if core.replica.is_some() {
            return Err(AdoptError::IsCopy(core.dir.clone()));
        }
        let end = core.end_for_good().map_err(CheckpointError::Failed)?;
        // A second call comes to the same.
        let base = core.adopted.get_or_init(|| Base { id: FIRST, end });
        debug_assert_eq!(base.end, end, "nothing is appended any more");
        for _ in 0..2 {
            core.checkpoint(&mut || end, live, write, ALONE, &mut || true)?;
        }
        Ok(Adoption { core, end })
    }

    /// What the group is.
    pub fn identity(&self) -> Identity {
        Identity { group: self.core.id, segment_bytes: self.core.options.segment_bytes }
    }

    /// Makes it a copy, durably. To be opened as one, the journal has to be dropped.
    ///
    /// # Errors
    /// Which of both it is then, a start finds out.
    pub fn finish(self, vote: &Vote) -> Result<(), AdoptError> {
        let core = self.core;
        let path = core.dir.join(names::REPLICA);
        let state = State {
            commit: FIRST.index,
            synced: self.end,
            begun: true,
            ..State::new(self.identity(), vote.clone())
        };
        StateFile::create(&*core.disk, &core.dir, &state)
            .map_err(|error| AdoptError::Io { path, error })
    }
}
