//! A durable log of atomic batches, with positions, checkpoints and recovery.
//!
//! The owner puts *records* (bytes) in, a [`Batch`] at a time, and gets their positions back. A
//! batch survives a crash as a whole or not at all; once [`Journal::durable`] has reached a batch's
//! end it survives the loss of power. The journal does not know what a record means.
//!
//! ```text
//! Journal::open ─► Recovery: checkpoint(), hold(), replay() ─► start() ─► Journal
//!                                                                           │
//!     append(&mut Batch) ─► log buffer ─► log thread: pwrite, fdatasync ─► durable()
//!     read(position) ◄───── log buffer, or segment file                     │
//!     hold / release ─────► live count of a segment                         │
//!     checkpoint(start) ──► <start>.checkpoint ─► maintenance: recycle, punch, pre-write
//! ```
//!
//! The log is one endless row of bytes that is cut into segment files; an [`Lsn`] is an offset in
//! it and stays valid as long as what it points at is held: nothing is ever moved. What stands on
//! the disk, byte by byte, and what recovery concludes from it, is in `docs/journal-format.md`.

mod batch;
mod checkpoint;
mod core;
mod disk;
mod error;
mod figures;
mod format;
mod journal;
mod log;
mod names;
mod options;
mod public_id;
mod read;
mod recovery;
mod repeated;
pub mod replica;
mod scrub;
mod segments;
mod shards;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
mod upkeep;
mod waiters;

pub use batch::{Appended, Batch};
pub use checkpoint::CheckpointReader;
pub use courser_store::{Lsn, Progress};
pub use disk::{Disk, DiskFile, FileEntry, GroupDisk, OpenMode, RealDisk, is_bad_sector};
pub use error::{
    AppendError, CheckpointError, Damage, Failure, OpenError, ReadError, ReplayError, Survived,
};
pub use journal::{AppendMode, CheckpointDone, EachLive, Journal, Usage};
pub use options::Options;
pub use public_id::public_id;
pub use read::ReadCache;
pub use recovery::{BatchInfo, Record, Recovery, Replayed};
pub use repeated::Repeated;
pub use scrub::{Damaged, Part, Pass, Scrubbing};
pub use shards::JournalShards;
pub use store::{JournalStore, MalformedRecord, RecoverError, rest_after_failure};
pub use upkeep::is_full;
