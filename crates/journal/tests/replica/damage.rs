//! Copies that are not what was written.

use crate::{
    copy::{Copy, DIR, new_disk, open},
    entries::leading,
};
use courser_journal::{
    Journal, OpenError,
    replica::{ReplicaError, Vote},
    testing::Faults,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const ENTRIES: usize = 30;

/// A copy that was synced and then killed, with a vote.
fn copy() -> (Copy, Vote) {
    let record = vec![5; 900];
    let mut copy = leading(&vec![record.as_slice(); ENTRIES - 1]);
    copy.flush();
    let vote = Vote { term: 3, voted_for: 2, members: vec![1, 2, 3], members_index: 1 };
    copy.replica().commit(10).unwrap();
    copy.replica().save_vote(&vote).unwrap();
    copy.vote = vote.clone();
    copy.lead = None;
    copy.replica = None;
    copy.disk.kill();
    (copy, vote)
}

fn log_files(copy: &Copy) -> Vec<PathBuf> {
    let names = copy.disk.names();
    names.into_iter().filter(|name| name.extension().is_some_and(|kind| kind == "log")).collect()
}

#[test]
fn a_flipped_byte_in_what_was_synced_means_that_the_copy_must_be_rebuilt() {
    let (copy, vote) = copy();
    assert!(log_files(&copy).len() > 1);
    for path in log_files(&copy) {
        let len = copy.disk.contents(&path).unwrap().len();
        let start = u64::from_str_radix(path.file_stem().unwrap().to_str().unwrap(), 16).unwrap();
        for offset in (4096..len).step_by(97) {
            let position = start + offset as u64;
            let is_entry = copy.entries.iter().any(|entry| {
                let padding = 3;
                entry.start().0 <= position && position + padding < entry.end().0 - 80
            });
            // The end of the log is what a loss of power could have taken, if nothing says otherwise.
            let is_last = position >= copy.entries[ENTRIES - 1].start().0;
            if !is_entry || is_last {
                continue;
            }
            copy.disk.corrupt(&path, offset, 4);
            match open(&copy.disk) {
                Err(ReplicaError::MustBeRebuilt { vote: kept, .. }) => assert_eq!(kept, vote),
                Ok(replica) => panic!("{position}: {} entries are there", replica.last().index),
                Err(error) => panic!("{error}"),
            }
            copy.disk.corrupt(&path, offset, 4);
        }
    }
    assert_eq!(open(&copy.disk).unwrap().last().index as usize, ENTRIES);
}

#[test]
fn a_lost_segment_means_that_the_copy_must_be_rebuilt() {
    for index in 0..2 {
        let (copy, _) = copy();
        let files = log_files(&copy);
        let path = if index == 0 { &files[0] } else { files.last().unwrap() };
        use courser_journal::Disk;
        copy.disk.remove(path).unwrap();
        assert!(matches!(open(&copy.disk), Err(ReplicaError::MustBeRebuilt { .. })));
    }
    let (copy, _) = copy();
    use courser_journal::Disk;
    for path in copy.disk.names() {
        if path.file_name().unwrap() != "replica" {
            copy.disk.remove(&path).unwrap();
        }
    }
    assert!(matches!(open(&copy.disk), Err(ReplicaError::MustBeRebuilt { .. })));
}

#[test]
fn a_vote_is_there_as_it_was_or_is_said_to_be_lost() {
    let (copy, vote) = copy();
    let path = Path::new(DIR).join("replica");
    let page = 8 << 10;
    for offset in (0..page).step_by(61) {
        for slot in [0, page] {
            copy.disk.corrupt(&path, slot + offset, 1);
            let replica = open(&copy.disk).unwrap();
            assert_eq!(replica.vote(), vote, "one place is harmed at {offset}");
            drop(replica);
        }
        copy.disk.corrupt(&path, offset, 1);
        copy.disk.corrupt(&path, page + offset, 1);
        assert!(matches!(open(&copy.disk), Err(ReplicaError::VoteLost(_))), "both at {offset}");
        copy.disk.corrupt(&path, offset, 1);
        copy.disk.corrupt(&path, page + offset, 1);
    }
    use courser_journal::Disk;
    copy.disk.remove(&path).unwrap();
    assert!(matches!(open(&copy.disk), Err(ReplicaError::Missing(_))));
}

#[test]
fn a_page_that_can_not_be_read_means_that_the_copy_must_be_rebuilt() {
    let (copy, vote) = copy();
    for page in 0..4 {
        let bad = 4096 * page + 1000;
        copy.disk.set_faults(Faults { bad_spot: bad..bad + 1, ..Faults::default() });
        // The page is bad in the file with the vote, too.
        match open(&copy.disk) {
            Err(ReplicaError::MustBeRebuilt { vote: kept, .. }) => assert_eq!(kept, vote),
            opened => panic!("page {page}: {:?}", opened.err()),
        }
    }
    copy.disk.set_faults(Faults::default());
    assert_eq!(open(&copy.disk).unwrap().last().index as usize, ENTRIES);
}

#[test]
fn a_vote_is_there_though_one_of_its_places_can_not_be_read() {
    for (bad, is_there) in [(4096..4097, true), (8192..8193, true), (4096..8193, false)] {
        let disk = new_disk(1);
        disk.set_faults(Faults { bad_spot: bad.clone(), ..Faults::default() });
        match open(&disk) {
            Ok(_) => assert!(is_there, "{bad:?}"),
            Err(error) => assert!(!is_there, "{bad:?}: {error}"),
        }
        // Both places were written again.
        assert_eq!(open(&disk).is_ok(), is_there, "{bad:?}");
    }
}

#[test]
fn a_copy_is_not_opened_as_a_journal_that_stands_alone() {
    let (copy, _) = copy();
    let opened = Journal::open(Path::new(DIR), crate::copy::options(), Arc::new(copy.disk.clone()));
    assert!(matches!(opened, Err(OpenError::Replica(_))));
}
