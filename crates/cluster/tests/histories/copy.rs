//! What a history needs of a node's log besides: its disk, and records in its entries.

use crate::model::Record;
use courser_cluster::{Entry, JournalLog, Members, NodeId, ReplicaLog};
use courser_journal::replica::{self, Identity, Replica};
use courser_journal::testing::FakeDisk;
use courser_journal::{AppendMode, Batch, Options};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A log on a fake disk.
pub trait Copy: ReplicaLog + Sized {
    /// Makes the files of a new group's copy.
    fn create(disk: &FakeDisk, founders: &[NodeId]);

    /// Opens what is on the disk.
    fn open(disk: &FakeDisk) -> io::Result<Self>;

    /// One round of its log thread.
    fn flush(&mut self) -> io::Result<()>;

    /// The entry at `index`.
    fn entry(&self, index: u64) -> Option<Entry>;

    /// A batch of one record, to be proposed. Only to a copy that serves.
    fn batch(&mut self, record: Record) -> Self::Batch;

    /// Asks for a round that proves that this copy leads. Only to one that serves.
    fn want_proof(&mut self) -> u64;

    /// The last round that has proven it.
    fn proven(&self) -> u64;

    /// The records of an entry.
    fn records(entry: &Entry) -> Vec<Record>;
}

const IDENTITY: Identity = Identity { group: 0x1d_e717, segment_bytes: 16 << 10 };
const FOLDER: &str = "journal";

fn options() -> Options {
    Options {
        segment_bytes: IDENTITY.segment_bytes,
        buffer_bytes: 64 << 10,
        threads: false,
        ..Options::default()
    }
}

fn open_copy(disk: &FakeDisk) -> Result<Replica, replica::ReplicaError> {
    Replica::open(Path::new(FOLDER), options(), Arc::new(disk.clone()), Arc::new(()))
}

impl Copy for JournalLog {
    fn create(disk: &FakeDisk, founders: &[NodeId]) {
        Replica::create(Path::new(FOLDER), IDENTITY, disk).expect("an empty disk");
        let members = Members::founders(founders).encode();
        let copy = open_copy(disk).expect("it was just made");
        let vote = replica::Vote { members, ..replica::Vote::default() };
        copy.save_vote(&vote).expect("a disk without faults");
        drop(copy);
    }

    fn open(disk: &FakeDisk) -> io::Result<Self> {
        open_copy(disk).map(JournalLog::new).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.replica().flush_once() {}
        self.replica().maintain_once();
        match self.replica().failed() {
            None => Ok(()),
            Some(failure) => Err(io::Error::other(failure.to_string())),
        }
    }

    fn entry(&self, index: u64) -> Option<Entry> {
        self.fetch(index, index + 1, u64::MAX).ok()??.pop()
    }

    fn batch(&mut self, record: Record) {
        let journal = self.serving().expect("it serves");
        let mut batch = Batch::new();
        batch.push(&[&record.encode()]);
        let mode = AppendMode { sync: true, reserve: false };
        // A disk that fails is noticed by what is done next.
        let _ = journal.append(&mut batch, mode);
    }

    fn want_proof(&mut self) -> u64 {
        self.serving().expect("it serves").prove_lead().0
    }

    fn proven(&self) -> u64 {
        self.serving().map_or(0, |journal| journal.proven().0)
    }

    fn records(entry: &Entry) -> Vec<Record> {
        let mut found = Vec::new();
        let entry = replica::Entry::parse(entry.frame.clone(), IDENTITY.group);
        let entry = entry.expect("an entry of the log");
        entry.for_each_record(&mut |_, record| found.push(Record::decode(record.to_vec().into())));
        found
    }
}
