//! Copies whose last checkpoint the disk damages while they are in use.

use crate::{
    bootstrap::{chunks, install},
    copy::{Copy, DIR, open},
    entries::leading,
    mend::corrupt,
};
use courser_journal::{
    Lsn,
    replica::{BootstrapError, Entry, Piece, Replica, Vote},
    testing::FakeDisk,
};
use std::path::{Path, PathBuf};

/// The entries that the last two checkpoints stand for.
const BEFORE: usize = 20;
const LAST: usize = 40;

/// A copy with two checkpoints, each of so many bytes of its own.
fn with_checkpoints(data_bytes: usize) -> Copy {
    let record = vec![9; 700];
    let mut copy = leading(&vec![record.as_slice(); 60]);
    copy.flush();
    copy.replica().commit(50).unwrap();
    copy.replica().follow();
    for index in [10, BEFORE, LAST] {
        let data = vec![index as u8; data_bytes];
        let start = copy.entries[index - 1].end();
        let mut write = |out: &mut dyn std::io::Write| out.write_all(&data);
        copy.replica().checkpoint(start, &mut || true, &mut |_| {}, &mut write).unwrap();
    }
    (copy.base, copy.committed) = (LAST as u64, 50);
    copy
}

fn last_checkpoint(disk: &FakeDisk) -> PathBuf {
    let is_one = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "checkpoint");
    disk.names().into_iter().filter(is_one).max().unwrap()
}

/// Where the last checkpoint's file can be damaged, each part of it.
fn offsets(disk: &FakeDisk) -> Vec<usize> {
    let bytes = disk.contents(&last_checkpoint(disk)).unwrap().len();
    vec![9, 30, 41, 60, bytes / 2, bytes - 60, bytes - 10]
}

fn kept(replica: &Replica) -> (u8, Vec<Entry>) {
    let checkpoint = replica.checkpointed().unwrap();
    let (index, mut entries) = (checkpoint.data[0], Vec::new());
    assert_eq!(checkpoint.last().index, u64::from(index));
    let mut take = |entry: &Entry| {
        entries.push(entry.clone());
        true
    };
    replica.read_kept(&checkpoint, &mut take).unwrap();
    let mut next = checkpoint.last().index + 1 + entries.len() as u64;
    while next <= replica.last().index {
        entries.extend(replica.read(next, u64::MAX, 5000).unwrap());
        next = entries.last().unwrap().id.index + 1;
    }
    (index, entries)
}

#[test]
fn the_checkpoint_before_and_the_log_behind_it_stand_for_a_damaged_one() {
    let mut copy = with_checkpoints(5000);
    for after_a_start in [false, true] {
        assert_eq!(kept(copy.replica()), (LAST as u8, copy.entries[LAST..].to_vec()));
        for offset in offsets(&copy.disk) {
            copy.disk.corrupt(&last_checkpoint(&copy.disk), offset, 4);
            assert_eq!(
                kept(copy.replica()),
                (BEFORE as u8, copy.entries[BEFORE..].to_vec()),
                "at {offset}, after a start: {after_a_start}"
            );
            copy.disk.corrupt(&last_checkpoint(&copy.disk), offset, 4);
        }
        copy.crash(true);
        assert_eq!(copy.replica().first().index, LAST as u64, "that is where its entries begin");
    }
}

#[test]
fn damage_between_the_two_checkpoints_is_asked_for_where_it_is_needed() {
    let mut copy = with_checkpoints(100);
    copy.crash(true);
    copy.disk.corrupt(&last_checkpoint(&copy.disk), 60, 4);
    let needed = &copy.entries[LAST - 3];
    corrupt(&copy, needed.start().plus(200));
    let checkpoint = copy.replica().checkpointed().unwrap();
    copy.replica().read_kept(&checkpoint, &mut |_| true).unwrap_err();
    let damaged = [Piece::Frame(needed.start())];
    assert_eq!(copy.replica().damaged(9), damaged);
    // No other copy keeps it any more.
    copy.replica().is_freed_elsewhere(damaged[0]);
    assert!(copy.replica().needs_copy());
    copy.disk.corrupt(&last_checkpoint(&copy.disk), 60, 4);
    copy.replica().checkpointed().unwrap();
    assert!(!copy.replica().needs_copy(), "the last checkpoint is past it");
}

#[test]
fn a_copy_is_sent_with_the_checkpoint_before_when_the_last_one_is_damaged() {
    for after_a_start in [false, true] {
        let mut copy = with_checkpoints(200_000);
        if after_a_start {
            copy.crash(true);
        }
        for offset in offsets(&copy.disk) {
            copy.disk.corrupt(&last_checkpoint(&copy.disk), offset, 4);
            // What is found on the way ends the copy; the next one is another.
            let mut bootstrap = copy.replica().bootstrap().unwrap();
            let ended =
                std::iter::from_fn(|| bootstrap.next_chunk(3000).transpose()).find_map(Result::err);
            assert!(matches!(ended, None | Some(BootstrapError::Open(_))), "{ended:?}");
            drop(bootstrap);
            let disk = FakeDisk::new(5);
            install(&disk, &Vote::default(), &chunks(&copy).1).unwrap();
            let other = open(&disk).unwrap();
            let whole = (BEFORE as u8, copy.entries[BEFORE..50].to_vec());
            assert_eq!(kept(&other), whole, "at {offset}, after a start: {after_a_start}");
            copy.disk.corrupt(&last_checkpoint(&copy.disk), offset, 4);
        }
    }
}

#[test]
fn entries_between_the_checkpoints_are_checked_before_they_are_sent() {
    let mut copy = with_checkpoints(100);
    copy.crash(true);
    copy.disk.corrupt(&last_checkpoint(&copy.disk), 9, 4);
    let needed = copy.entries[LAST - 3].start();
    corrupt(&copy, Lsn(needed.0 + 200));
    let mut bootstrap = copy.replica().bootstrap().unwrap();
    let ended = std::iter::from_fn(|| bootstrap.next_chunk(3000).transpose()).find_map(Result::err);
    assert!(matches!(ended, Some(BootstrapError::Read(_))), "{ended:?}");
    assert_eq!(copy.replica().damaged(9), [Piece::Frame(needed)]);
    assert!(last_checkpoint(&copy.disk).starts_with(Path::new(DIR)));
}
