//! Entries that are read on a thread of their own.

use crate::copy::{DIR, IDENTITY, options};
use courser_journal::{
    AppendMode, Batch, Failure, Journal, Options,
    replica::{Entry, EntryId, EntryKind, Events, Identity, Replica, Vote},
    testing::FakeDisk,
};
use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often entries were read.
#[derive(Default)]
struct Told {
    fetched: Mutex<u64>,
    changed: Condvar,
}

impl Told {
    fn wait(&self, times: u64) {
        let fetched = self.fetched.lock().unwrap();
        let waited = self.changed.wait_timeout_while(fetched, PATIENCE, |told| *told < times);
        assert_eq!(*waited.unwrap().0, times);
    }
}

impl Events for Told {
    fn synced(&self, _ticket: u64) {}
    fn gathered(&self) {}
    fn proof_wanted(&self) {}
    fn room(&self) {}
    fn fetched(&self) {
        *self.fetched.lock().unwrap() += 1;
        self.changed.notify_all();
    }
    fn failed(&self, _failure: &Failure) {}
    fn overrun(&self) {}
}

/// A leader whose journal has its threads, with its entries on the disk.
struct Leading {
    disk: FakeDisk,
    told: Arc<Told>,
    replica: Replica,
    lead: Journal,
    entries: Vec<Entry>,
}

impl Leading {
    fn with_entries(count: u64) -> Self {
        let disk = FakeDisk::new(4);
        let identity = Identity { segment_bytes: 1 << 20, ..IDENTITY };
        Replica::create(Path::new(DIR), identity, &disk).unwrap();
        let (told, options) = (Arc::<Told>::default(), Options { threads: true, ..options() });
        let events = Arc::clone(&told) as Arc<dyn Events>;
        let replica =
            Replica::open(Path::new(DIR), options, Arc::new(disk.clone()), events).unwrap();
        let first = replica.place_note(EntryId { term: 1, index: 1 }, EntryKind::Start, &[]);
        let lead = replica.lead(1);
        let mut leading = Leading { disk, told, replica, lead, entries: vec![first.unwrap()] };
        (1..count).for_each(|_| leading.place());
        leading.replica.save_vote(&Vote::default()).unwrap();
        leading
    }

    fn place(&mut self) {
        let mut batch = Batch::new();
        batch.push(&[&[7; 1000]]);
        self.lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        let id = EntryId { term: 1, index: self.entries.len() as u64 + 1 };
        self.entries.push(self.replica.place(id).unwrap().unwrap());
    }

    fn fetch(&self, from: u64, to: u64, max_bytes: u64) -> Option<Vec<Entry>> {
        self.replica.fetch(from, to, max_bytes).unwrap()
    }
}

fn first_segment() -> std::path::PathBuf {
    Path::new(DIR).join("0000000000000000.log")
}

#[test]
fn who_fetches_what_is_on_the_disk_does_not_wait_and_gets_what_is_not_at_once() {
    let mut leading = Leading::with_entries(20);
    let reads = leading.disk.hold_reads(&first_segment()).expect("it is there");
    assert_eq!(leading.fetch(3, 21, 1), None);
    assert!(reads.wait_until_reached());
    assert_eq!(leading.fetch(3, 21, 1), None);
    assert_eq!(leading.fetch(15, 21, 1), None);

    let syncs = leading.disk.hold_syncs();
    let begun = Instant::now();
    // The log thread is not always where it writes nothing more.
    let last = loop {
        assert!(begun.elapsed() < PATIENCE, "nothing waits to be written");
        leading.place();
        sleep(Duration::from_millis(1));
        let last = leading.entries.len() as u64;
        if let Some(last) = leading.fetch(last, last + 1, 1) {
            break last;
        }
    };
    assert_eq!(last, leading.entries[leading.entries.len() - 1..]);
    assert!(syncs.let_go());
    assert!(reads.let_go(), "who asks has waited");
}

#[test]
fn what_was_read_is_taken_in_order_and_as_much_of_it_as_is_wanted() {
    let leading = Leading::with_entries(20);
    let len = leading.entries[3].frame.len() as u64;
    assert_eq!(leading.fetch(3, 21, 1), None);
    leading.told.wait(1);
    let taken = |from: usize, to: usize| Some(leading.entries[from - 1..to - 1].to_vec());
    assert_eq!(leading.fetch(3, 21, 1), taken(3, 4));
    assert_eq!(leading.fetch(4, 21, 2 * len), taken(4, 6));
    assert_eq!(leading.fetch(6, 10, u64::MAX), taken(6, 10));
    assert_eq!(leading.fetch(10, 30, u64::MAX), taken(10, 21));
    assert_eq!(leading.fetch(3, 21, 1), None, "it is kept, though it was taken");
    leading.told.wait(2);
    assert_eq!(leading.fetch(21, 22, 1), None);
    leading.told.wait(3);
    leading.replica.fetch(21, 22, 1).expect_err("there is none");
}

#[test]
fn what_was_read_for_a_follower_is_there_when_another_one_asks_for_the_end_of_it() {
    let leading = Leading::with_entries(20);
    let taken = |from: usize, to: usize| Some(leading.entries[from - 1..to - 1].to_vec());
    assert_eq!(leading.fetch(3, 21, u64::MAX), None);
    leading.told.wait(1);
    assert!(leading.fetch(10, 21, u64::MAX).is_none(), "it was read for the other one");
    leading.told.wait(2);
    assert_eq!(leading.fetch(3, 21, u64::MAX), taken(3, 21));
    assert_eq!(leading.fetch(10, 21, u64::MAX), taken(10, 21));
}

#[test]
fn what_was_read_is_not_kept_for_ever() {
    let leading = Leading::with_entries(20);
    assert_eq!(leading.fetch(3, 21, 1), None);
    leading.told.wait(1);
    for index in 3..10 {
        (0..20).for_each(|_| leading.replica.tick());
        assert!(leading.fetch(index, 21, 1).is_some(), "it is gone, though it is asked for");
    }
    (0..21).for_each(|_| leading.replica.tick());
    assert_eq!(leading.fetch(10, 21, 1), None);
    leading.told.wait(2);
}

#[test]
fn what_was_read_before_a_cut_is_forgotten() {
    let leading = Leading::with_entries(20);
    assert_eq!(leading.fetch(3, 21, 1), None);
    leading.told.wait(1);
    leading.replica.follow();
    let reads = leading.disk.hold_reads(&first_segment()).expect("it is there");
    assert_eq!(leading.fetch(4, 21, 1).map(|_| ()), None, "a lead has ended");
    assert!(reads.wait_until_reached());
    leading.replica.cut(2).unwrap();
    let id = |index| EntryId { term: 2, index };
    let other = [3, 4].map(|index| leading.replica.place_note(id(index), EntryKind::Start, &[]));
    let other = other.map(|placed| placed.unwrap());
    leading.replica.save_vote(&Vote::default()).unwrap();
    assert!(reads.let_go());
    assert_eq!(leading.fetch(4, 5, 1), None);
    leading.told.wait(2);
    assert_eq!(leading.fetch(4, 5, 1), Some(other[1..].to_vec()));
    assert_eq!(leading.fetch(3, 5, 1), None);
    leading.told.wait(3);
    assert_eq!(leading.fetch(3, 5, u64::MAX), Some(other.to_vec()));
}

#[test]
fn what_can_not_be_read_any_more_after_a_cut_is_no_damage() {
    let leading = Leading::with_entries(20);
    let replica = &leading.replica;
    replica.follow();
    let reads = leading.disk.hold_reads(&first_segment()).expect("it is there");
    assert_eq!(leading.fetch(4, 21, 1), None);
    assert!(reads.wait_until_reached());
    replica.cut(2).unwrap();
    let id = |index| EntryId { term: 2, index };
    replica.place_note(id(3), EntryKind::Start, &[]).unwrap();
    let mut batch = Batch::new();
    batch.push(&[&[7; 5000]]);
    let mode = AppendMode { sync: true, reserve: false };
    replica.lead(2).append(&mut batch, mode).unwrap();
    let other = replica.place(id(4)).unwrap().unwrap();
    replica.save_vote(&Vote::default()).unwrap();
    replica.commit(4).unwrap();
    let read_at = leading.entries[2].end();
    let after_head = other.start().plus(100);
    assert!(after_head < read_at && read_at < other.end() && other.end() <= replica.durable());

    assert!(reads.let_go());
    assert_eq!(leading.fetch(4, 5, 1), None);
    leading.told.wait(1);
    assert_eq!(leading.fetch(4, 5, 1), Some(vec![other]));
    assert!(!replica.wants_pieces(), "{:?}", replica.damaged(9));
}

/// More entries than are known one by one when they are committed.
const MANY: u64 = 5000;

#[test]
fn a_commit_and_a_cut_far_behind_the_end_wait_for_no_disk() {
    let disk = FakeDisk::new(4);
    let identity = Identity { segment_bytes: 4 << 20, ..IDENTITY };
    Replica::create(Path::new(DIR), identity, &disk).unwrap();
    let replica =
        Replica::open(Path::new(DIR), options(), Arc::new(disk.clone()), Arc::new(())).unwrap();
    let mut ends = Vec::new();
    for index in 1..=MANY {
        let placed = replica.place_note(EntryId { term: 1, index }, EntryKind::Start, &[]);
        ends.push(placed.unwrap().end());
        replica.flush_once();
    }
    let reads = disk.hold_reads(&first_segment()).expect("it is there");
    replica.commit(10).unwrap();
    assert_eq!(replica.durable(), ends[9]);
    replica.cut(10).unwrap();
    assert_eq!((replica.last().index, replica.end()), (10, ends[9]));
    assert!(reads.let_go(), "it has waited for the disk");
}
