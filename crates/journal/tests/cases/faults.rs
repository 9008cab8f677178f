//! What the journal does when something is wrong, one case at a time, on a disk in memory.

use crate::support::{LAZY, SYNC, append, dir, open, options, replay, start};
use courser_journal::{
    AppendError, Batch, Damage, EachLive, Journal, Lsn, OpenError, ReadCache, ReadError,
    testing::{FakeDisk, Faults},
};
use std::{path::PathBuf, sync::Arc};

fn segment(start: u64) -> PathBuf {
    dir().join(format!("{start:016x}.log"))
}

/// The process ends without a chance to write anything more.
fn crash(disk: &FakeDisk, journal: Journal) {
    disk.set_faults(Faults { power_off_after: Some(0), ..Faults::default() });
    drop(journal);
    disk.kill();
}

#[test]
fn frames_of_a_lost_tail_do_not_come_back_behind_new_ones() {
    let disk = FakeDisk::new(0);
    let journal = start(&disk);
    append(&journal, &[b"safe"], SYNC);
    journal.wait_durable(journal.end()).unwrap();
    // Frames of one length: where a new one ends, an old one starts.
    let lost = append(&journal, &[&[1; 2000]], LAZY)[0];
    append(&journal, &[&[2; 2000]], LAZY);
    journal.flush_once();
    crash(&disk, journal);
    // Of what was not synced the second frame got to the disk, the first one did not.
    disk.corrupt(&segment(0), lost.0 as usize + 100, 1);
    let (recovery, records) = open(&disk);
    assert_eq!(records.len(), 1);
    let journal = recovery.start().unwrap();
    assert_eq!(append(&journal, &[&[3; 2000]], SYNC), [lost]);
    journal.flush_once();
    crash(&disk, journal);
    let (_, records) = open(&disk);
    assert_eq!(records[1..], [(lost, vec![3; 2000])]);
}

#[test]
fn bytes_of_the_segment_that_a_file_was_before_are_no_records() {
    let disk = FakeDisk::new(1);
    let journal = start(&disk);
    // One record to a frame, all of one length: old and new ones lie at the same offsets.
    let fill = |journal: &Journal, byte: u8| {
        let mut positions = Vec::new();
        while positions.len() < 40 {
            let position = append(journal, &[&[byte; 1000]], SYNC)[0];
            positions.push(position);
        }
        journal.wait_durable(journal.end()).unwrap();
        positions
    };
    fill(&journal, 1);
    let old: Vec<_> = disk.names().into_iter().filter_map(|path| disk.contents(&path)).collect();
    // What neither of two checkpoints needs is used again.
    for _ in 0..2 {
        journal.checkpoint(&mut || journal.end(), &mut |_| {}, &mut |_| Ok(())).unwrap();
    }
    let positions = fill(&journal, 2);
    // The disk lost the new frames: what was there before is there again.
    for path in disk.names() {
        let Some(now) = disk.contents(&path) else { continue };
        for before in &old {
            if path.extension().is_some_and(|is| is == "log") && before.len() == now.len() {
                let mixed = [&now[..4096], &before[4096..]].concat();
                disk.put(&path, &mixed);
                break;
            }
        }
    }
    let mut cache = ReadCache::default();
    for position in positions {
        match journal.read(position, &mut cache) {
            Ok(bytes) => assert_eq!(bytes, [2; 1000]),
            Err(error) => assert!(matches!(error, ReadError::Bad { .. }), "{error}"),
        }
    }
    drop(journal);
    disk.kill();
    match Journal::open(&dir(), options(), Arc::new(disk)).map(|recovery| replay(&recovery)) {
        Ok(Ok(records)) => assert!(records.iter().all(|(_, bytes)| bytes[0] == 2)),
        Ok(Err(error)) | Err(error) => assert!(matches!(error, OpenError::Damaged { .. })),
    }
}

#[test]
fn a_bad_frame_before_durable_ones_stops_the_start_and_names_the_place() {
    let disk = FakeDisk::new(2);
    let journal = start(&disk);
    let mut positions = Vec::new();
    for fill in 0..5 {
        positions.push(append(&journal, &[&[fill; 100]], SYNC)[0]);
        journal.wait_durable(journal.end()).unwrap();
    }
    drop(journal);
    disk.kill();
    let before = disk.contents(&segment(0)).unwrap();
    disk.corrupt(&segment(0), positions[2].0 as usize + 50, 0x10);
    let recovery = Journal::open(&dir(), options(), Arc::new(disk.clone())).unwrap();
    let error = replay(&recovery).unwrap_err();
    let OpenError::Damaged { path, offset, damage } = &error else { panic!("{error}") };
    assert_eq!((path, *offset, damage), (&segment(0), positions[2].0 - 32, &Damage::Frame));
    let text = error.to_string();
    assert!(text.contains("courser journal repair") && text.contains("offset"), "{text}");
    // Starting all the same is refused, and nothing was changed.
    assert!(recovery.start().is_err());
    disk.corrupt(&segment(0), positions[2].0 as usize + 50, 0x10);
    assert!(disk.contents(&segment(0)).unwrap() == before);
}

#[test]
fn damage_before_a_clean_stop_is_never_taken_for_a_torn_tail() {
    let disk = FakeDisk::new(3);
    let journal = start(&disk);
    let position = append(&journal, &[b"the last one"], SYNC)[0];
    journal.close().unwrap();
    drop(journal);
    disk.kill();
    disk.corrupt(&segment(0), position.0 as usize + 9, 1);
    let recovery = Journal::open(&dir(), options(), Arc::new(disk)).unwrap();
    assert!(matches!(replay(&recovery), Err(OpenError::Damaged { .. })));
}

#[test]
fn a_log_that_ends_before_what_the_checkpoint_saw_is_refused() {
    let disk = FakeDisk::new(4);
    let journal = start(&disk);
    append(&journal, &[&[5; 1000]], SYNC);
    let first = journal.end();
    append(&journal, &[&[6; 1000]], SYNC);
    // The owner's state has effects of the second batch, which is replayed all the same.
    journal.checkpoint(&mut || first, &mut |_| {}, &mut |out| out.write_all(b"state")).unwrap();
    drop(journal);
    disk.kill();
    let mut contents = disk.contents(&segment(0)).unwrap();
    contents[first.0 as usize..].fill(0);
    disk.put(&segment(0), &contents);
    let recovery = Journal::open(&dir(), options(), Arc::new(disk)).unwrap();
    assert!(matches!(replay(&recovery), Err(OpenError::Damaged { .. })));
}

#[test]
fn a_missing_segment_is_refused() {
    let disk = FakeDisk::new(5);
    let journal = start(&disk);
    for _ in 0..60 {
        append(&journal, &[&[5; 1000]], SYNC);
    }
    journal.close().unwrap();
    drop(journal);
    disk.kill();
    use courser_journal::Disk;
    let missing = Lsn(options().segment_bytes);
    disk.remove(&segment(missing.0)).unwrap();
    let opened = Journal::open(&dir(), options(), Arc::new(disk));
    let Err(OpenError::Damaged { damage, .. }) = opened else { panic!("it was opened") };
    assert_eq!(damage, Damage::SegmentMissing(missing));
}

#[test]
fn an_unknown_format_version_is_refused() {
    let disk = FakeDisk::new(6);
    let journal = start(&disk);
    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"))
        .unwrap();
    drop(journal);
    disk.kill();
    let files = disk.names();
    for path in files.iter().filter(|path| path.extension().is_some_and(|e| e != "spare")) {
        // The version is the number at byte 8 of both kinds of files. One that was harmed is damage.
        disk.corrupt(path, 8, 2);
        let opened = Journal::open(&dir(), options(), Arc::new(disk.clone()));
        match opened {
            Ok(recovery) => assert_eq!(recovery.survived().len(), 1, "{}", path.display()),
            Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error}"),
        }
        disk.corrupt(path, 8, 2);
        disk.kill();
        let whole = disk.contents(path).unwrap();
        let mut unknown = whole.clone();
        unknown[8..12].copy_from_slice(&4_u32.to_le_bytes());
        let len = if path.extension().is_some_and(|is| is == "log") { 56 } else { 40 };
        let sum = crc32c::crc32c_append(crc32c::crc32c(&unknown[..12]), &[0; 4]);
        let sum = crc32c::crc32c_append(sum, &unknown[16..len]);
        unknown[12..16].copy_from_slice(&sum.to_le_bytes());
        disk.put(path, &unknown);
        let opened = Journal::open(&dir(), options(), Arc::new(disk.clone()));
        let Err(error) = opened else { panic!("{} was opened", path.display()) };
        assert!(matches!(error, OpenError::UnknownVersion { found: 4, known: 3, .. }), "{error}");
        disk.put(path, &whole);
        disk.kill();
    }
}

#[test]
fn nothing_is_taken_after_a_failed_sync_and_durable_does_not_move() {
    let disk = FakeDisk::new(7);
    let journal = start(&disk);
    append(&journal, &[b"one"], SYNC);
    journal.wait_durable(journal.end()).unwrap();
    let durable = journal.durable();
    disk.set_faults(Faults { fail_sync_after: Some(0), ..Faults::default() });
    let position = append(&journal, &[b"two"], SYNC)[0];
    let end = journal.end();
    assert!(journal.wait_durable(end).is_err());
    // The next sync would succeed; it has to stay without effect.
    assert!(journal.wait_durable(end).is_err() && !journal.flush_once());
    assert_eq!(journal.durable(), durable);
    let failure = journal.failed().unwrap().to_string();
    assert!(failure.starts_with("sync journal/0000000000000000.log failed"), "{failure}");
    let mut batch = Batch::new();
    batch.push(&[b"three"]);
    assert!(matches!(journal.append(&mut batch, SYNC), Err(AppendError::Failed(_))));
    assert!(journal.checkpoint(&mut || end, &mut |_| {}, &mut |_| Ok(())).is_err());
    assert!(journal.close().is_err());
    // What is in memory can still be read.
    assert_eq!(journal.read(position, &mut ReadCache::default()).unwrap(), b"two");
}

#[test]
fn a_segment_that_is_full_to_the_last_byte_is_not_freed_before_there_is_another() {
    let disk = FakeDisk::new(10);
    let journal = start(&disk);
    let room = options().segment_bytes - 4096 - 32 - 8;
    append(&journal, &[&vec![1; room as usize]], SYNC);
    assert_eq!(journal.end(), Lsn(options().segment_bytes));
    journal
        .checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"))
        .unwrap();
    drop(journal);
    disk.lose_power();
    let journal = start(&disk);
    append(&journal, &[b"more"], SYNC);
    journal.close().unwrap();
    drop(journal);
    disk.lose_power();
    assert_eq!(open(&disk).1.len(), 1);
}

#[test]
fn one_live_record_pins_pages_and_not_its_segment() {
    let disk = FakeDisk::new(9);
    let journal = start(&disk);
    let mut kept = Vec::new();
    for index in 0..600 {
        let position = append(&journal, &[&[index as u8; 1000]], SYNC)[0];
        if index % 100 == 50 {
            journal.hold(position, 1);
            kept.push((position, [index as u8; 1000]));
        }
    }
    let before = journal.usage();
    // The first plans what the second does, so that both know of it.
    let checkpoint = || {
        let live = &mut |live: EachLive<'_>| kept.iter().rev().for_each(|(at, _)| live(*at));
        journal.checkpoint(&mut || journal.end(), live, &mut |out| out.write_all(b"state")).unwrap()
    };
    assert_eq!(checkpoint().punched_bytes, 0);
    let done = checkpoint();
    let after = journal.usage();
    assert!(done.punched_bytes > 0 && after.log_bytes < before.log_bytes / 5, "{after:?}");
    for _ in 0..2 {
        let mut cache = ReadCache::default();
        for (position, bytes) in &kept {
            assert_eq!(journal.read(*position, &mut cache).unwrap(), bytes);
        }
        journal
            .checkpoint(
                &mut || journal.end(),
                &mut |_| panic!("nothing is left to punch"),
                &mut |out| out.write_all(b"state"),
            )
            .unwrap();
    }
}

#[test]
fn no_hole_is_made_by_the_length_of_a_record_that_is_damaged() {
    let disk = FakeDisk::new(10);
    let journal = start(&disk);
    let record = vec![3; 24_000];
    let live = append(&journal, &[&record], SYNC)[0];
    append(&journal, &[&[1; 1000], &[1; 1000], &[1; 1000]], SYNC);
    let next = append(&journal, &[&[2; 20_000]], SYNC)[0];
    [live, next].iter().for_each(|position| journal.hold(*position, 1));
    journal.wait_durable(journal.end()).unwrap();
    let path = dir().join("0000000000000000.log");
    // It seems to be 24,000 - 16,384 bytes long.
    disk.corrupt(&path, live.0 as usize + 1, 0x40);
    for _ in 0..2 {
        let held = &mut |each: EachLive<'_>| [live, next].iter().for_each(|at| each(*at));
        journal
            .checkpoint(&mut || journal.end(), held, &mut |out| out.write_all(b"state"))
            .unwrap();
    }
    disk.corrupt(&path, live.0 as usize + 1, 0x40);
    assert_eq!(journal.read(live, &mut ReadCache::default()).unwrap(), record);
}

#[test]
fn damage_to_the_last_write_is_told_wherever_in_it() {
    let disk = FakeDisk::new(6);
    let journal = start(&disk);
    append(&journal, &[b"safe"], SYNC);
    let from = journal.end();
    let last = append(&journal, &[b"the last one"], SYNC)[0];
    journal.wait_durable(journal.end()).unwrap();
    crash(&disk, journal);
    let found = || {
        let recovery = Journal::open(&dir(), options(), Arc::new(disk.clone())).unwrap();
        recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap()
    };
    // Before its bytes, a record has eight of its length and its sum.
    for offset in from.0..last.0 + 8 + "the last one".len() as u64 {
        disk.corrupt(&segment(0), offset as usize, 4);
        let replayed = found();
        assert_eq!((replayed.records, replayed.torn), (1, true), "at {offset} of {from}");
        disk.corrupt(&segment(0), offset as usize, 4);
    }
    let replayed = found();
    assert_eq!((replayed.records, replayed.torn), (2, false));
}

#[test]
fn a_bad_spot_on_the_disk_takes_only_the_records_that_reach_into_its_pages() {
    let disk = FakeDisk::new(11);
    let journal = start(&disk);
    let positions: Vec<Lsn> = (0..25).flat_map(|i| append(&journal, &[&[i; 1000]], SYNC)).collect();
    journal.wait_durable(journal.end()).unwrap();
    let bad = [positions[12].0 + 500..positions[12].0 + 501, positions[5].0..positions[7].0 + 1];
    for bad_spot in bad {
        disk.set_faults(Faults { bad_spot: bad_spot.clone(), ..Faults::default() });
        let pages = bad_spot.start / 4096 * 4096..bad_spot.end.next_multiple_of(4096);
        // In order, so that much is read at once.
        let mut cache = ReadCache::default();
        for (index, &position) in positions.iter().enumerate() {
            let lies_in_it = position.0 < pages.end && position.0 + 1000 > pages.start;
            match journal.read(position, &mut cache) {
                Ok(bytes) => assert!(bytes == [index as u8; 1000] && !lies_in_it),
                Err(error) => assert!(lies_in_it, "{index}: {error}"),
            }
        }
    }
}
