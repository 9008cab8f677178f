//! What can go wrong with a copy, and what it means for consensus.

use super::{BadEntry, EntryId, Vote};
use crate::{CheckpointError, Failure, Lsn, OpenError, disk::is_bad_sector, upkeep::is_full};
use std::{io, path::PathBuf};

/// Why a copy could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// There is no copy in the folder.
    #[error("there is no copy of a replicated log in {}", .0.display())]
    Missing(PathBuf),
    /// Both places where the vote is kept are damaged. Who has voted and does not know for whom could
    /// vote again: the copy must be removed, and come back as a new member.
    #[error(
        "what {} has voted is lost: neither place in its file is what was written; remove this member \
         from the group and add it as a new one",
        .0.display()
    )]
    VoteLost(PathBuf),
    /// A copy was being brought here, and not all of it has come.
    #[error("the copy in {} is incomplete; it must be fetched again", dir.display())]
    HalfInstalled {
        /// The folder.
        dir: PathBuf,
        /// What this member has voted.
        vote: Vote,
        /// Where its log ended before, if that is known: others may count on what it had.
        last: Option<EntryId>,
    },
    /// The end of the log was being cut off when the node stopped. A start of the node completes that.
    #[error(
        "the end of the log in {} was being cut off when the node stopped, which its next start completes",
        .0.display()
    )]
    CutBegun(PathBuf),
    /// Something that was synced is not what was written, or the disk can't read it. Others may count on this copy having it.
    #[error("this copy must be rebuilt from another one: {}", error.without_repair())]
    MustBeRebuilt {
        /// What is wrong.
        error: OpenError,
        /// What this member has voted.
        vote: Vote,
    },
    /// It could not be opened for another reason.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl ReplicaError {
    /// What it means for the member with this vote that its log can't be opened.
    pub(super) fn of_log(error: OpenError, vote: &Vote) -> Self {
        let is_damage = match &error {
            OpenError::Damaged { .. } => true,
            OpenError::Io { action, error, .. } => *action == "read" && is_bad_sector(error),
            _ => false,
        };
        match is_damage {
            true => ReplicaError::MustBeRebuilt { error, vote: vote.clone() },
            false => ReplicaError::Open(error),
        }
    }
}

/// Why a journal was not made a copy. It is what it was, unless it is not known what the disk has.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// It is one already.
    #[error("{} is a copy of a replicated log already", .0.display())]
    IsCopy(PathBuf),
    /// What is in it could not be written down.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The file that makes it a copy could not be written.
    #[error("can't write {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl AdoptError {
    /// Whether it may become a copy when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        match self {
            AdoptError::Checkpoint(CheckpointError::Write(error))
            | AdoptError::Io { error, .. } => is_full(error),
            AdoptError::Checkpoint(CheckpointError::Failed(failure)) => is_full(&failure.error),
            _ => false,
        }
    }
}

/// Why entries were not taken. None after the first that was not.
#[derive(Debug, thiserror::Error)]
pub enum AppendEntryError {
    /// There is no room on the disk. Try again later.
    #[error("the disk is full")]
    Full,
    /// An entry is not what its leader has placed.
    #[error(transparent)]
    Bad(#[from] BadEntry),
    /// An entry does not follow the last one.
    #[error("entry {found} does not follow entry {last}, the last of this copy")]
    Gap {
        /// What came.
        found: EntryId,
        /// What it should follow.
        last: EntryId,
    },
    /// An entry is not where it would be on this copy: the logs differ in what is before it.
    #[error("entry {id} begins at position {found} with its leader and would at {expected} here")]
    Elsewhere {
        /// What came.
        id: EntryId,
        /// Where it begins.
        found: Lsn,
        /// Where it should.
        expected: Lsn,
    },
    /// The tail that is in its way can't be cut.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// This copy leads.
    #[error("this copy leads: it takes no entries of others")]
    Leads,
    /// The copy has failed.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
}

/// Why the tail was not cut.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// It is committed.
    #[error("the log can't be cut after entry {after}: {committed} is committed")]
    Committed {
        /// What was to be the last.
        after: u64,
        /// What is committed.
        committed: u64,
    },
    /// This copy leads.
    #[error("this copy leads: its log is not cut")]
    Leads,
    /// The entry that was to be the last can't be found.
    #[error(transparent)]
    Read(#[from] ReadEntryError),
    /// The copy has failed.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
}

/// Why nothing was placed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no room on the disk. Try again later.
    #[error("the disk is full")]
    Full,
    /// It is not the next one.
    #[error("entry {found} does not follow entry {last}, the last of this copy")]
    Gap {
        /// What was to be placed.
        found: EntryId,
        /// What it should follow.
        last: EntryId,
    },
    /// Entries have to be placed before it.
    #[error("what was gathered before has to be placed first")]
    Gathered,
    /// The note is too long.
    #[error("a note of {0} bytes does not fit into an entry")]
    TooLong(usize),
    /// The copy has failed.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
}

/// Why an entry could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadEntryError {
    /// It is not in the log any more, or not yet.
    #[error("entry {index} is not in this copy, which has those from {first} to {last}")]
    Gone {
        /// Which one.
        index: u64,
        /// The first that is there.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// What is there is not what was written: the copy must be rebuilt.
    #[error("entry {index} is damaged at offset {offset} of {}: this copy must be rebuilt", path.display())]
    Damaged {
        /// Which one.
        index: u64,
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the start of the file.
        offset: u64,
    },
    /// The operating system refused to read.
    #[error("reading {} failed: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        error: std::io::Error,
    },
}

/// Why a copy could not be sent or installed.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A file could not be read or written.
    #[error("{action} {} failed: {error}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// What is sent is damaged here.
    #[error("{} is damaged at offset {offset}: this copy must be rebuilt", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the start of the file.
        offset: u64,
    },
    /// The copy has failed.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
    /// The entries that it needs can't be read.
    #[error(transparent)]
    Read(#[from] ReadEntryError),
    /// A chunk is not what was sent, or not the next one. Begin again.
    #[error(
        "chunk {number} is not what was sent, or not the next one; the copy must be fetched again"
    )]
    BadChunk {
        /// The number of the one that was expected.
        number: u64,
    },
    /// Some chunks are missing.
    #[error("the copy ends early; it must be fetched again")]
    Incomplete,
    /// The folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl BootstrapError {
    /// Whether the copy may be installed when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        match self {
            BootstrapError::Io { error, .. } => is_full(error),
            BootstrapError::Open(error) => error.lacks_room(),
            _ => false,
        }
    }
}
