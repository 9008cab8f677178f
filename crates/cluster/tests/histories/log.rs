//! A log on a disk that crashes: frames in one file, the vote in another.
//!
//! It writes nothing by itself: [`TestLog::flush`] is the round of a log thread.

mod frames;

use crate::copy::Copy;
use crate::model::Record;
use bytes::Bytes;
use courser_cluster::{
    Entry, EntryId, EntryKind, LogError, Members, NodeId, PlaceError, Placed, ReplicaLog, Vote,
};
use courser_journal::testing::FakeDisk;
use courser_journal::{Disk, OpenMode};
use courser_store::Lsn;
use frames::{
    OWN_LEN, decode_own, decode_vote, encode_frame, encode_own, encode_vote, entry_of, frame_at,
    payload_of, start_of, term_before,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A leader leaves this much room now and then, as a journal does where a segment ends.
const GAP: u64 = 64;

/// One copy of the log.
pub struct TestLog {
    disk: FakeDisk,
    vote: Vote,
    /// One that is to be saved.
    next_vote: Option<Vote>,
    entries: Vec<Held>,
    committed: u64,
    hint: u64,
    /// Writes that the disk has not been given.
    buffer: Vec<(u64, Vec<u8>)>,
    written: u64,
    synced: u64,
    leads: Option<u64>,
    /// Nothing may gather now.
    paused: bool,
    /// What is being read: there when it is asked for again.
    fetching: RefCell<BTreeSet<u64>>,
    /// The rounds of proofs that are wanted, have begun, and have ended well.
    rounds: [u64; 3],
}

/// An entry and where it stands.
struct Held {
    entry: Entry,
    start: u64,
}

impl Held {
    fn end(&self) -> u64 {
        self.start + (self.entry.frame.len() + OWN_LEN) as u64
    }
}

impl TestLog {
    /// The next frame in what was on the disk, directly behind the last one or behind a gap.
    fn next_in(&self, bytes: &[u8]) -> Option<(Held, u64)> {
        let at = |start: u64| {
            let frame = frame_at(bytes, start)?;
            let commit = decode_own(bytes.get(start as usize + frame.len()..)?)?;
            let entry = entry_of(Bytes::copy_from_slice(frame));
            let follows = entry.id.index == self.last().index + 1
                && term_before(&entry) == self.last().term
                && start_of(&entry) == start;
            follows.then_some((Held { entry, start }, commit))
        };
        at(self.end()).or_else(|| at(self.end() + GAP))
    }

    fn write_vote(&mut self, vote: Vote) -> io::Result<()> {
        let file = self.disk.open(Path::new("log/vote.new"), OpenMode::Create)?;
        file.write_at(&encode_vote(&vote), 0)?;
        file.sync_data()?;
        self.disk.rename(Path::new("log/vote.new"), Path::new("log/vote"))?;
        self.disk.sync_dir(Path::new("log"))?;
        self.vote = vote;
        Ok(())
    }

    fn end(&self) -> u64 {
        self.entries.last().map_or(0, Held::end)
    }

    fn held_at(&self, index: u64) -> Option<&Entry> {
        Some(&self.entries.get(index.checked_sub(1)? as usize)?.entry)
    }

    fn put(&mut self, id: EntryId, kind: EntryKind, payload: &[u8]) -> Placed {
        assert_eq!(id.index, self.last().index + 1, "entries are placed in order");
        let leaves_gap = (id.term * 31 + id.index).is_multiple_of(7);
        let start = self.end() + if leaves_gap { GAP } else { 0 };
        let frame = encode_frame(id, kind, start, self.last().term, payload);
        let held = Held { entry: Entry { id, kind, frame: frame.clone() }, start };
        let placed = Placed { frame, start: Lsn(start), end: Lsn(held.end()) };
        self.hold(held);
        placed
    }

    fn hold(&mut self, held: Held) {
        if held.entry.kind == EntryKind::Members {
            let mut changes = self.entries.iter().map(|held| &held.entry);
            let before = changes.rfind(|entry| entry.kind == EntryKind::Members);
            let known = before.is_none_or(|entry| entry.id.index <= self.committed);
            assert!(
                known,
                "change {} of members is written with {} committed, before it is known that the last is",
                held.entry.id, self.committed
            );
        }
        self.written += 1;
        let own = encode_own(self.committed);
        self.buffer.push((held.start, [&held.entry.frame[..], &own].concat()));
        self.entries.push(held);
    }

    /// Cuts everything from `index` on; what stood there becomes zeros, gaps included.
    fn cut(&mut self, index: u64) {
        let end = self.end();
        self.entries.truncate(index as usize - 1);
        self.written += 1;
        self.buffer.push((self.end(), vec![0; (end - self.end()) as usize]));
    }
}

impl Copy for TestLog {
    fn create(disk: &FakeDisk, founders: &[NodeId]) {
        let members = Members::founders(founders).encode();
        disk.put(Path::new("log/vote"), &encode_vote(&Vote { members, ..Vote::default() }));
        disk.put(Path::new("log/entries"), &[]);
    }

    fn open(disk: &FakeDisk) -> io::Result<Self> {
        let bytes = disk.contents(Path::new("log/entries")).expect("the file was made");
        let vote = disk.contents(Path::new("log/vote")).expect("the file was made");
        let mut log = TestLog {
            disk: disk.clone(),
            vote: decode_vote(&vote),
            next_vote: None,
            entries: Vec::new(),
            committed: 0,
            hint: 0,
            buffer: Vec::new(),
            written: 0,
            synced: 0,
            leads: None,
            paused: false,
            fetching: RefCell::default(),
            rounds: [0; 3],
        };
        while let Some((held, commit)) = log.next_in(&bytes) {
            log.hint = log.hint.max(commit);
            log.entries.push(held);
        }
        log.hint = log.hint.min(log.last().index);
        // A whole frame behind a torn one would be found again once what was torn is there.
        let torn = (bytes.len() as u64).saturating_sub(log.end());
        log.buffer.push((log.end(), vec![0; torn as usize]));
        log.flush()?;
        Ok(log)
    }

    fn flush(&mut self) -> io::Result<()> {
        let file = self.disk.open(Path::new("log/entries"), OpenMode::Write)?;
        for (offset, bytes) in self.buffer.drain(..) {
            let mut done = 0;
            while done < bytes.len() {
                done += file.write_at(&bytes[done..], offset + done as u64)?;
            }
        }
        file.sync_data()?;
        if let Some(vote) = self.next_vote.take() {
            self.write_vote(vote)?;
        }
        self.synced = self.written;
        Ok(())
    }

    fn entry(&self, index: u64) -> Option<Entry> {
        self.held_at(index).cloned()
    }

    fn batch(&mut self, record: Record) -> Vec<u8> {
        record.encode()
    }

    fn want_proof(&mut self) -> u64 {
        self.rounds[0] = self.rounds[1] + 1;
        self.rounds[0]
    }

    fn proven(&self) -> u64 {
        self.rounds[2]
    }

    fn records(entry: &Entry) -> Vec<Record> {
        match entry.kind {
            EntryKind::Batch => vec![Record::decode(payload_of(entry))],
            EntryKind::Start | EntryKind::Members => Vec::new(),
        }
    }
}

impl ReplicaLog for TestLog {
    type Batch = Vec<u8>;

    fn vote(&self) -> Vote {
        self.vote.clone()
    }

    fn save_vote(&mut self, vote: &Vote) -> Result<(), LogError> {
        self.next_vote = Some(vote.clone());
        self.written += 1;
        Ok(())
    }

    fn before_first(&self) -> EntryId {
        EntryId::default()
    }

    fn last(&self) -> EntryId {
        self.entries.last().map_or(EntryId::default(), |held| held.entry.id)
    }

    fn term(&self, index: u64) -> Option<u64> {
        if index == 0 { Some(0) } else { self.held_at(index).map(|entry| entry.id.term) }
    }

    fn end_of(&self, index: u64) -> Option<Lsn> {
        self.entries.get(index.checked_sub(1)? as usize).map(|held| Lsn(held.end()))
    }

    fn is_valid(&self, entry: &Entry) -> bool {
        frame_at(&entry.frame, 0).is_some_and(|frame| frame.len() == entry.frame.len())
            && entry_of(entry.frame.clone()) == *entry
    }

    fn committed_hint(&self) -> u64 {
        self.hint
    }

    fn members_after(&self, index: u64) -> Result<Vec<Entry>, LogError> {
        let entries = self.entries.iter().map(|held| &held.entry);
        let found =
            entries.filter(|entry| entry.kind == EntryKind::Members && entry.id.index > index);
        Ok(found.cloned().collect())
    }

    fn fetch(&self, from: u64, to: u64, bytes_max: u64) -> Result<Option<Vec<Entry>>, LogError> {
        let mut fetching = self.fetching.borrow_mut();
        if !fetching.remove(&from) {
            fetching.insert(from);
            return Ok(None);
        }
        let mut left = bytes_max;
        let mut found = Vec::new();
        for entry in (from..to).filter_map(|index| self.held_at(index)) {
            let len = entry.frame.len() as u64;
            if len > left && !found.is_empty() {
                break;
            }
            left = left.saturating_sub(len);
            found.push(entry.clone());
        }
        Ok(Some(found))
    }

    fn payload(&self, entry: &Entry) -> Bytes {
        payload_of(entry)
    }

    fn place(&mut self, id: EntryId, batch: &mut Vec<u8>) -> Result<Option<Placed>, PlaceError> {
        Ok((!batch.is_empty()).then(|| self.put(id, EntryKind::Batch, batch)))
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    fn place_bare(
        &mut self,
        id: EntryId,
        kind: EntryKind,
        payload: &[u8],
    ) -> Result<Placed, PlaceError> {
        assert!(kind != EntryKind::Members || self.paused, "something could gather before it");
        Ok(self.put(id, kind, payload))
    }

    fn append(&mut self, entries: &[Entry]) -> Result<(), LogError> {
        assert_eq!(self.leads, None, "it leads, and takes entries of others");
        for entry in entries {
            match self.term(entry.id.index) {
                Some(term) if term == entry.id.term => continue,
                Some(_) if entry.id.index <= self.committed => {
                    return Err(LogError(format!("entry {} is committed", entry.id)));
                }
                Some(_) => self.cut(entry.id.index),
                None => assert_eq!(entry.id.index, self.last().index + 1, "no gaps"),
            }
            let start = start_of(entry);
            self.hold(Held { entry: entry.clone(), start });
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn synced(&self) -> u64 {
        self.synced
    }

    fn ask_sync(&mut self) {}

    fn commit(&mut self, index: u64) -> Result<(), LogError> {
        assert!(index >= self.committed && index <= self.last().index, "a commit goes forward");
        self.committed = index;
        Ok(())
    }

    fn lead(&mut self, term: u64) {
        assert!(self.last().term == term && self.leads.replace(term).is_none());
    }

    fn begin_proof(&mut self) -> Option<u64> {
        let [wanted, begun, _] = &mut self.rounds;
        let is_wanted = *wanted > *begun;
        *begun += u64::from(is_wanted);
        is_wanted.then_some(*begun)
    }

    fn proven(&mut self, round: u64) {
        assert!(self.leads.is_some() && round == self.rounds[1], "another round has begun since");
        self.rounds[2] = round;
    }

    fn follow(&mut self) {
        assert!(self.leads.take().is_some());
    }
}
