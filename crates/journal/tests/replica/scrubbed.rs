//! Damage that the scrub finds in a copy, and that another copy mends.

use crate::copy::Copy;
use crate::mend::{HEAD, Two, corrupt, own, place};
use courser_journal::replica::{MendError, Piece};
use courser_journal::testing::Faults;
use courser_journal::{Lsn, Part, Pass};

fn scrub(copy: &Copy) -> Vec<Part> {
    let (pass, found) = copy.scrub();
    assert_eq!(pass, Pass::Complete);
    found.into_iter().map(|damaged| damaged.part).collect()
}

fn piece(part: Part) -> Piece {
    match part {
        Part::Record(position) => Piece::Record(position),
        Part::Frame(position) => Piece::Frame(position),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_byte_of_a_copy_that_the_disk_changes_is_found_and_written_again() {
    let mut two = Two::new(&[10, 300, 0, 2000]);
    let end = two.leader.replica().end_of(two.leader.last().index).unwrap();
    two.leader.entries.clone().into_iter().for_each(|entry| two.other.push(entry));
    assert_eq!((scrub(&two.leader), scrub(&two.other)), (vec![], vec![]));
    let first = two.leader.entries[0].start();
    for at in (first.0..end.0).map(Lsn) {
        let (path, offset) = place(&two.other, at);
        if offset < 4096 {
            continue;
        }
        let before = two.other.disk.contents(&path).unwrap();
        corrupt(&two.other, at);
        let found = scrub(&two.other);
        // Behind the last frame of a segment nothing is written.
        if found.is_empty() {
            assert_eq!(before[offset], 0, "{at}");
            assert!(before[offset..].iter().all(|byte| *byte == 0), "{at}");
            corrupt(&two.other, at);
            continue;
        }
        for part in found {
            let piece = piece(part);
            let whole = two.leader.replica().stretch(piece).unwrap().unwrap();
            assert!(own(piece, &whole).end <= whole.len());
            two.other.replica().mend(piece, &whole).unwrap();
        }
        assert_eq!(scrub(&two.other), [], "{at}");
        two.other.check(1, two.other.entries.len() as u64 + 1);
    }
    two.other.committed = two.other.entries.len();
    two.other.crash(true);
    two.other.check(1, two.other.entries.len() as u64 + 1);
}

#[test]
fn what_a_copy_can_not_read_is_told_as_what_another_copy_has_and_written_again() {
    let two = Two::new(&[10, 5000, 300, 3200, 20]);
    let (last, last_offset) = place(&two.other, two.position(4).plus(HEAD as u64));
    two.other.disk.corrupt(&last, last_offset, 0x10);
    let page = last_offset / 4096 * 4096;
    assert!(page >= 3 * 4096, "several pages");
    for offset in (4096..page as u64).step_by(61) {
        two.other.disk.set_faults(Faults { bad_spot: offset..offset + 1, ..Faults::default() });
        let found = scrub(&two.other);
        assert!(found.len() >= 2, "the damage behind it is found too: {found:?}");
        for part in found {
            let piece = piece(part);
            let whole =
                two.leader.replica().stretch(piece).unwrap().expect("the other copy has it");
            two.other.replica().mend(piece, &whole).unwrap();
        }
        assert_eq!(scrub(&two.other), [], "{offset}: the disk has put what was written elsewhere");
        two.other.disk.corrupt(&last, last_offset, 0x10);
    }
}

#[test]
fn a_frame_that_another_copy_gives_is_written_only_in_its_place() {
    let two = Two::new(&[100, 100]);
    let frames: Vec<Piece> =
        two.leader.entries.iter().map(|one| Piece::Frame(one.start())).collect();
    let (leader, other) = (two.leader.replica(), two.other.replica());
    let whole = leader.stretch(frames[1]).unwrap().unwrap();
    let next = leader.stretch(frames[2]).unwrap().unwrap();
    let (next, own) = (&next[own(frames[2], &next)], own(frames[1], &whole));
    let moved = [&whole[..own.start], next].concat();
    assert!(matches!(other.mend(frames[1], &moved), Err(MendError::Bad(_))));
    let elsewhere = other.mend(two.record(0), &whole[own.clone()]);
    assert!(matches!(elsewhere, Err(MendError::Bad(_))));
    for len in 0..own.end {
        assert!(matches!(other.mend(frames[1], &whole[..len]), Err(MendError::Bad(_))), "{len}");
    }
    for offset in own {
        let mut harmed = whole.clone();
        harmed[offset] ^= 1;
        assert!(matches!(other.mend(frames[1], &harmed), Err(MendError::Bad(_))), "{offset}");
    }
    corrupt(&two.leader, frames[1].position().plus(5));
    assert_eq!(leader.stretch(frames[1]).unwrap(), None, "the other one can't have it from here");
    leader.want(frames[1]);
    assert_eq!(leader.damaged(9), [frames[1]]);
    leader.mend(frames[1], &whole).unwrap();
    assert!(leader.damaged(9).is_empty());
}
