//! Looks, on a thread of its own, whether what is due gets done, and whether tasks get their turns at all: whatever keeps the
//! runtime from it, the log and the operator are told.

use crate::clock::Clock;
use courser_broker::{Broker, Due};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// So many looks in a row find the same to be due before that is said.
const LOOKS: u32 = 5;

/// Looks after the timers of a broker, and its runtime.
pub(crate) struct Watchdog {
    broker: Weak<Broker>,
    clock: Clock,
    /// What had been due for longest at the last look.
    due: Option<Due>,
    runtime: Handle,
    /// The task that the last look has given the runtime has had its turn.
    had_turn: Arc<AtomicBool>,
    /// Looks in a row that found the same.
    same: u32,
}

impl Watchdog {
    /// For a broker whose tasks run on `runtime`.
    pub fn new(broker: &Arc<Broker>, clock: Clock, runtime: Handle) -> Self {
        let had_turn = Arc::new(AtomicBool::new(true));
        Watchdog { broker: Arc::downgrade(broker), clock, due: None, runtime, had_turn, same: 0 }
    }

    /// Begins to look, until what this returns is dropped.
    pub fn start(mut self) -> Sender<()> {
        let (looked_after, ended) = mpsc::channel();
        let looking = thread::Builder::new().name("watchdog".into()).spawn(move || {
            while ended.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                self.look();
            }
        });
        if let Err(error) = looking {
            tracing::warn!(%error, "no thread that looks whether timers are served in time");
        }
        looked_after
    }

    /// Looks once.
    fn look(&mut self) {
        let Some(broker) = self.broker.upgrade() else { return };
        let now_ms = self.clock.now_ms();
        let due = broker.first_due(now_ms);
        let has_turns = self.has_turns();
        if !has_turns || due.is_some() && due == self.due {
            self.same += 1;
            if self.same == LOOKS {
                let since_ms =
                    now_ms.saturating_sub(LOOK_INTERVAL.as_millis() as u64 * u64::from(LOOKS));
                broker.note_unserved(Some(since_ms));
                match has_turns {
                    true => tracing::error!(
                        "something that is due has not been done for {LOOKS} s: times to live, delays and the like stand still"
                    ),
                    false => tracing::error!(
                        "no task has had its turn for {LOOKS} s: all threads are busy, and clients wait"
                    ),
                }
            }
            return;
        }
        if self.same >= LOOKS {
            broker.note_unserved(None);
            tracing::info!(seconds = self.same, "what is due is done again");
        }
        (self.due, self.same) = (due, 0);
    }

    /// Whether the runtime has had a turn for a task since the last look. Gives it another one then.
    fn has_turns(&self) -> bool {
        if !self.had_turn.swap(false, Ordering::Relaxed) {
            return false;
        }
        let had_turn = Arc::clone(&self.had_turn);
        drop(self.runtime.spawn(async move { had_turn.store(true, Ordering::Relaxed) }));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_broker::Limits;
    use courser_broker::admin::NewQueue;
    use courser_codec::FieldTable;
    use courser_store::{MemoryGauge, MemoryStore};
    use std::sync::atomic::AtomicI64;
    use tokio::runtime::{Builder, Runtime};

    const TTL_MS: i64 = 1000;

    /// A broker with a queue that is deleted when it was unused for a second.
    fn broker_with_a_timer(clock: &Clock) -> Arc<Broker> {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        let broker = Broker::new(store, gauge, Limits::default(), 7);
        broker.set_time(clock.now_ms());
        declare(&broker, "q", TTL_MS);
        broker
    }

    fn declare(broker: &Arc<Broker>, name: &str, expires_ms: i64) {
        let arguments = FieldTable::new().with("x-expires", expires_ms);
        let queue = NewQueue { durable: false, auto_delete: false, arguments };
        broker.admin().declare_queue("/", name, queue).expect("a queue");
    }

    /// A runtime that does something only when it is told to.
    fn runtime() -> Runtime {
        Builder::new_current_thread().build().expect("a runtime")
    }

    fn serve(runtime: &Runtime) {
        runtime.block_on(async { tokio::spawn(async {}).await.expect("its turn") });
    }

    #[test]
    fn that_no_task_has_its_turn_is_said_and_so_is_its_end() {
        let clock = Clock::shifted(Arc::default());
        let (broker, runtime) = (broker_with_a_timer(&clock), runtime());
        let mut watchdog = Watchdog::new(&broker, clock, runtime.handle().clone());
        let mut looks = |count: u32| {
            (0..count).for_each(|_| watchdog.look());
            broker.admin().timers_unserved_since_ms().is_some()
        };
        assert!(!looks(LOOKS), "not for long enough");
        assert!(looks(1));
        serve(&runtime);
        assert!(!looks(1));
        serve(&runtime);
        assert!(!looks(LOOKS), "it has begun anew");
        assert!(looks(1));
    }

    #[test]
    fn what_is_due_and_not_done_is_said_and_so_is_its_end() {
        let ahead_ms = Arc::new(AtomicI64::new(0));
        let clock = Clock::shifted(Arc::clone(&ahead_ms));
        let broker = broker_with_a_timer(&clock);
        let runtime = runtime();
        let mut watchdog = Watchdog::new(&broker, clock.clone(), runtime.handle().clone());
        let mut looks = |count: u32| {
            for _ in 0..count {
                watchdog.look();
                serve(&runtime);
            }
            broker.admin().timers_unserved_since_ms().is_some()
        };
        assert!(!looks(2 * LOOKS), "nothing is due");
        ahead_ms.store(2 * TTL_MS, Ordering::Relaxed);
        assert!(!looks(LOOKS), "not for long enough");
        assert!(looks(1));
        assert!(looks(LOOKS), "it is not served yet");
        broker.tick(clock.now_ms());
        assert!(!looks(1));
    }

    #[test]
    fn what_stays_due_while_all_else_is_done_is_said() {
        let ahead_ms = Arc::new(AtomicI64::new(0));
        let clock = Clock::shifted(Arc::clone(&ahead_ms));
        let (broker, runtime) = (broker_with_a_timer(&clock), runtime());
        let mut watchdog = Watchdog::new(&broker, clock, runtime.handle().clone());
        ahead_ms.store(2 * TTL_MS, Ordering::Relaxed);
        let mut now_ms = broker.now_ms();
        for look in 0..=LOOKS {
            assert_eq!(broker.admin().timers_unserved_since_ms(), None, "not for long enough");
            // They are told of a time at which another queue goes, and this one does not.
            let name = format!("done-{look}");
            declare(&broker, &name, 1);
            now_ms += 1;
            broker.tick(now_ms);
            assert!(broker.admin().queue("/", name.as_bytes()).is_err(), "it has not gone");
            watchdog.look();
            serve(&runtime);
        }
        assert!(broker.admin().queue("/", b"q").is_ok(), "it has gone");
        assert!(broker.admin().timers_unserved_since_ms().is_some());
    }
}
