//! Passes over a journal that is in use, which find what the disk has changed.

use crate::support::{SYNC, append, dir, options};
use courser_journal::{
    Damaged, Journal, Lsn, Options, Part, Pass, Scrubbing,
    testing::{FakeDisk, Rng},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes in front of a frame's records, and in front of a record.
pub const FRAME_HEAD: u64 = 32;
pub const RECORD_HEAD: u64 = 8;
/// Holes begin and end at multiples of this.
pub const PAGE: usize = 4096;
/// Bytes of a segment in front of its frames, and those of them that mean something.
pub const SEGMENT_HEAD: usize = 4096;
const SEGMENT_HEAD_USED: usize = 56;

/// Takes note of what it is told, and does something else before each block.
struct Watch<'a> {
    found: Vec<Damaged>,
    /// Bytes that it lets be read.
    bytes_left: u64,
    before_each: &'a mut dyn FnMut() -> bool,
}

impl Scrubbing for Watch<'_> {
    fn may_read(&mut self, bytes: u64) -> bool {
        let is_too_much = bytes > self.bytes_left;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        !is_too_much && (self.before_each)()
    }

    fn found(&mut self, damaged: Damaged) {
        self.found.push(damaged);
    }
}

fn scrub_while(journal: &Journal, before_each: &mut dyn FnMut() -> bool) -> (Pass, Vec<Damaged>) {
    let mut watch = Watch { found: Vec::new(), bytes_left: u64::MAX, before_each };
    let pass = journal.scrub(&mut watch);
    (pass, watch.found)
}

pub fn scrub(journal: &Journal) -> Vec<Damaged> {
    let (pass, found) = scrub_while(journal, &mut || true);
    assert_eq!(pass, Pass::Complete);
    found
}

fn parts(journal: &Journal) -> Vec<Part> {
    scrub(journal).into_iter().map(|one| one.part).collect()
}

/// A journal with batches of one and more records in several segments, all of it synced.
pub fn filled(disk: &FakeDisk) -> (Journal, Vec<Lsn>) {
    let options = Options { segment_bytes: 16 << 10, ..options() };
    let journal = Journal::open(&dir(), options, Arc::new(disk.clone())).unwrap();
    journal.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
    let journal = journal.start().unwrap();
    let mut positions = Vec::new();
    for (number, len) in [700, 1, 5000, 0, 6000, 90, 900, 33].into_iter().enumerate() {
        let body = vec![number as u8; len];
        positions.extend(append(&journal, &[&body, b"next to it"], SYNC));
        while journal.flush_once() {}
    }
    let mut write = |out: &mut dyn std::io::Write| out.write_all(&[9; 300]);
    journal.checkpoint(&mut || positions[1], &mut |_| {}, &mut write).unwrap();
    (journal, positions)
}

pub fn files(disk: &FakeDisk, kind: &str) -> Vec<PathBuf> {
    let names = disk.names().into_iter();
    names.filter(|name| name.extension().is_some_and(|found| found == kind)).collect()
}

pub fn start_of(path: &Path) -> u64 {
    u64::from_str_radix(path.file_stem().unwrap().to_str().unwrap(), 16).unwrap()
}

#[test]
fn each_byte_of_a_journal_that_the_disk_changes_is_found() {
    let disk = FakeDisk::new(1);
    let (journal, positions) = filled(&disk);
    assert_eq!(scrub(&journal), []);
    let end = journal.durable().0;
    let logs = files(&disk, "log");
    assert!(logs.len() >= 2, "several segments");
    for path in logs.iter().chain(&files(&disk, "checkpoint")) {
        let is_log = path.extension().is_some_and(|kind| kind == "log");
        let next = logs.iter().filter(|_| is_log).map(|path| start_of(path));
        let next = next.filter(|start| *start > start_of(path)).min();
        let mut len = disk.contents(path).unwrap().len();
        if is_log {
            // The frames of a segment that another one follows end where that one says.
            let frames_end = next.map_or(end, |next| {
                let header = disk.contents(&dir().join(format!("{next:016x}.log"))).unwrap();
                u64::from_le_bytes(header[40..48].try_into().unwrap())
            });
            len = (frames_end - start_of(path)) as usize;
        }
        for offset in 0..len {
            if is_log && (SEGMENT_HEAD_USED..SEGMENT_HEAD).contains(&offset) {
                continue;
            }
            let mask = 1 << (offset % 8);
            disk.corrupt(path, offset, mask);
            let found = scrub(&journal);
            assert!(!found.is_empty(), "offset {offset} of {}", path.display());
            assert!(found.iter().all(|one| one.path == *path), "{found:?}");
            disk.corrupt(path, offset, mask);
        }
    }
    assert_eq!(scrub(&journal), []);
    assert!(positions.len() > 8);
}

#[test]
fn what_is_damaged_is_named() {
    let disk = FakeDisk::new(1);
    let (journal, positions) = filled(&disk);
    let logs = files(&disk, "log");
    let flip = |at: u64| {
        let path = logs.iter().filter(|path| start_of(path) <= at).max().unwrap();
        disk.corrupt(path, (at - start_of(path)) as usize, 4);
    };
    let (first, second) = (positions[4], positions[5]);
    let of_frame = Part::Frame(Lsn(first.0 - FRAME_HEAD));
    for (at, part) in [
        (first.0 + RECORD_HEAD, Part::Record(first)),
        (second.0 + RECORD_HEAD, Part::Record(second)),
        (first.0, of_frame),
        (first.0 + 4, of_frame),
        (first.0 - 1, of_frame),
        (first.0 - FRAME_HEAD, of_frame),
        (start_of(&logs[1]) + 30, Part::Header(Lsn(start_of(&logs[1])))),
    ] {
        flip(at);
        assert_eq!(parts(&journal), [part], "{at}");
        flip(at);
    }
    // Both, and what is behind them is read all the same.
    flip(first.0 + RECORD_HEAD);
    flip(positions[2].0 - FRAME_HEAD);
    flip(positions[12].0 + RECORD_HEAD);
    let frame = Part::Frame(Lsn(positions[2].0 - FRAME_HEAD));
    let found = parts(&journal);
    assert_eq!(found, [frame, Part::Record(first), Part::Record(positions[12])]);
    let checkpoints = files(&disk, "checkpoint");
    disk.corrupt(&checkpoints[0], 60, 1);
    assert!(matches!(parts(&journal)[3], Part::Checkpoint(_)));
}

#[test]
fn a_pass_ends_when_it_may_not_go_on_and_when_the_journal_is_closed() {
    let disk = FakeDisk::new(1);
    let (journal, _) = filled(&disk);
    let mut blocks = 0;
    let (pass, found) = scrub_while(&journal, &mut || {
        blocks += 1;
        blocks < 3
    });
    assert_eq!((pass, found, blocks), (Pass::Ended, Vec::new(), 3));
    journal.close().unwrap();
    let path = files(&disk, "log").remove(0);
    disk.corrupt(&path, SEGMENT_HEAD + 40, 1);
    let (pass, found) = scrub_while(&journal, &mut || true);
    assert_eq!((pass, found), (Pass::Ended, Vec::new()), "the file may be another journal's");
}

/// An owner that appends, releases and makes checkpoints, as a seed says.
struct Owner {
    journal: Arc<Journal>,
    rng: Rng,
    live: Vec<Lsn>,
}

impl Owner {
    fn new(disk: &FakeDisk, seed: u64, threads: bool) -> Self {
        let options = Options { threads, dead_bytes: 0, ..options() };
        let recovery = Journal::open(&dir(), options, Arc::new(disk.clone())).unwrap();
        recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
        let journal = Arc::new(recovery.start().unwrap());
        Owner { journal, rng: Rng::new(seed), live: Vec::new() }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0 => self.checkpoint(),
            1..=4 => self.release(),
            _ => self.append(),
        }
        if self.rng.one_in(3) {
            while self.journal.flush_once() {}
        }
    }

    fn append(&mut self) {
        let records: Vec<Vec<u8>> = (0..=self.rng.below(3))
            .map(|_| {
                let len = [20, 300, 300, 4000, 12_000][self.rng.below(5) as usize];
                vec![self.rng.number() as u8; self.rng.below(len) as usize]
            })
            .collect();
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        for position in append(&self.journal, &records, SYNC) {
            self.journal.hold(position, 1);
            self.live.push(position);
        }
    }

    /// Releases a run of records, so that large holes are left.
    fn release(&mut self) {
        let (len, most) = (self.live.len() as u64, 12);
        let (from, count) = (self.rng.below(len + 1), self.rng.below(most) + 1);
        let to = (from + count).min(len) as usize;
        append(&self.journal, &[b"released"], SYNC);
        for position in self.live.drain(from as usize..to) {
            self.journal.release(&[position.into()]);
        }
    }

    fn checkpoint(&mut self) {
        let live = self.live.clone();
        let start = self.journal.end();
        let mut each_live =
            |each: &mut dyn FnMut(Lsn)| live.iter().for_each(|position| each(*position));
        let mut write = |out: &mut dyn std::io::Write| out.write_all(&[1; 100]);
        self.journal.checkpoint(&mut || start, &mut each_live, &mut write).unwrap();
        self.journal.maintain_once();
    }
}

#[test]
fn a_journal_that_is_in_use_is_not_taken_for_damaged() {
    for seed in 0..60 {
        let disk = FakeDisk::new(seed);
        let mut owner = Owner::new(&disk, seed, false);
        (0..60).for_each(|_| owner.step());
        let journal = Arc::clone(&owner.journal);
        for _ in 0..6 {
            let found = scrub_while(&journal, &mut || {
                owner.step();
                true
            });
            assert_eq!(found, (Pass::Complete, Vec::new()), "seed {seed}");
        }
    }
}

#[test]
fn a_journal_whose_threads_work_meanwhile_is_not_taken_for_damaged() {
    let disk = FakeDisk::new(7);
    let mut owner = Owner::new(&disk, 7, true);
    let journal = Arc::clone(&owner.journal);
    let working = std::thread::spawn(move || (0..4000).for_each(|_| owner.step()));
    let mut passes = 0;
    while !working.is_finished() || passes == 0 {
        assert_eq!(scrub_while(&journal, &mut || true), (Pass::Complete, Vec::new()));
        passes += 1;
    }
    working.join().unwrap();
}

#[test]
fn live_records_beside_holes_are_read() {
    let mut beside_holes = 0;
    for seed in 0..40 {
        let disk = FakeDisk::new(seed);
        let mut owner = Owner::new(&disk, seed, false);
        (0..150).for_each(|_| owner.step());
        (0..3).for_each(|_| owner.checkpoint());
        while owner.journal.flush_once() {}
        let logs = files(&disk, "log");
        for position in &owner.live {
            let path = logs.iter().filter(|path| start_of(path) <= position.0).max().unwrap();
            let offset = (position.0 - start_of(path)) as usize;
            let contents = disk.contents(path).unwrap();
            let is_hole = |page: usize| {
                let page = contents.get(page * PAGE..(page + 1) * PAGE).unwrap_or_default();
                page.iter().all(|byte| *byte == 0)
            };
            // What is less than a page before a hole may be the rest of what the hole was made of, and behind a hole a
            // smaller record can pass for the first.
            let is_beside_hole = is_hole(offset / PAGE - 1) || is_hole(offset / PAGE + 1);
            beside_holes += usize::from(is_beside_hole);
            for at in [0, 5] {
                disk.corrupt(path, offset + at, 0x40);
                let noticed = !scrub(&owner.journal).is_empty();
                assert!(noticed || is_beside_hole, "seed {seed}, {position} at {at}");
                disk.corrupt(path, offset + at, 0x40);
            }
        }
        assert_eq!(scrub(&owner.journal), []);
    }
    assert!(beside_holes > 10, "{beside_holes}");
}

/// Bytes that pass for a record of 512 KiB at one place in four.
const SEEM_LENGTHS: [u8; 4] = [0, 0, 8, 0];

/// A journal with a hole, behind which the rest of a message of such bytes stands, and live records of these lengths: those
/// of the first batch in the frame of that message, each other batch in its own. Returns their positions too.
fn with_lengths_behind_a_hole(disk: &FakeDisk, batches: &[&[usize]]) -> (Journal, Vec<Lsn>) {
    let options = Options { segment_bytes: 4 << 20, dead_bytes: 0, ..options() };
    let recovery = Journal::open(&dir(), options, Arc::new(disk.clone())).unwrap();
    recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
    let journal = recovery.start().unwrap();
    // A segment gets holes when most of its records are dead.
    append(&journal, &[&[][..]; 20], SYNC);
    let (dead, mut live) = (SEEM_LENGTHS.repeat(10_000), Vec::new());
    for (number, lens) in batches.iter().enumerate() {
        let bodies: Vec<Vec<u8>> = lens.iter().map(|len| vec![0xff; *len]).collect();
        let is_dead = usize::from(number == 0);
        let records: Vec<&[u8]> = std::iter::repeat_n(&dead[..], is_dead)
            .chain(bodies.iter().map(Vec::as_slice))
            .collect();
        live.extend(&append(&journal, &records, SYNC)[is_dead..]);
        while journal.flush_once() {}
    }
    live.iter().for_each(|position| journal.hold(*position, 1));
    append(&journal, &[&vec![0; 3 << 20]], SYNC);
    while journal.flush_once() {}
    let bytes_before = journal.scrub_bytes();
    for _ in 0..3 {
        let mut each_live = |each: &mut dyn FnMut(Lsn)| live.iter().for_each(|at| each(*at));
        let mut write = |out: &mut dyn std::io::Write| out.write_all(&[1; 100]);
        journal.checkpoint(&mut || journal.end(), &mut each_live, &mut write).unwrap();
        journal.maintain_once();
    }
    assert!(journal.scrub_bytes() < bytes_before, "a hole");
    (journal, live)
}

/// Reads the journal, and no more than so many times what is there.
fn scrub_within(journal: &Journal, times: u64) -> Vec<Damaged> {
    let bytes_left = journal.scrub_bytes() * times;
    let mut watch = Watch { found: Vec::new(), bytes_left, before_each: &mut || true };
    assert_eq!(journal.scrub(&mut watch), Pass::Complete, "more is read than {bytes_left} bytes");
    watch.found
}

#[test]
fn what_seems_to_be_lengths_behind_a_hole_is_not_tried_without_end() {
    let disk = FakeDisk::new(1);
    let (journal, live) = with_lengths_behind_a_hole(&disk, &[&[3 << 20]]);
    assert_eq!(scrub_within(&journal, 3), []);
    assert_eq!(live.len(), 1);
}

#[test]
fn a_record_behind_a_hole_is_searched_for_in_front_of_the_next_frame() {
    let disk = FakeDisk::new(1);
    let frames: &[&[usize]] = &[&[8 << 10], &[1 << 20], &[1 << 20], &[1 << 20]];
    let (journal, live) = with_lengths_behind_a_hole(&disk, frames);
    assert_eq!(scrub_within(&journal, 2), []);
    let path = files(&disk, "log").remove(0);
    for position in live {
        let offset = (position.0 - start_of(&path)) as usize;
        disk.corrupt(&path, offset + RECORD_HEAD as usize, 1);
        assert_eq!(scrub_within(&journal, 2).len(), 1, "{position}");
        disk.corrupt(&path, offset + RECORD_HEAD as usize, 1);
    }
}
