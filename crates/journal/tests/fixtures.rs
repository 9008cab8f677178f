//! Journals that were written in earlier formats are still read, byte for byte.

#[path = "fixtures/journal.rs"]
mod journal;

use courser_journal::{Lsn, ReadCache, RealDisk, Replayed, tools};
use journal::{open, record};
use std::{fs, io::Read, path::Path, sync::Arc};

#[test]
fn version_3_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v3");
    for file in fs::read_dir(fixture).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
    }
    check(dir.path());
}

#[test]
fn what_is_written_now_lies_where_version_3_has_it() {
    let dir = tempfile::tempdir().unwrap();
    journal::write(dir.path());
    check(dir.path());
}

/// Sees that the journal is what [`journal::write`] made of it, position for position.
fn check(dir: &Path) {
    let mut report = Vec::new();
    assert!(tools::verify(dir, Arc::new(RealDisk), &mut report).unwrap());
    assert_eq!(String::from_utf8(report).unwrap(), "the journal is sound\n");

    let recovery = open(dir);
    let mut state = Vec::new();
    let mut reader = recovery.checkpoint().unwrap().unwrap();
    reader.read_to_end(&mut state).unwrap();
    assert_eq!(reader.start(), Lsn(0x66f0));
    let live: Vec<Lsn> =
        state.chunks_exact(8).map(|lsn| Lsn(u64::from_le_bytes(lsn.try_into().unwrap()))).collect();
    assert_eq!(live, [Lsn(0x1020), Lsn(0x11a8)]);
    live.iter().for_each(|position| assert!(recovery.hold(*position, 1)));
    let mut records = Vec::new();
    let replayed = recovery
        .replay(
            &mut |record| {
                records.push(record.bytes.to_vec());
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
