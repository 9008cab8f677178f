//! Deliveries that come back to their queue, in portions: a channel may have very many, and others want the queue's lock
//! meanwhile.
//!
//! Until all are in their places nothing is handed out, so that what goes out again goes in order. What has not come back yet
//! is still among the unacknowledged messages, also for a checkpoint and for a restart. Each section puts a portion back: those
//! of the caller that returns them, of a client that polls, and of the timer, whichever comes first.

use super::settle::{Outcome, Settled, Settling};
use super::{Queue, State};
use crate::outbox::Outbox;
use crate::wakes::Wakes;
use crate::work;
use courser_store::{Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::vec;

/// Deliveries that one section under the lock settles or puts back.
pub(crate) const SETTLED_AT_ONCE: usize = 4096;

/// Room for so many lots is kept.
const KEPT_LOTS: usize = 16;

/// Deliveries that come back from clients, and what becomes of them.
pub(crate) type Lots = Vec<(Vec<Settled>, Outcome)>;

/// What is to come back to its place.
#[derive(Debug)]
pub(super) enum Lot {
    /// These deliveries.
    Settled(vec::IntoIter<Settled>, Outcome),
    /// What the cancelled consumer in this slot of a channel has kept for too long.
    Overdue { outbox: Weak<Outbox>, channel: u16, slot: u32 },
}

/// Lots that are not in their places yet.
pub(super) type Returning = VecDeque<Lot>;

impl State {
    /// Whether messages are on the way to their places: nothing is handed out before.
    #[inline]
    pub(super) fn is_returning(&self) -> bool {
        !self.returning.is_empty()
    }
}

impl Queue {
    /// Puts deliveries back to their places, or does what else their outcomes say: some of them. Returns whether there is more,
    /// for which it is to be called again, with no more lots and after others had their turn.
    pub(crate) fn take_back(
        self: &Arc<Self>,
        lots: Lots,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<bool, StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        let lots = lots.into_iter().map(|(all, outcome)| Lot::Settled(all.into_iter(), outcome));
        state.returning.extend(lots);
        self.count_settled(&mut state, 0, wakes);
        self.put_some_back(&mut state, &mut settling, wakes);
        self.serve(&mut state, &mut settling, store, wakes);
        self.note_handed_out(&mut state, &mut settling);
        let goes_on = state.is_returning();
        match goes_on {
            // The next portion follows at once: who waits is before it.
            true => MutexGuard::unlock_fair(state),
            false => drop(state),
        }
        self.settle(settling, Sync::Later, store).map(|()| goes_on)
    }

    /// Puts back what no client has had: to its place, whatever waits in this queue, and as no return. What is more than a
    /// portion follows by itself.
    pub(crate) fn return_untouched(
        self: &Arc<Self>,
        returned: Vec<Settled>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.take_back(vec![(returned, Outcome::Untouched)], store, wakes).map(drop)
    }

    /// Puts a portion of what comes back into its place.
    pub(super) fn put_some_back(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) {
        let mut left = SETTLED_AT_ONCE;
        while left > 0
            && let Some(mut lot) = state.returning.pop_front()
        {
            let (looked_at, goes_on) = match &mut lot {
                Lot::Settled(deliveries, outcome) => {
                    let before = deliveries.len();
                    for one in deliveries.take(left) {
                        if let Some(location) = state.unacked.remove(one.sequence) {
                            let returned = (one.sequence, location);
                            self.put_back_as(*outcome, state, returned, settling, wakes);
                        }
                        state.give_credit(one.freed);
                    }
                    (before - deliveries.len(), deliveries.len() > 0)
                }
                Lot::Overdue { outbox, channel, slot } => {
                    let mut numbers = Vec::new();
                    let taken = outbox.upgrade().and_then(|outbox| {
                        let mut outbox = outbox.lock();
                        Some(outbox.channel(*channel)?.take_away(self, *slot, left, &mut numbers))
                    });
                    for number in numbers {
                        if let Some(location) = state.unacked.remove(number) {
                            self.put_back_unharmed(state, (number, location), settling);
                        }
                    }
                    taken.unwrap_or((1, false))
                }
            };
            work::count(looked_at);
            left = left.saturating_sub(looked_at.max(1));
            if goes_on {
                state.returning.push_front(lot);
            }
        }
        if !state.is_returning() {
            state.returning.shrink_to(KEPT_LOTS);
        }
        state.unacked.shrink_if_empty();
    }
}
