//! A disk without room: publishes are refused, what frees room goes on.

use crate::support::{SYNC, append, dir, open, start};
use courser_journal::{AppendError, AppendMode, Batch, Journal, Lsn, testing::FakeDisk};
use courser_store::Position;

/// Appends and holds records until there is no room. The one that was refused is left in the batch.
fn fill(journal: &Journal, batch: &mut Batch, held: &mut Vec<Lsn>) {
    loop {
        batch.push(&[&[1; 1000]]);
        match journal.append(batch, SYNC) {
            Ok(appended) => held.push(appended.position(0)),
            Err(AppendError::Full) => break,
            Err(error) => panic!("{error}"),
        }
        journal.hold(held[held.len() - 1], 1);
        assert!(held.len() < 1000);
    }
}

#[test]
fn a_full_disk_refuses_publishes_takes_acks_and_recovers() {
    let disk = FakeDisk::new(8);
    let journal = start(&disk);
    let mut held: Vec<Lsn> = (0..100).flat_map(|_| append(&journal, &[&[1; 1000]], SYNC)).collect();
    held.iter().for_each(|position| journal.hold(*position, 1));
    journal.maintain_once();
    // No room for a segment, nor for the checkpoint below.
    disk.set_capacity(disk.used_bytes() + 10_000);
    let mut batch = Batch::new();
    fill(&journal, &mut batch, &mut held);
    assert!(!journal.has_room());
    // Acks go in, more than fit into what is left of the segment.
    let reserve = AppendMode { sync: true, reserve: true };
    for position in held.drain(..) {
        append(&journal, &[&position.0.to_le_bytes()], reserve);
        journal.release(&[position.into()]);
    }
    assert!(journal.failed().is_none() && journal.wants_checkpoint());
    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(&[0; 20_000]))
        .unwrap();
    assert!(journal.has_room());
    assert_eq!(batch.len(), 1);
    journal.append(&mut batch, SYNC).unwrap();
    journal.wait_durable(journal.end()).unwrap();
}

#[test]
fn a_file_system_that_takes_no_more_files_is_a_full_disk() {
    let disk = FakeDisk::new(12);
    let journal = start(&disk);
    journal.maintain_once();
    disk.set_files_max(disk.names().len());
    let (mut batch, mut held) = (Batch::new(), Vec::new());
    fill(&journal, &mut batch, &mut held);
    assert!(!journal.has_room() && journal.failed().is_none());
    let reserve = AppendMode { sync: true, reserve: true };
    for position in held.drain(..) {
        append(&journal, &[&position.0.to_le_bytes()], reserve);
        journal.release(&[position.into()]);
    }
    // Its file is made in the place of a spare one, and what it frees is room.
    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"))
        .unwrap();
    disk.set_files_max(usize::MAX);
    journal.maintain_once();
    assert!(journal.has_room());
    journal.append(&mut batch, SYNC).unwrap();
    journal.wait_durable(journal.end()).unwrap();
}

#[test]
fn what_takes_room_finds_none_in_the_reserve_that_what_frees_room_has_begun() {
    let disk = FakeDisk::new(14);
    let journal = start(&disk);
    journal.maintain_once();
    disk.set_capacity(disk.used_bytes());
    let mut batch = Batch::new();
    fill(&journal, &mut batch, &mut Vec::new());
    let reserve = AppendMode { sync: true, reserve: true };
    // More than is left of the segment.
    append(&journal, &[&[2; 2000]], reserve);
    assert!(matches!(journal.append(&mut batch, SYNC), Err(AppendError::Full)));
    append(&journal, &[&[2; 2000]], reserve);
    disk.set_capacity(u64::MAX);
    journal.maintain_once();
    journal.append(&mut batch, SYNC).unwrap();
}

fn checkpoint(journal: &Journal) {
    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"))
        .unwrap();
}

/// Damages the newest checkpoint.
fn damage_newest(disk: &FakeDisk) {
    let checkpoints = disk
        .names()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|it| it == "checkpoint"));
    disk.corrupt(&checkpoints.max().unwrap(), 40, 1);
}

#[test]
fn what_was_released_unlogged_is_kept_for_the_older_checkpoint_also_after_a_restart() {
    let disk = FakeDisk::new(13);
    let journal = start(&disk);
    let held: Vec<Lsn> = (0..100).flat_map(|_| append(&journal, &[&[1; 1000]], SYNC)).collect();
    held.iter().for_each(|position| journal.hold(*position, 1));
    checkpoint(&journal);
    let released: Vec<Position> = held.iter().map(|position| (*position).into()).collect();
    journal.release_unlogged(&released);
    checkpoint(&journal);
    journal.close().unwrap();
    drop(journal);

    let journal = start(&disk);
    journal.maintain_once();
    drop(journal);
    let newest = disk.contents(&dir().join("0000000000000004.checkpoint")).unwrap();
    damage_newest(&disk);
    let (recovery, _) = open(&disk);
    assert_eq!(recovery.survived().len(), 1);
    assert!(held.iter().all(|position| recovery.hold(*position, 1)), "a segment is missing");
    drop(recovery);

    // The next one, with that which is older by then, stands for all that has gone.
    disk.put(&dir().join("0000000000000004.checkpoint"), &newest);
    let journal = start(&disk);
    assert!(journal.awaits_checkpoint());
    let before = journal.usage().segments;
    checkpoint(&journal);
    assert!(!journal.awaits_checkpoint() && journal.usage().segments < before);
}
