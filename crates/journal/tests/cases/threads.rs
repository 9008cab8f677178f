//! The journal with its own threads and many callers, and the power going under it.

use crate::support::{SYNC, append, dir, open, start};
use courser_journal::{
    AppendMode, Batch, Journal, Lsn, Options, ReadCache,
    testing::{FakeDisk, Faults, Outlook, Rng, Turn},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

const THREADS: u64 = 3;

/// What one thread knows: its records that live, and how far it was told that they are durable.
#[derive(Default)]
struct Own {
    live: Mutex<BTreeMap<Lsn, u64>>,
    durable: Mutex<u64>,
}

fn bytes(thread: u64, number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; 8 + (number * 97 % 900) as usize];
    bytes[..8].copy_from_slice(&(number * THREADS + thread).to_le_bytes());
    bytes
}

fn options() -> Options {
    Options {
        segment_bytes: 32 << 10,
        buffer_bytes: 8 << 10,
        unsynced_bytes: 4 << 10,
        ..Options::default()
    }
}

/// Appends, reads, waits and releases until the journal fails.
fn append_and_read(journal: &Journal, own: &Own, thread: u64, seed: u64) {
    let mut rng = Rng::new(seed + thread);
    let (mut batch, mut cache) = (Batch::new(), ReadCache::default());
    for number in 0.. {
        batch.push(&[&bytes(thread, number)]);
        let mode = AppendMode { sync: rng.one_in(3), reserve: false };
        let mut live = own.live.lock().unwrap();
        let Ok(appended) = journal.append(&mut batch, mode) else { return };
        let (position, end) = (appended.position(0), appended.end());
        journal.hold(position, 1);
        live.insert(position, number);
        let skip = rng.below(live.len() as u64) as usize;
        let (at, of) = live.iter().nth(skip).map(|(at, of)| (*at, *of)).unwrap();
        match journal.read(at, &mut cache) {
            Ok(read) => assert_eq!(read, bytes(thread, of)),
            Err(_) => assert!(journal.failed().is_some(), "{at} cannot be read"),
        }
        if live.len() > 50 {
            live.remove(&at);
            journal.release(&[at.into()]);
        }
        drop(live);
        if rng.one_in(4) && journal.wait_durable(end).is_ok() {
            *own.durable.lock().unwrap() = number + 1;
        }
    }
}

fn checkpoint(journal: &Journal, owns: &[Own]) {
    // Appends stand still while the state is taken.
    let live: Vec<_> = owns.iter().map(|own| own.live.lock().unwrap()).collect();
    let positions: Vec<Lsn> = live.iter().flat_map(|live| live.keys().copied()).collect();
    let start = journal.end();
    drop(live);
    // It may be the first to notice that the power is off.
    let _ = journal.checkpoint(
        &mut || start,
        &mut |each| positions.iter().for_each(|position| each(*position)),
        &mut |out| out.write_all(&[0; 1000]),
    );
}

#[test]
fn many_threads_agree_with_what_a_loss_of_power_leaves() {
    for seed in 0..40 {
        let disk = FakeDisk::new(seed);
        let journal = Journal::open(&dir(), options(), Arc::new(disk.clone()));
        let journal = journal.and_then(|recovery| recovery.start()).unwrap();
        let owns: Vec<Own> = (0..THREADS).map(|_| Own::default()).collect();
        let after = Some(500 + Rng::new(seed).below(1500));
        // Where syncs take some time, the log leaves gaps between them.
        let sync_takes = Duration::from_micros(100 * (seed % 2));
        disk.set_faults(Faults { power_off_after: after, sync_takes, ..Faults::default() });
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let (journal, owns, done) = (&journal, &owns, &done);
            let appenders: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        append_and_read(journal, &owns[thread as usize], thread, seed);
                    })
                })
                .collect();
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    checkpoint(journal, owns);
                    thread::sleep(Duration::from_millis(2));
                }
            });
            appenders.into_iter().for_each(|thread| thread.join().unwrap());
            done.store(true, Relaxed);
        });
        drop(journal);
        disk.lose_power();

        let (recovery, records) = open(&disk);
        let from = recovery.replay_start();
        // Of each thread there are all records from some number on, without a gap.
        for thread in 0..THREADS {
            let mut next = None;
            for (position, read) in &records {
                let number = u64::from_le_bytes(read[..8].try_into().unwrap());
                if number % THREADS == thread {
                    assert_eq!(*read, bytes(thread, number / THREADS), "seed {seed}");
                    assert!(next.is_none_or(|next| next == number / THREADS), "seed {seed}");
                    assert!(*position >= from);
                    next = Some(number / THREADS + 1);
                }
            }
            let durable = *owns[thread as usize].durable.lock().unwrap();
            assert!(next.is_none_or(|next| next >= durable), "seed {seed}");
        }
    }
}

/// Fills some segments, has all of them freed, and waits until `are_enough` of how many spare ones
/// there are.
fn burst(quiet: Duration, are_enough: fn(u64) -> bool) {
    let disk = FakeDisk::new(1);
    let segment_bytes = options().segment_bytes;
    let checkpoint_after_bytes = 8 * segment_bytes;
    let options = Options { quiet, checkpoint_after_bytes, ..options() };
    let recovery = Journal::open(&dir(), options, Arc::new(disk)).unwrap();
    recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
    let journal = recovery.start().unwrap();
    let mut batch = Batch::new();
    for _ in 0..300 {
        batch.push(&[&[1; 1000]]);
        journal.append(&mut batch, AppendMode { sync: true, reserve: false }).unwrap();
        batch.clear();
    }
    for _ in 0..2 {
        journal.checkpoint(&mut || journal.end(), &mut |_| {}, &mut |_| Ok(())).unwrap();
    }
    let since = Instant::now();
    while !are_enough(journal.usage().spare_bytes / segment_bytes) || journal.usage().segments > 2 {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", journal.usage());
        thread::sleep(Duration::from_millis(1));
    }
    journal.close().unwrap();
}

#[test]
fn spare_segments_that_a_burst_leaves_are_kept_and_given_back_when_it_is_quiet() {
    burst(Duration::from_secs(60), |spares| spares > 8);
    burst(Duration::from_millis(5), |spares| spares == 3);
}

/// Another thread may flush what this one was woken for, at any moment. If it ended then, a thread that waits for a later
/// sync would wait for ever.
#[test]
fn the_log_thread_ends_only_when_it_is_told_to_and_nothing_is_left() {
    for bits in 0..32_u8 {
        let is = |bit: u8| bits & (1 << bit) != 0;
        let (wished, buffered, much, lingered, over) = (is(0), is(1), is(2), is(3), is(4));
        let next = Outlook { wished, buffered, much, lingered, over }.next_turn();
        assert_eq!(next == Turn::End, over && !(wished || buffered || much), "{bits:05b}");
        assert_eq!(next == Turn::Wait, !(over || wished || much || lingered && buffered));
    }
}

#[test]
fn nothing_is_durable_behind_what_could_not_be_synced_also_if_another_thread_writes_it() {
    let disk = FakeDisk::new(3);
    let journal = start(&disk);
    let before = journal.durable();
    append(&journal, &[b"lost"], SYNC);
    let hold = disk.hold_syncs();
    thread::scope(|scope| {
        let first = scope.spawn(|| journal.flush_once());
        assert!(hold.wait_until_reached());
        append(&journal, &[b"behind it"], SYNC);
        let second = scope.spawn(|| journal.flush_once());
        // The second one has looked for failures by then, and waits for the first.
        thread::sleep(Duration::from_millis(100));
        disk.set_faults(Faults { fail_sync_after: Some(0), ..Faults::default() });
        assert!(hold.let_go());
        assert!(first.join().is_ok() && second.join().is_ok_and(|flushed| !flushed));
    });
    assert!(journal.failed().is_some());
    assert_eq!(journal.durable(), before, "what follows a failed sync is durable");
}

/// Those who append little would never let the buffer be empty.
#[test]
fn a_batch_larger_than_the_buffer_gets_in_beside_what_others_append() {
    let disk = FakeDisk::new(4);
    let journal = Journal::open(&dir(), options(), Arc::new(disk.clone()));
    let journal = journal.and_then(|recovery| recovery.start()).unwrap();
    let hold = disk.hold_syncs();
    append(&journal, &[&vec![1; options().buffer_bytes / 2]], SYNC);
    // It is written, and synced until the hold is let go.
    while journal.is_behind() {
        thread::yield_now();
    }
    append(&journal, &[b"of another"], SYNC);
    let large = vec![7; options().buffer_bytes * 3 / 2];
    append(&journal, &[&large], SYNC);
    assert!(hold.let_go(), "it has waited until there was nothing in the buffer");
    journal.wait_durable(journal.end()).unwrap();
    journal.close().unwrap();
}
