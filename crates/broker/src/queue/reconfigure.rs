//! What changes while a queue lives: its traits, and what it does at a certain time.

use super::bounds::Overflow;
use super::settle::Settling;
use super::{EffectiveSettings, Queue, State};
use crate::policy::QueuePolicies;
use crate::timers::{Timed, TimerKind};
use crate::wakes::Wakes;
use courser_store::{Store, StoreError, Sync};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// No section under a queue's lock takes longer that does not read from the disk.
const SECTION_WAIT: Duration = Duration::from_millis(10);

impl Queue {
    /// Begins what its traits ask for.
    pub(super) fn settle_in(&self) {
        let mut state = self.state.lock();
        self.renew_lease(&mut state);
        self.note_traits(&mut state);
        Self::count_bytes(&mut state);
    }

    /// Takes note of the traits where they are asked for without the lock.
    fn note_traits(&self, state: &mut State) {
        let traits = state.traits.as_deref();
        let has_ttl = traits.is_some_and(|traits| traits.message_ttl_ms.is_some());
        let bounds = traits.and_then(|traits| traits.bounds);
        let refuses = bounds.is_some_and(|bounds| bounds.overflow != Overflow::DropHead);
        self.stamps.store(has_ttl, Ordering::Relaxed);
        self.refuses.store(refuses, Ordering::Relaxed);
        self.deliver_early(traits.is_some_and(|traits| traits.delivers_before_commit));
        if !has_ttl {
            state.expiry.since_ms = 0;
        } else if state.expiry.since_ms == 0 {
            state.expiry.since_ms = self.timers.now_ms();
        }
        let timeout_ms = traits.and_then(|traits| traits.consumer_timeout_ms);
        state.unacked.set_timeout(timeout_ms, self.id, &self.timers, || self.timed());
        if has_ttl {
            self.watch_head(state);
        }
    }

    /// Lets it follow these policies, which hold from now on, also for what waits in it. The vhost's routes
    /// have to be forgotten after this.
    pub(crate) fn follow(
        self: &Arc<Self>,
        mut policies: QueuePolicies,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let traits = EffectiveSettings::with(&policies, &self.settings.arguments);
        let mut state = self.state.lock();
        if state.deleted {
            return Ok(());
        }
        self.matched.follow(mem::take(&mut policies.took));
        state.policies = policies;
        if state.traits == traits {
            return Ok(());
        }
        state.traits = traits;
        if let Some(stream) = self.stream() {
            stream.set_traits(state.traits.as_deref());
            stream.watch_age(None, &self.timers, self.timed());
        }
        self.end_lease(&mut state);
        self.renew_lease(&mut state);
        self.note_traits(&mut state);
        Self::count_bytes(&mut state);
        if state.ready.lacks_sizes() || self.is_still() {
            // Many queues may follow one policy, with nothing else done in the vhost meanwhile: each reads by itself. While the
            // vhost stands still, nothing comes of the timer.
            self.serve_in(&mut state, 0);
            return Ok(());
        }
        let mut settling = Settling::default();
        self.serve(&mut state, &mut settling, store, wakes);
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Whether it refuses messages that it has no room for.
    pub(crate) fn may_refuse(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Whether messages for it need a stamp.
    pub(crate) fn wants_stamps(&self) -> bool {
        self.stamps.load(Ordering::Relaxed) || self.stream.is_some()
    }

    /// What it does that not every queue does.
    pub fn traits(&self) -> Option<Arc<EffectiveSettings>> {
        self.state.lock().traits.clone()
    }

    /// The policies that it follows.
    pub(crate) fn policies(&self) -> QueuePolicies {
        self.state.lock().policies.clone()
    }
}

impl Timed for Queue {
    fn is_still(&self) -> bool {
        self.namespace().is_some_and(|vhost| vhost.is_still())
    }

    fn may_take_long(&self, kind: TimerKind) -> bool {
        let may_read = {
            let state = self.state.try_lock_for(SECTION_WAIT);
            state.is_none_or(|state| state.may_read())
        };
        may_read
            || kind == TimerKind::Unused
                && self.namespace().is_some_and(|vhost| vhost.takes_long_to_delete(self))
    }

    fn fire(
        self: Arc<Self>,
        kind: TimerKind,
        fired_ms: u64,
        now_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) {
        match kind {
            TimerKind::Unused => {
                if self.lease_is_over(fired_ms, now_ms)
                    && let Some(vhost) = self.namespace()
                {
                    vhost.delete_unused_queue(&self, wakes);
                }
            }
            // What fails is an append: the store is of no use any more, and its owner ends the broker.
            TimerKind::AckTimeout => drop(self.end_overdue(fired_ms, now_ms, store, wakes)),
            TimerKind::DeadLetters => self.retry_dead(fired_ms, wakes),
            TimerKind::Serve => drop(self.serve_more(fired_ms, store, wakes)),
            TimerKind::Expiry => drop(self.look_at_head(fired_ms, store, wakes)),
            TimerKind::Age => {
                if let Some(stream) = self.stream() {
                    let there_is_more = stream.expire(fired_ms, now_ms, store);
                    let wait_ms = there_is_more.then_some(1);
                    stream.watch_age(wait_ms, &self.timers, self.timed());
                }
            }
            TimerKind::ReadAhead => self.release_unused_reader(fired_ms),
            TimerKind::Delayed => drop(self.retry_due(fired_ms, now_ms, store, wakes)),
        }
    }
}
