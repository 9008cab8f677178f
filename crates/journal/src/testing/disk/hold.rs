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
}

impl Hold {
    pub(super) fn held() -> Self {
        let hold = Hold::default();
        hold.0.0.lock().is_held = true;
        hold
    }

    pub(super) fn wait(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock();
        while state.is_held {
            if changed.wait_for(&mut state, LIMIT).timed_out() && state.is_held {
                (state.is_held, state.is_overdue) = (false, true);
            }
        }
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
