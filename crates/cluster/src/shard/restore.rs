//! What the committed entries of a copy come to.

use courser_journal::OpenError;
use courser_journal::replica::{ReadEntryError, Replica};
use courser_store::change::Replayed;
use courser_store::{Lsn, Position, Progress, Recovered};
use std::io::{self, Read};

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
    /// A file can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checkpoint can't be read.
    #[error("the checkpoint can't be read: {0}")]
    Checkpoint(io::Error),
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
    // First this: another checkpoint may be made meanwhile, and needs less.
    let mut next = replica.last_in_checkpoint().index + 1;
    let (mut recovered, mut start) = (Recovered::default(), Lsn(0));
    if let Some(mut checkpoint) = replica.checkpoint_data()? {
        start = checkpoint.start();
        let mut bytes = Vec::new();
        checkpoint.read_to_end(&mut bytes).map_err(RestoreError::Checkpoint)?;
        let found = Recovered::from_checkpoint(&bytes);
        recovered = found.ok_or(RestoreError::MalformedCheckpoint)?;
    }
    let (mut records, mut malformed) = (0, None);
    let total_bytes = replica.end().0.saturating_sub(start.0);
    while next <= last {
        if !go_on() {
            return Err(RestoreError::Unwanted);
        }
        let entries = replica.read(next, last + 1, READ_BYTES)?;
        for entry in &entries {
            entry.for_each_record(&mut |lsn, record| {
                let position = Position::from(lsn);
                // What the checkpoint has already would be applied twice.
                if lsn < start || malformed.is_some() {
                    return;
                }
                match Replayed::parse(record) {
                    Some(change) => recovered.apply(position, change),
                    None => malformed = Some(position),
                }
                records += 1;
            });
        }
        if let Some(position) = malformed {
            return Err(RestoreError::Record(position));
        }
        let read_to = entries.last().map_or(start, |entry| entry.end());
        let read_bytes = read_to.0.saturating_sub(start.0);
        progress(Progress { read_bytes, total_bytes });
        next += entries.len() as u64;
    }
    Ok(Restored { recovered, records })
}
