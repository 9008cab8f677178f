//! A group as a task of its thread.

use super::{Driver, GroupThread, Leadership, Shared};
use crate::NodeId;
use courser_store::critical;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// A group that runs.
pub(super) struct Running(mpsc::Receiver<()>);

impl Running {
    /// Waits until nothing of it is used any more. Not on its own thread.
    pub fn wait(self) {
        critical::assert_outside("a group's end is waited for");
        // Nothing is sent: the other end goes with the group.
        let _ = self.0.recv();
    }
}

/// Runs a group until it is stopped, or can't go on.
pub(super) fn spawn(driver: Driver, tick: Duration, thread: &GroupThread) -> Running {
    let (sender, ended) = mpsc::channel();
    let shared = Arc::clone(&driver.shared);
    drop(thread.handle().spawn(async move {
        // What is declared first goes last.
        let _sender = sender;
        let shared = shared;
        match run(driver, tick).await {
            Ok(None) => {}
            Ok(Some(leader)) => {
                tracing::info!(%leader, "the leader's log begins behind this one's end: a copy is needed");
                shared.inbox.stop();
                shared.leadership.send_replace(Leadership::Lacks { leader });
            }
            Err(reason) => end(&shared, &reason),
        }
    }));
    Running(ended)
}

/// Returns the leader without a copy of whose log this node can't go on, or `None` if it was stopped.
async fn run(mut driver: Driver, tick: Duration) -> Result<Option<NodeId>, String> {
    let inbox = Arc::clone(&driver.shared.inbox);
    // The only clock of the group: it counts ticks, and nothing is decided by what time it is.
    let mut ticks = interval_at(Instant::now() + tick, tick);
    // Ticks that were missed, because the process was stopped, are not made up for: the others were not heard in that time.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let ticked = tokio::select! {
            biased;
            _ = ticks.tick() => true,
            () = inbox.filled() => false,
        };
        // The engine panics when a message contradicts what is committed. Nothing of the group is used after that.
        match catch_unwind(AssertUnwindSafe(|| driver.turn(ticked))) {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return Ok(driver.lacks()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(panic) => return Err(format!("consensus failed: {}", said(&*panic))),
        }
        // On a busy leader something always waits. The connections have the same thread, and the clock.
        if inbox.is_filled() {
            yield_now().await;
        }
    }
}

fn end(shared: &Shared, reason: &str) {
    tracing::error!(reason, "the group has ended on this node");
    shared.inbox.stop();
    shared.leadership.send_replace(Leadership::Ended { reason: reason.into() });
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
