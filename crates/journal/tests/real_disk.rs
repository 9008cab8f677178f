//! The journal on the disk of this machine, with its threads.

use courser_journal::{
    AppendMode, Batch, Journal, Lsn, OpenError, Options, ReadCache, RealDisk, Recovery, Replayed,
};
use courser_store::{InPlace, Waiter};
use std::{
    fs,
    io::Read,
    path::Path,
    sync::{Arc, mpsc},
    thread,
};

const SYNC: AppendMode = AppendMode { sync: true, reserve: false };
const LAZY: AppendMode = AppendMode { sync: false, reserve: false };

fn small() -> Options {
    Options { segment_bytes: 256 << 10, checkpoint_after_bytes: 512 << 10, ..Options::default() }
}

fn open(dir: &Path) -> Recovery {
    Journal::open(dir, small(), Arc::new(RealDisk)).unwrap()
}

/// All records with their positions.
fn replay(recovery: &Recovery) -> (Vec<(Lsn, Vec<u8>)>, Replayed) {
    let mut records = Vec::new();
    let replayed = recovery
        .replay(
            &mut |record| {
                records.push((record.position, record.bytes.to_vec()));
                Ok::<_, String>(())
            },
            &mut |_| {},
        )
        .unwrap();
    (records, replayed)
}

fn record(number: usize) -> Vec<u8> {
    let len = [0, 1, 7, 8, 9, 100, 1000, 5000, 70_000][number % 9];
    (0..len).map(|index| (number * 31 + index) as u8).collect()
}

#[test]
fn what_was_appended_is_read_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    let (mut batch, mut cache) = (Batch::new(), ReadCache::default());
    let mut expected = Vec::new();
    for round in 0..200 {
        let count = 1 + round % 4;
        for index in 0..count {
            let bytes = record(round * 4 + index);
            let (head, tail) = bytes.split_at(bytes.len() / 3);
            assert_eq!(batch.push(&[head, tail]), index);
        }
        let mode = if round % 3 == 0 { SYNC } else { LAZY };
        let appended = journal.append(&mut batch, mode).unwrap();
        for index in 0..count {
            expected.push((appended.position(index), record(round * 4 + index)));
        }
        let (position, bytes) = &expected[round * 7 % expected.len()];
        assert_eq!(journal.read(*position, &mut cache).unwrap(), bytes, "round {round}");
        let (position, bytes) = expected.last().unwrap();
        assert_eq!(journal.read(*position, &mut cache).unwrap(), bytes, "round {round}");
    }
    journal.close().unwrap();
    assert_eq!(journal.durable(), journal.end());
    for (position, bytes) in &expected {
        assert_eq!(journal.read(*position, &mut cache).unwrap(), bytes);
    }
    drop(journal);

    let recovery = open(dir.path());
    let (records, replayed) = replay(&recovery);
    assert_eq!(records, expected);
    assert!(replayed.clean && !replayed.torn);
    let journal = recovery.start().unwrap();
    batch.push(&[b"more"]);
    let more = journal.append(&mut batch, SYNC).unwrap();
    let (position, end) = (more.position(0), more.end());
    journal.wait_durable(end).unwrap();
    assert_eq!(journal.read(position, &mut cache).unwrap(), b"more");
}

#[test]
fn many_threads_append_and_wait() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                let mut batch = Batch::new();
                for round in 0..50 {
                    batch.push(&[&[thread; 100], &[round; 900]]);
                    let end = journal.append(&mut batch, SYNC).unwrap().end();
                    journal.wait_durable(end).unwrap();
                    assert!(journal.durable() >= end);
                }
            });
        }
    });
    journal.close().unwrap();
    drop(journal);
    let (records, _) = replay(&open(dir.path()));
    for thread in 0..4 {
        let own: Vec<_> = records.iter().filter(|(_, r)| r[0] == thread).collect();
        assert!(own.iter().enumerate().all(|(i, (_, r))| r[100] == i as u8));
        assert_eq!(own.len(), 50);
    }
}

#[test]
fn a_second_opener_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path());
    let second = Journal::open(dir.path(), small(), Arc::new(RealDisk));
    assert!(matches!(second, Err(OpenError::Locked(_))));
}

#[test]
fn a_checkpoint_frees_segments_that_nothing_holds() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    let mut batch = Batch::new();
    let mut kept = None;
    for round in 0..100u8 {
        batch.push(&[&[round; 40_000]]);
        let position = journal.append(&mut batch, SYNC).unwrap().position(0);
        journal.hold(position, 1);
        match round {
            20 => kept = Some(position),
            _ => journal.release(&[position.into()]),
        }
    }
    let kept = kept.unwrap();
    let before = journal.usage();
    assert!(before.segments > 10 && journal.wants_checkpoint());
    // What neither of two checkpoints needs is freed.
    for _ in 0..2 {
        let write = &mut |out: &mut dyn std::io::Write| out.write_all(&[7; 100_000]);
        let done =
            journal.checkpoint(&mut || journal.end(), &mut |live| live(kept), write).unwrap();
        assert!(done.size_bytes > 100_000);
    }
    assert!(!journal.wants_checkpoint());
    let mut cache = ReadCache::default();
    assert_eq!(journal.read(kept, &mut cache).unwrap(), [20; 40_000]);
    for round in 0..100u8 {
        batch.push(&[&[round; 40_000]]);
        journal.append(&mut batch, SYNC).unwrap();
    }
    journal.close().unwrap();
    drop(journal);

    let recovery = open(dir.path());
    let mut data = Vec::new();
    recovery.checkpoint().unwrap().unwrap().read_to_end(&mut data).unwrap();
    assert_eq!(data, [7; 100_000]);
    recovery.hold(kept, 1);
    let (records, _) = replay(&recovery);
    assert_eq!(records.len(), 100);
    let journal = recovery.start().unwrap();
    assert_eq!(journal.read(kept, &mut cache).unwrap(), [20; 40_000]);
    let files = fs::read_dir(dir.path()).unwrap().count();
    assert!(files < 40, "{files} files");
}

#[test]
fn a_batch_larger_than_a_segment_gets_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    let mut batch = Batch::new();
    let mut positions = Vec::new();
    for (fill, len) in [(1, 10), (2, 3 << 20), (3, 10), (4, 300_000), (5, 5)] {
        batch.push(&[&vec![fill; len]]);
        let appended = journal.append(&mut batch, LAZY).unwrap();
        positions.push((appended.position(0), vec![fill; len]));
    }
    let mut cache = ReadCache::default();
    for (position, bytes) in &positions {
        assert!(journal.read(*position, &mut cache).unwrap() == bytes);
    }
    journal.close().unwrap();
    drop(journal);
    let (records, _) = replay(&open(dir.path()));
    assert!(records == positions);
}

/// Says whether it was run in place or woken.
struct Tells(mpsc::Sender<bool>);

impl InPlace for Tells {
    fn run(&self) -> bool {
        self.0.send(true).unwrap();
        true
    }

    fn wake(&self) {
        self.0.send(false).unwrap();
    }
}

#[test]
fn a_few_who_wait_may_use_the_log_thread_and_many_may_not() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    let mut batch = Batch::new();
    for (waiting, may) in [(1, true), (2, true), (3, false), (20, false), (1, true)] {
        let (sender, answers) = mpsc::channel();
        let waiter = Waiter::InPlace(Arc::new(Tells(sender)));
        let next = Lsn(journal.end().0 + 1);
        for _ in 0..waiting {
            journal.when_durable(next, waiter.clone());
        }
        batch.push(&[b"what they wait for"]);
        journal.append(&mut batch, SYNC).unwrap();
        let told: Vec<bool> = answers.iter().take(waiting).collect();
        if waiting < 16 {
            assert_eq!(told, vec![may; waiting]);
        }
        // Of many, those of the last lot may be few.
        assert!(waiting < 16 || !told[0]);
    }
}
