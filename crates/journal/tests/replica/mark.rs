//! The mark that says where the log had ended that a copy is installed over.

use crate::{
    bootstrap::{LAST, chunks, install, sender},
    copy::{DIR, IDENTITY, open},
};
use bytes::Bytes;
use courser_journal::{
    replica::{EntryId, Installer, ReplicaError, Vote},
    testing::{FakeDisk, Faults},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// A copy where another one is to be installed, on a disk of its own. Returns where its log ends.
fn installed(seed: u64, chunks: &[Bytes]) -> (FakeDisk, EntryId) {
    let disk = FakeDisk::new(seed);
    install(&disk, &Vote::default(), chunks).unwrap();
    let last = open(&disk).unwrap().last();
    (disk, last)
}

#[test]
fn a_log_stays_as_it_is_while_there_is_no_room_to_say_where_it_ends() {
    let (_, chunks) = chunks(&sender());
    let (disk, last) = installed(5, &chunks);
    let begin = || {
        let on = Arc::new(disk.clone());
        Installer::begin(Path::new(DIR), on, IDENTITY, &Vote::default(), Some(last)).map(drop)
    };
    let before = disk.names();
    let mut refused = 0;
    loop {
        // The file can always be made.
        disk.set_capacity(disk.used_bytes() + refused);
        match begin() {
            Ok(()) => break,
            Err(error) => assert!(error.lacks_room(), "{error}"),
        }
        assert_eq!(disk.names(), before);
        assert_eq!(open(&disk).unwrap().last(), last, "with room for {refused} bytes");
        refused += 1;
    }
    assert_eq!(refused, 20, "bytes that say where it ends");
}

#[test]
fn where_a_log_ends_is_known_whenever_a_copy_ends_that_has_just_begun() {
    let (_, chunks) = chunks(&sender());
    for crash_at in 0.. {
        let mut is_begun = false;
        for round in 0..16 {
            let (disk, end) = installed(round, &chunks);
            let on = Arc::new(disk.clone());
            disk.set_faults(Faults { power_off_after: Some(crash_at), ..Faults::default() });
            let vote = Vote::default();
            let begun = Installer::begin(Path::new(DIR), on, IDENTITY, &vote, Some(end));
            is_begun = begun.map(drop).is_ok();
            if round % 2 == 0 {
                disk.kill()
            } else {
                disk.lose_power()
            }
            let known = match open(&disk) {
                Ok(copy) => {
                    let is_left = |name: &PathBuf| name.extension().is_some_and(|it| it == "tmp");
                    assert!(!disk.names().iter().any(is_left), "{:?}", disk.names());
                    Some(copy.last())
                }
                Err(ReplicaError::HalfInstalled { last, .. }) => last,
                Err(error) => panic!("it ended at operation {crash_at}: {error}"),
            };
            assert_eq!(known, Some(end), "it ended at operation {crash_at}");
        }
        if is_begun {
            return;
        }
    }
}

#[test]
fn where_the_log_had_ended_is_known_until_a_copy_is_whole_or_is_said_to_be_unknown() {
    let sender = sender();
    let (_, chunks) = chunks(&sender);
    let (disk, vote) = (FakeDisk::new(5), Vote::default());
    let said = || match open(&disk) {
        Err(ReplicaError::HalfInstalled { last, .. }) => last,
        other => panic!("{:?}", other.map(|copy| copy.last())),
    };
    install(&disk, &vote, &chunks[..2]).unwrap_err();
    assert_eq!(said(), LAST);
    let path = Path::new(DIR).join("being-installed");
    for offset in 0..disk.contents(&path).unwrap().len() {
        disk.corrupt(&path, offset, 1);
        assert_eq!(said(), None, "{offset}");
        disk.corrupt(&path, offset, 1);
    }
    assert_eq!(said(), LAST);
    let begun = Installer::begin(Path::new(DIR), Arc::new(disk.clone()), IDENTITY, &vote, None);
    drop(begun.unwrap());
    assert_eq!(said(), None);
    install(&disk, &vote, &chunks).unwrap();
    assert_eq!(open(&disk).unwrap().last().index, 50);
}
