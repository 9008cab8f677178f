//! Waking a connection's task.

use super::Outbox;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Wake, Waker};

impl Outbox {
    /// Asks to be woken when there is something to send or to look at.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        self.has_woken.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Has the connection's task run once more, to go on with what it has left: nothing new has come.
    pub(crate) fn wake_to_go_on(&self) {
        self.waker.wake();
    }

    /// Whether it has been woken since this was asked last.
    pub(crate) fn take_woken(&self) -> bool {
        self.has_woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Outbox {
    fn wake(self: Arc<Self>) {
        Outbox::wake(&self);
    }
}
