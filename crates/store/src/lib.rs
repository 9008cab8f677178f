//! Where waiting messages live, and what has to survive.
//!
//! A queue holds an index of 16-byte [`Location`]s; the bytes of the messages are kept by a
//! [`Store`], as are the [`Record`]s of every change that has to survive a restart. Each shard has a
//! store of its own. This crate defines what a store is, one trait for each use:
//!
//! - [`Log`]: changes are appended, and become durable;
//! - [`Messages`]: messages are kept, read, held and released;
//! - [`ShardState`]: what a checkpoint asks of the broker;
//! - [`Shards`] and [`OpenShard`]: shards are opened, checkpointed, closed and removed.
//!
//! The users of these traits do not see whether a log is on one disk or on several machines. Besides, there
//! are the layout of records ([`record`]) and the in-memory store ([`MemoryStore`]). This crate does not
//! know what an exchange is: a queue is a number to it, a definition a key and a value. [`critical`] says what a thread may do
//! while others wait for it.
#![forbid(unsafe_code)]

pub mod blocking;
pub mod body;
pub mod change;
pub mod chunk;
pub mod critical;
pub mod delayed;
pub mod figures;
pub mod gauge;
pub mod location;
pub mod log;
pub mod lsn;
pub mod memory;
pub mod messages;
pub mod noting;
mod queue_index;
pub mod record;
pub mod recovered;
pub mod shard;
pub mod shards;
pub mod stream;
pub mod work;

pub use body::{KeptBody, SharedBody};
pub use change::Record;
pub use figures::{Figures, SYNC_DURATIONS};
pub use gauge::MemoryGauge;
pub use location::{BodySize, Location};
pub use log::{InPlace, Log, Sync, Unlogged, Waiter};
pub use lsn::{Lsn, Position, Proof};
pub use memory::{MemoryShards, MemoryStore};
pub use messages::{Messages, Reader};
pub use noting::{Key, NO_KEY, Noting, Priority};
pub use record::MessageRef;
pub use recovered::Recovered;
pub use shard::ShardId;
pub use shards::{
    CheckpointError, CheckpointReport, OpenReport, OpenShard, Opened, Opening, Progress, Role,
    ShardError, ShardState, Shards,
};

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// So many bytes are more than can be stored together, or more than a record can describe (4 GiB).
    #[error("{0} bytes are too many to be stored together")]
    TooLarge(u64),
    /// There is no room on the disk for this, but what was kept before is safe.
    #[error("the disk of the broker's data folder is full")]
    Full,
    /// One message can't be read any more, because the disk has damaged it; all others can.
    #[error("a message is lost: {0}")]
    Lost(String),
    /// A message can't be read at the moment, though it is not lost: another try may succeed.
    #[error("a message can't be read: {0}")]
    Unread(String),
    /// The store failed before and takes nothing more, because it can no longer promise to keep it.
    #[error("the store has failed: {0}")]
    Failed(String),
    /// Another machine leads the replicated log by now: this store takes and reads nothing more. What was kept is with the
    /// next leader.
    #[error("this machine does not lead the log any more")]
    Deposed,
}

/// What a shard is on: a log, and the messages in it.
pub trait Store: Log + Messages {}

impl<T: Log + Messages> Store for T {}
