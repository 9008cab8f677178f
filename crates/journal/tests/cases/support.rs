//! A journal without threads on a disk in memory.

use courser_journal::{
    AppendMode, Batch, Journal, Lsn, OpenError, Options, Recovery, ReplayError, testing::FakeDisk,
};
use std::{path::PathBuf, sync::Arc};

pub const SYNC: AppendMode = AppendMode { sync: true, reserve: false };
pub const LAZY: AppendMode = AppendMode { sync: false, reserve: false };

pub fn dir() -> PathBuf {
    PathBuf::from("journal")
}

pub fn options() -> Options {
    Options { segment_bytes: 32 << 10, threads: false, ..Options::default() }
}

/// All records with their positions.
pub type Records = Vec<(Lsn, Vec<u8>)>;

pub fn replay(recovery: &Recovery) -> Result<Records, OpenError> {
    let mut records = Vec::new();
    let result = recovery.replay(
        &mut |record| {
            records.push((record.position, record.bytes.to_vec()));
            Ok::<(), String>(())
        },
        &mut |_| {},
    );
    match result {
        Ok(_) => Ok(records),
        Err(ReplayError::Journal(error)) => Err(error),
        Err(ReplayError::Owner(error)) => panic!("{error}"),
    }
}

pub fn open(disk: &FakeDisk) -> (Recovery, Records) {
    let recovery = Journal::open(&dir(), options(), Arc::new(disk.clone())).unwrap();
    let records = replay(&recovery).unwrap();
    (recovery, records)
}

pub fn start(disk: &FakeDisk) -> Journal {
    open(disk).0.start().unwrap()
}

/// Appends a batch and returns the positions of its records.
pub fn append(journal: &Journal, records: &[&[u8]], mode: AppendMode) -> Vec<Lsn> {
    let mut batch = Batch::new();
    for record in records {
        batch.push(&[record]);
    }
    let appended = journal.append(&mut batch, mode).unwrap();
    (0..records.len()).map(|index| appended.position(index)).collect()
}
