//! What happens to a queue by itself: what is due when, and what a restart leaves.

use super::{Place, Queue, Taken};
use crate::broker::PUBLISHER;
use crate::model::consumers::Consumers;
use crate::model::deduplication::Marks;
use crate::model::message::Entry;
use crate::model::{ChannelId, Moment};
use std::collections::BTreeSet;

impl Queue {
    pub(super) fn deadline_ms(&self, entry: &Entry) -> Option<u64> {
        let ttl_ms = self.settings.ttl_ms.into_iter().chain(entry.message.ttl_ms).min()?;
        Some(entry.stamp_ms.unwrap_or(self.since_ms) + ttl_ms)
    }

    /// When something is due.
    pub fn next_ms(&self) -> Option<u64> {
        let expiry = self.ready.values().next().and_then(|entry| self.deadline_ms(entry));
        let overdue = self.overdue_ms().map(|(at, _)| at);
        let retries = self.delayed.next_ms().into_iter().chain(self.retry_ms());
        expiry.into_iter().chain(self.end_ms()).chain(overdue).chain(retries).min()
    }

    /// When it goes, if it is not used until then.
    pub fn end_ms(&self) -> Option<u64> {
        let expires_ms = self.settings.expires_ms.filter(|_| self.consumers.len() == 0);
        expires_ms.map(|expires_ms| self.used_ms + expires_ms)
    }

    /// When which channel has had a message for too long.
    fn overdue_ms(&self) -> Option<(u64, ChannelId)> {
        let timeout_ms = self.settings.timeout_ms?;
        let timed = self.taken.values().filter(|taken| taken.is_timed);
        timed.map(|taken| (taken.since_ms + timeout_ms, taken.holder)).min()
    }

    /// The channels that are to be closed, as they have had a message for too long.
    pub fn overdue(&self, now_ms: u64) -> Vec<ChannelId> {
        let overdue = self.late(now_ms).into_iter();
        overdue.filter(|holder| !self.cancels(*holder)).collect()
    }

    /// Whether a consumer of this channel is cancelled, when it is too slow, and not the channel closed. What
    /// is polled is with the publisher.
    fn cancels(&self, holder: ChannelId) -> bool {
        self.kind.is_quorum && holder.0 != PUBLISHER
    }

    /// Consumers that have had a message for too long are cancelled, and all that they have returns.
    pub fn cancel_overdue(&mut self, at: &mut Moment<'_>) -> Result<(), String> {
        let late = self.late(at.now_ms).into_iter();
        let slow: BTreeSet<_> = late.filter(|holder| self.cancels(*holder)).collect();
        if slow.is_empty() {
            return Ok(());
        }
        for channel in &slow {
            if self.consumers.get_mut(*channel).is_some() {
                self.remove_consumer(*channel, at.now_ms);
                at.observed.take_cancel(*channel)?;
            }
        }
        let is_slow = |taken: &Taken| slow.contains(&taken.holder);
        let back: Vec<(Place, Taken)> =
            self.taken.extract_if(.., |_, taken| is_slow(taken)).collect();
        for (place, taken) in back {
            at.channels.take_away(taken.holder, self.name, place);
            self.put_back(place, taken.entry, false, at);
        }
        self.drop_excess(at);
        self.feed(at)
    }

    /// The channels that have had a message for too long.
    fn late(&self, now_ms: u64) -> Vec<ChannelId> {
        let timeout_ms = self.settings.timeout_ms.unwrap_or(u64::MAX);
        let timed = self.taken.values().filter(|taken| taken.is_timed);
        let overdue = timed.filter(|taken| taken.since_ms.saturating_add(timeout_ms) <= now_ms);
        overdue.map(|taken| taken.holder).collect()
    }

    /// Its consumers are gone, and nothing is handed out.
    pub fn forget_consumers(&mut self) {
        self.consumers = Consumers::new(self.kind.single_active, self.kind.is_quorum);
    }

    /// The broker starts again: what is persistent is there, and all of it is ready.
    pub fn restart(&mut self, now_ms: u64) {
        for (place, taken) in std::mem::take(&mut self.taken) {
            self.ready.insert(place, taken.entry);
        }
        while let Some((place, entry)) = self.delayed.pop_due(u64::MAX) {
            self.ready.insert(place, entry);
        }
        self.return_stranded();
        self.ready.retain(|_, entry| entry.message.persistent);
        for entry in self.ready.values_mut() {
            // The log knows of deliveries only what it has to count.
            entry.redelivered = (entry.returns > 0).then_some(true);
            entry.failed = entry.redelivered;
        }
        self.forget_consumers();
        (self.since_ms, self.used_ms) = (now_ms, now_ms);
        self.forget_marks();
    }

    /// It remembers nothing.
    pub fn forget_marks(&mut self) {
        self.marks = self.kind.marks.map(Marks::new);
    }

    /// What is too much after a start, as what was handed out counts again, or too old, leaves.
    pub fn tidy_up(&mut self, at: &mut Moment<'_>) {
        self.drop_excess(at);
        self.expire(at);
    }
}
