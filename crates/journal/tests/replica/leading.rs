//! What a leader appends, until it does not lead any more.

use crate::{
    copy::{Copy, new_disk, open_telling},
    entries::leading,
};
use courser_journal::{
    AppendError, AppendMode, Batch, CheckpointError, Failure, Journal, JournalStore, Lsn, Options,
    ReadCache, RealDisk,
    replica::{EntryId, EntryKind, Events, Identity, PlaceError, Replica},
};
use courser_store::{Location, Log, MessageRef, Messages, Record, StoreError, Sync};
use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};

const SYNC: AppendMode = AppendMode { sync: true, reserve: false };

pub fn append(lead: &Journal, record: &[u8]) -> (Lsn, Lsn) {
    let mut batch = Batch::new();
    batch.push(&[record]);
    let appended = lead.append(&mut batch, SYNC).unwrap();
    (appended.position(0), appended.end())
}

fn is_durable(lead: &Journal, lsn: Lsn) -> Poll<Result<(), Failure>> {
    lead.poll_durable(lsn, Context::from_waker(Waker::noop()).waker())
}

#[test]
fn durable_is_what_is_committed() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    let (position, end) = append(&lead, b"one");
    let mut cache = ReadCache::default();
    assert_eq!(lead.read(position, &mut cache).unwrap(), b"one", "at once");
    let entry = copy.replica().place(EntryId { term: 1, index: 2 }).unwrap().unwrap();
    copy.push(entry);
    copy.flush();
    assert_eq!(copy.synced, 2);
    assert!(is_durable(&lead, end).is_pending(), "synced here, committed nowhere");
    copy.replica().commit(1).unwrap();
    assert!(is_durable(&lead, end).is_pending());
    copy.replica().commit(2).unwrap();
    assert!(matches!(is_durable(&lead, end), Poll::Ready(Ok(()))));
}

#[test]
fn a_checkpoint_within_an_entry_leaves_the_rest_of_it_to_be_applied() {
    let mut copy = leading(&[b"before"]);
    let lead = copy.lead.take().unwrap();
    let (_, start) = append(&lead, b"in the checkpoint");
    append(&lead, b"behind it");
    let entry = copy.replica().place(EntryId { term: 1, index: 3 }).unwrap().unwrap();
    assert!(entry.start() < start && start < entry.end());
    copy.push(entry.clone());
    copy.flush();
    copy.replica().commit(3).unwrap();
    for data in [b"first ", b"second"] {
        lead.checkpoint(&mut || start, &mut |_| {}, &mut |out| out.write_all(data)).unwrap();
    }
    drop(lead);
    copy.base = 2;
    copy.crash(true);
    let replica = copy.replica();
    let before = EntryId { term: 1, index: 2 };
    assert_eq!(replica.last_in_checkpoint(), before, "not this entry, which it has in part");
    assert_eq!((replica.first(), replica.last()), (before, entry.id));
    assert_eq!(replica.checkpointed().unwrap().start, start);
    assert_eq!(replica.read(3, 4, u64::MAX).unwrap(), std::slice::from_ref(&entry));
    let mut left = Vec::new();
    entry.for_each_record(&mut |position, bytes| {
        if position >= start {
            left.push(bytes.to_vec());
        }
    });
    assert_eq!(left, [b"behind it"]);
}

#[test]
fn a_checkpoint_stands_for_no_entry_that_consensus_has_not_applied() {
    let mut copy = leading(&[b"one", b"two"]);
    let lead = copy.lead.take().unwrap();
    copy.flush();
    copy.replica().commit(3).unwrap();
    let start = copy.replica().end_of(3).unwrap();
    copy.replica().applied(2);
    assert_eq!(copy.replica().applicable(), 2);
    let make = || lead.checkpoint(&mut || start, &mut |_| {}, &mut |_| Ok(()));
    assert!(matches!(make(), Err(CheckpointError::Unapplied(3))));
    copy.replica().applied(3);
    make().unwrap();
}

#[test]
fn a_deposed_leader_appends_nothing_and_is_told_of_nothing_that_is_durable() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    copy.flush();
    copy.replica().commit(1).unwrap();
    let (_, lost) = append(&lead, b"lost");
    copy.replica().follow();
    assert!(matches!(is_durable(&lead, lost), Poll::Ready(Err(_))));
    assert!(lead.failure().is_some());

    // Another term begins on the same machine, and goes beyond what was lost.
    let start = copy.replica().place_note(EntryId { term: 2, index: 2 }, EntryKind::Start, &[]);
    copy.push(start.unwrap());
    let next = copy.replica().lead(2);
    let (_, end) = append(&next, &[1; 500]);
    let entry = copy.replica().place(EntryId { term: 2, index: 3 }).unwrap().unwrap();
    copy.push(entry);
    copy.flush();
    copy.replica().commit(3).unwrap();
    assert!(next.durable() >= end && end > lost);
    assert!(matches!(is_durable(&lead, lost), Poll::Ready(Err(_))));
    assert_eq!(lead.durable(), Lsn(0));
    let mut batch = Batch::new();
    batch.push(&[b"late"]);
    assert!(matches!(lead.append(&mut batch, SYNC), Err(AppendError::Deposed)));
}

/// Appends a message with this body, and says where it is.
pub fn publish(store: &JournalStore, body: &[u8]) -> Location {
    let message = MessageRef { address: b"\0\0", header: &[0; 14], body, ..MessageRef::default() };
    let record = Record::Message { queues: &[1], holders: 1, message };
    let mut locations = Vec::new();
    store.append(&[record], Sync::Later, &mut locations).unwrap();
    locations.remove(0)
}

#[test]
fn a_deposed_leader_does_not_take_the_next_ones_messages_for_its_own() {
    let (mut copy, mut next) = (leading(&[]), leading(&[]));
    let store = |copy: &mut Copy| {
        JournalStore::on_lead(Arc::new(copy.lead.take().unwrap()), Arc::default())
    };
    let (old, new) = (store(&mut copy), store(&mut next));
    let (own, foreign) = (publish(&old, b"own message"), publish(&new, b"another one"));
    assert_eq!(own.position(), foreign.position());
    let mut reader = old.reader();
    assert_eq!(reader.read(&own).unwrap().body, b"own message");

    copy.replica().follow();
    assert!(matches!(reader.read(&own), Err(StoreError::Deposed)), "it is not lost");
    let entry = next.replica().place(EntryId { term: 2, index: 2 }).unwrap().unwrap();
    copy.replica().append(std::slice::from_ref(&entry)).unwrap();
    copy.push(entry);
    copy.flush();
    for mut reader in [reader, old.reader()] {
        assert!(matches!(reader.read(&own), Err(StoreError::Deposed)));
    }
}

#[test]
fn what_a_leader_gathers_in_many_segments_is_placed_in_order() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    let mut positions = Vec::new();
    for number in 0..40u8 {
        positions.push((append(&lead, &vec![number; 1500]).0, number));
    }
    let mut index = 2;
    while let Some(entry) = copy.replica().place(EntryId { term: 1, index }).unwrap() {
        copy.push(entry);
        index += 1;
    }
    assert!(index > 4, "a segment is not crossed");
    copy.flush();
    let mut cache = ReadCache::default();
    for (position, number) in positions {
        assert_eq!(lead.read(position, &mut cache).unwrap(), vec![number; 1500]);
    }
    let mut other = Copy::new("follower", 9);
    other.replica().append(&copy.entries).unwrap();
    copy.entries.iter().for_each(|entry| other.push(entry.clone()));
    other.crash(false);
    copy.lead = None;
    copy.crash(true);
    copy.check(0, index);
}

#[test]
fn without_a_majority_a_full_buffer_refuses_instead_of_blocking() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    copy.replica().stall(true);
    assert!(!lead.has_room());
    let mut batch = Batch::new();
    let refused = (0..100).find_map(|_| {
        batch.push(&[&[0; 2000]]);
        lead.append(&mut batch, SYNC).err()
    });
    assert!(matches!(refused, Some(AppendError::Full)));
    copy.replica().stall(false);
    assert!(lead.has_room());
}

const RESERVE: AppendMode = AppendMode { sync: true, reserve: true };

#[test]
fn what_is_owed_to_the_others_is_gathered_beyond_what_messages_may_fill_and_then_ends_the_lead() {
    let told = Arc::new(Told::default());
    let copy = open_telling(&new_disk(3), Arc::clone(&told) as Arc<dyn Events>).unwrap();
    copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap();
    let lead = copy.lead(1);
    let mut batch = Batch::new();
    let mut fill = |mode| {
        for count in 0.. {
            batch.clear();
            batch.push(&[&[0; 2000]]);
            if let Err(error) = lead.append(&mut batch, mode) {
                return (count, error);
            }
        }
        unreachable!("the buffer has a bound")
    };
    let (messages, error) = fill(SYNC);
    assert!(messages > 0 && matches!(error, AppendError::Full), "{error}");
    let (owed, error) = fill(RESERVE);
    assert!(2 * owed > messages && matches!(error, AppendError::Deposed), "{owed}: {error}");
    assert_eq!(told.overrun.load(SeqCst), 1);
    assert!(
        matches!(fill(RESERVE), (0, AppendError::Deposed)),
        "the next would lack the one before"
    );
}

#[test]
fn what_a_leader_gathers_without_a_file_for_it_is_placed_when_there_is_one() {
    let mut copy = leading(&[]);
    let lead = copy.lead.take().unwrap();
    copy.disk.set_capacity(copy.disk.used_bytes());
    let mut batch = Batch::new();
    let mut append = |mode| {
        batch.clear();
        batch.push(&[&[7; 1500]]);
        lead.append(&mut batch, mode).map(|appended| (appended.position(0), appended.end()))
    };
    // Each segment of this group takes some of them.
    let gathered: Vec<_> = (0..30).map(|_| append(RESERVE).unwrap()).collect();
    assert!(matches!(append(SYNC), Err(AppendError::Full)), "no message takes its room");
    let place = |index| copy.replica().place(EntryId { term: 1, index });
    let mut index = 2;
    let refused = loop {
        match place(index) {
            Ok(Some(_)) => index += 1,
            other => break other,
        }
    };
    assert!(matches!(refused, Err(PlaceError::Full)), "{refused:?}");
    let mut cache = ReadCache::default();
    let (last, end) = *gathered.last().unwrap();
    assert_eq!(lead.read(last, &mut cache).unwrap(), [7; 1500]);

    copy.disk.set_capacity(u64::MAX);
    let place = |index| {
        copy.replica().flush_once();
        copy.replica().maintain_once();
        copy.replica().place(EntryId { term: 1, index })
    };
    while place(index).unwrap().is_some() {
        index += 1;
    }
    copy.replica().commit(index - 1).unwrap();
    assert!(lead.durable() >= end);
    assert_eq!(lead.read(last, &mut cache).unwrap(), [7; 1500]);
}

#[derive(Default)]
struct Told {
    gathered: AtomicU64,
    overrun: AtomicU64,
}

impl Events for Told {
    fn synced(&self, _ticket: u64) {}
    fn gathered(&self) {
        self.gathered.fetch_add(1, SeqCst);
    }
    fn proof_wanted(&self) {}
    fn room(&self) {}
    fn fetched(&self) {}
    fn failed(&self, _failure: &Failure) {}
    fn overrun(&self) {
        self.overrun.fetch_add(1, SeqCst);
    }
}

#[test]
fn it_is_said_once_that_something_waits_to_be_placed() {
    let told = Arc::new(Told::default());
    let copy = open_telling(&new_disk(3), Arc::clone(&told) as Arc<dyn Events>).unwrap();
    copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap();
    let lead = copy.lead(1);
    append(&lead, b"one");
    append(&lead, b"two");
    assert_eq!(told.gathered.load(SeqCst), 1);
    assert!(copy.place(EntryId { term: 1, index: 2 }).unwrap().is_some());
    append(&lead, b"three");
    assert_eq!(told.gathered.load(SeqCst), 2);
    copy.place(EntryId { term: 1, index: 3 }).unwrap().unwrap();
    let mut batch = Batch::new();
    batch.push(&[b"later"]);
    let end = lead.append(&mut batch, AppendMode::default()).unwrap().end();
    assert_eq!(told.gathered.load(SeqCst), 2, "it has no waiter");
    assert!(is_durable(&lead, end).is_pending());
    assert_eq!(told.gathered.load(SeqCst), 3, "now it has one");
}

/// What the log thread has synced.
#[derive(Default)]
struct Synced {
    ticket: Mutex<u64>,
    changed: Condvar,
}

impl Events for Synced {
    fn synced(&self, ticket: u64) {
        *self.ticket.lock().unwrap() = ticket;
        self.changed.notify_all();
    }
    fn gathered(&self) {}
    fn proof_wanted(&self) {}
    fn room(&self) {}
    fn fetched(&self) {}
    fn failed(&self, _failure: &Failure) {}
    fn overrun(&self) {}
}

#[test]
fn the_log_thread_says_what_is_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity { group: 7, segment_bytes: 64 << 10 };
    Replica::create(dir.path(), identity, &RealDisk).unwrap();
    let events = Arc::new(Synced::default());
    let open = |events: Arc<dyn Events>| {
        Replica::open(dir.path(), Options::default(), Arc::new(RealDisk), events).unwrap()
    };
    let copy = open(Arc::clone(&events) as Arc<dyn Events>);
    let mut entries =
        vec![copy.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]).unwrap()];
    let lead = copy.lead(1);
    for index in 2..200 {
        let (_, end) = append(&lead, &[index as u8; 1000]);
        entries.push(copy.place(EntryId { term: 1, index }).unwrap().unwrap());
        let ticket = copy.written();
        let mut synced = events.ticket.lock().unwrap();
        while *synced < ticket {
            synced = events.changed.wait(synced).unwrap();
        }
        drop(synced);
        assert!(copy.synced() >= ticket);
        copy.commit(index).unwrap();
        assert!(lead.wait_durable(end).is_ok());
    }
    copy.close().unwrap();
    drop((lead, copy));
    let copy = open(Arc::new(()));
    assert!(copy.last().index == 199 && copy.committed_hint() >= 198);
    assert_eq!(copy.read(1, 200, u64::MAX).unwrap(), entries);
    copy.cut(198).unwrap_err();
}
