//! Counting what comes to a queue and what clients get of it.

use super::{Queue, State};
use crate::counts::{DeliveryCounts, Handed, QueueCounts, Tally};
use crate::dead_letter::Reason;
use crate::posting::PublishRun;
use crate::wakes::Wakes;
use std::sync::atomic::Ordering;

impl Queue {
    /// Where to count what concerns more than this queue.
    #[inline]
    fn tally<'w>(&self, wakes: &'w mut Wakes) -> &'w mut Tally {
        wakes.tally(&self.vhost_counts)
    }

    /// Messages have come.
    #[inline]
    pub(super) fn count_published(
        &self,
        state: &mut State,
        run: &PublishRun<'_>,
        wakes: &mut Wakes,
    ) {
        let counts = state.counts.get_or_insert_default();
        counts.used_ms = self.now_ms();
        counts.published += run.len() as u64;
        counts.published_bytes += run.body_bytes();
        self.tally(wakes).routed(run.len());
    }

    /// Consumers have been given messages.
    #[inline]
    pub(super) fn count_deliveries(
        &self,
        counts: &mut Option<Box<QueueCounts>>,
        more: &DeliveryCounts,
        wakes: &mut Wakes,
    ) {
        let counts = counts.get_or_insert_default();
        counts.used_ms = self.now_ms();
        counts.deliveries += more;
        *self.tally(wakes).deliveries(self.counted_as) += more;
    }

    /// A consumer of the stream that the queue is has been given messages.
    pub(crate) fn count_read(&self, handed: &Handed, wakes: &mut Wakes) {
        self.consumed.fetch_add(handed.messages, Ordering::Relaxed);
        let mut more = DeliveryCounts::default();
        more.add_handed(false, handed);
        self.count_deliveries(&mut self.state.lock().counts, &more, wakes);
    }

    /// Deliveries come back from clients, so many of them acknowledged.
    #[inline]
    pub(super) fn count_settled(&self, state: &mut State, count: usize, wakes: &mut Wakes) {
        let count = count as u64;
        let counts = state.counts.get_or_insert_default();
        counts.used_ms = self.now_ms();
        counts.deliveries.acknowledged += count;
        self.tally(wakes).deliveries(self.counted_as).acknowledged += count;
    }

    /// Counts a `basic.get` that found a message.
    pub(super) fn count_got(
        &self,
        state: &mut State,
        no_ack: bool,
        redelivered: bool,
        bytes: usize,
        wakes: &mut Wakes,
    ) {
        self.consumed.fetch_add(1, Ordering::Relaxed);
        let mut got = DeliveryCounts::default();
        got.add_got(no_ack, redelivered, bytes);
        self.count_deliveries(&mut state.counts, &got, wakes);
    }

    /// Counts a `basic.get` that found no message.
    pub(super) fn count_got_empty(&self, state: &mut State, wakes: &mut Wakes) {
        let more = DeliveryCounts { got_empty: 1, ..DeliveryCounts::default() };
        self.count_deliveries(&mut state.counts, &more, wakes);
    }

    /// A message leaves unconsumed.
    pub(super) fn count_dead(&self, reason: Reason, is_letter: bool, wakes: &mut Wakes) {
        self.tally(wakes).dead(self.counted_as, reason, is_letter);
    }
}
