//! Entries as they are sent.

use crate::copy::{Copy, DIR, IDENTITY, new_disk, open, options};
use courser_journal::{
    AppendMode, Batch, Lsn, Options,
    replica::{
        AppendEntryError, CutError, Entry, EntryId, EntryKind, Identity, NOTE_BYTES_MAX,
        PlaceError, Replica,
    },
    testing::FakeDisk,
};
use std::{path::Path, sync::Arc};

fn id(term: u64, index: u64) -> EntryId {
    EntryId { term, index }
}

/// A copy that leads, with an entry for each of `records`.
pub fn leading(records: &[&[u8]]) -> Copy {
    let mut copy = Copy::new("leader", 1);
    let start = copy.replica().place_note(id(1, 1), EntryKind::Start, &[]).unwrap();
    copy.push(start);
    let lead = copy.replica().lead(1);
    for record in records {
        let mut batch = Batch::new();
        batch.push(&[record]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        let entry = copy.replica().place(id(1, copy.last().index + 1)).unwrap().unwrap();
        copy.push(entry);
    }
    copy.lead = Some(lead);
    copy
}

#[test]
fn an_entry_says_what_it_is_and_has_its_records_at_their_positions() {
    let copy = leading(&[b"one", b"two"]);
    let entry = Entry::parse(copy.entries[2].frame.clone(), IDENTITY.group).unwrap();
    assert_eq!((entry.id, entry.kind, entry.note()), (id(1, 3), EntryKind::Batch, &[][..]));
    let mut records = Vec::new();
    entry.for_each_record(&mut |position, bytes| records.push((position, bytes.to_vec())));
    assert_eq!(records, [(entry.start().plus(32), b"two".to_vec())]);
    let mut cache = courser_journal::ReadCache::default();
    assert_eq!(copy.replica().read_record(records[0].0, &mut cache).unwrap(), b"two");
}

#[test]
fn no_byte_of_an_entry_may_be_another() {
    let copy = leading(&[b"one"]);
    let frame = &copy.entries[1].frame;
    for offset in 0..frame.len() {
        let mut harmed = frame.to_vec();
        harmed[offset] ^= 1;
        let parsed = Entry::parse(harmed.into(), IDENTITY.group);
        assert!(parsed.is_err(), "offset {offset}");
    }
    for len in 0..frame.len() {
        assert!(Entry::parse(frame.slice(..len), IDENTITY.group).is_err(), "length {len}");
    }
    assert!(Entry::parse(frame.clone(), IDENTITY.group + 1).is_err());
}

#[test]
fn an_entry_of_many_frames_is_read_from_the_disk_once() {
    let disk = FakeDisk::new(5);
    let identity = Identity { segment_bytes: 1 << 20, ..IDENTITY };
    Replica::create(Path::new(DIR), identity, &disk).unwrap();
    let options = Options { buffer_bytes: 1 << 20, ..options() };
    let replica =
        Replica::open(Path::new(DIR), options, Arc::new(disk.clone()), Arc::new(())).unwrap();
    replica.place_note(id(1, 1), EntryKind::Start, &[]).unwrap();
    let lead = replica.lead(1);
    let record = vec![7; 20 << 10];
    for _ in 0..20 {
        let mut batch = Batch::new();
        batch.push(&[&record]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
    }
    let placed = replica.place(id(1, 2)).unwrap().unwrap();
    while replica.flush_once() {}
    let before = disk.read_bytes();
    let mut read = replica.read(2, 3, u64::MAX).unwrap();
    assert_eq!(read.pop(), Some(placed.clone()));
    let read_bytes = disk.read_bytes() - before;
    assert!(read_bytes < 2 * placed.frame.len() as u64, "{read_bytes} bytes were read");
}

#[test]
fn of_an_entry_that_is_too_much_next_to_nothing_is_read() {
    let disk = FakeDisk::new(5);
    let identity = Identity { segment_bytes: 4 << 20, ..IDENTITY };
    Replica::create(Path::new(DIR), identity, &disk).unwrap();
    let options = Options { buffer_bytes: 4 << 20, ..options() };
    let replica =
        Replica::open(Path::new(DIR), options, Arc::new(disk.clone()), Arc::new(())).unwrap();
    replica.place_note(id(1, 1), EntryKind::Start, &[]).unwrap();
    let lead = replica.lead(1);
    let record = vec![7; 1 << 20];
    let placed = [2, 3].map(|index| {
        let mut batch = Batch::new();
        batch.push(&[&record]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        replica.place(id(1, index)).unwrap().unwrap()
    });
    while replica.flush_once() {}
    let before = disk.read_bytes();
    assert_eq!(replica.read(2, 4, 128 << 10).unwrap(), placed[..1]);
    let read_bytes = disk.read_bytes() - before;
    assert!(read_bytes < (1 << 20) + (256 << 10), "{read_bytes} bytes were read");
    assert_eq!(replica.read(2, 4, 3 << 20).unwrap(), placed);
}

#[test]
fn what_is_no_entry_or_does_not_follow_is_refused() {
    let leader = leading(&[b"one", b"two"]);
    let disk = new_disk(2);
    let copy = open(&disk).unwrap();
    let [first, second, third] = &leader.entries[..] else { panic!("three entries") };
    let refused = copy.append(std::slice::from_ref(second));
    assert!(matches!(refused, Err(AppendEntryError::Gap { .. })));
    copy.append(std::slice::from_ref(first)).unwrap();
    let mut harmed = second.clone();
    let mut frame = harmed.frame.to_vec();
    frame[40] ^= 1;
    harmed.frame = frame.into();
    assert!(matches!(copy.append(&[harmed]), Err(AppendEntryError::Bad(_))));
    let mut misnamed = second.clone();
    misnamed.id.term = 2;
    assert!(matches!(copy.append(&[misnamed]), Err(AppendEntryError::Bad(_))));
    assert_eq!(copy.last(), first.id);
    copy.append(&[first.clone(), second.clone(), third.clone()]).unwrap();
    assert_eq!(copy.last(), third.id);
}

#[test]
fn what_is_committed_is_not_cut() {
    let copy = leading(&[b"one", b"two"]);
    let replica = copy.replica();
    replica.follow();
    while replica.flush_once() {}
    replica.commit(2).unwrap();
    assert!(matches!(replica.cut(1), Err(CutError::Committed { after: 1, committed: 2 })));
    replica.cut(2).unwrap();
    assert_eq!(replica.last(), id(1, 2));
    assert_eq!(replica.read(1, 4, 1 << 20).unwrap(), copy.entries[..2]);
}

#[test]
fn entries_are_placed_in_their_order() {
    let copy = leading(&[b"one"]);
    let replica = copy.replica();
    assert!(matches!(replica.place(id(1, 5)), Err(PlaceError::Gap { .. })));
    assert!(matches!(replica.place(id(0, 3)), Err(PlaceError::Gap { .. })));
    assert!(replica.place(id(1, 3)).unwrap().is_none());
    let long = vec![0; NOTE_BYTES_MAX + 1];
    let refused = replica.place_note(id(1, 3), EntryKind::Members, &long);
    assert!(matches!(refused, Err(PlaceError::TooLong(_))));
    let longest = &long[1..];
    let entry = replica.place_note(id(1, 3), EntryKind::Members, longest).unwrap();
    assert_eq!((entry.kind, entry.note()), (EntryKind::Members, longest));
    assert_eq!(replica.notes_after(0), [1, 3]);
    assert_eq!(entry.start(), copy.entries[1].end());
    assert!(entry.end() > Lsn(0));
}
