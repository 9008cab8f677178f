//! A disk that takes its time.

use parking_lot::{Condvar, Mutex};
use std::{sync::Arc, time::Duration};

/// A test that has not let go by then has failed: what it tests waits for the disk.
const LIMIT: Duration = Duration::from_secs(20);

/// Holds operations of a disk until it is let go.
#[derive(Clone, Default)]
pub struct Hold(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    is_held: bool,
    is_overdue: bool,
    /// An operation has come to it.
    is_reached: bool,
}

/// The operations of a disk that can be held.
#[derive(Default)]
pub(super) struct Holds {
    pub new_files: Hold,
    pub syncs: Hold,
    /// Of one file.
    pub reads: (u64, Hold),
}

impl Hold {
    /// Holds, in place of what was held before, from now on.
    pub(super) fn begin(&mut self) -> Self {
        *self = Hold::default();
        self.0.0.lock().is_held = true;
        self.clone()
    }

    pub(super) fn wait(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock();
        state.is_reached = true;
        changed.notify_all();
        while state.is_held {
            if changed.wait_for(&mut state, LIMIT).timed_out() && state.is_held {
                (state.is_held, state.is_overdue) = (false, true);
            }
        }
    }

    /// Waits until an operation has come to it. Returns false if none has, within 20 s.
    pub fn wait_until_reached(&self) -> bool {
        let (state, changed) = &*self.0;
        let mut state = state.lock();
        changed.wait_while_for(&mut state, |state| !state.is_reached, LIMIT);
        state.is_reached
    }

    /// Lets the operations go on. Returns false if they had to go on without that, after 20 s.
    pub fn let_go(&self) -> bool {
        let (state, changed) = &*self.0;
        let mut state = state.lock();
        state.is_held = false;
        changed.notify_all();
        !state.is_overdue
    }
}
