//! `x-expires`: a queue that has not been used for a while goes.
//!
//! Consumers use a queue as long as they are there; a declare and a get use it once.

use super::{Queue, State};
use crate::timers::TimerKind;
use std::sync::atomic::Ordering;

/// When a queue was last used.
#[derive(Debug, Default)]
pub(super) struct Lease {
    timer: crate::timers::Timer,
    used_ms: u64,
}

impl State {
    /// Whether the queue's lease is over: it has no consumer, and was last used long enough ago.
    pub(super) fn is_unused(&self, now_ms: u64) -> bool {
        let expires_ms = self.traits.as_ref().and_then(|traits| traits.expires_ms);
        let over = |after_ms| now_ms >= self.lease.used_ms.saturating_add(after_ms);
        self.consumers.len() == 0 && expires_ms.is_some_and(over)
    }
}

impl Queue {
    /// It is used now: by a declare. Returns whether it is still there.
    pub(crate) fn touch(&self) -> bool {
        let mut state = self.state.lock();
        if !state.deleted {
            self.renew_lease(&mut state);
        }
        !state.deleted
    }

    /// Clients can use it from now on.
    pub(crate) fn begin_to_serve(&self) {
        self.usable_ms.store(self.now_ms(), Ordering::Relaxed);
        self.touch();
    }

    /// Begins the lease anew.
    pub(super) fn renew_lease(&self, state: &mut State) {
        let Some(expires_ms) = state.traits.as_ref().and_then(|traits| traits.expires_ms) else {
            return;
        };
        state.lease.used_ms = self.timers.now_ms();
        // A timer that fires earlier finds out then. If it is to fire later, the clock was set back.
        let over_ms = state.lease.used_ms.saturating_add(expires_ms);
        if state.lease.timer.deadline_ms().is_none_or(|armed_ms| over_ms < armed_ms) {
            self.arm_lease(state, expires_ms);
        }
    }

    fn arm_lease(&self, state: &mut State, expires_ms: u64) {
        let deadline_ms = state.lease.used_ms.saturating_add(expires_ms);
        let key = (self.id, TimerKind::Unused);
        self.timers.arm(&mut state.lease.timer, deadline_ms, key, self.timed());
    }

    /// The lease may be over: whether the queue has to go.
    pub(super) fn lease_is_over(&self, fired_ms: u64, now_ms: u64) -> bool {
        let mut state = self.state.lock();
        state.lease.timer.fired(fired_ms);
        let Some(expires_ms) = state.traits.as_ref().and_then(|traits| traits.expires_ms) else {
            return false;
        };
        if state.deleted {
            return false;
        }
        if state.consumers.len() > 0 {
            state.lease.used_ms = now_ms;
        }
        if state.is_unused(now_ms) {
            return true;
        }
        self.arm_lease(&mut state, expires_ms);
        false
    }

    pub(super) fn end_lease(&self, state: &mut State) {
        self.timers.disarm(&mut state.lease.timer, (self.id, TimerKind::Unused));
    }
}
