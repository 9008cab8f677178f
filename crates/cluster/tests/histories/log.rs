//! A log on a disk that crashes: frames in one file, the vote in another.
//!
//! It writes nothing by itself: [`TestLog::flush`] is the round of a log thread.

use crate::copy::Copy;
use crate::model::Record;
use bytes::{BufMut, Bytes};
use courser_cluster::{
    Entry, EntryId, EntryKind, LogError, Members, NodeId, PlaceError, Placed, ReplicaLog, Vote,
};
use courser_journal::testing::FakeDisk;
use courser_journal::{Disk, OpenMode};
use courser_store::Lsn;
use std::io;
use std::path::Path;

/// Bytes in front of a frame's payload.
const HEAD_LEN: usize = 48;
/// Bytes behind a frame that are this copy's own: what was known to be committed, and a sum.
const OWN_LEN: usize = 12;
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
            let own = bytes.get(start as usize + frame.len()..)?.get(..OWN_LEN)?;
            let commit =
                (own[8..] == crc32c::crc32c(&own[..8]).to_le_bytes()).then(|| number(own, 0))?;
            let entry = entry_of(Bytes::copy_from_slice(frame));
            let follows = entry.id.index == self.last().index + 1
                && number(&entry.frame, 32) == self.last().term
                && number(&entry.frame, 24) == start;
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
        let mut frame = vec![0; 8];
        frame[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.put_u64_le(id.term);
        frame.put_u64_le(id.index);
        frame.put_u64_le(start);
        frame.put_u64_le(self.last().term);
        frame.put_u64_le(kind as u64);
        frame.extend_from_slice(payload);
        let sum = crc32c::crc32c(&frame[4..]);
        frame[..4].copy_from_slice(&sum.to_le_bytes());
        let frame = Bytes::from(frame);
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
        let commit = self.committed.to_le_bytes();
        let sum = crc32c::crc32c(&commit).to_le_bytes();
        self.buffer.push((held.start, [&held.entry.frame[..], &commit, &sum].concat()));
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

    fn members_after(&self, index: u64) -> Result<Vec<u64>, LogError> {
        let entries = self.entries.iter().map(|held| &held.entry);
        let found =
            entries.filter(|entry| entry.kind == EntryKind::Members && entry.id.index > index);
        Ok(found.map(|entry| entry.id.index).collect())
    }

    fn read(&self, from: u64, to: u64, bytes_max: u64) -> Result<Vec<Entry>, LogError> {
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
        Ok(found)
    }

    fn payload(&self, index: u64) -> Result<Bytes, LogError> {
        let entry = self.held_at(index).ok_or_else(|| LogError(format!("no entry {index}")))?;
        Ok(payload_of(entry))
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
            let start = number(&entry.frame, 24);
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

    fn follow(&mut self) {
        assert!(self.leads.take().is_some());
    }
}

/// What an entry was placed with.
fn payload_of(entry: &Entry) -> Bytes {
    entry.frame.slice(HEAD_LEN..)
}

fn entry_of(frame: Bytes) -> Entry {
    let kind = match number(&frame, 40) & 0xff {
        0 => EntryKind::Batch,
        1 => EntryKind::Start,
        _ => EntryKind::Members,
    };
    let id = EntryId { term: number(&frame, 8), index: number(&frame, 16) };
    Entry { id, kind, frame }
}

/// The frame that begins at `start`, if its sum is right.
fn frame_at(bytes: &[u8], start: u64) -> Option<&[u8]> {
    let rest = bytes.get(start as usize..)?;
    let head = rest.get(..HEAD_LEN)?;
    let len = u32::from_le_bytes(head[4..8].try_into().ok()?) as usize;
    let frame = rest.get(..HEAD_LEN.checked_add(len)?)?;
    let sum = u32::from_le_bytes(head[..4].try_into().ok()?);
    (crc32c::crc32c(&frame[4..]) == sum).then_some(frame)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn encode_vote(vote: &Vote) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u64_le(vote.term);
    out.put_u64_le(vote.voted_for);
    out.put_u64_le(vote.members_index);
    out.extend_from_slice(&vote.members);
    let sum = crc32c::crc32c(&out);
    out.put_u32_le(sum);
    out
}

fn decode_vote(bytes: &[u8]) -> Vote {
    let (vote, sum) = bytes.split_at(bytes.len() - 4);
    assert_eq!(
        crc32c::crc32c(vote).to_le_bytes(),
        *sum,
        "the vote is saved as a whole or not at all"
    );
    Vote {
        term: number(vote, 0),
        voted_for: number(vote, 8),
        members_index: number(vote, 16),
        members: vote[24..].to_vec(),
    }
}
