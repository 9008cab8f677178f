//! Checkpoints of a node that follows.

use super::restore::{RestoreError, Restored, restore};
use crate::member::Shared;
use courser_journal::replica::{ReadEntryError, Replica};
use courser_journal::{CheckpointError, Repeated, rest_after_failure};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::time::Instant;

/// How often the thread looks whether one is wanted.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long to rest behind one that was made because room was short: it may take long, and the next one free little.
const REST: Duration = Duration::from_secs(5);

/// The thread that makes them. Ends when it is dropped.
pub(crate) struct CheckpointThread {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    wanted: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl CheckpointThread {
    pub fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let told = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("follower-checkpoint".into())
            .spawn(move || run(&shared, &told))?;
        Ok(CheckpointThread { stop, thread: Some(thread) })
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        let lock = self.stop.lock.lock();
        self.stop.wanted.store(true, Relaxed);
        self.stop.changed.notify_all();
        drop(lock);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that makes checkpoints of a follower has panicked");
        }
    }
}

fn run(shared: &Shared, stop: &Stop) {
    let (mut pause, failures) = (LOOK_AGAIN, Repeated::default());
    loop {
        let mut lock = stop.lock.lock();
        if stop.wanted.load(Relaxed) {
            return;
        }
        stop.changed.wait_for(&mut lock, std::mem::replace(&mut pause, LOOK_AGAIN));
        drop(lock);
        if shared.replica.failed().is_some() {
            return;
        }
        if !is_wanted(&shared.replica) {
            continue;
        }
        let begun = Instant::now();
        match make(shared, &mut || !stop.wanted.load(Relaxed)) {
            Ok(()) => {}
            Err(error) if error.is_unwanted() => {}
            Err(error) => {
                pause = rest_after_failure(begun.elapsed());
                if let Some(others) = failures.line(Instant::now().into_std()) {
                    tracing::warn!(%error, others, "no checkpoint of the copy could be made");
                }
            }
        }
        if !shared.replica.has_room() {
            pause = pause.max(REST);
        }
    }
}

/// Whether a checkpoint should be made. A follower knows by checkpoints alone what is dead: without room, whatever was
/// committed since the last one may be what frees some.
pub(crate) fn is_wanted(replica: &Replica) -> bool {
    let has_more = || replica.applicable() > replica.last_in_checkpoint().index;
    replica.wants_checkpoint() || !replica.has_room() && has_more()
}

/// Why a follower has made no checkpoint. The one before stays.
#[derive(Debug, thiserror::Error)]
pub enum FollowerCheckpointError {
    /// What is committed can't be read.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The last entry can't be found.
    #[error(transparent)]
    Entry(#[from] ReadEntryError),
    /// It can't be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl FollowerCheckpointError {
    /// Whether this node leads now, or stops.
    fn is_unwanted(&self) -> bool {
        matches!(
            self,
            Self::Restore(RestoreError::Unwanted) | Self::Checkpoint(CheckpointError::Unwanted)
        )
    }
}

/// Makes a checkpoint of what is committed, unless this node leads or is about to. A lead waits for it: what may take long
/// ends soon when this node comes to lead.
pub(crate) fn make(
    shared: &Shared,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), FollowerCheckpointError> {
    let _alone = shared.restoring.lock();
    let mut follows = || go_on() && !shared.is_leading();
    if !follows() {
        return Err(RestoreError::Unwanted.into());
    }
    checkpoint(&shared.replica, &mut follows)
}

/// Makes a checkpoint of what is committed in a copy that does not lead.
fn checkpoint(
    replica: &Replica,
    follows: &mut dyn FnMut() -> bool,
) -> Result<(), FollowerCheckpointError> {
    let last = replica.applicable();
    if last <= replica.last_in_checkpoint().index {
        return Ok(());
    }
    let start = replica.end_of(last)?;
    let Restored { recovered, .. } = restore(replica, last, follows, &mut |_| {})?;
    if !follows() {
        return Err(RestoreError::Unwanted.into());
    }
    replica.checkpoint(
        start,
        follows,
        &mut |each| recovered.for_each_position(&mut |position| each(position.into())),
        &mut |out| recovered.write(out),
    )?;
    Ok(())
}
