//! The thread of a group.

use super::{Driver, Leadership, Shared};
use crate::{GroupError, NodeId};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs a group until it is stopped, or can't go on.
pub(super) fn spawn(driver: Driver, tick: Duration) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(&driver.shared);
    thread::Builder::new().name("group".into()).spawn(move || {
        // The engine panics when somebody contradicts what is committed. Nothing of the group is used after that.
        let ended = catch_unwind(AssertUnwindSafe(move || run(driver, tick)));
        let reason = match ended {
            Ok(Ok(None)) => return,
            Ok(Ok(Some(leader))) => {
                tracing::info!(%leader, "the leader's log begins behind this one's end: a copy is needed");
                shared.inbox.stop();
                shared.leadership.send_replace(Leadership::Lacks { leader });
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("consensus failed: {}", said(&*panic)),
        };
        end(&shared, &reason);
    })
}

/// Returns the leader without a copy of whose log this node can't go on, or nobody if it was stopped.
fn run(mut driver: Driver, tick: Duration) -> Result<Option<NodeId>, GroupError> {
    let shared = Arc::clone(&driver.shared);
    let mut next_tick = now() + tick;
    loop {
        let waiting = shared.inbox.take_by(next_tick);
        let now = now();
        let ticked = now >= next_tick;
        if ticked {
            // Ticks that were missed, because the process was stopped, are not made up for: the others were not heard
            // in that time, and what they have said is read first.
            next_tick = now + tick;
        }
        if !driver.turn_with(waiting, ticked)? {
            return Ok(driver.lacks());
        }
    }
}

/// The only clock of the group: it counts ticks, and nothing is decided by what time it is.
#[allow(clippy::disallowed_methods, reason = "somebody has to tell the time")]
fn now() -> Instant {
    Instant::now()
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
