//! What lists, overviews and metrics show of a queue. They wait for no disk: while a thread reads a message or waits for room in
//! the log under the queue's lock, they show what is known without that lock.

use super::contents::timestamp_of;
use super::{ConsumerStanding, DelayedRetry, DelayedStatus, Queue, QueueContents, QueuePolicies};
use super::{QueueStatus, State, Unread};
use crate::counts::QueueCounts;
use parking_lot::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much there was at the end of the last section under the queue's lock, besides what waits in line: read without that lock.
#[derive(Debug, Default)]
pub(super) struct LastCounts {
    passed_over: AtomicUsize,
    unacked: AtomicUsize,
    delayed: AtomicUsize,
}

/// A queue that is locked to be shown.
pub(crate) struct Look<'a> {
    queue: &'a Queue,
    state: MutexGuard<'a, State>,
}

/// Notes how many there are, unless that is known: other threads read what shares the cache line.
#[inline]
fn note(count: &AtomicUsize, now: usize) {
    if count.load(Ordering::Relaxed) != now {
        count.store(now, Ordering::Relaxed);
    }
}

impl Queue {
    /// What it holds right now.
    pub fn status(&self) -> QueueStatus {
        self.status_of(&self.state.lock())
    }

    /// Notes at the end of a section what it holds.
    #[inline]
    pub(super) fn note_counts(&self, state: &State) {
        let passed_over = state.passed_over();
        note(&self.backlog, state.ready.len());
        note(&self.last_counts.passed_over, passed_over);
        note(&self.last_counts.unacked, state.unacked.len() - passed_over);
        note(&self.last_counts.delayed, state.delayed.len());
    }

    pub(super) fn status_of(&self, state: &State) -> QueueStatus {
        QueueStatus {
            ready: state.ready.len() + state.passed_over() + self.in_stream(),
            unacked: state.unacked.len() - state.passed_over(),
            delayed: state.delayed.status(),
            consumers: state.consumers.len(),
        }
    }

    /// Messages that it has as a stream.
    fn in_stream(&self) -> usize {
        self.stream().map_or(0, |stream| stream.len() as usize)
    }

    /// Locks it to show it, unless its lock is held for so long that its holder may wait for the disk.
    pub(crate) fn look(&self) -> Option<Look<'_>> {
        self.state.look().map(|state| Look { queue: self, state })
    }

    /// What it holds, or held last where its lock is held for long.
    pub(crate) fn shown_status(&self) -> QueueStatus {
        self.look().map_or_else(|| self.last_status(), |look| look.status())
    }

    /// What it held at the end of the last section under its lock.
    pub(crate) fn last_status(&self) -> QueueStatus {
        let LastCounts { passed_over, unacked, delayed } = &self.last_counts;
        let messages = delayed.load(Ordering::Relaxed);
        QueueStatus {
            ready: self.backlog() + passed_over.load(Ordering::Relaxed) + self.in_stream(),
            unacked: unacked.load(Ordering::Relaxed),
            delayed: DelayedStatus { messages, ..DelayedStatus::default() },
            consumers: self.consumer_count(),
        }
    }
}

impl Look<'_> {
    /// What it holds.
    pub fn status(&self) -> QueueStatus {
        self.queue.status_of(&self.state)
    }

    /// How many messages have come and gone.
    pub fn counts(&self) -> QueueCounts {
        self.state.counts.as_deref().copied().unwrap_or_default()
    }

    /// What its messages amount to; none for a stream.
    pub fn contents(&self) -> Option<QueueContents> {
        self.queue.contents_of(&self.state)
    }

    /// Bytes of memory that it uses: its name and arguments, the places of its messages, what it knows of them besides, and the
    /// bodies of those that are in memory.
    pub fn memory_bytes(&self) -> u64 {
        let state = &self.state;
        let notes = state.notes.as_ref().map_or(0, |notes| notes.used_bytes());
        let books =
            state.ready.used_bytes() + state.unacked.used_bytes() + state.dying.used_bytes();
        let books = books + state.delayed.used_bytes() + state.charge.bytes();
        let waiting = [state.ready.amounts(), state.delayed.amounts(), state.dying.amounts()];
        let amounts = waiting.into_iter().chain([state.unacked.amounts()]);
        let bodies: u64 = amounts.map(|amounts| amounts.in_memory().bytes).sum();
        let stream = self.queue.stream().map_or(0, |stream| stream.used_bytes());
        (size_of::<Queue>() + notes + books + stream) as u64 + bodies
    }

    /// When a message last came to it, was asked for or given to a client, or was settled by one; or else
    /// when the queue was made or the broker began to serve: milliseconds since 1970.
    pub fn used_ms(&self) -> u64 {
        let used_ms = self.state.counts.as_ref().map_or(0, |counts| counts.used_ms);
        used_ms.max(self.queue.usable_ms.load(Ordering::Relaxed))
    }

    /// The `timestamp` of the message whose turn it is, if it has one and is in memory.
    pub fn head_timestamp(&self) -> Option<u64> {
        timestamp_of(&self.state.ready.front()?.1.in_memory()?)
    }

    /// The policies that it follows.
    pub fn policies(&self) -> &QueuePolicies {
        &self.state.policies
    }

    /// How long messages that have come back wait, if they do.
    pub fn delayed_retry(&self) -> Option<DelayedRetry> {
        self.state.traits.as_ref()?.delayed_retry
    }

    /// How often a message may come back from consumers before it is dropped or dead-lettered; the largest number where that
    /// is counted without a limit, none where it is not counted.
    pub fn delivery_limit(&self) -> Option<u64> {
        self.state.traits.as_ref()?.delivery_limit
    }

    /// The part of the time, from 0 to 1, in which no message had to wait for a consumer to be free: mostly of the last
    /// seconds. 0 without consumers, none for a stream.
    pub fn consumer_capacity(&self) -> Option<f64> {
        match self.state.consumers.len() {
            _ if self.queue.stream.is_some() => None,
            0 => Some(0.0),
            _ => Some(self.state.capacity.at(self.queue.now_ms())),
        }
    }

    /// What it can't read, if there is something.
    pub fn unread(&self) -> Option<Unread> {
        self.state.unread.as_deref().map(|unread| unread.shown())
    }

    /// Its consumers, in no particular order.
    pub fn consumers(&self) -> Vec<ConsumerStanding> {
        ConsumerStanding::all_of(&self.state)
    }

    /// Its consumer with this key.
    pub fn consumer(&self, key: u32) -> Option<ConsumerStanding> {
        ConsumerStanding::of(&self.state, key)
    }
}
