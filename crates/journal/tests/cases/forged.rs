//! Bodies of messages that are made to be taken for frames of the log.

use crate::support::{SYNC, append, dir, options, start};
use courser_journal::{Damage, Journal, OpenError, public_id, testing::FakeDisk};
use std::{path::PathBuf, sync::Arc};

const SEGMENT_BYTES: u64 = 32 << 10;
/// Segments for which frames are made, as the file may become any of them.
const SEGMENTS: u64 = 12;

fn first_segment() -> PathBuf {
    dir().join("0000000000000000.log")
}

/// The journal's number, from the header of its first segment.
fn number_of(disk: &FakeDisk) -> u64 {
    let bytes = disk.contents(&first_segment()).expect("the first segment");
    u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"))
}

/// Frames without records, one behind the other from `offset` of a segment on.
fn frames(number: u64, offset: u64, count: u64) -> Vec<u8> {
    let frame = |index: u64| {
        let lsn = (1 + index % SEGMENTS) * SEGMENT_BYTES + offset + index * 32;
        // It says of itself, as durable, that there was a log up to it.
        let mut frame = [lsn.to_le_bytes(), lsn.to_le_bytes()].concat();
        // No payload, no records, a gap.
        [0u32, 0, 2].iter().for_each(|field| frame.extend(field.to_le_bytes()));
        let sum = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &frame);
        frame.extend(sum.to_le_bytes());
        frame
    };
    (0..count).flat_map(frame).collect()
}

fn checkpoint(journal: &Journal) {
    let made =
        journal.checkpoint(&mut || journal.end(), &mut |_| {}, &mut |out| out.write_all(b"state"));
    made.expect("there is room");
}

/// Stops a journal, as one should, whose last segment was the file of one that was full of frames of this number, and
/// opens it again.
fn open_behind_frames_of(number: impl FnOnce(&FakeDisk) -> u64) -> Result<(), OpenError> {
    let disk = FakeDisk::new(1);
    let journal = start(&disk);
    // Behind the headers of the segment and the frame, and the head of the record.
    let body = frames(number(&disk), 4096 + 32 + 8, 800);
    append(&journal, &[&body], SYNC);
    journal.flush_once();
    let before = disk.contents(&first_segment()).expect("the first segment");
    let is_reused = || {
        let names = disk.names().into_iter();
        let last = names.filter(|path| path.extension().is_some_and(|it| it == "log")).max();
        let last = last.filter(|path| *path != first_segment());
        let bytes = last.and_then(|path| disk.contents(&path));
        bytes.is_some_and(|bytes| bytes[20_000..29_000] == before[20_000..29_000])
    };
    for _ in 0..SEGMENTS * 2 {
        append(&journal, &[&[0; 8000]], SYNC);
        journal.flush_once();
        if is_reused() {
            break;
        }
        checkpoint(&journal);
        journal.maintain_once();
    }
    assert!(is_reused(), "its file was not used again");
    journal.close().expect("the disk is sound");
    drop(journal);
    Journal::open(&dir(), options(), Arc::new(disk.clone()))?.start().map(drop)
}

/// Why the number is a secret: what is behind the end of the log says that more of it was there.
#[test]
fn with_the_number_of_a_journal_a_body_can_be_made_that_keeps_it_from_starting() {
    let refused = open_behind_frames_of(number_of).expect_err("the frames are valid");
    assert!(
        matches!(refused, OpenError::Damaged { damage: Damage::Frame, .. }),
        "another reason: {refused}"
    );
}

#[test]
fn without_the_number_of_a_journal_no_such_body_can_be_made() {
    open_behind_frames_of(|disk| number_of(disk) ^ 1).expect("the frames are not valid");
    let named = |disk: &FakeDisk| public_id(number_of(disk)).into();
    open_behind_frames_of(named).expect("the frames are not valid");
}

#[test]
fn a_journal_is_called_something_that_does_not_tell_its_number() {
    let disk = FakeDisk::new(3);
    let journal = start(&disk);
    let (named, number) = (journal.figures().id, number_of(&disk));
    assert_eq!(named, public_id(number));
    assert!(named != 0 && u64::from(named) != number >> 32 && named != number as u32);
}
