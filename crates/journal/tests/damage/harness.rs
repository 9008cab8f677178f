//! A journal with some of everything in it, ways to harm its files, and what has to hold after it.

use courser_journal::{
    AppendMode, Batch, Journal, Lsn, OpenError, Options, Recovery, ReplayError,
    testing::{FakeDisk, Faults},
    tools::{ToolError, inspect, repair, verify},
};
use std::{
    collections::BTreeMap,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

const DIR: &str = "journal";
const PAGE_BYTES: u64 = 4096;
const SYNC: AppendMode = AppendMode { sync: true, reserve: false };

/// One way to harm a file. Files are counted in the order of their names, all numbers wrap around.
#[derive(Clone, Debug)]
pub enum Harm {
    Flip { file: u8, offset: u32, mask: u8 },
    Fill { file: u8, offset: u32, len: u32, byte: u8 },
    Cut { file: u8, offset: u32 },
    Copy { file: u8, offset: u32, from: u8, from_offset: u32, len: u32 },
    Remove { file: u8 },
}

/// What a start makes of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is there.
    Whole,
    /// The end is not there, and that was not told.
    Shorter,
    /// The start is refused.
    Damaged,
}

/// A journal that was stopped.
pub struct Sample {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// All that was ever appended.
    records: BTreeMap<Lsn, Vec<u8>>,
    /// From where to where each batch goes.
    batches: Vec<Range<Lsn>>,
    /// What a replay of the unharmed journal finds.
    replayed: Vec<Lsn>,
    state: Vec<u8>,
}

fn options() -> Options {
    Options { segment_bytes: 16 << 10, threads: false, ..Options::default() }
}

fn open(disk: &FakeDisk) -> Result<Recovery, OpenError> {
    Journal::open(&PathBuf::from(DIR), options(), Arc::new(disk.clone()))
}

impl Sample {
    /// Makes it: old segments with a few live records in them, holes, a checkpoint, segments to be
    /// replayed, and a clean end.
    pub fn new() -> Self {
        let disk = FakeDisk::new(0);
        let journal = open(&disk).and_then(|recovery| recovery.start()).unwrap();
        let mut batch = Batch::new();
        let mut records = BTreeMap::new();
        let (mut batches, mut live) = (Vec::new(), Vec::new());
        let state = vec![42; 100_000];
        let mut checkpoint = Lsn(0);
        for round in 0..120_u32 {
            for index in 0..=round % 4 {
                let bytes = vec![round as u8; ((round * 37 + index * 411) % 1500) as usize];
                batch.push(&[&bytes]);
            }
            let count = batch.len();
            let appended = journal.append(&mut batch, SYNC).unwrap();
            batches.push(appended.start()..appended.end());
            for index in 0..count {
                let position = appended.position(index);
                let len = ((round * 37 + index as u32 * 411) % 1500) as usize;
                records.insert(position, vec![round as u8; len]);
            }
            if round % 30 == 7 {
                live.push(appended.position(0));
                journal.hold(appended.position(0), 1);
            }
            journal.wait_durable(journal.end()).unwrap();
            if round == 80 {
                checkpoint = journal.end();
                journal
                    .checkpoint(
                        &mut || checkpoint,
                        &mut |each| live.iter().for_each(|position| each(*position)),
                        &mut |out| out.write_all(&state),
                    )
                    .unwrap();
            }
        }
        journal.close().unwrap();
        drop(journal);
        let contents = |path: PathBuf| disk.contents(&path).map(|contents| (path, contents));
        let files = disk.names().into_iter().filter_map(contents).collect();
        let replayed = records.keys().copied().filter(|at| *at >= checkpoint).collect();
        Sample { files, records, batches, replayed, state }
    }

    /// Harms a copy of the journal, and checks what the journal and its tools make of it.
    pub fn check(&self, harms: &[Harm]) -> Outcome {
        let disk = self.harmed(harms);
        let outcome = match self.read(&disk) {
            Ok(outcome) => outcome,
            Err(OpenError::Damaged { .. }) => Outcome::Damaged,
            // A harmed version is taken for another version.
            Err(OpenError::UnknownVersion { .. }) => return Outcome::Damaged,
            Err(error) => panic!("{error}"),
        };
        let dir = PathBuf::from(DIR);
        let mut report = Vec::new();
        inspect(&dir, Arc::new(disk.clone()), &mut report).unwrap();
        let sound = verify(&dir, Arc::new(disk.clone()), &mut report).unwrap_or(false);
        assert!(!sound || outcome != Outcome::Damaged);
        match repair(&dir, Arc::new(disk.clone()), &mut report) {
            Ok(_) => {
                assert_ne!(self.read(&disk).unwrap(), Outcome::Damaged);
                self.go_on(&disk);
            }
            Err(error @ (ToolError::Stuck(_) | ToolError::Endless(_))) => {
                panic!("{error}:\n{}", String::from_utf8_lossy(&report))
            }
            // Too little is left: nothing says which journal it is, or all of the log is lost.
            Err(_) => assert_eq!(outcome, Outcome::Damaged),
        }
        outcome
    }

    fn harmed(&self, harms: &[Harm]) -> FakeDisk {
        let mut files = self.files.clone();
        for harm in harms {
            harm.apply(&mut files);
        }
        let disk = FakeDisk::new(1);
        for (path, contents) in files {
            disk.put(&path, &contents);
        }
        disk
    }

    /// Repairs a copy of the journal that is harmed, and again one with what the first repair has set aside already there: both
    /// times all of it is kept. In the files of these `names` is nothing that belongs there.
    pub fn check_kept(&self, harms: &[Harm], names: &[&str]) {
        let repaired = |kept: &[(PathBuf, Vec<u8>)]| {
            let disk = self.harmed(harms);
            for name in names {
                disk.put(&PathBuf::from(DIR).join(name), &[1; 5000]);
            }
            kept.iter().for_each(|(path, contents)| disk.put(path, contents));
            repair(&PathBuf::from(DIR), Arc::new(disk.clone()), &mut Vec::new()).unwrap();
            disk
        };
        let is_aside = |path: &PathBuf| path.extension().is_some_and(|end| end == "bad");
        let once = repaired(&[]);
        let aside: Vec<PathBuf> = once.names().into_iter().filter(is_aside).collect();
        assert!(!aside.is_empty(), "nothing is set aside after {harms:?} {names:?}");
        let earlier = |path: &PathBuf| (path.clone(), path.to_string_lossy().as_bytes().to_vec());
        let earlier: Vec<(PathBuf, Vec<u8>)> = aside.iter().map(earlier).collect();
        let twice = repaired(&earlier);
        for (path, contents) in earlier {
            assert!(twice.contents(&path) == Some(contents), "{}", path.display());
            let new = path.with_extension("").to_string_lossy().into_owned() + "-2.bad";
            let new = PathBuf::from(new);
            assert!(twice.contents(&new) == once.contents(&path), "{}", new.display());
        }
    }

    /// Makes each page of each file in turn one that can't be read. `verify` names it, and a start after a repair has all but what
    /// has bytes in it.
    pub fn check_each_bad_page(&self) {
        let is_read = |path: &Path| path.extension().is_some_and(|end| end != "spare");
        for (path, contents) in self.files.iter().filter(|(path, _)| is_read(path)) {
            for offset in (0..contents.len() as u64).step_by(PAGE_BYTES as usize) {
                println!("{} at {offset}", path.display());
                self.check_bad_page(path, offset);
            }
        }
    }

    fn check_bad_page(&self, path: &Path, offset: u64) {
        let disk = self.harmed(&[]);
        let (bad_file, bad_spot) = (Some(path.to_owned()), offset..offset + 1);
        disk.set_faults(Faults { bad_file, bad_spot, ..Faults::default() });
        let dir = PathBuf::from(DIR);
        let mut report = Vec::new();
        let sound = verify(&dir, Arc::new(disk.clone()), &mut report).unwrap();
        let report = String::from_utf8(report).unwrap();
        let is_named =
            report.contains(&path.display().to_string()) && report.contains("can't be read");
        assert!(is_named && !sound, "{report}");
        inspect(&dir, Arc::new(disk.clone()), &mut Vec::new()).unwrap();
        let mut report = Vec::new();
        let repaired = repair(&dir, Arc::new(disk.clone()), &mut report).unwrap();
        let report = String::from_utf8(report).unwrap();
        assert!(repaired.changed, "{report}");
        let (outcome, found) = self.found(&disk).unwrap();
        assert!(repaired.lost || outcome == Outcome::Whole, "{report}");
        let start = path.file_stem().and_then(|stem| u64::from_str_radix(stem.to_str()?, 16).ok());
        let page = start.filter(|_| path.extension().is_some_and(|end| end == "log"));
        let page = page.map(|start| Lsn(start + offset)..Lsn(start + offset + PAGE_BYTES));
        for at in self.replayed.iter().filter(|at| !found.contains(at)) {
            let batch = self.batches.iter().find(|batch| batch.contains(at)).unwrap();
            let is_hit =
                page.as_ref().is_some_and(|page| batch.start < page.end && page.start < batch.end);
            assert!(is_hit, "{at} is lost: {report}");
        }
        self.go_on(&disk);
    }

    /// Takes from each segment its header and what lies behind a place: what is left is read after a repair.
    pub fn check_each_without_header_and_end(&self) {
        let is_log = |path: &Path| path.extension().is_some_and(|end| end == "log");
        for (file, (path, contents)) in self.files.iter().enumerate() {
            let stem = path.file_stem().filter(|_| is_log(path)).and_then(|stem| stem.to_str());
            let Some(start) = stem.and_then(|stem| u64::from_str_radix(stem, 16).ok()) else {
                continue;
            };
            let file = file as u8;
            for cut in (2..contents.len() as u64 / PAGE_BYTES).map(|page| page * PAGE_BYTES) {
                let header = Harm::Fill { file, offset: 0, len: PAGE_BYTES as u32, byte: 0xff };
                let disk = self.harmed(&[header, Harm::Cut { file, offset: cut as u32 }]);
                let mut report = Vec::new();
                let repaired = repair(Path::new(DIR), Arc::new(disk.clone()), &mut report);
                let report = String::from_utf8(report).unwrap();
                assert!(repaired.is_ok(), "{repaired:?}: {report}");
                let (_, found) = self.found(&disk).unwrap();
                let is_left = |batch: &Range<Lsn>| {
                    let gone = Lsn(start + cut)..Lsn(start + contents.len() as u64);
                    batch.end <= gone.start || gone.end <= batch.start
                };
                let lost = self.replayed.iter().find(|at| {
                    let batch = self.batches.iter().find(|batch| batch.contains(at)).unwrap();
                    is_left(batch) && !found.contains(at)
                });
                assert_eq!(lost, None, "{} cut at {cut}: {report}", path.display());
                self.go_on(&disk);
            }
        }
    }

    /// The places of all files of a kind, in the order of their names.
    pub fn files(&self, kind: &str) -> Vec<u8> {
        let files = self.files.iter().enumerate();
        let of_kind =
            files.filter(|(_, (path, _))| path.extension().is_some_and(|end| end == kind));
        of_kind.map(|(place, _)| place as u8).collect()
    }

    /// Opens and replays. Whatever is found was appended, where it was appended.
    fn read(&self, disk: &FakeDisk) -> Result<Outcome, OpenError> {
        self.found(disk).map(|(outcome, _)| outcome)
    }

    /// As [`Sample::read`], with where the records are that are found.
    fn found(&self, disk: &FakeDisk) -> Result<(Outcome, Vec<Lsn>), OpenError> {
        let recovery = open(disk)?;
        let mut checkpoint_is_whole = false;
        if let Some(mut reader) = recovery.checkpoint()? {
            let mut state = Vec::new();
            checkpoint_is_whole = reader.read_to_end(&mut state).is_ok();
            assert!(!checkpoint_is_whole || state == self.state);
        }
        let mut found = Vec::new();
        let result = recovery.replay(
            &mut |record| {
                assert_eq!(
                    self.records.get(&record.position).map(Vec::as_slice),
                    Some(record.bytes)
                );
                assert!(found.last().is_none_or(|last| *last < record.position));
                found.push(record.position);
                Ok::<(), String>(())
            },
            &mut |_| {},
        );
        match result {
            Ok(_) if found.ends_with(&self.replayed) || !checkpoint_is_whole => {
                Ok((Outcome::Whole, found))
            }
            Ok(_) => Ok((Outcome::Shorter, found)),
            Err(ReplayError::Journal(error)) => Err(error),
            Err(ReplayError::Owner(error)) => panic!("{error}"),
        }
    }

    /// The journal starts, takes more and has it after the next start.
    fn go_on(&self, disk: &FakeDisk) {
        let recovery = open(disk).unwrap();
        let before = recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
        let journal = recovery.start().unwrap();
        let mut batch = Batch::new();
        batch.push(&[b"more"]);
        let position = journal.append(&mut batch, SYNC).unwrap().position(0);
        journal.close().unwrap();
        drop(journal);
        disk.lose_power();
        let mut last = None;
        let after = open(disk)
            .unwrap()
            .replay(
                &mut |record| {
                    last = Some((record.position, record.bytes.to_vec()));
                    Ok::<(), String>(())
                },
                &mut |_| {},
            )
            .unwrap();
        assert_eq!(after.records, before.records + 1);
        assert_eq!(last, Some((position, b"more".to_vec())));
    }
}

impl Harm {
    fn apply(&self, files: &mut Vec<(PathBuf, Vec<u8>)>) {
        let count = files.len();
        if count == 0 {
            return;
        }
        let at = |file: u8| usize::from(file) % count;
        let within = |contents: &[u8], offset: u32| offset as usize % contents.len().max(1);
        match *self {
            Harm::Flip { file, offset, mask } => {
                let contents = &mut files[at(file)].1;
                let offset = within(contents, offset);
                if let Some(byte) = contents.get_mut(offset) {
                    *byte ^= mask;
                }
            }
            Harm::Fill { file, offset, len, byte } => {
                let contents = &mut files[at(file)].1;
                let offset = within(contents, offset);
                let end = contents.len().min(offset + len as usize);
                contents[offset..end].fill(byte);
            }
            Harm::Cut { file, offset } => {
                let contents = &mut files[at(file)].1;
                let offset = within(contents, offset);
                contents.truncate(offset);
            }
            Harm::Copy { file, offset, from, from_offset, len } => {
                let source = files[at(from)].1.clone();
                let from_offset = within(&source, from_offset);
                let contents = &mut files[at(file)].1;
                let offset = within(contents, offset);
                let room = contents.len() - offset;
                let len = (len as usize).min(room).min(source.len() - from_offset);
                contents[offset..offset + len]
                    .copy_from_slice(&source[from_offset..from_offset + len]);
            }
            Harm::Remove { file } => {
                files.remove(at(file));
            }
        }
    }
}
