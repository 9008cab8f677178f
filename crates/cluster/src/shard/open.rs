//! The shard of a node that leads.

use courser_journal::JournalStore;
use courser_store::{
    CheckpointError, CheckpointReport, Log, Lsn, OpenShard, Role, ShardState, Store,
};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// How long the end of a broker waits for a majority to have what it has written last.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A shard of a group, as long as one node leads it.
pub struct ReplicatedShard {
    store: Arc<JournalStore>,
}

impl ReplicatedShard {
    pub fn new(store: Arc<JournalStore>) -> Self {
        ReplicatedShard { store }
    }

    /// Waits until everything is durable that was appended, or never will be.
    fn wait_durable(&self, end: Lsn) -> Result<(), String> {
        let signal = Arc::new(Signal::default());
        self.store.when_durable(end, Waker::from(Arc::clone(&signal)).into());
        loop {
            if let Some(failure) = self.store.failure() {
                return Err(failure);
            }
            if self.store.durable() >= end {
                return Ok(());
            }
            let mut woken = signal.woken.lock();
            if !*woken && signal.changed.wait_for(&mut woken, CLOSE_TIMEOUT).timed_out() {
                return Err("no majority of the group has what was written last".into());
            }
            *woken = false;
        }
    }
}

impl OpenShard for ReplicatedShard {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn role(&self) -> Role {
        Role::Leader
    }

    fn wait_for_checkpoint(&self) -> bool {
        self.store.wait_for_checkpoint()
    }

    fn stop_checkpoints(&self) {
        self.store.stop_checkpoints();
    }

    fn checkpoint(&self, state: &dyn ShardState) -> Result<CheckpointReport, CheckpointError> {
        let made = self.store.checkpoint(state).map_err(|error| CheckpointError(error.into()))?;
        Ok(CheckpointReport { size_bytes: made.size_bytes })
    }

    fn has_unlogged(&self) -> bool {
        // Others have copies of the log: what is not in it has not happened.
        false
    }

    /// The copy stays open: the node goes on as a member of the group.
    fn close(&self) -> Result<(), String> {
        self.store.stop_checkpoints();
        self.wait_durable(self.store.end())
    }
}

/// Says that it was woken.
#[derive(Default)]
struct Signal {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.woken.lock() = true;
        self.changed.notify_all();
    }
}
