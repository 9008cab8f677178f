//! The journal of a broker by itself as the first copy of a group's log.
//!
//! Who has it is the only one to begin the group: an empty copy beside it could outvote it. The others come in as any
//! node that is added.

use crate::forming::FolderError;
use crate::{Members, NodeId};
use courser_journal::replica::{AdoptError as JournalError, Adoption, Identity, Vote};
use courser_journal::{Disk, JournalStore, Options, RecoverError};
use courser_store::{MemoryGauge, Progress};
use std::path::Path;
use std::sync::Arc;

/// Why a broker's journal could not become a copy. It is still what it was.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// It can't be opened.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// It can't be written to.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What it begins could not be kept.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl AdoptError {
    /// Whether it can be done when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        match self {
            AdoptError::Recover(error) => error.lacks_room(),
            AdoptError::Journal(error) => error.lacks_room(),
            AdoptError::Folder(error) => error.lacks_room(),
        }
    }
}

/// Makes the journal in `dir` the copy of `node`, the only member of a new group, whose identity is told to `decided`
/// before anything depends on it. Blocks while the journal is read.
///
/// # Errors
/// It is still the journal of a broker by itself then, and this can be tried again.
pub fn adopt<T>(
    dir: &Path,
    options: Options,
    disk: Arc<dyn Disk>,
    node: NodeId,
    progress: &mut dyn FnMut(Progress),
    decided: impl FnOnce(Identity) -> Result<T, FolderError>,
) -> Result<T, AdoptError> {
    let gauge = Arc::<MemoryGauge>::default();
    let (store, recovered, _) = JournalStore::open(dir, options, disk, gauge, u64::MAX, progress)?;
    let adoption = Adoption::begin(
        store.journal(),
        &mut |each| recovered.for_each_position(&mut |position| each(position.into())),
        &mut |out| recovered.write(out),
    )?;
    let decided = decided(adoption.identity())?;
    let members = Members::founders(&[node]).encode();
    adoption.finish(&Vote { term: 1, voted_for: node.0, members, members_index: 1 })?;
    Ok(decided)
}
