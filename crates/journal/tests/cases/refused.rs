//! Passes over a journal some of which the system refuses to read.

use crate::scrub::{FRAME_HEAD, PAGE, RECORD_HEAD, SEGMENT_HEAD, files, filled, scrub, start_of};
use crate::support::{SYNC, append, start};
use courser_journal::{
    Damaged, Journal, Lsn, Part, Pass, Scrubbing,
    testing::{FakeDisk, Faults},
};
use std::{collections::BTreeSet, path::PathBuf};

/// The journal's first segment, which ends with the frame in front of the next one, and what frames and records it has.
struct First {
    disk: FakeDisk,
    journal: Journal,
    path: PathBuf,
    /// The first record of each frame.
    leading: Vec<u64>,
    parts: BTreeSet<Part>,
}

impl First {
    fn new() -> Self {
        let disk = FakeDisk::new(1);
        let (journal, positions) = filled(&disk);
        let logs = files(&disk, "log");
        let next = start_of(&logs[1]);
        let inside = positions.chunks(2).filter(|pair| pair[0].0 < next);
        let mut parts = BTreeSet::from([Part::Header(Lsn(start_of(&logs[0])))]);
        let mut leading = Vec::new();
        for pair in inside {
            leading.push(pair[0].0);
            parts.extend(pair.iter().copied().map(Part::Record));
            parts.insert(Part::Frame(Lsn(pair[0].0 - FRAME_HEAD)));
        }
        let path = logs[0].clone();
        First { disk, journal, path, leading, parts }
    }

    /// Has the system refuse one byte of each file at this offset.
    fn refuse(&self, offset: u64) {
        self.disk.set_faults(Faults { bad_spot: offset..offset + 1, ..Faults::default() });
    }

    /// What a pass finds in the segment.
    fn found(&self) -> Vec<Damaged> {
        scrub(&self.journal).into_iter().filter(|one| one.path == self.path).collect()
    }
}

#[test]
fn what_the_system_refuses_to_read_is_told_as_a_frame_or_a_record_that_reaches_into_its_page() {
    let first = First::new();
    let last = *first.leading.last().unwrap();
    assert!(last > 2 * PAGE as u64, "several pages");
    for offset in (0..last).step_by(7) {
        first.refuse(offset);
        let found = first.found();
        assert!(!found.is_empty(), "{offset}");
        for one in found {
            assert!(first.parts.contains(&one.part), "{offset}: {one:?}");
            assert!(one.error.is_some(), "{offset}: {one:?}");
            assert_eq!(one.offset / PAGE as u64, offset / PAGE as u64, "{one:?}");
        }
    }
    first.disk.set_faults(Faults::default());
    assert_eq!(scrub(&first.journal), []);
}

#[test]
fn a_page_inside_a_record_that_the_system_refuses_to_read_is_told_as_that_record() {
    let disk = FakeDisk::new(1);
    let journal = start(&disk);
    let positions = append(&journal, &[b"first", &[7; 3 * PAGE], b"last"], SYNC);
    journal.wait_durable(journal.end()).unwrap();
    let bad = positions[1].0.next_multiple_of(PAGE as u64) + 10;
    disk.set_faults(Faults { bad_spot: bad..bad + 1, ..Faults::default() });
    let found = scrub(&journal);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].part, Part::Record(positions[1]));
    assert!(found[0].error.is_some());
}

#[test]
fn what_is_behind_a_place_that_the_system_refuses_to_read_is_read() {
    let first = First::new();
    let last = *first.leading.last().unwrap();
    let page = last / PAGE as u64 * PAGE as u64;
    first.disk.corrupt(&first.path, (last + RECORD_HEAD) as usize, 4);
    for offset in (0..page).step_by(7) {
        first.refuse(offset);
        let found = first.found();
        let damaged = found.last().unwrap();
        assert_eq!((damaged.part, &damaged.error), (Part::Record(Lsn(last)), &None), "{offset}");
        assert!(found[0].error.is_some(), "{offset}");
    }
}

/// Has what it is told of be readable from then on, as what is written again is.
struct Mends<'a> {
    disk: &'a FakeDisk,
    found: Vec<Part>,
}

impl Scrubbing for Mends<'_> {
    fn may_read(&mut self, _: u64) -> bool {
        true
    }

    fn found(&mut self, damaged: Damaged) {
        self.disk.set_faults(Faults::default());
        self.found.push(damaged.part);
    }
}

#[test]
fn frames_in_the_page_of_a_frame_that_is_written_again_are_read() {
    let first = First::new();
    let (at, next) = (first.leading[0], first.leading[1]);
    assert!(at < SEGMENT_HEAD as u64 + PAGE as u64 && next < SEGMENT_HEAD as u64 + PAGE as u64);
    first.refuse(at - FRAME_HEAD);
    first.disk.corrupt(&first.path, (next + RECORD_HEAD) as usize, 4);
    let mut by = Mends { disk: &first.disk, found: Vec::new() };
    assert_eq!(first.journal.scrub(&mut by), Pass::Complete);
    assert_eq!(by.found, [Part::Frame(Lsn(at - FRAME_HEAD)), Part::Record(Lsn(next))]);
}
