//! Shards as a whole: opened, checkpointed, closed, removed.

use crate::{Lsn, Position, Recovered, ShardId, Store};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// The shards that this machine has a copy of.
pub trait Shards: Send + Sync + 'static {
    /// Opens a shard and finds out what is in it. `progress` is called now and then.
    ///
    /// # Errors
    /// When it is open already, is not there, is damaged or can't be read.
    fn open(
        &self,
        shard: ShardId,
        opening: Opening,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, ShardError>;

    /// Removes a shard, which must be closed, with everything in it. A crash in the middle leaves
    /// nothing that could be opened as a shard with less in it. One that is not there is no error.
    ///
    /// # Errors
    /// When it is open, or its files can't be removed.
    fn remove(&self, shard: ShardId) -> Result<(), ShardError>;

    /// Whether there can be shards besides the home shard.
    fn has_others(&self) -> bool {
        true
    }
}

/// Whether a shard has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It was there before: without it something is lost.
    Existing,
    /// It is made if it is not there.
    MakeIfMissing,
}

/// A shard that was opened.
pub struct Opened {
    /// The shard.
    pub shard: Arc<dyn OpenShard>,
    /// What is in it.
    pub recovered: Recovered,
    /// What it took to find out.
    pub report: OpenReport,
}

/// What opening a shard has found besides its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Records that were replayed.
    pub records: u64,
    /// The end of its log.
    pub end: Lsn,
    /// The last write before the stop is not whole and is cut off: nothing in it was durable, unless the disk has damaged it.
    pub torn: bool,
}

/// How far the opening of a shard has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of log that were read.
    pub read_bytes: u64,
    /// Bytes that there are at most.
    pub total_bytes: u64,
}

/// What this machine is to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It serves the shard's vhosts: no other machine appends to the log.
    Leader,
    /// It keeps a copy.
    Follower,
}

/// A shard that is open. Dropping it stops it without ceremony.
pub trait OpenShard: Send + Sync + 'static {
    /// What the shard's queues are on.
    fn store(&self) -> Arc<dyn Store>;

    /// What this machine is to it. Only a leader's state is restored and served.
    fn role(&self) -> Role;

    /// Waits until a checkpoint is wanted. Returns false when [`OpenShard::stop_checkpoints`] has been
    /// called instead.
    fn wait_for_checkpoint(&self) -> bool;

    /// Makes [`OpenShard::wait_for_checkpoint`] return false, now and later.
    fn stop_checkpoints(&self);

    /// Makes `state` durable, so that the next opening begins there, and frees what nothing needs any
    /// more. Everything else goes on meanwhile. The only way to make a checkpoint.
    ///
    /// # Errors
    /// The checkpoint before stays then.
    fn checkpoint(&self, state: &dyn ShardState) -> Result<CheckpointReport, CheckpointError>;

    /// Whether something is gone of which the log had no room to tell, and for which no checkpoint stands.
    fn has_unlogged(&self) -> bool;

    /// Makes everything durable, and takes nothing any more.
    ///
    /// # Errors
    /// When the store has failed, with the reason.
    fn close(&self) -> Result<(), String>;
}

/// What a checkpoint asks of the owner of a shard's state.
pub trait ShardState {
    /// Where a checkpoint begins that is written now: everything before it has taken effect.
    fn start(&self) -> Lsn;

    /// Calls `each` with the position before `start` of every message in the log that some queue
    /// still has.
    fn for_each_live(&self, start: Lsn, each: &mut dyn FnMut(Position));

    /// Writes everything that has to survive and lies before `start`, with a
    /// [`CheckpointWriter`](crate::recovered::CheckpointWriter). What comes after `start` may be in it
    /// too: it is replayed over it. The log has all of that when this returns, so that it can be made
    /// durable before the checkpoint counts.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, start: Lsn, out: &mut dyn Write) -> io::Result<()>;
}

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// What it takes on the disk.
    pub size_bytes: u64,
}

/// Why no checkpoint was made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CheckpointError(pub Box<dyn Error + Send + Sync>);

/// Why a shard could not be opened or removed.
#[derive(Debug)]
pub struct ShardError {
    /// Where it is kept.
    pub place: String,
    /// What is wrong.
    pub error: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.error)
    }
}

impl Error for ShardError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.error)
    }
}
