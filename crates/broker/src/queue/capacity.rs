//! How much of the time no message of a queue had to wait for its consumers, as they had as much as they may.

use super::{Queue, State};

/// The latest time of this length counts as much as all before.
const HALF_LIFE_MS: f64 = 1000.0;

/// The part of the time in which some consumer could take a message, since the queue has had consumers. One counts as busy
/// once a message has come that it could not take.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    can_take: bool,
    since_ms: u64,
    /// What it was at `since_ms`, from 0 to 1.
    average: f64,
}

impl Capacity {
    /// The first consumer comes, and can take a message.
    pub fn begin(&mut self, now_ms: u64) {
        *self = Capacity { can_take: true, since_ms: now_ms, average: 1.0 };
    }

    /// Notes whether some consumer can take a message from now on.
    #[inline]
    pub fn note(&mut self, can_take: bool, now_ms: impl FnOnce() -> u64) {
        if self.can_take != can_take {
            let now_ms = now_ms();
            *self = Capacity { can_take, since_ms: now_ms, average: self.at(now_ms) };
        }
    }

    /// What it is at a time, from 0 to 1.
    pub fn at(&self, now_ms: u64) -> f64 {
        let latest = if self.can_take { 1.0 } else { 0.0 };
        let elapsed_ms = now_ms.saturating_sub(self.since_ms) as f64;
        latest + (self.average - latest) * (-elapsed_ms / HALF_LIFE_MS).exp2()
    }
}

impl Queue {
    /// At the end of a section: whether some consumer could take more.
    #[inline]
    pub(super) fn note_capacity(&self, state: &mut State) {
        let can_take = state.consumers.next().is_some();
        state.capacity.note(can_take, || self.now_ms());
    }
}
