//! The exclusive queues of a connection, which go with it.

use crate::queue::Queue;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Fewer queues than this are not worth sweeping.
const SWEEP_MIN: usize = 64;

/// Exclusive queues by their numbers, which is the order in which they were declared. One that goes
/// earlier, as it expires, is not kept from going.
#[derive(Default)]
pub(super) struct ExclusiveQueues {
    by_number: BTreeMap<u64, Weak<Queue>>,
    /// How many were left when those that had gone were last swept out.
    swept: usize,
}

impl ExclusiveQueues {
    /// Takes note of a queue.
    pub fn add(&mut self, queue: &Arc<Queue>) {
        if self.by_number.len() >= SWEEP_MIN.max(self.swept * 2) {
            self.by_number.retain(|_, queue| queue.strong_count() > 0);
            self.swept = self.by_number.len();
        }
        self.by_number.insert(queue.id, Arc::downgrade(queue));
    }

    /// A queue is gone.
    pub fn remove(&mut self, queue: &Queue) {
        self.by_number.remove(&queue.id);
    }

    /// The first that is there.
    pub fn first(&self) -> Option<Arc<Queue>> {
        self.by_number.values().find_map(Weak::upgrade)
    }

    /// Takes out the first that is there.
    pub fn take_first(&mut self) -> Option<Arc<Queue>> {
        loop {
            let (_, queue) = self.by_number.pop_first()?;
            if let Some(queue) = queue.upgrade() {
                return Some(queue);
            }
        }
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }
}
