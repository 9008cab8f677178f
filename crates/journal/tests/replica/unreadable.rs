//! Entries that the disk refuses to give, and another copy still has.

use crate::{
    leading::publish,
    mend::{Two, place, read_all},
};
use courser_journal::{
    replica::{Entry, EntryId, MendError, Piece},
    testing::Faults,
};
use std::path::Path;

#[test]
fn what_can_not_be_read_behind_whole_entries_is_asked_for() {
    let two = Two::new(&[1000; 40]);
    let (copy, other) = (two.leader.replica(), two.other.replica());
    let whole = read_all(copy, other);
    let last = whole.len() as u64;
    for entry in &whole {
        let (_, bad) = place(&two.leader, entry.start().plus(60));
        let bad = bad as u64;
        let faults = Faults { bad_spot: bad..bad + 1, ..Faults::default() };
        two.leader.disk.set_faults(faults);
        let mut next = 1;
        while let Ok(read) = copy.read(next, last + 1, u64::MAX) {
            assert_eq!(read, whole[next as usize - 1..][..read.len()]);
            next += read.len() as u64;
        }
        // That many are in front of it, in the first segment that is so long.
        let unread = &whole[next as usize - 1];
        let (_, from) = place(&two.leader, unread.start());
        let to = from + unread.frame.len();
        let pages = from as u64 / 4096..(to as u64).div_ceil(4096);
        assert!(pages.contains(&(bad / 4096)), "{unread:?} is whole");
        let pieces = copy.damaged(9);
        let [piece] = pieces[..] else { panic!("{pieces:?} are asked for") };
        assert!((unread.start()..unread.end()).contains(&piece.position()), "{piece:?}");
        two.leader.disk.set_faults(Faults::default());
        assert_eq!(copy.damaged(9), [], "it can be read again");
    }
}

/// Has the disk refuse a byte in each page of the segments, one page after the other. All of these are full but those of the
/// last segment, whose file is named.
fn each_bad_page(two: &Two, mut test: impl FnMut(u64, &Path)) {
    let (last, _) = place(&two.leader, two.position(two.messages.len() - 1));
    for page in 1..4 {
        let bad = page * 4096 + 1000;
        let faults = Faults { bad_spot: bad..bad + 1, ..Faults::default() };
        two.leader.disk.set_faults(faults);
        test(bad, &last);
        let (_, found) = two.leader.scrub();
        assert!(found.iter().all(|damaged| damaged.path == last), "{bad}: {found:?}");
    }
}

/// Has the other copy give what the leader has found that it can't read.
fn bring(two: &Two) {
    let pieces = two.leader.replica().damaged(9);
    let [piece] = pieces[..] else { panic!("{pieces:?} are asked for") };
    let stretch = two.other.replica().stretch(piece).unwrap().unwrap();
    two.leader.replica().mend(piece, &stretch).unwrap();
}

#[test]
fn entries_in_a_page_that_can_not_be_read_are_written_again_with_all_of_it() {
    let two = Two::new(&[1000; 40]);
    let copy = two.leader.replica();
    let whole = read_all(two.other.replica(), copy);
    each_bad_page(&two, |bad, last| {
        let in_last = |entry: &Entry| place(&two.leader, entry.start()).0 == last;
        let to = whole.iter().find(|entry| in_last(entry)).unwrap().id.index;
        let (mut next, mut brought) = (1, 0);
        while next < to {
            match copy.read(next, to, u64::MAX) {
                Ok(read) => {
                    assert_eq!(read, whole[next as usize - 1..][..read.len()], "{bad}");
                    next += read.len() as u64;
                }
                Err(_) => {
                    bring(&two);
                    brought += 1;
                }
            }
        }
        assert!(brought > 0, "{bad}");
    });
}

#[test]
fn a_message_in_a_page_that_can_not_be_read_is_written_again_with_all_of_it() {
    let bodies: Vec<usize> = (0..40).map(|number| 10 + 200 * (number % 9)).collect();
    let two = Two::new(&bodies);
    each_bad_page(&two, |bad, last| {
        let mut brought = 0;
        for (number, (_, body)) in two.messages.iter().enumerate() {
            if place(&two.leader, two.position(number)).0 == last {
                break;
            }
            while two.body(number).is_err() {
                bring(&two);
                brought += 1;
            }
            assert_eq!(two.body(number).unwrap(), *body, "{number}, {bad}");
        }
        assert!(brought > 0, "{bad}");
    });
}

#[test]
fn a_page_that_the_log_still_grows_in_is_left_alone() {
    let mut two = Two::new(&[1000; 3]);
    let last = two.position(2);
    let position = publish(&two.store, &[8; 100]).position().unwrap().into();
    let index = two.leader.last().index + 1;
    let entry = two.leader.replica().place(EntryId { term: 1, index }).unwrap().unwrap();
    two.leader.push(entry);
    two.leader.flush();
    let (copy, other) = (two.leader.replica(), two.other.replica());
    let ((path, at), (_, bad)) = (place(&two.leader, position), place(&two.leader, last));
    assert_eq!(at / 4096, bad / 4096, "it is in the same page, and not committed");
    let before = two.leader.disk.contents(&path);
    let whole = other.stretch(Piece::Record(last)).unwrap().unwrap();
    // Where another one is further, it has all of the page.
    let mut longer = whole.clone();
    longer.resize(4096, 0);
    let bad = bad as u64;
    two.leader.disk.set_faults(Faults { bad_spot: bad..bad + 1, ..Faults::default() });
    for brought in [whole, longer] {
        let mended = copy.mend(Piece::Record(last), &brought);
        assert!(matches!(mended, Err(MendError::Write(_))), "{mended:?}");
        assert_eq!(two.leader.disk.contents(&path), before);
    }
}
