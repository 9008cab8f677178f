//! A way to a queue for what may outlive it.

use super::Queue;
use parking_lot::Mutex;
use std::mem::size_of;
use std::sync::{Arc, Weak};

/// A way to a queue that keeps none of its memory once it is gone, as a [`Weak`] of its own would: all but a few bytes of a queue
/// lie in what that points to.
#[derive(Clone, Debug)]
pub(crate) struct Handle(Arc<Mutex<Weak<Queue>>>);

impl Handle {
    /// What it uses where it is the last thing that is left of its queue: with the counts of its `Arc`.
    pub const BYTES: usize = size_of::<Mutex<Weak<Queue>>>() + 2 * size_of::<usize>();

    pub(super) fn new(queue: &Weak<Queue>) -> Self {
        Handle(Arc::new(Mutex::new(Weak::clone(queue))))
    }

    /// The queue, as long as something keeps it.
    pub fn upgrade(&self) -> Option<Arc<Queue>> {
        self.0.lock().upgrade()
    }

    /// One of its own, for a timer that is disarmed when the queue is deleted.
    pub(super) fn downgrade(&self) -> Weak<Queue> {
        self.0.lock().clone()
    }

    /// Whether the queue is gone.
    pub fn is_vain(&self) -> bool {
        self.0.lock().strong_count() == 0
    }

    /// Unlike that of any other.
    pub fn key(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }

    /// The queue goes.
    fn end(&self) {
        *self.0.lock() = Weak::new();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.handle.end();
    }
}
