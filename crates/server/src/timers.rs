//! The broker's clock: says what time it is, and calls the broker when something is due.

use courser_broker::Broker;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

/// The wall clock may be set, so nobody sleeps longer than this without looking at it.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() * 1000 + u64::from(since.subsec_millis())
}

/// Runs the broker's timers until it is stopped.
pub(crate) fn start(broker: &Arc<Broker>, stopping: watch::Receiver<bool>) {
    let earlier = Arc::new(Notify::new());
    let notified = Arc::clone(&earlier);
    broker.on_timer(move || earlier.notify_one());
    tokio::spawn(run(Arc::clone(broker), notified, stopping));
}

async fn run(broker: Arc<Broker>, earlier: Arc<Notify>, mut stopping: watch::Receiver<bool>) {
    while matches!(stopping.has_changed(), Ok(false)) {
        let due_ms = broker.tick(now_ms());
        let wait = match due_ms {
            Some(due_ms) => Duration::from_millis(due_ms.saturating_sub(now_ms())).min(SLEEP_MAX),
            None => SLEEP_MAX,
        };
        if wait.is_zero() {
            // There is more to do; others get their turn first.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = earlier.notified() => {}
            _ = stopping.changed() => return,
        }
    }
}
