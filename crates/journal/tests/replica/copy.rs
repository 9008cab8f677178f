//! One copy, and what it should have.

use courser_journal::{
    Damaged, Journal, Options, Pass, Scrubbing,
    replica::{Entry, EntryId, Events, Identity, Replica, ReplicaError, Vote},
    testing::{FakeDisk, Faults},
};
use std::{path::Path, sync::Arc};

pub const DIR: &str = "copy";
pub const IDENTITY: Identity = Identity { group: 0x5eed_1e55_c0de_cafe, segment_bytes: 16 << 10 };

pub fn options() -> Options {
    Options {
        buffer_bytes: 64 << 10,
        unsynced_bytes: 8 << 10,
        checkpoint_after_bytes: 64 << 10,
        dead_bytes: 32 << 10,
        threads: false,
        ..Options::default()
    }
}

pub fn open(disk: &FakeDisk) -> Result<Replica, ReplicaError> {
    open_telling(disk, Arc::new(()))
}

pub fn open_telling(disk: &FakeDisk, events: Arc<dyn Events>) -> Result<Replica, ReplicaError> {
    Replica::open(Path::new(DIR), options(), Arc::new(disk.clone()), events)
}

/// A new disk with an empty copy.
pub fn new_disk(seed: u64) -> FakeDisk {
    let disk = FakeDisk::new(seed);
    Replica::create(Path::new(DIR), IDENTITY, &disk).unwrap();
    disk
}

/// A cut that has a ticket.
pub struct Cutting {
    /// So many entries are left.
    left: usize,
    /// All that there were.
    before: Vec<Entry>,
}

/// Takes note of what a pass finds.
#[derive(Default)]
struct Found(Vec<Damaged>);

impl Scrubbing for Found {
    fn may_read(&mut self, _: u64) -> bool {
        true
    }

    fn found(&mut self, damaged: Damaged) {
        self.0.push(damaged);
    }
}

/// A copy, and what was done to it.
pub struct Copy {
    pub name: &'static str,
    pub disk: FakeDisk,
    pub replica: Option<Replica>,
    pub lead: Option<Journal>,
    /// All that was appended and not cut.
    pub entries: Vec<Entry>,
    /// The ticket that each of them got.
    pub tickets: Vec<u64>,
    /// So many of them were said to be on the disk.
    pub synced: usize,
    /// So many of them survive the end of the process.
    pub written: usize,
    /// A cut that is not on the disk: a start may find the entries that it cuts off, instead of all that came since.
    pub cutting: Option<Cutting>,
    pub vote: Vote,
    /// Votes that may have been saved, and their tickets.
    pub voting: Vec<(u64, Vote)>,
    pub committed: usize,
    /// The greatest start of a checkpoint, as an entry.
    pub base: u64,
    /// How often its process has ended.
    pub crashes: usize,
}

impl Copy {
    pub fn new(name: &'static str, seed: u64) -> Self {
        let disk = new_disk(seed);
        let replica = Some(open(&disk).unwrap());
        Copy {
            name,
            disk,
            replica,
            lead: None,
            entries: Vec::new(),
            tickets: Vec::new(),
            synced: 0,
            written: 0,
            cutting: None,
            vote: Vote::default(),
            voting: Vec::new(),
            committed: 0,
            base: 0,
            crashes: 0,
        }
    }

    pub fn replica(&self) -> &Replica {
        self.replica.as_ref().unwrap()
    }

    /// Reads all that is committed. Returns what is damaged.
    pub fn scrub(&self) -> (Pass, Vec<Damaged>) {
        let mut found = Found::default();
        (self.replica().scrub(&mut found), found.0)
    }

    pub fn has_failed(&self) -> bool {
        self.replica().failed().is_some()
    }

    pub fn last(&self) -> EntryId {
        self.entries.last().map_or(EntryId::default(), |entry| entry.id)
    }

    /// Notes an entry that was appended or placed.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.tickets.push(self.replica().written());
        self.observe();
    }

    /// Notes a cut that is about to be made, of what is synced by then.
    pub fn begin_cut(&mut self, left: usize) {
        assert!(self.committed <= left, "something committed is cut");
        while self.replica().synced() < self.replica().written() && !self.has_failed() {
            self.flush();
        }
        if self.has_failed() {
            return;
        }
        self.cutting = Some(Cutting { left, before: self.entries.clone() });
        self.entries.truncate(left);
        self.tickets.truncate(left);
        (self.synced, self.written) = (left, left);
    }

    /// Notes what is said to be on the disk.
    pub fn observe(&mut self) {
        let synced = self.replica().synced();
        let count = self.tickets.iter().take_while(|ticket| **ticket <= synced).count();
        assert!(count >= self.synced, "what was synced is not any more");
        self.synced = count;
        self.written = self.written.max(count);
        if self.cutting.as_ref().is_some_and(|cutting| cutting.left < count) {
            self.cutting = None;
        }
        while let Some((ticket, _)) = self.voting.first()
            && *ticket <= synced
        {
            self.vote = self.voting.remove(0).1;
        }
    }

    pub fn flush(&mut self) {
        let all = self.entries.len();
        self.replica().flush_once();
        if !self.has_failed() {
            self.written = all;
        }
        self.observe();
    }

    /// The end of the process, with the power if `power`; then a start.
    pub fn crash(&mut self, power: bool) {
        self.crashes += 1;
        self.disk.set_faults(Faults { power_off_after: Some(0), ..Faults::default() });
        self.lead = None;
        self.replica = None;
        if power {
            self.disk.lose_power();
            self.written = self.synced;
        } else {
            self.disk.kill();
        }
        self.start();
    }

    pub fn close(&mut self) {
        self.lead = None;
        if self.replica().close().is_err() {
            return self.crash(true);
        }
        (self.synced, self.written) = (self.entries.len(), self.entries.len());
        self.replica = None;
        self.disk.kill();
        self.disk.lose_power();
        self.start();
    }

    /// Opens it, and sees what is there.
    fn start(&mut self) {
        let replica = open(&self.disk).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let last = replica.last().index as usize;
        if let Some(Cutting { left, before }) = self.cutting.take() {
            let is_cut =
                last == left || replica.term(left as u64 + 1) != Some(before[left].id.term);
            if !is_cut {
                assert_eq!(last, before.len(), "a cut is made as a whole or not at all");
                (self.entries, self.written) = (before, last);
            }
        }
        assert!(last >= self.written, "{}: {last} entries of {}", self.name, self.written);
        assert!(last <= self.entries.len(), "{}: more than was appended", self.name);
        self.entries.truncate(last);
        self.tickets = vec![0; last];
        (self.synced, self.written) = (last, last);
        assert_eq!(replica.last(), self.last());
        assert!(replica.committed_hint() as usize <= last);
        let first = replica.first().index;
        assert!(first <= self.base, "entries are gone that no checkpoint has");
        check(&replica, &self.entries, first, last as u64 + 1);
        let vote = replica.vote();
        let saved = vote == self.vote || self.voting.iter().any(|(_, other)| *other == vote);
        assert!(saved, "{vote:?} was never the vote");
        (self.vote, self.voting) = (vote, Vec::new());
        assert!(replica.commit(self.committed as u64).is_ok());
        self.replica = Some(replica);
    }

    /// Reads entries back.
    pub fn check(&self, from: u64, to: u64) {
        check(self.replica(), &self.entries, from, to);
    }
}

/// Sees that the entries behind `from` and before `to` are what they should be.
fn check(replica: &Replica, entries: &[Entry], from: u64, to: u64) {
    let mut next = from.max(replica.first().index) + 1;
    assert_eq!(replica.term(next - 1).is_some(), next - 1 <= replica.last().index);
    while next < to {
        let read = replica.read(next, to, 3000).unwrap();
        assert!(!read.is_empty(), "entry {next} is not read");
        for entry in read {
            assert_eq!(entry, entries[next as usize - 1]);
            assert_eq!(replica.term(next), Some(entry.id.term));
            assert_eq!(replica.end_of(next).unwrap(), entry.end());
            next += 1;
        }
    }
}
