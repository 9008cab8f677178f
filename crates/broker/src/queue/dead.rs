//! The messages that leave a queue for its dead-letter exchange, until they have arrived there.

use super::settle::Settling;
use super::{DeadLetterTo, Queue, Settled, State};
use crate::dead_letter::Reason;
use crate::routing::Namespace;
use crate::timers::{Timer, TimerKind};
use crate::wakes::Wakes;
use courser_store::{Location, Position, Store, StoreError, Sync};
use parking_lot::MutexGuard;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How long letters wait that could not be delivered.
const RETRY_MS: u64 = 1000;
/// Letters that are tried again at once.
const RETRIED_AT_ONCE: usize = 256;

/// A message that has left its queue, and has yet to arrive elsewhere.
#[derive(Debug)]
pub(crate) struct Letter {
    /// Its number in the queue's books.
    pub number: u64,
    pub location: Location,
    pub reason: Reason,
}

/// Books of messages that have left the queue and are not settled yet: a restart before that has
/// to find them in it.
#[derive(Debug, Default)]
pub(super) struct Dying {
    by_number: BTreeMap<u64, Dead>,
    /// Those that nobody has in hands yet, in the order in which they left.
    unposted: VecDeque<Letter>,
    next_number: u64,
    retry: Timer,
}

#[derive(Debug)]
struct Dead {
    location: Location,
    reason: Reason,
    /// Nobody has it in hands: it is tried again when the timer fires.
    stranded: bool,
}

impl Dying {
    fn has_stranded(&self) -> bool {
        self.by_number.values().any(|dead| dead.stranded)
    }

    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        self.by_number.values().map(|dead| &dead.location)
    }
}

impl Queue {
    /// Where its vhost is, unless the broker is about to end.
    pub(crate) fn namespace(&self) -> Option<Arc<dyn Namespace>> {
        self.namespace.upgrade()
    }

    /// Where its dead letters go.
    pub(crate) fn dead_letter_to(&self) -> Option<Arc<DeadLetterTo>> {
        self.state.lock().traits.as_ref()?.dead_letter.clone()
    }

    /// A message leaves the queue unconsumed: for the dead-letter exchange, or for good.
    pub(super) fn bury(
        self: &Arc<Self>,
        state: &mut State,
        location: Location,
        reason: Reason,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) {
        state.leave(&location);
        let is_letter = state.traits.as_ref().is_some_and(|traits| traits.dead_letter.is_some());
        self.count_dead(reason, is_letter, wakes);
        if !is_letter {
            return settling.add(location);
        }
        let number = state.dying.next_number;
        state.dying.next_number += 1;
        let dead = Dead { location: location.clone(), reason, stranded: false };
        state.dying.by_number.insert(number, dead);
        state.dying.unposted.push_back(Letter { number, location, reason });
        wakes.push_lettered(self);
    }

    /// Letters are posted by one thread at a time, which holds this.
    pub(crate) fn lock_posting(&self) -> MutexGuard<'_, ()> {
        self.posting.lock()
    }

    /// Takes some of the letters that are to be posted, the oldest first.
    pub(crate) fn take_letters(&self, most: usize) -> Vec<Letter> {
        let mut state = self.state.lock();
        let unposted = &mut state.dying.unposted;
        let some = unposted.len().min(most);
        let letters = unposted.drain(..some).collect();
        if unposted.is_empty() {
            unposted.shrink_to(0);
        }
        letters
    }

    /// Deliveries that their consumers refuse for good.
    pub(crate) fn reject(
        self: &Arc<Self>,
        settled: &[Settled],
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        for one in settled {
            if let Some(location) = state.unacked.remove(one.sequence) {
                self.bury(&mut state, location, Reason::Rejected, &mut settling, wakes);
            }
            if let Some(consumer) = one.consumer {
                state.consumers.unblock(consumer);
            }
        }
        state.unacked.shrink_if_empty();
        self.feed_waiting(&mut state, &mut settling, store, wakes)?;
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// The ascending positions of dead letters that are in the log.
    pub(crate) fn dead_positions(&self, numbers: &[u64]) -> Vec<Position> {
        let state = self.state.lock();
        let dead = numbers.iter().filter_map(|number| state.dying.by_number.get(number));
        let mut positions: Vec<Position> =
            dead.filter_map(|dead| dead.location.position()).collect();
        drop(state);
        positions.sort_unstable();
        positions
    }

    /// Lets go of dead letters. `in_log` says that the log knows of it already.
    pub(crate) fn forget_dead(
        &self,
        numbers: &[u64],
        in_log: bool,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        for number in numbers {
            if let Some(dead) = state.dying.by_number.remove(number) {
                settling.add(dead.location);
            }
        }
        if state.dying.has_stranded() {
            // There was a way for these; the next ones may find it as well.
            self.retry_after(0, &mut state.dying);
        }
        drop(state);
        if in_log {
            store.release(&settling.positions);
            return Ok(());
        }
        self.settle(settling, Sync::Later, store)
    }

    /// Keeps dead letters that can't be delivered now, to try it again later.
    pub(crate) fn strand_dead(&self, numbers: &[u64]) {
        let mut state = self.state.lock();
        let dying = &mut state.dying;
        for number in numbers {
            // Behind the others: there may be a way for these.
            if let Some(dead) = dying.by_number.remove(number) {
                let next = dying.next_number;
                dying.next_number += 1;
                dying.by_number.insert(next, Dead { stranded: true, ..dead });
            }
        }
        self.retry_after(RETRY_MS, dying);
    }

    fn retry_after(&self, wait_ms: u64, dying: &mut Dying) {
        let deadline_ms = self.timers.now_ms().saturating_add(wait_ms);
        let key = (self.id, TimerKind::DeadLetters);
        self.timers.arm(&mut dying.retry, deadline_ms, key, self.timed());
    }

    /// Hands out some of the dead letters that could not be delivered before.
    pub(super) fn retry_dead(self: &Arc<Self>, fired_ms: u64, wakes: &mut Wakes) {
        let mut state = self.state.lock();
        let dying = &mut state.dying;
        dying.retry.fired(fired_ms);
        let Dying { by_number, unposted, .. } = &mut *dying;
        let stranded = by_number.iter_mut().filter(|(_, dead)| dead.stranded);
        for (number, dead) in stranded.take(RETRIED_AT_ONCE) {
            dead.stranded = false;
            let (number, reason) = (*number, dead.reason);
            let location = dead.location.clone();
            unposted.push_back(Letter { number, location, reason });
            wakes.push_lettered(self);
        }
        if dying.has_stranded() {
            self.retry_after(RETRY_MS, dying);
        }
    }

    /// The queue is gone, and its dead letters with it.
    pub(super) fn take_dying(&self, state: &mut State) -> Dying {
        self.timers.disarm(&mut state.dying.retry, (self.id, TimerKind::DeadLetters));
        std::mem::take(&mut state.dying)
    }
}
