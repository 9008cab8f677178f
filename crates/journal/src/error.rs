//! What can go wrong, and what it means for the owner.

use crate::Lsn;
use crate::upkeep::is_full;
use std::{io, path::PathBuf, sync::Arc};

/// Why the journal stopped taking anything: a write or a sync failed.
///
/// Nothing that was not durable before may be promised after it, and a sync is never tried again:
/// the kernel may have dropped the bytes that it could not write. The owner has to stop; a new
/// start finds out what is on the disk.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{action} {} failed: {error}", path.display())]
pub struct Failure {
    /// What was tried, such as `write to` or `sync`.
    pub action: &'static str,
    /// On which file or folder.
    pub path: PathBuf,
    /// What the operating system said.
    pub error: Arc<io::Error>,
}

/// Why a journal could not be opened or replayed. Nothing was changed on the disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the journal open.
    #[error("the journal in {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// A file says it is of a format that this version does not know.
    #[error("{} is of format version {found}, this program knows version {known}", path.display())]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// What would have been understood.
        known: u32,
    },
    /// Something that was durable is not what was written. Nothing is skipped in silence; the
    /// message says what a repair would do.
    #[error("{} is damaged at offset {offset}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        damage: Damage,
    },
    /// It is a copy of a replicated log, which only the cluster may change.
    #[error("{} is a copy of a replicated log; start the broker as a member of its cluster", .0.display())]
    Replica(PathBuf),
    /// The operating system refused something.
    #[error("{action} {} failed: {error}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        error: io::Error,
    },
}

impl OpenError {
    /// Whether it may be opened when there is room on the disk.
    pub fn lacks_room(&self) -> bool {
        self.refusal().is_some_and(is_full)
    }

    /// What the operating system said, if it has refused something.
    pub fn refusal(&self) -> Option<&io::Error> {
        match self {
            OpenError::Io { error, .. } => Some(error),
            _ => None,
        }
    }

    /// What is wrong, without what a repair would do about it, where none is made.
    pub(crate) fn without_repair(&self) -> String {
        let text = self.to_string();
        match self {
            OpenError::Damaged { .. } => {
                text.rsplit_once("; ").map_or(text.clone(), |(what, _)| what.to_owned())
            }
            _ => text,
        }
    }
}

/// What is wrong with a file of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Damage {
    /// A checkpoint's file, and there is no other.
    #[error(
        "the checkpoint is not what was written, and no other one is sound; `courser journal repair` \
         would rebuild what it can from the log and say what is lost"
    )]
    Checkpoint,
    /// There is no checkpoint, and not all of the log.
    #[error(
        "the checkpoints are missing; put them back, or `courser journal repair` would rebuild what \
         it can from the log and say what is lost"
    )]
    CheckpointMissing,
    /// The start of a segment's file.
    #[error(
        "the header of the segment is not what was written; `courser journal repair` would write \
         it anew"
    )]
    SegmentHeader,
    /// The file is shorter than its header says.
    #[error(
        "the segment should have {0} bytes; `courser journal repair` would fill it up with zeros"
    )]
    SegmentShort(u64),
    /// The segment has the number of another journal.
    #[error("the segment belongs to another journal; `courser journal repair` would set it aside")]
    SegmentForeign,
    /// There is no file for this position.
    #[error(
        "the segment with position {0} is missing; put it back, or `courser journal repair` would go \
         on without it and say what is lost"
    )]
    SegmentMissing(Lsn),
    /// There is no valid frame where one was durable.
    #[error(
        "there is no valid frame where one was durable; `courser journal repair` would set the \
         bytes up to the next valid frame aside and keep what follows"
    )]
    Frame,
}

/// Damage that costs nothing, because what is left says the same. The start goes on, says so, and
/// mends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Survived {
    /// One of the two checkpoints is not what was written.
    #[error(
        "checkpoint {} is damaged at offset {offset}; what is left says the same, nothing is lost",
        path.display()
    )]
    CheckpointDamaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the start of the file.
        offset: u64,
    },
    /// There should be two checkpoints.
    #[error(
        "a checkpoint is missing in {}; what is left says the same, nothing is lost",
        .0.display()
    )]
    CheckpointMissing(PathBuf),
}

/// Why a batch was not taken. It is left as it was and may be offered again.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// There is no room on the disk; nothing is lost. Wait for
    /// [`Journal::poll_room`](crate::Journal::poll_room).
    #[error("the disk is full")]
    Full,
    /// The batch is larger than [`Options::batch_bytes`](crate::Options::batch_bytes).
    #[error("a batch of {size_bytes} bytes is larger than the {max_bytes} allowed")]
    TooLarge {
        /// Its size.
        size_bytes: u64,
        /// The bound.
        max_bytes: u64,
    },
    /// The journal failed before and takes nothing more.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// Another machine leads the replicated log by now, or this one has lost and won the lead meanwhile.
    #[error("this machine does not lead the log any more")]
    Deposed,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No segment holds this position: it was never appended, or is not held any more.
    #[error("position {0} is not in the log")]
    Gone(Lsn),
    /// What is there is not a record that was written to this position.
    #[error("no valid record at offset {offset} of {}", path.display())]
    Bad {
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
        error: io::Error,
    },
}

/// Why a checkpoint was not made. The last one still holds.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The new file could not be written, or the owner's writer gave up.
    #[error("writing the checkpoint failed: {0}")]
    Write(#[from] io::Error),
    /// The journal has failed, or failed while the checkpoint was made durable.
    #[error("the journal has failed: {0}")]
    Failed(Failure),
    /// What it would contain is not committed, and no other node is there to commit it.
    #[error("the log is not committed up to {0}")]
    Uncommitted(Lsn),
    /// It would stand for an entry that consensus has not applied yet, and no other node is there to do it.
    #[error("entry {0} is not applied")]
    Unapplied(u64),
    /// The start lies before that of the last checkpoint, or after the end of the log.
    #[error("a checkpoint cannot start at {0}")]
    BadStart(Lsn),
    /// It is not wanted any more: this node leads now, or leads no more, or stops.
    #[error("the checkpoint is not wanted any more")]
    Unwanted,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError<E> {
    /// The log could not be read.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The owner refused a record.
    #[error("{0}")]
    Owner(E),
}
