//! Counts what a journal does, for its operator.
//!
//! What is done for each batch is counted behind the lock that is held anyway, in [`Log`](crate::log::Log);
//! all else, which is rarer, here.

use crate::{core::Core, log::Step, public_id};
use courser_store::{Figures, SYNC_DURATIONS};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// What has been done since the journal was opened.
#[derive(Debug, Default)]
pub struct Done {
    writes: AtomicU64,
    written_bytes: AtomicU64,
    write_ns: AtomicU64,
    syncs: [AtomicU64; SYNC_DURATIONS.len() + 1],
    sync_ns: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    read_ns: AtomicU64,
    checkpoints: AtomicU64,
    checkpoint_ns: AtomicU64,
}

impl Done {
    /// These were written.
    pub fn wrote(&self, took: Duration, steps: &[Step]) {
        let pieces = steps.iter().filter_map(|step| match step {
            Step::Write(piece) => Some(piece.bytes.len() as u64),
            Step::Switch(_) | Step::Cut(_) => None,
        });
        let (writes, bytes) = pieces.fold((0, 0), |(n, all), bytes| (n + 1, all + bytes));
        self.writes.fetch_add(writes, Relaxed);
        self.written_bytes.fetch_add(bytes, Relaxed);
        add(&self.write_ns, took);
    }

    /// A file of the log was synced.
    pub fn synced(&self, took: Duration) {
        let longer = SYNC_DURATIONS.len();
        let place = SYNC_DURATIONS.iter().position(|limit| took <= *limit).unwrap_or(longer);
        self.syncs[place].fetch_add(1, Relaxed);
        add(&self.sync_ns, took);
    }

    /// A file of the log was read.
    pub fn read(&self, took: Duration, bytes: usize) {
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Relaxed);
        add(&self.read_ns, took);
    }

    /// A checkpoint was made.
    pub fn checkpointed(&self, took: Duration) {
        self.checkpoints.fetch_add(1, Relaxed);
        add(&self.checkpoint_ns, took);
    }
}

fn add(sum: &AtomicU64, took: Duration) {
    sum.fetch_add(took.as_nanos() as u64, Relaxed);
}

impl Core {
    /// See [`Journal::figures`](crate::Journal::figures).
    pub fn figures(&self) -> Figures {
        let usage = self.usage();
        let done = &self.done;
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let time = |sum: &AtomicU64| Duration::from_nanos(sum.load(Relaxed));
        let (appends, records) = {
            let log = self.log.lock();
            (log.appends, log.records)
        };
        Figures {
            id: public_id(self.id),
            appends,
            records,
            writes: count(&done.writes),
            written_bytes: count(&done.written_bytes),
            write_time: time(&done.write_ns),
            syncs_by_duration: done.syncs.each_ref().map(count),
            sync_time: time(&done.sync_ns),
            reads: count(&done.reads),
            read_bytes: count(&done.read_bytes),
            read_time: time(&done.read_ns),
            checkpoints: count(&done.checkpoints),
            checkpoint_time: time(&done.checkpoint_ns),
            checkpoint_bytes: count(&self.latest.size_bytes),
            segments: usage.segments as u64,
            log_bytes: usage.log_bytes,
            live_bytes: usage.live_bytes,
            spare_bytes: usage.spare_bytes,
        }
    }
}
