//! The broker's clock: says what time it is, and calls the broker when something is due.

use crate::clock::Clock;
use crate::watchdog::Watchdog;
use courser_broker::Broker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

/// How long to sleep at most where nothing is due at any time.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// The same where something is: the clock may be set, which nobody is told of.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Runs the broker's timers until it is stopped, and has the watchdog check that they get on.
pub(crate) fn start(broker: &Arc<Broker>, clock: Clock, stopping: watch::Receiver<bool>) {
    Watchdog::new(broker, clock.clone(), Handle::current()).start(stopping.clone());
    tokio::spawn(run(Arc::clone(broker), clock, stopping));
}

/// Calls the broker when something is due.
pub(crate) async fn run(broker: Arc<Broker>, clock: Clock, mut stopping: watch::Receiver<bool>) {
    let earlier = Arc::new(Notify::new());
    let notified = Arc::clone(&earlier);
    broker.on_timer(move || notified.notify_one());
    while matches!(stopping.has_changed(), Ok(false)) {
        // A panic is the fault of one timer, which is not armed any more. All others go on.
        let ticked = catch_unwind(AssertUnwindSafe(|| broker.tick(clock.now_ms())));
        let due_ms = ticked.unwrap_or_else(|_| Some(clock.now_ms()));
        let wait = match due_ms {
            Some(due_ms) => {
                Duration::from_millis(due_ms.saturating_sub(clock.now_ms())).min(WAIT_MAX)
            }
            None => SLEEP_MAX,
        };
        if wait.is_zero() {
            // There is more to do; others get their turn first.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = earlier.notified() => {}
            _ = stopping.changed() => return,
        }
    }
}
