//! Copies that no process has open, as an operator reads them.

use crate::{
    copy::{Copy, DIR, IDENTITY, open},
    entries::leading,
};
use courser_journal::{
    OpenMode,
    replica::{Contents, EntryId, ReplicaError, Vote},
    testing::{FakeDisk, Faults},
    tools::{self, ToolError},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

const ENTRIES: usize = 30;

/// A copy that leads, and has a vote.
fn copy() -> Copy {
    let record = vec![5; 900];
    let mut copy = leading(&vec![record.as_slice(); ENTRIES - 1]);
    copy.flush();
    copy.replica().commit(10).unwrap();
    let vote = Vote { term: 3, voted_for: 2, members: vec![1, 2, 3], members_index: 1 };
    copy.replica().save_vote(&vote).unwrap();
    copy.vote = vote;
    copy
}

/// The disk of a copy whose process has ended.
fn ended(mut copy: Copy) -> FakeDisk {
    copy.lead = None;
    copy.replica = None;
    copy.disk.kill();
    copy.disk
}

fn files(disk: &FakeDisk) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let names = disk.names().into_iter().filter(|name| !name.ends_with("lock"));
    names.map(|name| (name.clone(), disk.contents(&name))).collect()
}

fn contents(disk: &FakeDisk) -> Result<Contents, ReplicaError> {
    Contents::read(Path::new(DIR), Arc::new(disk.clone()))
}

fn verify(disk: &FakeDisk) -> (Result<bool, ToolError>, String) {
    let mut out = Vec::new();
    let sound = tools::verify(Path::new(DIR), Arc::new(disk.clone()), &mut out);
    (sound, String::from_utf8(out).unwrap())
}

#[test]
fn a_copy_says_what_it_has_and_stays_as_it_is() {
    let copy = copy();
    let (last, vote) = (copy.last(), copy.vote.clone());
    let disk = ended(copy);
    let before = files(&disk);

    let found = contents(&disk).unwrap();
    assert_eq!((found.identity, found.last, found.vote), (IDENTITY, last, vote));
    assert!((10..=ENTRIES as u64).contains(&found.committed), "{}", found.committed);
    assert!(found.clean && !found.torn);
    let mut report = Vec::new();
    tools::inspect(Path::new(DIR), Arc::new(disk.clone()), &mut report).unwrap();
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("its last entry is 30 of term 1"), "{report}");
    assert!(report.contains("knows of term 3"), "{report}");
    let (sound, said) = verify(&disk);
    assert!(sound.unwrap(), "{said}");

    assert!(files(&disk) == before, "reading has changed something");
    let replica = open(&disk).unwrap();
    assert_eq!((replica.last(), replica.end()), (found.last, found.end));
}

#[test]
fn damage_in_a_copy_is_told_and_is_not_repaired_in_place() {
    let disk = ended(copy());
    let log = disk.names().into_iter().find(|name| name.extension() == Some("log".as_ref()));
    disk.corrupt(&log.unwrap(), 4500, 4);
    let before = files(&disk);
    let (sound, said) = verify(&disk);
    assert!(!sound.unwrap());
    assert!(said.contains("this copy must be rebuilt from another one"), "{said}");
    assert!(said.contains("there is no valid frame where one was durable"), "{said}");
    assert!(!said.contains("journal repair"), "{said}");
    let repaired = tools::repair(Path::new(DIR), Arc::new(disk.clone()), &mut Vec::new());
    assert!(matches!(repaired, Err(ToolError::CopyNotRepaired)), "{repaired:?}");
    assert!(files(&disk) == before, "something was changed");
}

#[test]
fn a_copy_that_has_not_come_as_a_whole_is_told() {
    use courser_journal::Disk;
    let disk = ended(copy());
    disk.open(&Path::new(DIR).join("being-installed"), OpenMode::Create).unwrap();
    let (sound, said) = verify(&disk);
    let error = sound.expect_err(&said).to_string();
    assert!(error.contains("incomplete"), "{error}");
}

#[test]
fn a_copy_has_an_end_or_says_that_a_start_completes_its_cut() {
    const LEFT: u64 = 20;
    let mut seen = [0; 3];
    for after in 0.. {
        let copy = copy();
        copy.replica().follow();
        copy.disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let is_done = copy.replica().cut(LEFT).is_ok();
        let disk = ended(copy);
        let left = EntryId { term: 1, index: LEFT };
        match contents(&disk) {
            Ok(Contents { last, .. }) if last == left => seen[0] += 1,
            Ok(Contents { last, .. }) => {
                assert_eq!(last.index as usize, ENTRIES);
                seen[1] += 1;
            }
            Err(ReplicaError::CutBegun(_)) => {
                assert_eq!(open(&disk).unwrap().last(), left);
                disk.kill();
                assert_eq!(contents(&disk).unwrap().last, left);
                seen[2] += 1;
            }
            Err(error) => panic!("after {after} operations: {error}"),
        }
        if is_done {
            break;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
