//! One random history.

use crate::owner::{Appended, Entry, Live, decode_state, live_after};
use courser_journal::{
    AppendError, AppendMode, Batch, Journal, Lsn, OpenError, Options, ReadCache, Recovery,
    ReplayError,
    testing::{FakeDisk, Faults, Rng},
};
use std::{collections::BTreeSet, io::Read, path::Path, sync::Arc};

const DIR: &str = "journal";

pub struct World {
    pub rng: Rng,
    pub disk: FakeDisk,
    pub options: Options,
    pub journal: Option<Journal>,
    pub cache: ReadCache,
    /// Every batch that was appended and may still be there.
    pub batches: Vec<Appended>,
    /// Everything before has to survive the loss of power.
    pub durable: Lsn,
    /// Everything before has to survive the end of the process.
    pub written: Lsn,
    /// Checkpoints that may be the last one: the last that was made, and those tried since.
    pub checkpoints: Vec<(Lsn, Vec<u8>)>,
    /// The start of the last one that was made.
    pub checkpoint: Lsn,
    /// The one before, which a start falls back to that can't read the last, and says so.
    pub before: (Lsn, Vec<u8>),
    /// A position at which the owner began to gather its state, for a checkpoint that starts
    /// there and contains effects of later records.
    pub earlier: Option<Lsn>,
    /// All payloads are of this length: frames of a lost tail lie where new ones end.
    pub uniform_len: Option<u64>,
    /// Faults come at random.
    pub faults: bool,
    /// Some operation of the disk fails, and those after it do not.
    pub is_once: bool,
    pub verbose: bool,
}

impl World {
    pub fn new(seed: u64, verbose: bool) -> Self {
        let mut rng = Rng::new(seed);
        let disk = FakeDisk::new(rng.number());
        let options = Options {
            segment_bytes: [16 << 10, 20 << 10, 64 << 10][rng.below(3) as usize],
            buffer_bytes: 1 << (10 + rng.below(8)),
            unsynced_bytes: 1 << (10 + rng.below(6)),
            checkpoint_after_bytes: 64 << 10,
            dead_bytes: 32 << 10,
            threads: false,
            ..Options::default()
        };
        let uniform_len = rng.one_in(3).then(|| rng.below(1500));
        World {
            rng,
            disk,
            options,
            journal: None,
            cache: ReadCache::default(),
            batches: Vec::new(),
            durable: Lsn(0),
            written: Lsn(0),
            checkpoints: Vec::new(),
            checkpoint: Lsn(0),
            before: (Lsn(0), Vec::new()),
            earlier: None,
            uniform_len,
            faults: true,
            is_once: false,
            verbose,
        }
    }

    pub fn lives(&mut self) -> u64 {
        1 + self.rng.below(6)
    }

    /// From a start through a history without faults to a loss of power, which comes at the
    /// `crash_at`-th operation that changes something on the disk. Returns whether it came.
    pub fn live_until(&mut self, crash_at: u64) -> bool {
        self.faults = false;
        self.uniform_len = None;
        self.options.segment_bytes = 16 << 10;
        self.disk.set_faults(Faults { power_off_after: Some(crash_at), ..Faults::default() });
        let mut steps = 0;
        while steps < 120 {
            if self.journal.is_none() {
                match self.try_start() {
                    Ok(journal) => self.journal = Some(journal),
                    Err(_) => break,
                }
            }
            self.step();
            self.observe();
            steps += 1;
            if self.journal().failed().is_some() {
                break;
            }
        }
        self.lose_power();
        steps < 120
    }

    /// From a start to a crash or a clean stop.
    pub fn live(&mut self) {
        self.start(true);
        let mut left = self.rng.below(80);
        while left > 0 && self.journal().failed().is_none() {
            left -= 1;
            self.step();
            self.observe();
        }
        let failed = self.journal().failed().is_some();
        if failed {
            let mut batch = Batch::new();
            batch.push(&[b"P"]);
            let refused = self.journal().append(&mut batch, AppendMode::default());
            assert!(matches!(refused, Err(AppendError::Failed(_))));
        }
        match self.rng.below(3) {
            0 => self.lose_power(),
            1 => self.kill(),
            _ => self.stop(),
        }
    }

    /// Starts without faults: whatever has to be there is there.
    pub fn finish(&mut self) {
        self.disk.set_faults(Faults::default());
        self.start(false);
        self.stop();
    }

    pub fn journal(&self) -> &Journal {
        self.journal.as_ref().unwrap()
    }

    pub fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.verbose {
            eprintln!("{what}");
        }
    }

    pub fn observe(&mut self) {
        let durable = self.journal().durable();
        assert!(durable >= self.durable || self.durable > self.journal().end());
        self.durable = self.durable.max(durable);
        self.written = self.written.max(durable);
    }

    pub fn lose_power(&mut self) {
        self.say(format_args!("the power goes; durable to {}", self.durable));
        // Dropping tries to write: the power is off before.
        self.disk.set_faults(Faults { power_off_after: Some(0), ..Faults::default() });
        self.journal = None;
        self.disk.lose_power();
        self.written = self.durable;
    }

    pub fn kill(&mut self) {
        self.say(format_args!("killed; written to {}, durable to {}", self.written, self.durable));
        self.disk.set_faults(Faults { power_off_after: Some(0), ..Faults::default() });
        self.journal = None;
        self.disk.kill();
    }

    pub fn stop(&mut self) {
        let end = self.journal().end();
        let closed = self.journal().close();
        self.say(format_args!("stopped: {closed:?}"));
        if closed.is_ok() {
            self.durable = end;
            self.written = end;
        } else {
            return self.lose_power();
        }
        self.journal = None;
        self.disk.kill();
        if self.rng.one_in(2) {
            self.disk.lose_power();
        }
    }

    /// Starts the journal, at times with crashes in between, and checks what it has.
    fn start(&mut self, may_crash: bool) {
        self.disk.set_capacity(u64::MAX);
        self.cache.clear();
        self.earlier = None;
        for attempt in 0.. {
            let crashing = may_crash && attempt < 3 && self.rng.one_in(3);
            if crashing {
                let after = Some(self.rng.below(20));
                let faults = match self.rng.below(3) {
                    0 => Faults { fail_sync_after: after, ..Faults::default() },
                    _ => Faults { power_off_after: after, ..Faults::default() },
                };
                self.disk.set_faults(faults);
            }
            match self.try_start() {
                Ok(journal) => {
                    self.journal = Some(journal);
                    break;
                }
                Err(error) => {
                    assert!(crashing, "{error}");
                    self.say(format_args!("crash while starting: {error}"));
                    // What was there before has to be there after this too.
                    if self.rng.one_in(2) {
                        self.disk.kill()
                    } else {
                        self.disk.lose_power()
                    }
                    if self.written > self.durable {
                        self.written = self.durable;
                    }
                }
            }
        }
        let journal = self.journal.as_ref().unwrap();
        self.durable = journal.end();
        self.written = journal.end();
        for (position, bytes) in &live_after(&self.batches) {
            let read = journal.read(*position, &mut self.cache).unwrap();
            assert!(Entry::decode(read) == Entry::Payload(bytes.clone()), "at {position}");
        }
    }

    pub fn try_start(&mut self) -> Result<Journal, OpenError> {
        let disk = Arc::new(self.disk.clone());
        let recovery = Journal::open(Path::new(DIR), self.options.clone(), disk)?;
        let mut live = BTreeSet::new();
        let from = self.load_checkpoint(&recovery, &mut live)?;
        let mut found: Vec<Appended> = Vec::new();
        let replayed = replay(&recovery, &mut found, &mut live)?;
        self.say(format_args!("started from {from}: {replayed:?}"));
        let skip = self.batches.partition_point(|batch| batch.start < from);
        let expected = &self.batches[skip..];
        assert!(found.len() <= expected.len(), "more batches than were appended");
        assert!(found == expected[..found.len()], "other batches than were appended");
        let lost = expected.get(found.len());
        let must = self.written.max(self.durable);
        assert!(lost.is_none_or(|lost| lost.start >= must), "{lost:?} is lost; {must} was safe");
        let kept = skip + found.len();
        let expected: Live = live_after(&self.batches[..kept]);
        assert!(live.iter().eq(expected.keys()), "other payloads live than should");
        let journal = recovery.start()?;
        // Only now is it settled what is there and what is not.
        self.batches.truncate(kept);
        self.checkpoints.push(self.before.clone());
        self.checkpoints.retain(|(start, _)| *start == from);
        self.checkpoint = from;
        Ok(journal)
    }

    fn load_checkpoint(
        &self,
        recovery: &Recovery,
        live: &mut BTreeSet<Lsn>,
    ) -> Result<Lsn, OpenError> {
        let start = recovery.replay_start();
        let mut state = Vec::new();
        if let Some(mut reader) = recovery.checkpoint()? {
            assert_eq!(reader.start(), start);
            reader.read_to_end(&mut state).map_err(|error| OpenError::Io {
                action: "read",
                path: DIR.into(),
                error,
            })?;
        }
        let has_fallen_back = !recovery.survived().is_empty();
        let is_before = has_fallen_back && self.before == (start, state.clone());
        if start == Lsn(0) && !is_before {
            assert!(self.checkpoint == Lsn(0), "the checkpoint is gone");
            return Ok(start);
        }
        let known = self.checkpoints.iter().any(|known| *known == (start, state.clone()));
        assert!(known || is_before, "a checkpoint that was never made");
        assert!(self.checkpoint <= start || is_before, "an older checkpoint than the last");
        for position in decode_state(&state) {
            recovery.hold(position, 1);
            live.insert(position);
        }
        Ok(start)
    }
}

fn replay(
    recovery: &Recovery,
    found: &mut Vec<Appended>,
    live: &mut BTreeSet<Lsn>,
) -> Result<courser_journal::Replayed, OpenError> {
    let result = recovery.replay(
        &mut |record| {
            let entry = Entry::decode(record.bytes);
            match &entry {
                Entry::Payload(_) if live.insert(record.position) => {
                    recovery.hold(record.position, 1);
                }
                Entry::Payload(_) => {}
                Entry::Ack(of) => {
                    if live.remove(of) {
                        recovery.release(*of);
                    }
                }
            }
            if record.batch.index == 0 {
                let (start, end) = (record.batch.start, record.batch.end);
                found.push(Appended { start, end, entries: Vec::new() });
            }
            found.last_mut().unwrap().entries.push((record.position, entry));
            Ok::<(), String>(())
        },
        &mut |_| {},
    );
    result.map_err(|error| match error {
        ReplayError::Journal(error) => error,
        ReplayError::Owner(error) => panic!("{error}"),
    })
}
