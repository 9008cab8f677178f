//! A broker at the node that leads, and at the one that leads next.

use super::chance::Chance;
use super::disk::{Kind, SlowStore};
use crate::clock::Clock;
use crate::driver::Shared;
use crate::testing::shared;
use crate::timers;
use courser_broker::{Broker, Limits};
use courser_store::{MemoryGauge, Recovered};
use std::sync::Arc;
use tokio::sync::watch;

/// A broker, and its log.
#[derive(Clone)]
pub(super) struct Led {
    pub shared: Arc<Shared>,
    pub store: Arc<SlowStore>,
    /// Ends the timers when it goes: they do not end with a stop, as others are served after it.
    timers: Arc<watch::Sender<bool>>,
}

impl Led {
    /// One whose log is empty.
    pub fn first(chance: &Chance, kind: &Kind, clock: &Clock) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let store = SlowStore::new(&gauge, chance, kind.clone());
        Self::open(store, gauge, chance, clock, None)
    }

    /// One at another node, with what that has of its log. This one is over.
    pub fn next(&self, chance: &Chance, clock: &Clock) -> Self {
        self.timers.send_replace(true);
        let gauge = Arc::new(MemoryGauge::default());
        let (store, found) = self.store.next_leader(&gauge);
        Self::open(store, gauge, chance, clock, Some(found))
    }

    fn open(
        store: Arc<SlowStore>,
        gauge: Arc<MemoryGauge>,
        chance: &Chance,
        clock: &Clock,
        found: Option<Recovered>,
    ) -> Self {
        let memory_high_bytes = store.kind.memory_high_bytes;
        let limits = Limits { memory_high_bytes, ..Limits::default() };
        let broker = Broker::new(Arc::clone(&store) as _, gauge, limits, chance.number().into());
        broker.set_time(clock.now_ms());
        if let Some(found) = found {
            broker.restore(found).expect("what a broker has written");
        }
        let (timers, ending) = watch::channel(false);
        tokio::spawn(timers::run(Arc::clone(&broker), clock.clone(), ending));
        Led { shared: Arc::new(shared(broker, clock)), store, timers: Arc::new(timers) }
    }
}
