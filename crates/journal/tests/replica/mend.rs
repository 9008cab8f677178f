//! Records that the disk has changed, and another copy may still have.

use crate::{
    copy::{Copy, DIR},
    entries::leading,
    leading::publish,
};
use courser_journal::{
    JournalStore, Lsn,
    replica::{Entry, EntryId, MendError, Piece, Replica},
    testing::FakeDisk,
};
use courser_store::{Location, Messages, StoreError};
use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes in front of a record.
pub const HEAD: usize = 8;

/// A leader, another copy of its log, and messages that are committed in both.
pub struct Two {
    pub leader: Copy,
    pub other: Copy,
    pub store: JournalStore,
    pub messages: Vec<(Location, Vec<u8>)>,
}

impl Two {
    pub fn new(bodies: &[usize]) -> Self {
        let mut leader = leading(&[]);
        let store = JournalStore::on_lead(Arc::new(leader.lead.take().unwrap()), Arc::default());
        let mut messages = Vec::new();
        for (number, len) in bodies.iter().enumerate() {
            let body = vec![number as u8; *len];
            messages.push((publish(&store, &body), body));
            let index = leader.last().index + 1;
            let entry = leader.replica().place(EntryId { term: 1, index }).unwrap().unwrap();
            leader.push(entry);
        }
        leader.flush();
        let mut other = Copy::new("follower", 9);
        other.replica().append(&leader.entries).unwrap();
        other.flush();
        let two = Two { leader, other, store, messages };
        two.commit(two.leader.last().index);
        two
    }

    fn commit(&self, index: u64) {
        self.leader.replica().commit(index).unwrap();
        self.other.replica().commit(index).unwrap();
    }

    pub fn position(&self, number: usize) -> Lsn {
        self.messages[number].0.position().unwrap().into()
    }

    pub fn record(&self, number: usize) -> Piece {
        Piece::Record(self.position(number))
    }

    /// Reads a message as a queue does.
    pub fn body(&self, number: usize) -> Result<Vec<u8>, StoreError> {
        self.store.reader().read(&self.messages[number].0).map(|message| message.body.to_vec())
    }
}

/// The file with this position, and where in it that is.
pub fn place(copy: &Copy, position: Lsn) -> (PathBuf, usize) {
    place_on(&copy.disk, position)
}

fn place_on(disk: &FakeDisk, position: Lsn) -> (PathBuf, usize) {
    let start = |path: &Path| {
        let is_log = path.extension().is_some_and(|kind| kind == "log");
        let stem = path.file_stem()?.to_str()?;
        is_log.then(|| u64::from_str_radix(stem, 16).ok()).flatten()
    };
    let names = disk.names();
    let starts = names.iter().filter_map(|name| Some((start(name)?, name)));
    let (start, path) = starts.filter(|(start, _)| *start <= position.0).max().unwrap();
    assert!(path.starts_with(DIR));
    (path.clone(), (position.0 - start) as usize)
}

pub fn corrupt(copy: &Copy, position: Lsn) {
    corrupt_on(&copy.disk, position);
}

pub fn corrupt_on(disk: &FakeDisk, position: Lsn) {
    let (path, offset) = place_on(disk, position);
    disk.corrupt(&path, offset, 0x10);
}

#[test]
fn each_byte_of_a_record_is_written_again_from_the_other_copy() {
    let two = Two::new(&[10, 300, 0]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    for number in 0..two.messages.len() {
        let position = two.position(number);
        let whole = other.stretch(Piece::Record(position)).unwrap().unwrap();
        for offset in 0..own(Piece::Record(position), &whole).len() {
            corrupt(&two.leader, position.plus(offset as u64));
            let read = two.body(number);
            assert!(matches!(read, Err(StoreError::Unread(_))), "{number}, {offset}: {read:?}");
            assert_eq!(leader.damaged(9), [Piece::Record(position)]);
            assert_eq!(
                leader.stretch(Piece::Record(position)).unwrap(),
                None,
                "the other one can't have it from here"
            );
            leader.mend(Piece::Record(position), &whole).unwrap();
            assert_eq!(two.body(number).unwrap(), two.messages[number].1);
            assert!(leader.damaged(9).is_empty());
        }
    }
    assert_eq!(
        two.leader.disk.contents(&place(&two.leader, two.position(0)).0).map(|all| all.len()),
        two.other.disk.contents(&place(&two.other, two.position(0)).0).map(|all| all.len())
    );
}

/// Where the piece itself is in what another copy brings.
pub fn own(piece: Piece, brought: &[u8]) -> Range<usize> {
    (piece.position().0 % 4096) as usize..piece.len_of(brought).unwrap()
}

/// All entries of a copy, which the other one helps to read.
pub fn read_all(copy: &Replica, helper: &Replica) -> Vec<Entry> {
    let (mut entries, last) = (Vec::new(), copy.last().index);
    while let next = copy.first().index + 1 + entries.len() as u64
        && next <= last
    {
        match copy.read(next, last + 1, u64::MAX) {
            Ok(read) => entries.extend(read),
            Err(error) => {
                let pieces = copy.damaged(9);
                let [piece] = pieces[..] else { panic!("{error}: {pieces:?} are asked for") };
                let whole = helper.stretch(piece).unwrap().unwrap();
                copy.mend(piece, &whole).unwrap();
            }
        }
    }
    entries
}

#[test]
fn each_byte_of_an_entry_that_the_disk_changes_is_written_again_from_the_other_copy() {
    let two = Two::new(&[10, 300, 0]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let whole = read_all(leader, other);
    let first = &whole[0];
    let from = first.start().0;
    for position in from..whole[whole.len() - 1].end().0 {
        corrupt(&two.leader, Lsn(position));
        assert_eq!(read_all(leader, other), whole, "{position}");
        assert!(leader.damaged(9).is_empty(), "{position}");
        // Where nothing is noticed, it is padding.
        let (path, offset) = place(&two.leader, Lsn(position));
        if two.leader.disk.contents(&path).unwrap()[offset]
            != two.other.disk.contents(&path).unwrap()[offset]
        {
            corrupt(&two.leader, Lsn(position));
        }
    }
}

#[test]
fn an_entry_that_no_copy_has_is_asked_for_once() {
    let two = Two::new(&[100, 100]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let entry = read_all(leader, other).pop().unwrap();
    let position = entry.start().plus(60);
    corrupt(&two.leader, position);
    corrupt(&two.other, position);
    let last = leader.last().index;
    assert!(leader.read(last, last + 1, u64::MAX).is_err());
    let pieces = leader.damaged(9);
    let [piece] = pieces[..] else { panic!("{pieces:?} are asked for") };
    assert_eq!(other.stretch(piece).unwrap(), None);
    assert!(leader.wants_pieces());
    leader.give_up(piece);
    assert!(leader.read(last, last + 1, u64::MAX).is_err());
    assert!(!leader.wants_pieces());
}

#[test]
fn an_entry_with_several_damaged_frames_is_written_again_frame_by_frame() {
    let two = Two::new(&[300, 100]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let whole = read_all(leader, other);
    let entry = &whole[whole.len() - 2];
    // The message's frame, and the one that closes the entry.
    for position in [entry.start().plus(60), Lsn(entry.end().0 - 20)] {
        corrupt(&two.leader, position);
    }
    assert_eq!(read_all(leader, other), whole);
    assert_eq!(leader.mended(), 2);
}

/// Has a disk lose what is from here to there: no frame in it says where it ends.
fn lose(copy: &Copy, from: Lsn, to: Lsn) {
    for position in (from.0..to.0).step_by(8) {
        corrupt(copy, Lsn(position));
    }
}

/// Has the other copy give all that is known to be damaged. Returns how often it was asked.
fn mend_all(copy: &Replica, helper: &Replica) -> usize {
    let mut asked = 0;
    while let [piece, ..] = copy.damaged(9)[..] {
        let stretch = helper.stretch(piece).unwrap().expect("the other copy has it");
        copy.mend(piece, &stretch).unwrap();
        asked += 1;
    }
    asked
}

#[test]
fn many_entries_that_the_disk_has_lost_are_asked_for_at_once() {
    let two = Two::new(&[40; 200]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let whole = read_all(leader, other);
    let lost = &whole[20..180];
    let segments: std::collections::BTreeSet<PathBuf> =
        lost.iter().map(|entry| place(&two.leader, entry.start()).0).collect();
    for entry in lost {
        lose(&two.leader, entry.start(), entry.end());
    }
    assert!(leader.read(whole[20].id.index, whole[20].id.index + 1, u64::MAX).is_err());
    // Segments end where their last frame says.
    assert_eq!(mend_all(leader, other), segments.len());
    assert_eq!(leader.mended(), 2 * lost.len() as u64);
    assert_eq!(read_all(leader, other), whole);
    assert_eq!(leader.mended(), 2 * lost.len() as u64, "nothing was left");
}

#[test]
fn damage_behind_what_was_written_again_is_asked_for_before_it_is_read() {
    let two = Two::new(&[40; 200]);
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let whole = read_all(leader, other);
    for number in [20, 90, 91, 199] {
        corrupt(&two.leader, whole[number].start().plus(60));
        corrupt(&two.other, whole[number + 1].start());
    }
    let index = whole[20].id.index;
    assert!(leader.read(index, index + 1, u64::MAX).is_err());
    let mut mended = Vec::new();
    while let [piece] = leader.damaged(9)[..] {
        let stretch = other.stretch(piece).unwrap().expect("the other copy has it");
        leader.mend(piece, &stretch).unwrap();
        mended.push(piece);
        if mended.len() == 2 {
            // The other copy has this one again.
            corrupt(&two.other, whole[91].start());
        }
    }
    let frames = [20, 90, 91, 199].map(|number| Piece::Frame(whole[number].start()));
    assert_eq!(mended, frames);
    assert_eq!(leader.read(index, u64::MAX, u64::MAX).unwrap(), whole[20..]);
}

#[test]
fn a_copy_that_has_not_come_so_far_says_that_it_has_no_such_piece() {
    let two = Two::new(&[100]);
    let behind = Copy::new("behind", 8);
    assert_eq!(behind.replica().stretch(two.record(0)).unwrap(), None);
}

#[test]
fn what_was_written_again_is_there_after_the_power_was_lost() {
    let mut two = Two::new(&[100, 100]);
    let position = two.position(0);
    corrupt(&two.leader, position.plus(HEAD as u64));
    drop(two.body(0));
    let whole = two.other.replica().stretch(Piece::Record(position)).unwrap().unwrap();
    two.leader.replica().mend(Piece::Record(position), &whole).unwrap();
    two.leader.committed = two.leader.entries.len();
    drop(two.store);
    two.leader.crash(true);
    assert_eq!(two.leader.replica().stretch(Piece::Record(position)).unwrap(), Some(whole));
}

#[test]
fn a_record_that_no_copy_has_is_lost_and_others_are_not() {
    let two = Two::new(&[100, 100]);
    let leader = two.leader.replica();
    for number in 0..2 {
        corrupt(&two.leader, two.position(number).plus(20));
        assert!(matches!(two.body(number), Err(StoreError::Unread(_))));
    }
    corrupt(&two.other, two.position(0).plus(30));
    assert_eq!(two.other.replica().stretch(two.record(0)).unwrap(), None);
    leader.give_up(two.record(0));
    assert!(matches!(two.body(0), Err(StoreError::Lost(_))));
    assert!(matches!(two.body(1), Err(StoreError::Unread(_))));
    assert_eq!(leader.damaged(9), [two.record(1)]);
}

#[test]
fn what_can_be_read_again_is_asked_for_no_more_and_never_given_up() {
    let two = Two::new(&[100]);
    let (leader, position) = (two.leader.replica(), two.position(0));
    corrupt(&two.leader, position);
    assert!(two.body(0).is_err());
    corrupt(&two.leader, position);
    leader.give_up(Piece::Record(position));
    assert_eq!(two.body(0).unwrap(), two.messages[0].1);
    assert!(leader.damaged(9).is_empty());
}

#[test]
fn those_that_no_copy_has_now_do_not_keep_others_waiting() {
    let two = Two::new(&[100, 100, 100]);
    for number in 0..3 {
        corrupt(&two.leader, two.position(number));
        assert!(two.body(number).is_err());
    }
    let asked = |most| two.leader.replica().damaged(most);
    assert_eq!(asked(2), [two.record(0), two.record(1)]);
    assert_eq!(asked(2), [two.record(2), two.record(0)]);
    assert_eq!(asked(9), [two.record(1), two.record(2), two.record(0)]);
}

#[test]
fn nothing_else_is_written_in_the_place_of_a_record() {
    let two = Two::new(&[100, 100]);
    let (leader, first, second) = (two.leader.replica(), two.record(0), two.record(1));
    let whole = leader.stretch(first).unwrap().unwrap();
    let bad = |record: &[u8]| matches!(leader.mend(first, record), Err(MendError::Bad(_)));
    let other = leader.stretch(second).unwrap().unwrap();
    let (other, own) = (&other[own(second, &other)], own(first, &whole));
    assert!(bad(&[&whole[..own.start], other].concat()), "of another position");
    for len in [0, own.start, own.start + HEAD - 1, own.start + HEAD, own.end - 1] {
        assert!(bad(&whole[..len]), "{len} bytes of it");
    }
    for offset in own {
        let mut harmed = whole.clone();
        harmed[offset] ^= 1;
        assert!(bad(&harmed), "harmed at {offset}");
    }
    assert_eq!(two.body(0).unwrap(), two.messages[0].1);
}

#[test]
fn what_is_not_committed_is_neither_given_nor_written() {
    let mut two = Two::new(&[100]);
    let position: Lsn = publish(&two.store, b"not committed").position().unwrap().into();
    let index = two.leader.last().index + 1;
    let entry = two.leader.replica().place(EntryId { term: 1, index }).unwrap().unwrap();
    two.leader.push(entry.clone());
    two.leader.flush();
    two.other.replica().append(std::slice::from_ref(&entry)).unwrap();
    two.other.push(entry);
    two.other.flush();
    let (leader, other) = (two.leader.replica(), two.other.replica());
    assert!(matches!(other.stretch(Piece::Record(position)), Err(MendError::Uncommitted(_))));
    leader.commit(index).unwrap();
    let whole = leader.stretch(Piece::Record(position)).unwrap().unwrap();
    assert!(matches!(other.mend(Piece::Record(position), &whole), Err(MendError::Uncommitted(_))));
    other.commit(index).unwrap();
    other.mend(Piece::Record(position), &whole).unwrap();
}
