//! A journal that stands alone becomes a copy, whenever the machine stops meanwhile.

use crate::copy::{DIR, open, options};
use courser_journal::{
    AppendMode, Batch, Journal, Lsn, OpenError, ReadCache, ReplayError,
    replica::{AdoptError, Adoption, Chunk, EntryId, EntryKind, Installer, Vote, is_copy},
    testing::{FakeDisk, Faults},
};
use std::{collections::BTreeMap, io::Read, path::Path, sync::Arc};

pub type Records = BTreeMap<u64, Vec<u8>>;

/// What is in a journal that stands alone, by its checkpoint and the log behind that, and the journal.
pub fn begin(disk: &FakeDisk) -> Result<(Journal, Records), OpenError> {
    let options = courser_journal::Options { segment_bytes: 16 << 10, ..options() };
    let recovery = Journal::open(Path::new(DIR), options, Arc::new(disk.clone()))?;
    let mut records = Records::new();
    if let Some(mut checkpoint) = recovery.checkpoint()? {
        records = read(&mut checkpoint);
    }
    let mut each = |record: courser_journal::Record<'_>| {
        records.insert(record.position.0, record.bytes.to_vec());
        Ok::<(), String>(())
    };
    match recovery.replay(&mut each, &mut |_| {}) {
        Ok(_) => {}
        Err(ReplayError::Journal(error)) => return Err(error),
        Err(ReplayError::Owner(error)) => panic!("{error}"),
    }
    records.keys().for_each(|position| assert!(recovery.hold(Lsn(*position), 1)));
    Ok((recovery.start()?, records))
}

/// The state that the checkpoints of this test have: position, length, bytes.
fn write(records: &Records, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for (position, bytes) in records {
        out.write_all(&position.to_le_bytes())?;
        out.write_all(&(bytes.len() as u64).to_le_bytes())?;
        out.write_all(bytes)?;
    }
    Ok(())
}

fn read(checkpoint: &mut dyn Read) -> Records {
    let mut bytes = Vec::new();
    checkpoint.read_to_end(&mut bytes).unwrap();
    let (mut rest, mut records) = (&bytes[..], Records::new());
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let (record, tail) = tail.split_at(number(8) as usize);
        records.insert(number(0), record.to_vec());
        rest = tail;
    }
    records
}

pub fn append(journal: &Journal, records: &mut Records, bytes: &[u8]) {
    let mut batch = Batch::new();
    batch.push(&[bytes]);
    let appended = journal.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
    journal.flush_once();
    records.insert(appended.position(0).0, bytes.to_vec());
}

/// A journal of some segments, with a checkpoint within.
pub fn alone(seed: u64, count: u8) -> (FakeDisk, Records) {
    let disk = FakeDisk::new(seed);
    let (journal, mut records) = begin(&disk).unwrap();
    for number in 0..count {
        append(&journal, &mut records, &vec![number; 700 + 90 * usize::from(number)]);
        journal.maintain_once();
        if number == count / 2 {
            let start = journal.end();
            let live = records.clone();
            journal
                .checkpoint(
                    &mut || start,
                    &mut |each| live.keys().for_each(|position| each(Lsn(*position))),
                    &mut |out| write(&live, out),
                )
                .unwrap();
        }
    }
    (disk, records)
}

fn vote() -> Vote {
    Vote { term: 1, voted_for: 7, members: vec![7; 9], members_index: 1 }
}

pub fn adopt(disk: &FakeDisk) -> Result<(), String> {
    let (journal, records) = begin(disk).map_err(|error| error.to_string())?;
    finish(&journal, &records).map_err(|error| error.to_string())
}

pub fn finish(journal: &Journal, records: &Records) -> Result<(), AdoptError> {
    let adoption = Adoption::begin(
        journal,
        &mut |each| records.keys().for_each(|position| each(Lsn(*position))),
        &mut |out| write(records, out),
    )?;
    adoption.finish(&vote())
}

/// The copy has everything, goes on, and can be sent to others.
pub fn check_copy(disk: &FakeDisk, records: &Records) {
    let replica = open(disk).unwrap();
    assert_eq!(replica.vote(), vote());
    let first = EntryId { term: 1, index: 1 };
    assert_eq!((replica.first(), replica.last()), (first, first));
    assert_eq!(replica.last_in_checkpoint(), first);
    let checkpoint = replica.checkpointed().unwrap();
    assert_eq!(&read(&mut &checkpoint.data[..]), records);
    let mut cache = ReadCache::default();
    for (position, bytes) in records {
        assert_eq!(replica.read_record(Lsn(*position), &mut cache).unwrap(), bytes);
    }
    let start = replica.place_note(EntryId { term: 2, index: 2 }, EntryKind::Start, &[]);
    start.unwrap();
    replica.commit(1).unwrap();
    let lead = replica.lead(2);
    lead.count_live(&mut |each| records.keys().for_each(|position| each(Lsn(*position)))).unwrap();
    let mut batch = Batch::new();
    batch.push(&[&[0x5a; 3000]]);
    lead.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
    let entry = replica.place(EntryId { term: 2, index: 3 }).unwrap().unwrap();
    while replica.flush_once() {}
    replica.commit(3).unwrap();

    let other = FakeDisk::new(9);
    let identity = replica.identity();
    let mut installer =
        Installer::begin(Path::new(DIR), Arc::new(other.clone()), identity, &Vote::default(), None)
            .unwrap();
    let mut bootstrap = replica.bootstrap().unwrap();
    while let Some(chunk) = bootstrap.next_chunk(3000).unwrap() {
        installer.chunk(Chunk::decode(&chunk.encode()).unwrap()).unwrap();
    }
    installer.finish().unwrap();
    let sent = open(&other).unwrap();
    for (position, bytes) in records {
        assert_eq!(sent.read_record(Lsn(*position), &mut cache).unwrap(), bytes);
    }
    assert_eq!(sent.last(), entry.id);
    drop((bootstrap, lead, replica));
    disk.kill();
    let again = open(disk).unwrap();
    assert_eq!(again.last(), entry.id);
    assert_eq!(again.read(3, 4, u64::MAX).unwrap(), [entry]);
}

#[test]
fn a_journal_that_was_adopted_is_a_copy_with_the_same_records() {
    for count in [0, 1, 20, 40] {
        let (disk, records) = alone(3, count);
        disk.kill();
        assert!(!is_copy(&disk, Path::new(DIR)).unwrap());
        adopt(&disk).unwrap();
        assert!(is_copy(&disk, Path::new(DIR)).unwrap());
        let options = courser_journal::Options { segment_bytes: 16 << 10, ..options() };
        let as_before = Journal::open(Path::new(DIR), options, Arc::new(disk.clone()));
        assert!(as_before.is_err(), "it stands alone no more");
        // The one before stands for as much.
        let newest = disk
            .names()
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "checkpoint"))
            .max();
        disk.corrupt(&newest.unwrap(), 100, 1);
        check_copy(&disk, &records);
    }
}

#[test]
fn an_interrupted_adoption_leaves_the_journal_or_the_copy() {
    let (mut journals, mut copies) = (0, 0);
    for after in 0.. {
        let (disk, mut records) = alone(after, 24);
        disk.kill();
        disk.set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
        let is_done = adopt(&disk).is_ok();
        match after % 2 {
            0 => disk.lose_power(),
            _ => disk.kill(),
        }
        disk.set_faults(Faults::default());
        if is_copy(&disk, Path::new(DIR)).unwrap() {
            copies += 1;
        } else {
            assert!(!is_done, "it was said to be a copy");
            journals += 1;
            // It goes on as if nothing had been, and can be adopted again.
            let (journal, found) = begin(&disk).unwrap();
            assert_eq!(found, records);
            append(&journal, &mut records, b"one more");
            drop(journal);
            adopt(&disk).unwrap();
        }
        check_copy(&disk, &records);
        if is_done {
            break;
        }
    }
    assert!(journals > 10 && copies > 0, "{journals} journals, {copies} copies");
}
