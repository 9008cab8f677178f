//! What the committed entries of a copy come to.

use courser_journal::OpenError;
use courser_journal::replica::{Entry, ReadEntryError, Replica};
use courser_store::change::Replayed;
use courser_store::{Lsn, Position, Progress, Recovered};
use std::mem;

/// Bytes of entries that are read at once.
const READ_BYTES: u64 = 4 << 20;

/// A state, and what it took.
pub struct Restored {
    pub recovered: Recovered,
    /// Records that were applied.
    pub records: u64,
}

/// Why it can't be found out what is committed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Neither checkpoint can be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checkpoint is whole, and makes no sense.
    #[error("the checkpoint is malformed")]
    MalformedCheckpoint,
    /// An entry can't be read.
    #[error(transparent)]
    Entry(#[from] ReadEntryError),
    /// A record is whole, and makes no sense.
    #[error("the record at position {0} is malformed")]
    Record(Position),
    /// It is not wanted any more.
    #[error("it is not wanted any more")]
    Unwanted,
}

/// The state as of entry `last`, which is committed, as long as `go_on` says so. Any thread may ask.
pub fn restore(
    replica: &Replica,
    last: u64,
    go_on: &mut dyn FnMut() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, RestoreError> {
    let mut checkpoint = replica.checkpointed()?;
    let recovered = Recovered::from_checkpoint(&mem::take(&mut checkpoint.data));
    let recovered = recovered.ok_or(RestoreError::MalformedCheckpoint)?.noting(replica.noting());
    let mut restored = Restored { recovered, records: 0 };
    let (start, mut next) = (checkpoint.start, checkpoint.last().index + 1);
    let mut applied = Ok(());
    replica.read_kept(&checkpoint, &mut |entry| {
        applied = if go_on() { restored.apply(entry, start) } else { Err(RestoreError::Unwanted) };
        next += 1;
        applied.is_ok()
    })?;
    applied?;
    let total_bytes = replica.end().0.saturating_sub(start.0);
    while next <= last {
        if !go_on() {
            return Err(RestoreError::Unwanted);
        }
        let entries = replica.read(next, last + 1, READ_BYTES)?;
        entries.iter().try_for_each(|entry| restored.apply(entry, start))?;
        let read_to = entries.last().map_or(start, Entry::end);
        let read_bytes = read_to.0.saturating_sub(start.0);
        progress(Progress { read_bytes, total_bytes });
        next += entries.len() as u64;
    }
    Ok(restored)
}

impl Restored {
    /// Applies the records of an entry from `start` on: what the checkpoint has already would be applied twice.
    fn apply(&mut self, entry: &Entry, start: Lsn) -> Result<(), RestoreError> {
        let mut malformed = None;
        entry.for_each_record(&mut |lsn, record| {
            let position = Position::from(lsn);
            if lsn < start || malformed.is_some() {
                return;
            }
            match Replayed::parse(record) {
                Some(change) => self.recovered.apply(position, change),
                None => malformed = Some(position),
            }
            self.records += 1;
        });
        malformed.map_or(Ok(()), |position| Err(RestoreError::Record(position)))
    }
}
