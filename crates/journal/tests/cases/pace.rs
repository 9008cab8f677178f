//! The gaps between syncs: who is made to wait for company, who is not, and that all are woken.

use crate::support::{SYNC, dir};
use courser_journal::{
    Batch, Journal, Options,
    testing::{FakeDisk, Faults, Pace},
};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

const SYNC_TAKES: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(1);

/// A pace after many syncs of so many records each, and the gap before the next one.
struct Paced {
    pace: Pace,
    now: Instant,
}

impl Paced {
    fn new(longest: Duration) -> Self {
        Paced { pace: Pace::new(longest), now: Instant::now() }
    }

    fn sync(&mut self, times: u32, records: u64, takes: Duration) {
        for _ in 0..times {
            let start = self.now;
            self.now += takes;
            self.pace.synced(start, self.now, records);
        }
    }

    fn gap(&self) -> Option<Duration> {
        self.pace.next_start().map(|start| start - self.now)
    }
}

#[test]
fn a_publisher_that_waits_for_each_confirm_is_synced_at_once() {
    let mut paced = Paced::new(LONGEST);
    assert_eq!(paced.gap(), None);
    paced.sync(100, 1, SYNC_TAKES);
    paced.pace.delayed(Duration::from_millis(1));
    assert_eq!(paced.gap(), None);
}

#[test]
fn the_gap_follows_what_a_sync_takes() {
    for (takes_us, gap_us) in [(40, 55..=65), (100, 145..=155), (200, 290..=305)] {
        let mut paced = Paced::new(LONGEST);
        paced.sync(200, 5, Duration::from_micros(takes_us));
        let gap = paced.gap().unwrap().as_micros();
        assert!(gap_us.contains(&gap), "{gap} us for a sync of {takes_us} us");
    }
}

#[test]
fn the_gap_grows_up_to_the_longest_where_threads_wait_for_a_processor() {
    let mut paced = Paced::new(LONGEST);
    paced.sync(200, 5, SYNC_TAKES);
    let idle = paced.gap().unwrap();
    (0..50).for_each(|_| paced.pace.delayed(Duration::from_micros(20)));
    let busy = paced.gap().unwrap();
    (0..50).for_each(|_| paced.pace.delayed(Duration::from_millis(50)));
    let full = paced.gap().unwrap();
    assert!(idle + Duration::from_micros(190) <= busy, "{idle:?}, {busy:?}");
    assert!((busy..LONGEST - SYNC_TAKES + Duration::from_micros(2)).contains(&full), "{full:?}");
}

#[test]
fn there_is_no_gap_on_a_slow_disk_nor_where_none_is_wanted() {
    for (longest, takes) in [(LONGEST, Duration::from_millis(5)), (Duration::ZERO, SYNC_TAKES)] {
        let mut paced = Paced::new(longest);
        paced.sync(200, 5, takes);
        assert_eq!(paced.gap(), None);
    }
}

#[test]
fn gaps_in_which_nothing_comes_are_soon_left_out_and_tried_again_later() {
    let mut paced = Paced::new(LONGEST);
    paced.sync(200, 5, SYNC_TAKES);
    let mut tries = 0;
    for _ in 0..1000 {
        if paced.gap().is_some() {
            paced.pace.slept(false);
            tries += 1;
        }
        paced.sync(1, 5, SYNC_TAKES);
    }
    assert!((5..50).contains(&tries), "{tries}");
    // Where something comes, the gap is soon as long as before.
    (0..8).for_each(|_| paced.pace.slept(true));
    assert!(paced.gap().unwrap() > SYNC_TAKES);
}

#[test]
fn everybody_who_waits_in_a_gap_is_woken_after_it() {
    let disk = FakeDisk::new(1);
    disk.set_faults(Faults { sync_takes: Duration::from_micros(300), ..Faults::default() });
    let options = Options { gather: Duration::from_millis(20), ..Options::default() };
    let recovery = Journal::open(&dir(), options, Arc::new(disk)).unwrap();
    recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
    let journal = Arc::new(recovery.start().unwrap());
    let (done, ends) = mpsc::channel();
    for publisher in 0..4 {
        let (journal, done) = (Arc::clone(&journal), done.clone());
        thread::spawn(move || {
            let mut batch = Batch::new();
            for round in 0..100 {
                for _ in 0..1 + (round + publisher) % 7 {
                    batch.clear();
                    batch.push(&[&[publisher as u8; 100]]);
                    journal.append(&mut batch, SYNC).unwrap();
                }
                journal.wait_durable(journal.end()).unwrap();
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..4 {
        ends.recv_timeout(Duration::from_secs(60)).expect("no thread waits for ever");
    }
    let since = Instant::now();
    journal.close().unwrap();
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}

#[test]
fn a_log_says_that_it_is_behind_until_it_has_written() {
    let disk = FakeDisk::new(1);
    let options = Options { buffer_bytes: 1 << 20, segment_bytes: 2 << 20, ..Options::default() };
    let recovery = Journal::open(&dir(), options, Arc::new(disk.clone())).unwrap();
    recovery.replay(&mut |_| Ok::<(), String>(()), &mut |_| {}).unwrap();
    let journal = recovery.start().unwrap();
    disk.set_faults(Faults { sync_takes: Duration::from_secs(1), ..Faults::default() });
    let (mut batch, mut was_behind) = (Batch::new(), false);
    assert!(!journal.is_behind());
    // The log thread syncs the first of these while the others come in.
    for _ in 0..700 {
        batch.clear();
        batch.push(&[&[1; 1000]]);
        journal.append(&mut batch, SYNC).unwrap();
        was_behind |= journal.is_behind();
    }
    assert!(was_behind);
    disk.set_faults(Faults::default());
    journal.wait_durable(journal.end()).unwrap();
    assert!(!journal.is_behind());
    journal.close().unwrap();
}
