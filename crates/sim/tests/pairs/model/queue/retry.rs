//! What has come back, and waits before its next try.

use super::{Place, Queue};
use crate::model::Moment;
use crate::model::message::Entry;
use std::collections::BTreeMap;

/// Messages that wait for their next try, by when that is; of those at the same time the lowest level first.
#[derive(Clone, Debug, Default)]
pub(super) struct Delayed(BTreeMap<(u64, u8, u64), Entry>);

impl Delayed {
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn insert(&mut self, due_ms: u64, (level, number): Place, entry: Entry) {
        self.0.insert((due_ms, level.0, number), entry);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// When the next one is due.
    pub fn next_ms(&self) -> Option<u64> {
        self.0.first_key_value().map(|((due_ms, ..), _)| *due_ms)
    }

    /// Takes the one that is due first, if that is at `now_ms` or before.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<(Place, Entry)> {
        let first = self.0.first_entry().filter(|first| first.key().0 <= now_ms)?;
        let ((_, level, number), entry) = first.remove_entry();
        Some(((std::cmp::Reverse(level), number), entry))
    }
}

impl Queue {
    /// What is due is in its place again, and may be handed out.
    pub fn retry_due(&mut self, at: &mut Moment<'_>) -> Result<(), String> {
        if self.delayed.next_ms().is_none_or(|due_ms| due_ms > at.now_ms) {
            return Ok(());
        }
        while let Some((place, entry)) = self.delayed.pop_due(at.now_ms) {
            self.ready.insert(place, entry);
        }
        self.feed(at)
    }
}
