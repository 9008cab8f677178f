//! The broker's clock: says what time it is, and calls the broker when something is due.

use crate::clock::Clock;
use crate::service::stopped;
use crate::watchdog::Watchdog;
use courser_broker::Broker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// How long to sleep at most where nothing is due at any time.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// The same where something is: the clock may be set, which no timer is told of.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Runs the broker's timers until it is stopped, and has the watchdog check that they get on.
pub(crate) fn start(broker: &Arc<Broker>, clock: Clock, stopping: watch::Receiver<bool>) {
    let looked_after = Watchdog::new(broker, clock.clone(), Handle::current()).start();
    let broker = Arc::clone(broker);
    tokio::spawn(async move {
        run(broker, clock, stopping).await;
        // Ends the watchdog at once.
        drop(looked_after);
    });
}

/// Calls the broker when something is due: on a thread of its own where that may have to wait for the disk, one at a time.
/// A runtime without threads waits itself.
pub(crate) async fn run(broker: Arc<Broker>, clock: Clock, mut stopping: watch::Receiver<bool>) {
    let earlier = Arc::new(Notify::new());
    let notified = Arc::clone(&earlier);
    broker.on_timer(move || notified.notify_one());
    let has_threads = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    let mut reading = None;
    while matches!(stopping.has_changed(), Ok(false)) {
        // A panic is the fault of one timer, which is not armed any more. All others go on.
        let ticked = catch_unwind(AssertUnwindSafe(|| match has_threads {
            true => broker.tick_promptly(clock.now_ms()),
            false => broker.tick(clock.now_ms()),
        }));
        let mut due_ms = ticked.unwrap_or_else(|_| Some(clock.now_ms()));
        reading = reading.filter(|thread: &JoinHandle<()>| !thread.is_finished());
        if reading.is_none()
            && let Some(left_ms) = broker.next_reading_ms()
        {
            match left_ms <= clock.now_ms() {
                true => reading = Some(read(&broker, &clock)),
                // The clock was set back.
                false => due_ms = due_ms.into_iter().chain([left_ms]).min(),
            }
        }
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
            () = end_of(&mut reading) => {}
            () = stopped(&mut stopping) => break,
        }
    }
    // The end of the broker waits for this as for all that it has begun.
    if let Some(thread) = reading.filter(|thread| !thread.is_finished()) {
        drop(thread.await);
    }
}

/// Does a part of what may have to wait for the disk, on another thread.
fn read(broker: &Arc<Broker>, clock: &Clock) -> JoinHandle<()> {
    let (broker, clock) = (Arc::clone(broker), clock.clone());
    tokio::task::spawn_blocking(move || broker.tick_reading(clock.now_ms()))
}

/// Waits until the thread that reads is done, if there is one. A panic on it is the fault of one timer as well.
async fn end_of(reading: &mut Option<JoinHandle<()>>) {
    match reading.as_mut() {
        Some(thread) => drop(thread.await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_broker::Limits;
    use courser_store::{MemoryGauge, MemoryStore};

    #[tokio::test]
    async fn the_end_of_a_broker_waits_for_its_timers_only() {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::new(store, gauge, Limits::default(), 7);
        let (stop, stopping) = watch::channel(false);
        start(&broker, Clock::default(), stopping);
        assert_eq!(stop.receiver_count(), 1, "the watchdog sleeps, and would keep its own");
        stop.send(true).expect("the timers listen");
        stop.closed().await;
    }
}
