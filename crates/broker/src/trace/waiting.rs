//! Copies that wait to be posted: those of one vhost, in the order of what they are of.
//!
//! What comes about in one section under the gate may be copied many times, and each copy may go to any number of queues. So a
//! bounded part is posted at once, and a timer goes on with the rest.

use super::Traced;
use crate::dead_letter::Go;
use crate::gate;
use crate::memory::{Charge, Memory, Use};
use crate::routing::Namespace;
use crate::timers::{Timed, Timer, TimerKind, Timers};
use crate::wakes::Wakes;
use courser_store::Store;
use courser_store::blocking::Lock;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

/// The copies of a vhost that are not posted yet.
pub(crate) struct WaitingCopies {
    vhost: Weak<dyn Namespace>,
    /// The number of the exchange that they go to.
    number: u64,
    timers: Arc<Timers>,
    /// Held while some are posted, so that they stay in order.
    posting: Lock<()>,
    state: Mutex<State>,
}

struct State {
    copies: VecDeque<Traced>,
    charge: Charge,
    timer: Timer,
}

impl WaitingCopies {
    /// None yet, for an exchange with this number.
    pub fn new(
        vhost: Weak<dyn Namespace>,
        number: u64,
        timers: &Arc<Timers>,
        memory: &Arc<Memory>,
    ) -> Arc<Self> {
        let charge = memory.charge(Use::Copies, 0);
        let state = State { copies: VecDeque::new(), charge, timer: Timer::default() };
        Arc::new(WaitingCopies {
            vhost,
            number,
            timers: Arc::clone(timers),
            posting: Lock::new(()),
            state: Mutex::new(state),
        })
    }

    /// Adds one, to be posted as dead letters are. Where memory has no room for it there is one copy less.
    pub fn push(self: &Arc<Self>, copy: Traced, wakes: &mut Wakes) {
        let mut state = self.state.lock();
        let bytes = copy.used_bytes();
        if state.charge.memory().is_some_and(|memory| !memory.admits_copies(bytes)) {
            return;
        }
        let all = state.charge.bytes() + bytes;
        state.charge.set(all);
        state.copies.push_back(copy);
        drop(state);
        wakes.push_traced(self);
    }

    /// Posts the first of them, until the go is over. The others follow when it is the turn of a timer. Called with the
    /// shard's gate held and without any lock.
    pub fn post_some(self: &Arc<Self>, go: &mut Go, wakes: &mut Wakes) {
        gate::assert_inside("copies are posted");
        let Some(vhost) = self.vhost.upgrade() else { return };
        // Another thread may be posting what came before. One of the two goes on with all of it.
        let _order = self.posting.lock();
        while !go.is_over() {
            let Some(copy) = self.take_first() else { return };
            go.left -= 1;
            go.read_bytes += copy.used_bytes();
            copy.post(&*vhost, wakes);
        }
        self.post_more_soon(&mut self.state.lock());
    }

    fn take_first(&self) -> Option<Traced> {
        let mut state = self.state.lock();
        let copy = state.copies.pop_front()?;
        let rest = state.charge.bytes() - copy.used_bytes();
        state.charge.set(rest);
        if state.copies.is_empty() {
            state.copies = VecDeque::new();
        }
        Some(copy)
    }

    fn post_more_soon(self: &Arc<Self>, state: &mut State) {
        if !state.copies.is_empty() {
            let me: Weak<dyn Timed> = Arc::<Self>::downgrade(self);
            let (now_ms, key) = (self.timers.now_ms(), (self.number, TimerKind::Serve));
            self.timers.arm(&mut state.timer, now_ms, key, me);
        }
    }
}

impl Timed for WaitingCopies {
    fn is_still(&self) -> bool {
        self.vhost.upgrade().is_some_and(|vhost| vhost.is_still())
    }

    fn may_take_long(&self, _: TimerKind) -> bool {
        // They are in memory.
        false
    }

    fn fire(
        self: Arc<Self>,
        _: TimerKind,
        fired_ms: u64,
        _: u64,
        _: &dyn Store,
        wakes: &mut Wakes,
    ) {
        self.state.lock().timer.fired(fired_ms);
        wakes.push_traced(&self);
    }
}

impl fmt::Debug for WaitingCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = self.state.lock().copies.len();
        f.debug_struct("WaitingCopies").field("copies", &copies).finish_non_exhaustive()
    }
}
