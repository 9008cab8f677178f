//! From a folder to a running journal.

mod checkpoints;
mod open;
mod replay;
pub mod scan;
mod start;

pub use checkpoints::{checkpoint_error, open_checkpoint};
pub use open::{has_followed, lock, open, open_copy, open_locked, read_segment_header, vote};
pub use start::clear;

use crate::{
    Damage, Disk, Journal, Lsn, OpenError, Options, ReplayError, Survived,
    checkpoint::CheckpointReader,
    format::SegmentHeader,
    log::Spare,
    names,
    replica::Base,
    segments::{Segment, Segments},
};
use courser_store::Progress;
use parking_lot::Mutex;
use std::{
    any::Any,
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A record that is replayed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its position, as [`Appended::position`](crate::Appended::position) gave it.
    pub position: Lsn,
    /// What was pushed.
    pub bytes: &'a [u8],
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

/// What a replay found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Batches that were replayed.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// The end of the log: where the next batch goes.
    pub end: Lsn,
    /// Whether the journal was closed by intention, or is new.
    pub clean: bool,
    /// Whether there are remains of frames behind the end that [`Recovery::start`] overwrites with zeros: never
    /// durable, unless the disk has damaged the last write.
    pub torn: bool,
}

/// An opened journal before its first append. The order of calls is: the checkpoint's data, then
/// [`Recovery::replay`], with [`Recovery::hold`] and [`Recovery::release`] in both, then
/// [`Recovery::start`]. Nothing is changed on the disk before the last of them.
pub struct Recovery {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    lock: Box<dyn Any + Send + Sync>,
    pub(crate) id: u64,
    /// The number that it has to have, if it is a copy of a replicated log.
    group: Option<u64>,
    /// The entry before the checkpoint's start, in a copy of a replicated log.
    pub(crate) base: Base,
    /// The last checkpoint that is sound.
    pub(crate) checkpoint: Option<Found>,
    /// The log was durable up to here when some checkpoint was made.
    pub(crate) durable: Lsn,
    /// What is wrong, without which nothing is lost.
    pub(crate) survived: Vec<Survived>,
    /// Names of checkpoints that are not sound.
    unsound: Vec<String>,
    /// Segments that are replayed, which follow each other without a gap, and the headers of
    /// their files. Empty for a new journal only.
    pub(crate) chain: Vec<(Arc<Segment>, SegmentHeader)>,
    pub(crate) segments: Segments,
    spares: Vec<Spare>,
    next_number: u64,
    /// Files that nothing needs.
    leftovers: Vec<String>,
    tail: Mutex<Option<Tail>>,
}

/// A checkpoint that was found.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub number: u64,
    pub start: Lsn,
    size_bytes: u64,
    /// Where a replay starts from the one before; `None` if that one is to be made anew.
    before: Option<Lsn>,
}

/// How the log ends.
#[derive(Clone, Copy)]
pub(crate) struct Tail {
    pub replayed: Replayed,
    /// Everything before was durable for certain.
    pub durable: Lsn,
}

impl Recovery {
    /// The last checkpoint's data, or `None` if there is none: the replay starts with the oldest
    /// record that there is then.
    pub fn checkpoint(&self) -> Result<Option<CheckpointReader>, OpenError> {
        let Some(found) = &self.checkpoint else { return Ok(None) };
        let path = self.dir.join(names::checkpoint(found.number));
        let (reader, _) = open_checkpoint(&*self.disk, &path)?;
        // It is empty in a new journal, and where a repair found none.
        Ok(Some(reader).filter(|reader| reader.left_bytes() > 0))
    }

    /// Where the replay starts: at the start of the last checkpoint, if there is one.
    pub fn replay_start(&self) -> Lsn {
        self.checkpoint.as_ref().map_or(Lsn(0), |found| found.start)
    }

    /// What is damaged, and costs nothing because what is left says the same. [`Recovery::start`] mends
    /// it.
    pub fn survived(&self) -> &[Survived] {
        &self.survived
    }

    /// Hands every record from the checkpoint's start on to `visit`, in order.
    ///
    /// `progress` is called every few MiB. A torn tail (a crash before the sync had finished) ends
    /// the log there; damage in what was durable is an error.
    pub fn replay<E>(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> Result<(), E>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Replayed, ReplayError<E>> {
        let tail = self.walk(visit, progress)?;
        *self.tail.lock() = Some(tail);
        Ok(tail.replayed)
    }

    /// Like [`Journal::hold`]. Load all of the checkpoint before releasing anything.
    ///
    /// A record that the checkpoint names may be gone already, if its release is in the log
    /// further on: holding it is no error, but it cannot be read. So read records only when the
    /// replay is through.
    ///
    /// Returns whether its segment is there. What is live after the replay and is in no segment was in
    /// one that was removed: [`Recovery::missing`] is the error for it.
    pub fn hold(&self, position: Lsn, times: u64) -> bool {
        self.segments.hold(position, times)
    }

    /// The error for a segment that should have `position` in it.
    pub fn missing(&self, position: Lsn) -> OpenError {
        damaged(&self.dir, 0, Damage::SegmentMissing(position))
    }

    /// Like [`Journal::release`], for a position whose segment may be gone already.
    pub fn release(&self, position: Lsn) {
        self.segments.release(&[position.into()], Lsn(0), &mut |_| {});
    }

    /// Clears a torn tail away, makes sure that what was replayed is durable, and starts the
    /// journal. Replays without handing out records if [`Recovery::replay`] was not called.
    pub fn start(self) -> Result<Journal, OpenError> {
        let ignore = &mut |_: Record<'_>| Ok::<_, Infallible>(());
        let tail = match *self.tail.lock() {
            Some(tail) => tail,
            None => match self.walk(ignore, &mut |_| {}) {
                Ok(tail) => tail,
                Err(ReplayError::Journal(error)) => return Err(error),
                Err(ReplayError::Owner(never)) => match never {},
            },
        };
        self.start_at(tail)
    }
}

/// An error of the operating system on `path`.
fn io_error(action: &'static str, path: &Path, error: io::Error) -> OpenError {
    OpenError::Io { action, path: path.to_owned(), error }
}

fn damaged(path: &Path, offset: u64, damage: Damage) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), offset, damage }
}
