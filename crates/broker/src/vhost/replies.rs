//! The queues for direct replies, which have no place among the vhost's queues.

use super::Vhost;
use crate::persistence::gone::let_go;
use crate::queue::Queue;
use crate::shrink::shrink;
use courser_codec::ShortString;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The queues for direct replies of a vhost, by name.
#[derive(Debug, Default)]
pub(crate) struct ReplyQueues(RwLock<FxHashMap<ShortString, Arc<Queue>>>);

impl ReplyQueues {
    /// The queue of this name, as long as its consumer is there.
    pub fn get(&self, name: &[u8]) -> Option<Arc<Queue>> {
        self.0.read().get(name).cloned()
    }

    /// All of them, in no particular order.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        self.0.read().values().cloned().collect()
    }

    pub fn remove(&self, queue: &Queue) {
        let mut all = self.0.write();
        all.remove(queue.name.as_bytes());
        shrink(&mut all);
    }
}

impl Vhost {
    /// Lets a queue for direct replies be found.
    pub(crate) fn begin_reply_queue(&self, queue: &Arc<Queue>) {
        let mut all = self.replies.0.write();
        // Tracing that is switched at the same moment finds it, or is seen here.
        queue.set_traced(self.is_traced());
        all.insert(queue.name.clone(), Arc::clone(queue));
    }

    /// Lets go of a queue for direct replies when its consumer ends.
    pub(crate) fn end_reply_queue(&self, queue: &Queue) {
        self.replies.remove(queue);
        // Without a condition, deleting can't be refused. It has no place to be removed from, and
        // what waits in it no other queue has.
        let deleted = queue.delete(|_| Ok(()));
        if let Ok(remains) = deleted {
            let_go(remains.left, &mut |positions| self.shard().store.release(positions));
        }
    }
}
