//! From a folder to a running journal.

use crate::{Journal, Lsn, OpenError, ReplayError};
use std::io;

/// A record that is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its position, as [`Appended::position`](crate::Appended::position) gave it.
    pub position: Lsn,
    /// What was pushed.
    pub octets: &'a [u8],
    /// The batch it belongs to.
    pub batch: BatchInfo,
}

/// The batch of a replayed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchInfo {
    /// Where the batch starts.
    pub start: Lsn,
    /// Where it ends.
    pub end: Lsn,
    /// Which of its records this is, from 0.
    pub index: u32,
    /// How many records it has.
    pub count: u32,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Octets of log that were read.
    pub read_bytes: u64,
    /// Octets that there are at most.
    pub total_bytes: u64,
}

/// What a replay found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Batches that were replayed.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// The end of the log: where the next batch goes.
    pub end: Lsn,
    /// Whether the journal was closed by intention.
    pub clean: bool,
    /// Octets of a torn tail, never durable, that will be overwritten with zeros.
    pub torn_bytes: u64,
}

/// An opened journal before its first append. The order of calls is: the checkpoint's data, then
/// [`Recovery::replay`], with [`Recovery::hold`] and [`Recovery::release`] in both, then
/// [`Recovery::start`].
pub struct Recovery {}

impl Recovery {
    /// The last checkpoint's data, or `None` if there never was one: the replay starts at the
    /// very beginning then.
    pub fn checkpoint(&mut self) -> Result<Option<CheckpointReader>, OpenError> {
        todo!()
    }

    /// Hands every record from the checkpoint's start on to `visit`, in order.
    ///
    /// `progress` is called every few MiB. A torn tail (a crash before the sync had finished) ends
    /// the log there; damage in what was durable is an error.
    pub fn replay<E>(
        &mut self,
        visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Replayed, ReplayError<E>> {
        todo!()
    }

    /// Like [`Journal::hold`]. Load all of the checkpoint before releasing anything.
    pub fn hold(&self, position: Lsn, times: u32) {
        todo!()
    }

    /// Like [`Journal::release`].
    pub fn release(&self, position: Lsn) {
        todo!()
    }

    /// Clears a torn tail away, makes sure that what was replayed is durable, and starts the
    /// journal. Replays with nobody looking if [`Recovery::replay`] was not called.
    pub fn start(self) -> Result<Journal, OpenError> {
        todo!()
    }
}

/// Reads the data of a checkpoint; each block's checksum is checked before it is handed out.
pub struct CheckpointReader {}

impl CheckpointReader {
    /// Where the replay starts: the checkpoint has the effects of everything before.
    pub fn start(&self) -> Lsn {
        todo!()
    }
}

impl io::Read for CheckpointReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        todo!()
    }
}
