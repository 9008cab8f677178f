//! `x-single-active-consumer`: one consumer gets everything, the others stand by.

use super::consumers::{Consumer, Consumers, Place};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Who the single active consumer is, and who may come after it.
#[derive(Debug, Default)]
pub(super) struct SingleActive {
    active: Option<u32>,
    /// The active one has gone, and what it had may not be back yet: none takes its place before.
    vacated: bool,
    /// The others: those with the highest priority first, of those who came first.
    waiting: BTreeMap<(Reverse<i64>, u64), u32>,
    /// For each of them, when it came.
    arrivals: BTreeMap<u32, u64>,
    next_arrival: u64,
    /// A higher priority takes the place of the active consumer.
    by_priority: bool,
    /// The active consumer gets nothing more: once it has settled what it has, another takes over.
    fading: bool,
}

impl SingleActive {
    pub fn new(by_priority: bool) -> Self {
        SingleActive { by_priority, ..SingleActive::default() }
    }

    pub fn by_priority(&self) -> bool {
        self.by_priority
    }

    /// Takes note of a new consumer.
    pub fn add(&mut self, key: u32, priority: i64) {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        self.waiting.insert((Reverse(priority), arrival), key);
        self.arrivals.insert(key, arrival);
    }

    fn is_waiting_no_more(&mut self, key: u32, priority: i64) {
        if let Some(arrival) = self.arrivals.remove(&key) {
            self.waiting.remove(&(Reverse(priority), arrival));
        }
    }

    /// Takes note that a consumer has gone.
    pub fn remove(&mut self, key: u32, priority: i64) {
        if self.active == Some(key) {
            self.active = None;
            self.vacated = true;
            self.fading = false;
        }
        self.is_waiting_no_more(key, priority);
    }
}

impl Consumers {
    /// Whether this is the single active consumer, if the queue has one at a time.
    pub fn is_single_active(&self, key: u32) -> bool {
        self.single.as_deref().is_some_and(|single| single.active == Some(key))
    }

    /// Whether the single active consumer has left its place, and that is not to be filled yet.
    pub fn is_vacant(&self) -> bool {
        self.single.as_deref().is_some_and(|single| single.vacated)
    }

    /// What the single active consumer had is back: its place can be filled, now or by the one that comes next.
    pub fn fill_place(&mut self) {
        self.single.iter_mut().for_each(|single| single.vacated = false);
        self.activate_next();
    }

    /// Gives the place of the single active consumer, where it can be filled, to the one with the highest priority, of
    /// those to the one that has waited longest.
    pub(super) fn activate_next(&mut self) {
        let Some(next) = self.highest_waiting() else { return };
        let priority = self.priority(next);
        let can_be_filled = |single: &&mut SingleActive| single.active.is_none() && !single.vacated;
        let Some(single) = self.single.as_deref_mut().filter(can_be_filled) else { return };
        single.is_waiting_no_more(next, priority);
        single.active = Some(next);
        self.put_into_ring(next);
    }

    /// Sees to it that a consumer with a higher priority than the active one takes over, where
    /// queues do that: as soon as the active one has nothing unacknowledged.
    pub fn hand_over(&mut self) {
        let Some(single) = self.single.as_deref().filter(|single| single.by_priority) else {
            return;
        };
        let (Some(active), was_fading) = (single.active, single.fading) else { return };
        let next = self.highest_waiting().map_or(i64::MIN, |next| self.priority(next));
        if next <= self.priority(active) {
            if was_fading && let Some(single) = self.single.as_deref_mut() {
                // The one that was to take over has gone.
                single.fading = false;
                self.put_into_ring(active);
            }
            return;
        }
        let priority = self.priority(active);
        let settled = self.get(active).is_none_or(has_nothing_unacked);
        self.leave_ring(active, Place::Waiting);
        let Some(single) = self.single.as_deref_mut() else { return };
        single.fading = !settled;
        if settled {
            single.active = None;
            single.add(active, priority);
            self.activate_next();
        }
    }

    /// Whether a consumer's settling may be what another one waits for.
    #[inline]
    pub fn is_handing_over(&self) -> bool {
        self.single.as_deref().is_some_and(|single| single.fading)
    }

    fn highest_waiting(&self) -> Option<u32> {
        self.single.as_deref()?.waiting.values().next().copied()
    }

    fn priority(&self, key: u32) -> i64 {
        self.get(key).map_or(i64::MIN, |consumer| consumer.priority)
    }
}

fn has_nothing_unacked(consumer: &Consumer) -> bool {
    let mut outbox = consumer.outbox.lock();
    let slot = outbox.channel(consumer.channel).and_then(|channel| channel.slot(consumer.slot));
    slot.is_none_or(|slot| slot.in_flight() == 0)
}
