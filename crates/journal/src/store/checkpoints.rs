//! When checkpoints are made, and what only they make durable.

use crate::Journal;
use courser_store::{Position, Unlogged};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How often the store checks whether a checkpoint can stand for what found no room in the log.
const UNLOGGED_RETRY: Duration = Duration::from_secs(1);

/// What the checkpointing thread is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Call {
    /// Nothing yet.
    #[default]
    Wait,
    /// Something is durable only with a checkpoint, for which there may be no room yet.
    Watch,
    /// Make a checkpoint.
    Make,
    /// The store is being closed.
    Stop,
}

/// Calls of the checkpointing thread.
#[derive(Default)]
pub struct CheckpointCalls {
    call: Mutex<Call>,
    called: Condvar,
}

impl CheckpointCalls {
    /// Waits until a checkpoint is wanted. Returns false when the store is being closed instead.
    pub fn wait(&self, journal: &Journal) -> bool {
        let mut call = self.call.lock();
        loop {
            match *call {
                Call::Wait => self.called.wait(&mut call),
                Call::Watch => {
                    if !journal.awaits_checkpoint() {
                        *call = Call::Wait;
                    } else if self.called.wait_for(&mut call, UNLOGGED_RETRY).timed_out()
                        && (journal.has_room() || journal.wants_checkpoint())
                    {
                        return true;
                    }
                }
                Call::Make => {
                    *call = Call::Watch;
                    return true;
                }
                Call::Stop => return false,
            }
        }
    }

    /// Wants a checkpoint.
    pub fn make(&self) {
        self.set(Call::Make, |now| matches!(now, Call::Wait | Call::Watch));
    }

    /// Wants one as soon as there is room for it.
    fn watch(&self) {
        self.set(Call::Watch, |now| now == Call::Wait);
    }

    /// Makes [`CheckpointCalls::wait`] return false, now and later.
    pub fn stop(&self) {
        self.set(Call::Stop, |_| true);
    }

    fn set(&self, next: Call, replaces: impl FnOnce(Call) -> bool) {
        let mut call = self.call.lock();
        if replaces(*call) {
            *call = next;
            self.called.notify_all();
        }
    }
}

/// Makes changes durable by the next checkpoint.
pub struct ByCheckpoint {
    journal: Arc<Journal>,
    checkpoints: Arc<CheckpointCalls>,
}

impl ByCheckpoint {
    pub fn new(journal: &Arc<Journal>, checkpoints: &Arc<CheckpointCalls>) -> Self {
        ByCheckpoint { journal: Arc::clone(journal), checkpoints: Arc::clone(checkpoints) }
    }
}

impl Unlogged for ByCheckpoint {
    fn release(&self, positions: &[Position]) {
        if !self.journal.has_unlogged() {
            tracing::warn!("the disk is full: acknowledgements become durable when it has room");
        }
        self.journal.release_unlogged(positions);
        self.checkpoints.watch();
    }
}
