//! Room within segments that copies give back to the file system.

use crate::copy::{DIR, IDENTITY, options};
use courser_journal::{
    AppendMode, Batch, CheckpointDone, EachLive, Lsn, ReadCache,
    replica::{Entry, EntryId, EntryKind, Identity, Replica},
    testing::FakeDisk,
};
use std::{path::Path, sync::Arc};

/// Records of 1000 bytes in each segment, about.
const IN_A_SEGMENT: usize = 120;
const SEGMENTS: usize = 8;

struct Half {
    disk: FakeDisk,
    replica: Option<Replica>,
}

impl Half {
    fn new(seed: u64) -> Self {
        let disk = FakeDisk::new(seed);
        let identity = Identity { segment_bytes: 128 << 10, ..IDENTITY };
        Replica::create(Path::new(DIR), identity, &disk).unwrap();
        let mut half = Half { disk, replica: None };
        half.start();
        half
    }

    fn start(&mut self) {
        self.replica = None;
        let disk = Arc::new(self.disk.clone());
        self.replica = Some(Replica::open(Path::new(DIR), options(), disk, Arc::new(())).unwrap());
    }

    fn replica(&self) -> &Replica {
        self.replica.as_ref().unwrap()
    }

    fn checkpoint(&self, start: Lsn, live: &[(usize, Lsn)]) -> CheckpointDone {
        let each = &mut |each: EachLive<'_>| live.iter().for_each(|(_, at)| each(*at));
        let made = self.replica().checkpoint(start, each, &mut |out| out.write_all(b"state"));
        self.replica().maintain_once();
        made.unwrap()
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
            if number % (IN_A_SEGMENT / 2) == 0 {
                live.push((number, position));
            }
            last = led.replica().place(id(last.id.index + 1)).unwrap().unwrap();
            take(&last);
        }
        led.replica().follow();
        [&led, &followed].iter().for_each(|half| half.replica().commit(last.id.index).unwrap());
        Halves { led, followed, last, live }
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
    let whole = (SEGMENTS as u64 - 1) * (128 << 10);
    assert!(punched > whole * 4 / 5, "{punched} of {whole}");
    halves.check();
    // How many records there were is known after a start, too.
    halves.live.retain(|(number, _)| number % IN_A_SEGMENT == 0);
    [&mut halves.led, &mut halves.followed].into_iter().for_each(Half::start);
    let index = halves.last.id.index;
    for half in [&halves.led, &halves.followed] {
        half.replica().commit(index).unwrap();
    }
    let punched: u64 = (0..3).map(|_| halves.checkpoint().punched_bytes).sum();
    assert!(punched > 0, "nothing comes of records that are dead since");
    halves.check();
}
