//! Room within segments that copies give back to the file system.

use crate::copy::{DIR, IDENTITY, options};
use crate::mend::corrupt_on;
use courser_journal::{
    AppendMode, Batch, CheckpointDone, CheckpointError, EachLive, Lsn, ReadCache,
    replica::{
        BootstrapError, Chunk, Entry, EntryId, EntryKind, Identity, Installer, MendError, Piece,
        Replica, ReplicaError, Vote,
    },
    testing::FakeDisk,
};
use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Records of 1000 bytes in each segment, about.
const IN_A_SEGMENT: usize = 120;
const SEGMENTS: usize = 8;
const LARGE: Identity = Identity { segment_bytes: 128 << 10, ..IDENTITY };

struct Half {
    disk: FakeDisk,
    replica: Option<Replica>,
}

impl Half {
    fn new(seed: u64) -> Self {
        let disk = FakeDisk::new(seed);
        Replica::create(Path::new(DIR), LARGE, &disk).unwrap();
        let mut half = Half { disk, replica: None };
        half.start();
        half
    }

    fn start(&mut self) {
        self.replica = None;
        let disk = Arc::new(self.disk.clone());
        self.replica = Some(Replica::open(Path::new(DIR), options(), disk, Arc::new(())).unwrap());
    }

    /// Bytes of its files without those that are kept ready.
    fn used_bytes(&self) -> u64 {
        let names = self.disk.names();
        let is_spare = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "spare");
        self.disk.used_bytes() - names.iter().filter(is_spare).count() as u64 * LARGE.segment_bytes
    }

    fn replica(&self) -> &Replica {
        self.replica.as_ref().unwrap()
    }

    fn checkpoint(&self, start: Lsn, live: &[(usize, Lsn)]) -> CheckpointDone {
        self.checkpoint_while(start, live, &mut || true).unwrap()
    }

    fn checkpoint_while(
        &self,
        start: Lsn,
        live: &[(usize, Lsn)],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<CheckpointDone, CheckpointError> {
        let each = &mut |each: EachLive<'_>| live.iter().for_each(|(_, at)| each(*at));
        let state = &mut |out: &mut dyn Write| out.write_all(b"state");
        let made = self.replica().checkpoint(start, go_on, each, state);
        self.replica().maintain_once();
        made
    }
}

/// A copy that has led, one that has followed, and what they have: some records that are live, at least one in each segment.
struct Halves {
    led: Half,
    followed: Half,
    last: Entry,
    /// Their numbers and positions.
    live: Vec<(usize, Lsn)>,
}

impl Halves {
    fn new() -> Self {
        Self::keeping_one_in(IN_A_SEGMENT / 2)
    }

    fn keeping_one_in(records: usize) -> Self {
        let (led, followed) = (Half::new(1), Half::new(2));
        let id = |index| EntryId { term: 1, index };
        let mut last = led.replica().place_note(id(1), EntryKind::Start, &[]).unwrap();
        let take = |entry: &Entry| {
            followed.replica().append(std::slice::from_ref(entry)).unwrap();
            [&led, &followed].iter().for_each(|half| while half.replica().flush_once() {});
        };
        take(&last);
        let lead = led.replica().lead(1);
        let mut live = Vec::new();
        for number in 0..IN_A_SEGMENT * SEGMENTS {
            let mut batch = Batch::new();
            batch.push(&[&[number as u8; 1000]]);
            let mode = AppendMode { sync: true, reserve: false };
            let position = lead.append(&mut batch, mode).unwrap().position(0);
            if number % records == 0 {
                live.push((number, position));
            }
            last = led.replica().place(id(last.id.index + 1)).unwrap().unwrap();
            take(&last);
        }
        led.replica().follow();
        [&led, &followed].iter().for_each(|half| half.replica().commit(last.id.index).unwrap());
        Halves { led, followed, last, live }
    }

    fn start(&mut self) {
        for half in [&mut self.led, &mut self.followed] {
            half.start();
            half.replica().commit(self.last.id.index).unwrap();
        }
    }

    /// A checkpoint of each, of which the same has to come.
    fn checkpoint(&self) -> CheckpointDone {
        let Halves { led, followed, last, live } = self;
        let wanted = [led, followed].map(|half| half.replica().wants_checkpoint());
        assert_eq!(wanted[0], wanted[1], "only one of both wants a checkpoint");
        let [by_led, by_followed] = [led, followed].map(|half| half.checkpoint(last.end(), live));
        assert_eq!(by_led.punched_bytes, by_followed.punched_bytes);
        let [used, others] = [led, followed].map(|half| half.disk.used_bytes());
        assert_eq!(used, others, "the copies take different room");
        by_led
    }

    fn check(&self) {
        let mut cache = ReadCache::default();
        for (number, position) in &self.live {
            let expected = [*number as u8; 1000];
            for half in [&self.led, &self.followed] {
                assert_eq!(half.replica().read_record(*position, &mut cache).unwrap(), expected);
            }
        }
    }
}

#[test]
fn a_copy_that_follows_gives_dead_pages_back_as_its_leader_does() {
    let mut halves = Halves::new();
    // The first counts what is live, the second plans holes, the third makes them.
    let punched: u64 = (0..3).map(|_| halves.checkpoint().punched_bytes).sum();
    let whole = (SEGMENTS as u64 - 1) * LARGE.segment_bytes;
    assert!(punched > whole * 4 / 5, "{punched} of {whole}");
    halves.check();
    // How many records there were is known after a start, too.
    halves.live.retain(|(number, _)| number % IN_A_SEGMENT == 0);
    halves.start();
    let punched: u64 = (0..3).map(|_| halves.checkpoint().punched_bytes).sum();
    assert!(punched > 0, "nothing comes of records that are dead since");
    halves.check();
}

#[test]
fn a_copy_without_a_checkpoint_is_to_be_replaced_where_others_have_freed_what_is_damaged_in_it() {
    for has_checkpoint in [false, true] {
        let halves = Halves::new();
        let Halves { led, followed, last, live } = &halves;
        let entries = led.replica().read(1, last.id.index + 1, u64::MAX).unwrap();
        for _ in 0..3 {
            followed.checkpoint(last.end(), live);
        }
        if has_checkpoint {
            led.checkpoint(last.end(), live);
        }
        let frames = entries.iter().map(|entry| Piece::Frame(entry.start()));
        let (freed, kept): (Vec<Piece>, Vec<Piece>) = frames.partition(|frame| {
            let found = followed.replica().stretch(*frame);
            assert!(matches!(found, Ok(Some(_)) | Err(MendError::Gone(_))), "{found:?}");
            found.is_err()
        });
        assert!(freed.len() > 100 && kept.len() > 10, "{} and {}", freed.len(), kept.len());
        for frame in [freed[0], freed[freed.len() - 1]] {
            led.replica().is_freed_elsewhere(frame);
            assert!(!led.replica().needs_copy(), "it is whole here");
        }
        corrupt_on(&led.disk, freed[50].position().plus(60));
        led.replica().is_freed_elsewhere(freed[50]);
        assert_eq!(led.replica().needs_copy(), !has_checkpoint);
        led.checkpoint(last.end(), live);
        assert!(!led.replica().needs_copy(), "its own checkpoint is past it");
        corrupt_on(&followed.disk, kept[5].position().plus(60));
        assert_eq!(followed.replica().stretch(kept[5]).unwrap(), None, "it is damaged");
    }
}

#[test]
fn a_checkpoint_that_is_not_wanted_any_more_ends_before_the_next_record_is_read() {
    let halves = Halves::new();
    let Halves { followed, last, live, .. } = &halves;
    followed.checkpoint(last.end(), live);
    let before = followed.disk.names();
    // From before the first record on, to where all are read, and the checkpoint counts.
    for allowed in 0.. {
        let (mut asked, read) = (0, followed.disk.read_bytes());
        let made = followed.checkpoint_while(last.end(), live, &mut || {
            asked += 1;
            asked <= allowed
        });
        if made.is_ok() {
            assert!(allowed > live.len() / 2, "only {allowed} records are looked at");
            break;
        }
        assert!(matches!(made, Err(CheckpointError::Unwanted)), "{made:?}");
        assert_eq!(asked, allowed + 1, "it went on");
        let read = followed.disk.read_bytes() - read;
        assert!(read <= allowed as u64 * (16 << 10), "{read} bytes of {allowed} records are read");
        assert_eq!(followed.disk.names(), before, "something is left of it");
    }
    // Holes that are not made when it is not wanted any more are made later.
    let mut asked = 0;
    let made = followed.checkpoint_while(last.end(), live, &mut || {
        asked += 1;
        asked <= 3
    });
    let some = made.unwrap().punched_bytes;
    let rest: u64 = (0..2).map(|_| followed.checkpoint(last.end(), live).punched_bytes).sum();
    assert!(0 < some && some < rest, "{some} bytes at once, {rest} later");
    let of_led = (0..3).map(|_| halves.led.checkpoint(last.end(), live).punched_bytes);
    assert_eq!(of_led.sum::<u64>(), some + rest);
    halves.check();
}

/// A checkpoint as an earlier version has written it on a node that followed: without the numbers of records.
fn without_records(mut file: Vec<u8>) -> Vec<u8> {
    let number = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let trailer = file.len() - 16;
    let block = number(&file, trailer) as usize;
    // Behind its head and what is not about segments.
    let mut entry = block + 8 + 5 * 8;
    while entry < trailer {
        file[entry + 16..entry + 24].fill(0);
        entry += 4 * 8 + 8 * number(&file, entry + 24) as usize;
    }
    // The journal's number and the start, the block's place, and its data.
    let sum = crc32c::crc32c(&file[16..32]);
    let sum = crc32c::crc32c_append(sum, &(block as u64).to_le_bytes());
    let sum = crc32c::crc32c_append(sum, &file[block + 8..trailer]);
    file[block + 4..block + 8].copy_from_slice(&sum.to_le_bytes());
    file
}

impl Halves {
    /// Makes a checkpoint of the one that follows. Returns how often it was asked before a record, or a segment, whether it is
    /// still wanted.
    fn records_read(&self) -> usize {
        let Halves { followed, last, live, .. } = self;
        let mut asked = 0;
        let made = followed.checkpoint_while(last.end(), live, &mut || {
            asked += 1;
            true
        });
        made.unwrap();
        // Once before the state is written.
        asked - 1
    }

    /// A start of the version that counts, on what one that follows has written with an earlier version.
    fn forget_records(&mut self) {
        self.checkpoint();
        let disk = &self.followed.disk;
        let is_checkpoint = |path: &PathBuf| path.extension().is_some_and(|it| it == "checkpoint");
        let newest = disk.names().into_iter().filter(is_checkpoint).max().unwrap();
        disk.put(&newest, &without_records(disk.contents(&newest).unwrap()));
        self.start();
    }
}

#[test]
fn a_copy_that_an_earlier_version_has_not_counted_gives_dead_pages_back_too() {
    let mut halves = Halves::new();
    halves.forget_records();
    let punched: u64 = (0..3).map(|_| halves.checkpoint().punched_bytes).sum();
    assert!(punched > 0, "nothing is given back");
    halves.check();
    // What is dead since is found, too, also after a start.
    halves.start();
    halves.live.retain(|(number, _)| number % IN_A_SEGMENT == 0);
    let punched: u64 = (0..3).map(|_| halves.checkpoint().punched_bytes).sum();
    assert!(punched > 0, "nothing comes of records that are dead since");
    halves.check();
}

#[test]
fn a_copy_that_is_not_counted_and_has_nothing_dead_is_read_once() {
    let mut halves = Halves::keeping_one_in(1);
    halves.forget_records();
    halves.records_read();
    assert!(halves.records_read() > IN_A_SEGMENT * (SEGMENTS - 2), "it is not counted");
    halves.start();
    for _ in 0..2 {
        let read = halves.records_read();
        assert!(read <= SEGMENTS, "{read} records are read again");
    }
}

#[test]
fn while_a_copy_is_sent_no_record_is_read_for_holes_that_are_not_made() {
    let halves = Halves::new();
    let Halves { followed, last, live, .. } = &halves;
    halves.records_read();
    let bootstrap = followed.replica().bootstrap().unwrap();
    for _ in 0..2 {
        assert_eq!(halves.records_read(), 0);
    }
    drop(bootstrap);
    let punched: u64 = (0..2).map(|_| followed.checkpoint(last.end(), live).punched_bytes).sum();
    assert!(punched > 0, "nothing is given back afterwards");
    halves.check();
}

fn chunks(of: &Half) -> Vec<Chunk> {
    let mut bootstrap = of.replica().bootstrap().unwrap();
    std::iter::from_fn(|| bootstrap.next_chunk(20_000).unwrap()).collect()
}

fn install(disk: &FakeDisk, chunks: &[Chunk]) -> Result<(), BootstrapError> {
    let on = Arc::new(disk.clone());
    let mut installer = Installer::begin(Path::new(DIR), on, LARGE, &Vote::default(), None)?;
    for chunk in chunks {
        installer.chunk(chunk.clone())?;
    }
    installer.finish()
}

/// A log most of which is holes, and what of it is sent to another node.
fn sparse() -> (Halves, Vec<Chunk>) {
    let halves = Halves::new();
    for _ in 0..3 {
        halves.checkpoint();
    }
    let chunks = chunks(&halves.led);
    (halves, chunks)
}

#[test]
fn a_copy_of_a_log_with_holes_needs_no_more_room_than_the_log() {
    let (mut halves, chunks) = sparse();
    let disk = FakeDisk::new(7);
    install(&disk, &chunks).unwrap();
    disk.lose_power();
    let (used, of_sender) = (disk.used_bytes(), halves.led.used_bytes());
    // A file that ends with a hole has a byte behind it.
    assert!(used <= of_sender + SEGMENTS as u64, "{used} bytes instead of {of_sender}");
    assert!(used < SEGMENTS as u64 * LARGE.segment_bytes / 2, "{used} bytes");

    let mut copy = Half { disk, replica: None };
    copy.start();
    let last = halves.last.id.index;
    copy.replica().commit(last).unwrap();
    halves.followed = copy;
    halves.check();
    // What the copy has of a segment that is free is no file to go on in: it has no pages for what comes.
    for _ in 0..3 {
        halves.followed.checkpoint(halves.last.end(), &[]);
    }
    assert!(halves.followed.used_bytes() < 2 * LARGE.segment_bytes);
    halves.followed.start();
}

#[test]
fn a_copy_without_room_leaves_it_to_others_and_is_taken_when_there_is() {
    let (halves, chunks) = sparse();
    let needed = halves.led.used_bytes();
    let disk = FakeDisk::new(7);
    // From almost nothing on, in front of each part of it.
    for capacity in (20 << 10..needed - (8 << 10)).step_by(10_007) {
        disk.set_capacity(capacity);
        let refused = install(&disk, &chunks).unwrap_err();
        assert!(refused.lacks_room(), "{refused}");
        let left = disk.used_bytes();
        assert!(left <= 20 << 10, "{left} bytes of {capacity} are kept");
        let path = Path::new(DIR);
        let opened = Replica::open(path, options(), Arc::new(disk.clone()), Arc::new(()));
        assert!(matches!(opened, Err(ReplicaError::HalfInstalled { .. })));
    }
    disk.set_capacity(u64::MAX);
    install(&disk, &chunks).unwrap();
    let mut copy = Half { disk, replica: None };
    copy.start();
    assert_eq!(copy.replica().last(), halves.last.id);
}
