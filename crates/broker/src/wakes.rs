//! The connections that a batch has put something into, each to be woken once at its end.

use crate::outbox::Outbox;
use std::sync::Arc;

/// Collects outboxes while locks are held and wakes their connections when none is.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    due: Vec<Arc<Outbox>>,
}

impl Wakes {
    pub fn push(&mut self, outbox: &Arc<Outbox>) {
        self.due.push(Arc::clone(outbox));
    }

    /// Wakes all connections collected. Called without any lock held.
    pub fn wake_all(&mut self) {
        for outbox in self.due.drain(..) {
            outbox.wake();
        }
    }
}
