//! When checkpoints are made, and what only they make durable.

use crate::Journal;
use courser_store::{Position, Unlogged};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the store checks whether a checkpoint can stand for what found no room in the log.
const UNLOGGED_RETRY: Duration = Duration::from_secs(1);
/// The rest behind a checkpoint that failed, in times of what it took.
const REST_FACTOR: u32 = 10;
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// How long to rest behind a checkpoint that took this long and failed: as long as nothing has changed, the next one writes as
/// much for nothing. Ten times as long, but a second at least and a minute at most.
pub fn rest_after_failure(took: Duration) -> Duration {
    took.saturating_mul(REST_FACTOR).clamp(REST_MIN, REST_MAX)
}

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
    /// There if the last one failed.
    rest: Mutex<Option<Rest>>,
}

/// Behind a checkpoint that failed.
#[derive(Clone, Copy)]
struct Rest {
    /// None is made before.
    until: Instant,
    /// Unless there is room by then, where there was none when it began. Otherwise something else was in the way.
    ends_with_room: bool,
}

impl CheckpointCalls {
    /// Waits until a checkpoint is wanted. Returns false when the store is being closed instead.
    pub fn wait(&self, journal: &Journal) -> bool {
        let mut call = self.call.lock();
        loop {
            let rest = *self.rest.lock();
            if let (Some(Rest { until, ends_with_room }), true) = (rest, *call != Call::Stop) {
                let next = until.min(Instant::now() + UNLOGGED_RETRY);
                let has_rested = self.called.wait_until(&mut call, next).timed_out();
                // What only a checkpoint makes durable waits no longer than there is no room.
                let is_over = Instant::now() >= until
                    || has_rested
                        && ends_with_room
                        && journal.awaits_checkpoint()
                        && journal.has_room();
                if is_over && *call != Call::Stop {
                    *self.rest.lock() = None;
                    // Whatever was in the way may be gone.
                    if journal.wants_checkpoint() || journal.awaits_checkpoint() {
                        *call = Call::Make;
                    }
                }
                continue;
            }
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
                    // It may have been called for while the last one was made, which stands for that.
                    if journal.wants_checkpoint() || journal.awaits_checkpoint() {
                        return true;
                    }
                }
                Call::Stop => return false,
            }
        }
    }

    /// One was made.
    pub fn made(&self) {
        *self.rest.lock() = None;
    }

    /// One that was begun at `begun`, when the log had room or had none, has failed.
    pub fn failed(&self, begun: Instant, had_room: bool) {
        let until = Instant::now() + rest_after_failure(begun.elapsed());
        *self.rest.lock() = Some(Rest { until, ends_with_room: !had_room });
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

    /// Has a checkpoint made, as soon as there is room, if one is awaited.
    pub fn watch(&self) {
        self.checkpoints.watch();
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
