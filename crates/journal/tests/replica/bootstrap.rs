//! Copies that are brought to another machine.

use crate::{
    copy::{Copy, DIR, IDENTITY, open},
    entries::leading,
    mend::corrupt,
};
use bytes::Bytes;
use courser_journal::{
    AppendMode, Batch, ReadCache,
    replica::{
        Bootstrap, BootstrapError, Chunk, EntryId, EntryKind, Identity, Installer, Piece,
        PlaceError, ReadEntryError, ReplicaError, Vote,
    },
    testing::{FakeDisk, Faults},
};
use std::{io::Write, path::Path, sync::Arc};

/// Where the log has ended that a copy is installed over.
pub const LAST: Option<EntryId> = Some(EntryId { term: 3, index: 17 });
/// While so many operations of the disk take the mark away that says so, it may say nothing.
const UNMARKED_MAX: usize = 4;

/// A copy with a checkpoint in the middle of its committed entries, and some that are not committed.
pub fn sender() -> Copy {
    let record = vec![9; 700];
    let mut copy = leading(&vec![record.as_slice(); 60]);
    copy.flush();
    copy.replica().commit(50).unwrap();
    let lead = copy.lead.as_ref().unwrap();
    // The first record is live; it lies in a segment before the checkpoint's.
    let first = copy.entries[1].start().plus(32);
    lead.hold(first, 1);
    for index in [20, 40] {
        copy.replica().follow();
        let start = copy.entries[index].end();
        let replica = copy.replica();
        replica
            .checkpoint(start, &mut || true, &mut |each| each(first), &mut |out| {
                out.write_all(&[7; 5000])
            })
            .unwrap();
    }
    copy
}

pub fn chunks(copy: &Copy) -> (EntryId, Vec<Bytes>) {
    let mut bootstrap = copy.replica().bootstrap().unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = bootstrap.next_chunk(3000).unwrap() {
        let encoded = chunk.encode();
        assert!(encoded.len() <= 3040);
        chunks.push(encoded);
    }
    (bootstrap.upto(), chunks)
}

pub fn install(disk: &FakeDisk, vote: &Vote, chunks: &[Bytes]) -> Result<(), BootstrapError> {
    let mut installer =
        Installer::begin(Path::new(DIR), Arc::new(disk.clone()), IDENTITY, vote, LAST)?;
    for chunk in chunks {
        installer.chunk(Chunk::decode(chunk).unwrap())?;
    }
    installer.finish()
}

#[test]
fn who_sends_a_copy_waits_for_no_sync_while_a_segment_is_made() {
    let (_, chunks) = chunks(&sender());
    let disk = FakeDisk::new(5);
    let (dir, vote) = (Path::new(DIR), Vote::default());
    let on = Arc::new(disk.clone());
    let mut installer = Installer::begin(dir, on, IDENTITY, &vote, LAST).unwrap();
    let hold = disk.hold_syncs();
    let has_segment =
        || disk.names().iter().any(|name| name.extension().is_some_and(|kind| kind == "log"));
    let mut rest = chunks.iter();
    while !has_segment() {
        installer.chunk(Chunk::decode(rest.next().unwrap()).unwrap()).unwrap();
    }
    assert!(hold.let_go(), "a segment is synced before anything is in it");
    for chunk in rest {
        installer.chunk(Chunk::decode(chunk).unwrap()).unwrap();
    }
    installer.finish().unwrap();
}

#[test]
fn a_copy_that_was_sent_goes_on_where_the_sender_was_committed() {
    let sender = sender();
    let (upto, chunks) = chunks(&sender);
    assert_eq!(upto.index, 50);
    let vote = Vote { term: 4, voted_for: 1, ..Vote::default() };
    let disk = FakeDisk::new(5);
    install(&disk, &vote, &chunks).unwrap();
    disk.lose_power();
    let copy = open(&disk).unwrap();
    assert_eq!((copy.last(), copy.vote(), copy.committed_hint()), (upto, vote, 50));
    let first = copy.first().index as usize;
    assert!(first < 45);
    let read = copy.read(first as u64 + 1, 51, u64::MAX).unwrap();
    assert_eq!(read, sender.entries[first..50]);
    assert_eq!(copy.checkpointed().unwrap().data, [7; 5000]);
    let live = sender.entries[1].start().plus(32);
    assert_eq!(copy.read_record(live, &mut ReadCache::default()).unwrap(), [9; 700]);
    copy.append(&sender.entries[50..]).unwrap();
    while copy.flush_once() {}
    assert_eq!(copy.last(), sender.last());
}

#[test]
fn a_copy_with_a_damaged_entry_is_not_sent_and_that_is_asked_for() {
    let sender = sender();
    let replica = sender.replica();
    for entry in &sender.entries[43..50] {
        let frame = Piece::Frame(entry.start());
        let whole = replica.stretch(frame).unwrap().unwrap();
        corrupt(&sender, entry.start().plus(200));
        let mut bootstrap = replica.bootstrap().unwrap();
        let ended =
            std::iter::from_fn(|| bootstrap.next_chunk(3000).transpose()).find_map(Result::err);
        assert!(matches!(ended, Some(BootstrapError::Read(_))), "{ended:?}");
        assert_eq!(replica.damaged(9), [frame]);
        replica.mend(frame, &whole).unwrap();
        install(&FakeDisk::new(5), &Vote::default(), &chunks(&sender).1).unwrap();
    }
}

#[test]
fn entries_are_read_before_the_part_that_they_are_in_and_not_a_segment_at_once() {
    let sender = sender();
    let parts = || {
        let mut bootstrap = sender.replica().bootstrap().unwrap();
        std::iter::from_fn(|| bootstrap.next_chunk(1000).ok().flatten()).count()
    };
    let all = parts();
    // It lies in two parts at most, and is read with one or two before it. Another part is the end.
    let upto = sender.replica().bootstrap().unwrap().upto();
    let last = sender.entries.iter().find(|entry| entry.id == upto).unwrap();
    corrupt(&sender, last.start().plus(200));
    let sent = parts();
    assert!((all - 5..all).contains(&sent), "{sent} of {all}, up to {upto:?}");
}

#[test]
fn a_copy_whose_log_is_empty_behind_its_checkpoint_is_sent_too() {
    let sender = Copy::new("empty", 3);
    let (upto, chunks) = chunks(&sender);
    assert_eq!(upto, EntryId::default());
    let disk = FakeDisk::new(5);
    install(&disk, &Vote::default(), &chunks).unwrap();
    assert_eq!(open(&disk).unwrap().last(), upto);
}

#[test]
fn an_installation_that_the_power_ends_is_no_copy() {
    let sender = sender();
    let (_, chunks) = chunks(&sender);
    let vote = Vote { term: 4, voted_for: 1, ..Vote::default() };
    let (mut marked, mut unmarked) = (0, 0);
    for crash_at in 0.. {
        // Over a copy that was there before, every other time.
        let disk = FakeDisk::new(crash_at);
        if crash_at % 2 == 0 {
            drop(Copy::new("before", crash_at));
            install(&disk, &vote, &chunks).unwrap();
            disk.kill();
        }
        let faults = Faults { power_off_after: Some(crash_at), ..Faults::default() };
        disk.set_faults(faults);
        let installed = install(&disk, &vote, &chunks);
        disk.lose_power();
        match open(&disk) {
            Ok(copy) => assert_eq!((copy.last().index, copy.vote()), (50, vote.clone())),
            Err(ReplicaError::HalfInstalled { vote: kept, last, .. }) => {
                assert!(installed.is_err());
                assert_eq!(kept, vote);
                assert!(last == LAST || last.is_none(), "{last:?}");
                *(if last == LAST { &mut marked } else { &mut unmarked }) += 1;
            }
            Err(ReplicaError::Missing(_)) => assert!(installed.is_err() && crash_at % 2 == 1),
            Err(error) => panic!("the power went at operation {crash_at}: {error}"),
        }
        if installed.is_ok() && crash_at > 20 {
            assert!(unmarked <= UNMARKED_MAX && marked > 2 * UNMARKED_MAX, "{marked}, {unmarked}");
            return;
        }
        install(&disk, &vote, &chunks).unwrap();
        assert_eq!(open(&disk).unwrap().last().index, 50);
    }
}

#[test]
fn a_chunk_that_is_missing_harmed_or_of_another_log_is_refused() {
    let sender = sender();
    let (_, chunks) = chunks(&sender);
    let disk = FakeDisk::new(5);
    let vote = Vote::default();
    for left_out in [0, 1, chunks.len() / 2, chunks.len() - 2] {
        let mut fewer = chunks.clone();
        fewer.remove(left_out);
        let refused = install(&disk, &vote, &fewer);
        assert!(matches!(refused, Err(BootstrapError::BadChunk { .. })), "without {left_out}");
    }
    let refused = install(&disk, &vote, &chunks[..chunks.len() - 1]);
    assert!(matches!(refused, Err(BootstrapError::Incomplete)));
    assert!(matches!(open(&disk), Err(ReplicaError::HalfInstalled { .. })));
    for chunk in chunks.iter().take(20) {
        for offset in (0..chunk.len()).step_by(7) {
            let mut harmed = chunk.to_vec();
            harmed[offset] ^= 16;
            assert!(Chunk::decode(&harmed.into()).is_none());
        }
    }
    let other = Identity { group: 1, ..IDENTITY };
    let begun = Installer::begin(Path::new("other"), Arc::new(disk.clone()), other, &vote, None);
    let refused = begun.unwrap().chunk(Chunk::decode(&chunks[0]).unwrap());
    assert!(matches!(refused, Err(BootstrapError::BadChunk { .. })));
}

#[test]
fn what_is_being_sent_stays_as_it_is() {
    let copy = sender();
    let expected = chunks(&copy);
    let mut bootstrap = copy.replica().bootstrap().unwrap();
    for index in [45, 47, 48] {
        let start = copy.entries[index].end();
        let made = copy
            .replica()
            .checkpoint(start, &mut || true, &mut |_| {}, &mut |out| out.write_all(&[1]));
        made.unwrap();
        copy.replica().maintain_once();
    }
    let mut chunks = Vec::new();
    while let Some(chunk) = bootstrap.next_chunk(3000).unwrap() {
        chunks.push(chunk.encode());
    }
    assert!(chunks == expected.1);
    let logs = || {
        copy.disk
            .names()
            .iter()
            .filter(|name| name.extension().is_some_and(|is| is == "log"))
            .count()
    };
    let before = logs();
    drop(bootstrap);
    copy.replica().maintain_once();
    assert!(logs() < before, "nothing was freed afterwards");
}

#[test]
fn what_follows_a_copy_can_be_read_until_it_is_dropped() {
    let copy = sender();
    let bootstrap = copy.replica().bootstrap().unwrap();
    let upto = bootstrap.upto().index;
    copy.replica().commit(58).unwrap();
    let checkpoint = |index: usize| {
        let start = copy.entries[index].end();
        let made = copy
            .replica()
            .checkpoint(start, &mut || true, &mut |_| {}, &mut |out| out.write_all(&[1]));
        made.unwrap();
        copy.replica().maintain_once();
    };
    for index in [52, 54, 56] {
        checkpoint(index);
    }
    assert!(copy.replica().first().index <= upto, "the receiver could not go on");
    let behind = copy.replica().read(upto + 1, 58, u64::MAX).unwrap();
    assert_eq!(behind.first().map(|entry| entry.id.index), Some(upto + 1));
    drop(bootstrap);
    checkpoint(57);
    assert!(copy.replica().first().index > upto, "nothing was trimmed afterwards");
}

/// A copy that has dead segments behind its checkpoint, since which too little has come to make another one for that alone.
fn with_dead_segments(begin: impl Fn(&Copy) -> Option<Bootstrap>) -> (Copy, Option<Bootstrap>) {
    let record = vec![9; 1000];
    let sender = leading(&vec![record.as_slice(); 56]);
    let (copy, mut bootstrap) = (Copy::new("copy", 3), None);
    for (from, to) in [(0, 28), (28, 56)] {
        copy.replica().append(&sender.entries[from..to]).unwrap();
        while copy.replica().flush_once() {}
        copy.replica().commit(to as u64).unwrap();
        if from == 0 {
            let start = sender.entries[to - 1].end();
            let written = &mut |out: &mut dyn Write| out.write_all(&[1]);
            copy.replica().checkpoint(start, &mut || true, &mut |_| {}, written).unwrap();
            bootstrap = begin(&copy);
        }
    }
    (copy, bootstrap)
}

#[test]
fn no_checkpoint_is_made_for_what_a_copy_that_is_sent_keeps_unless_the_disk_is_full() {
    let (copy, _) = with_dead_segments(|_| None);
    assert!(copy.replica().wants_checkpoint(), "it would free some");
    let (copy, bootstrap) = with_dead_segments(|copy| copy.replica().bootstrap().ok());
    let bootstrap = bootstrap.expect("it has one");
    assert!(!copy.replica().wants_checkpoint(), "it would free nothing");
    drop(bootstrap);
    assert!(
        copy.replica().wants_checkpoint(),
        "nothing keeps it any more, though nothing was appended"
    );

    let (copy, bootstrap) = with_dead_segments(|copy| copy.replica().bootstrap().ok());
    assert!(!copy.replica().wants_checkpoint(), "it would free nothing");
    copy.disk.set_capacity(0);
    copy.replica().maintain_once();
    assert!(!copy.replica().has_room());
    assert!(copy.replica().wants_checkpoint(), "by it is known what the copy keeps");
    drop(bootstrap);
}

#[test]
fn entries_whose_segments_are_freed_after_a_copy_are_said_to_be_gone() {
    let copy = sender();
    let replica = copy.replica();
    let bootstrap = replica.bootstrap().unwrap();
    let next = bootstrap.upto().index + 1;
    replica.commit(58).unwrap();
    let first = replica.first().index;
    for index in [52, 54, 56] {
        let start = copy.entries[index].end();
        let made =
            replica.checkpoint(start, &mut || true, &mut |_| {}, &mut |out| out.write_all(&[1]));
        made.unwrap();
    }
    assert_eq!(replica.first().index, first);
    drop(bootstrap);
    replica.maintain_once();
    assert!(matches!(replica.read(next, 58, u64::MAX), Err(ReadEntryError::Gone { .. })));
    let kept = replica.first().index;
    let read = replica.read(kept + 1, 58, u64::MAX).unwrap();
    assert_eq!(read[..], copy.entries[kept as usize..57]);
}

#[test]
fn while_appends_are_paused_a_note_can_be_placed() {
    let copy = leading(&[]);
    let (replica, lead) = (copy.replica(), copy.lead.as_ref().unwrap());
    let append = || {
        let mut batch = Batch::new();
        batch.push(&[&[1; 100]]);
        lead.append(&mut batch, AppendMode { sync: true, reserve: false }).map(drop)
    };
    append().unwrap();
    replica.pause(true);
    assert!(append().is_err());
    let id = |index| EntryId { term: 1, index };
    assert!(replica.place(id(2)).unwrap().is_some());
    assert!(replica.place(id(3)).unwrap().is_none());
    let placed: Result<_, PlaceError> = replica.place_note(id(3), EntryKind::Members, b"three");
    assert_eq!(placed.unwrap().note(), b"three");
    replica.pause(false);
    append().unwrap();
    assert!(replica.place(id(4)).unwrap().is_some());
}
