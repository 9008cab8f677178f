//! Every operation of a copy's disk fails once, while a tail is cut, votes are saved and a checkpoint is made; while a copy is sent
//! and taken in, a journal becomes one, and a damaged record is written again.

use crate::{
    adopting::{self, adopt, alone, begin, check_copy, finish},
    bootstrap::{chunks, install, sender},
    copy::{DIR, open},
    mend::{Two, corrupt},
    pair::{Pair, Step},
};
use courser_journal::{
    replica::{BootstrapError, ReplicaError, Vote, is_copy},
    testing::{FailsOnce, FakeDisk, Faults},
};
use std::path::Path;

const BAD_SECTOR: i32 = 5;
const NO_ROOM: i32 = 28;

/// What fails, given when.
type Failing = fn(FailsOnce) -> Faults;

/// Every operation fails as on a bad sector. Those that write fail as on a full disk, too.
const FAULTS: [(i32, Failing); 3] = [
    (BAD_SECTOR, |one| Faults { fail_change: Some(one), ..Faults::default() }),
    (NO_ROOM, |one| Faults { fail_change: Some(one), ..Faults::default() }),
    (BAD_SECTOR, |one| Faults { fail_look: Some(one), ..Faults::default() }),
];

/// Has each operation fail once: `run` gets what is to fail, says when to begin with it, and returns whether something has failed.
fn each_operation_fails(run: impl Fn(i32, u64, &dyn Fn(&FakeDisk)) -> bool) {
    let mut failed = 0;
    for (os_error, faults) in FAULTS {
        for after in 0.. {
            assert!(after < 2000, "it does not come to an end");
            let begin = |disk: &FakeDisk| disk.set_faults(faults(FailsOnce { after, os_error }));
            if !run(os_error, after, &begin) {
                break;
            }
            failed += 1;
        }
    }
    assert!(failed > 5, "hardly anything is done");
}

/// Nothing fails any more. Returns whether something has.
fn end(disk: &FakeDisk) -> bool {
    let has_failed = !disk.has_fault_left();
    disk.set_faults(Faults::default());
    has_failed
}

/// One copy with a tail that the other one, which leads now, contradicts.
fn contradicted() -> Pair {
    let mut pair = Pair::new(3);
    let append = |len| Step::Append { lens: vec![len; 2], fill: 7 };
    for step in [
        Step::Lead(0),
        append(300),
        Step::Place,
        Step::Replicate(5),
        Step::Flush(0),
        Step::Flush(1),
        Step::Commit(0),
        append(5000),
        Step::Place,
        append(5000),
        Step::Place,
        Step::Flush(0),
        Step::Lead(1),
        append(9000),
        Step::Place,
        append(100),
        Step::Place,
        Step::Flush(1),
    ] {
        pair.run(step);
    }
    assert!(pair.copies[0].last().term < pair.copies[1].last().term);
    pair
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_tail_is_cut() {
    for kind in 0..3 {
        for after in 0.. {
            assert!(after < 500, "it does not come to an end");
            let mut pair = contradicted();
            for step in [
                Step::Fault { who: 0, after, kind },
                Step::Replicate(2),
                Step::Vote(0),
                Step::Flush(0),
                Step::Lead(1),
                Step::Replicate(9),
                Step::Vote(0),
                Step::Flush(0),
                Step::Flush(1),
                Step::Commit(0),
                Step::Checkpoint { who: 0, back: 0 },
                Step::Checkpoint { who: 0, back: 0 },
                Step::Maintain(0),
            ] {
                pair.run(step);
            }
            let is_untouched = pair.copies[0].crashes == 0;
            pair.copies[0].crash(true);
            if is_untouched {
                assert_eq!(pair.copies[0].last(), pair.copies[1].last(), "nothing went wrong");
                break;
            }
        }
    }
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_copy_is_installed() {
    let (_, chunks) = chunks(&sender());
    let vote = Vote { term: 4, voted_for: 1, ..Vote::default() };
    for (is_over_another, loses_power) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        each_operation_fails(|os_error, after, begin| {
            let disk = FakeDisk::new(after);
            if is_over_another {
                install(&disk, &vote, &chunks).unwrap();
                disk.kill();
            }
            begin(&disk);
            let installed = install(&disk, &vote, &chunks);
            let has_failed = end(&disk);
            match loses_power {
                true => disk.lose_power(),
                false => disk.kill(),
            }
            let at = format!("operation {after}, error {os_error}: {installed:?}");
            if os_error == NO_ROOM
                && let Err(error) = &installed
            {
                assert!(error.lacks_room(), "{at}");
            }
            match open(&disk) {
                Ok(copy) => {
                    assert_eq!((copy.last().index, copy.vote()), (50, vote.clone()), "{at}")
                }
                Err(ReplicaError::HalfInstalled { vote: kept, .. }) => {
                    assert!(installed.is_err() && kept == vote, "{at}: {kept:?}");
                }
                Err(ReplicaError::Missing(_)) => {
                    assert!(installed.is_err() && !is_over_another, "{at}");
                }
                Err(error) => panic!("{at}: {error}"),
            }
            install(&disk, &vote, &chunks).unwrap();
            assert_eq!(open(&disk).unwrap().last().index, 50, "{at}");
            has_failed
        });
    }
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_copy_is_sent() {
    each_operation_fails(|os_error, after, begin| {
        let sender = sender();
        begin(&sender.disk);
        let sent = send(&sender);
        let has_failed = end(&sender.disk);
        let at = format!("operation {after}, error {os_error}");
        assert!(sender.replica().failed().is_none(), "{at}: it has written nothing that counts");
        assert!(sent.is_ok() || has_failed, "{at}: {:?}", sent.err());
        // Where the last checkpoint could not be read, the one before is sent, with more behind it.
        for chunks in sent.into_iter().chain([chunks(&sender).1]) {
            let disk = FakeDisk::new(after);
            install(&disk, &Vote::default(), &chunks).unwrap();
            let copy = open(&disk).unwrap();
            assert_eq!(copy.last().index, 50, "{at}");
            let from = copy.first().index;
            let read = copy.read(from + 1, 51, u64::MAX).unwrap();
            assert_eq!(read, sender.entries[from as usize..50], "{at}");
        }
        has_failed
    });
}

fn send(sender: &crate::copy::Copy) -> Result<Vec<bytes::Bytes>, BootstrapError> {
    let mut bootstrap = sender.replica().bootstrap()?;
    let next = || bootstrap.next_chunk(3000).transpose();
    std::iter::from_fn(next).map(|chunk| chunk.map(|chunk| chunk.encode())).collect()
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_journal_becomes_a_copy() {
    each_operation_fails(|os_error, after, begin_fault| {
        let (disk, mut records) = alone(after, 24);
        disk.kill();
        let (journal, live) = begin(&disk).unwrap();
        begin_fault(&disk);
        let adopted = finish(&journal, &live);
        let has_failed = end(&disk);
        drop(journal);
        disk.kill();
        let at = format!("operation {after}, error {os_error}: {adopted:?}");
        if !is_copy(&disk, Path::new(DIR)).unwrap() {
            let error = adopted.as_ref().expect_err(&at);
            assert_eq!(error.lacks_room(), os_error == NO_ROOM, "{at}");
            let (journal, found) = begin(&disk).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(found, records, "{at}");
            adopting::append(&journal, &mut records, b"one more");
            drop(journal);
            adopt(&disk).unwrap();
        }
        check_copy(&disk, &records);
        has_failed
    });
}

#[test]
fn each_operation_of_the_disk_may_fail_while_a_record_is_mended() {
    each_operation_fails(|os_error, after, begin| {
        let two = Two::new(&[100, 5000, 100]);
        let (leader, piece) = (two.leader.replica(), two.record(1));
        let whole = two.other.replica().stretch(piece).unwrap().unwrap();
        corrupt(&two.leader, two.position(1).plus(2000));
        assert!(two.body(1).is_err());
        begin(&two.leader.disk);
        let mended = leader.mend(piece, &whole);
        let has_failed = end(&two.leader.disk);
        let at = format!("operation {after}, error {os_error}: {mended:?}");
        assert!(leader.failed().is_none(), "{at}");
        if mended.is_err() {
            assert!(has_failed && leader.wants_pieces(), "{at}");
            leader.mend(piece, &whole).unwrap_or_else(|error| panic!("{at}, and again: {error}"));
        }
        for number in 0..3 {
            assert_eq!(two.body(number).unwrap(), two.messages[number].1, "{at}");
        }
        assert!(!leader.wants_pieces(), "{at}");
        two.leader.disk.lose_power();
        has_failed
    });
}
