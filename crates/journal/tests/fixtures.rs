//! Journals that were written by released formats are still read, octet for octet.

use courser_journal::{
    AppendMode, Batch, Journal, Lsn, Options, ReadCache, RealDisk, Recovery, Replayed, tools,
};
use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

const SYNC: AppendMode = AppendMode { sync: true, reserve: false };

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}"))
}

fn open(dir: &Path) -> Recovery {
    let options = Options { segment_bytes: 16 << 10, threads: false, ..Options::default() };
    Journal::open(dir, options, Arc::new(RealDisk)).unwrap()
}

fn record(number: u32) -> Vec<u8> {
    let len = [0, 1, 7, 8, 300, 2500][number as usize % 6];
    (0..len).map(|index| (number + index) as u8).collect()
}

/// Writes the fixture of the current version: two live records in the first segment, a checkpoint
/// after 40 records that names them, and a clean end after 60.
#[test]
#[ignore = "only for a new format version"]
fn write_fixture() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).start().unwrap();
    let mut batch = Batch::new();
    let mut live = Vec::new();
    for number in 0..60 {
        batch.push(&[&record(number)]);
        if number % 5 == 4 {
            let appended = journal.append(&mut batch, SYNC).unwrap();
            if number < 10 {
                live.push(appended.position(0));
                journal.hold(appended.position(0), 1);
            }
        }
        if number == 39 {
            let state: Vec<u8> = live.iter().flat_map(|lsn| lsn.0.to_le_bytes()).collect();
            journal
                .checkpoint(
                    journal.end(),
                    &mut |each| live.iter().for_each(|position| each(*position)),
                    &mut |out| out.write_all(&state),
                )
                .unwrap();
        }
    }
    journal.close().unwrap();
    fs::create_dir_all(fixture(1)).unwrap();
    for file in fs::read_dir(dir.path()).unwrap() {
        let (path, name) = (file.as_ref().unwrap().path(), file.unwrap().file_name());
        if path.extension().is_some_and(|kind| kind == "log" || kind == "checkpoint") {
            fs::copy(path, fixture(1).join(name)).unwrap();
        }
    }
}

#[test]
fn version_1_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for file in fs::read_dir(fixture(1)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    let mut report = Vec::new();
    assert!(tools::verify(dir.path(), Arc::new(RealDisk), &mut report).unwrap());
    assert_eq!(String::from_utf8(report).unwrap(), "the journal is sound\n");

    let recovery = open(dir.path());
    let mut state = Vec::new();
    let mut reader = recovery.checkpoint().unwrap().unwrap();
    reader.read_to_end(&mut state).unwrap();
    assert_eq!(reader.start(), Lsn(0x66f0));
    let live: Vec<Lsn> =
        state.chunks_exact(8).map(|lsn| Lsn(u64::from_le_bytes(lsn.try_into().unwrap()))).collect();
    assert_eq!(live, [Lsn(0x1020), Lsn(0x11a8)]);
    live.iter().for_each(|position| recovery.hold(*position, 1));
    let mut records = Vec::new();
    let replayed = recovery
        .replay(
            &mut |record| {
                records.push(record.octets.to_vec());
                Ok::<(), String>(())
            },
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(records, (40..60).map(record).collect::<Vec<_>>());
    let expected = Replayed { batches: 4, records: 20, end: Lsn(0xa6b0), clean: true, torn: false };
    assert_eq!(replayed, expected);
    let journal = recovery.start().unwrap();
    let mut cache = ReadCache::default();
    assert_eq!(journal.read(live[0], &mut cache).unwrap(), record(0));
    assert_eq!(journal.read(live[1], &mut cache).unwrap(), record(5));
}
