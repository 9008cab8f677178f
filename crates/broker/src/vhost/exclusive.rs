//! The exclusive queues of connections, each of which goes with its connection, if not earlier.

use crate::queue::{ConnectionId, Queue};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Exclusive queues by their connections and numbers, which is the order in which they were declared.
#[derive(Default)]
pub(crate) struct ExclusiveQueues(Mutex<BTreeMap<(ConnectionId, u64), Arc<Queue>>>);

fn key(queue: &Queue) -> Option<(ConnectionId, u64)> {
    queue.settings.exclusive_owner.map(|owner| (owner, queue.id))
}

impl ExclusiveQueues {
    /// Takes note of a queue that is made, if it is exclusive. The caller holds the write lock of the vhost.
    pub(super) fn add(&self, queue: &Arc<Queue>) {
        if let Some(key) = key(queue) {
            self.0.lock().insert(key, Arc::clone(queue));
        }
    }

    /// A queue is gone. The caller holds the write lock of the vhost.
    pub(super) fn remove(&self, queue: &Queue) {
        let removed = key(queue).and_then(|key| self.0.lock().remove(&key));
        drop(removed);
    }

    /// The first that a connection has.
    pub fn first(&self, owner: ConnectionId) -> Option<Arc<Queue>> {
        let all = self.0.lock();
        all.range((owner, 0)..=(owner, u64::MAX)).next().map(|(_, queue)| Arc::clone(queue))
    }

    /// Takes out the first that a connection has.
    pub fn take_first(&self, owner: ConnectionId) -> Option<Arc<Queue>> {
        let mut all = self.0.lock();
        let first = all.range((owner, 0)..=(owner, u64::MAX)).next().map(|(key, _)| *key)?;
        all.remove(&first)
    }
}
