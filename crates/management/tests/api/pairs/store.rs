//! A store in memory that knows which definitions a restart would find, and that holds changes up on demand.

use courser_store::{
    Location, Log, Lsn, MemoryGauge, MemoryStore, MessageRef, Messages, Position, Reader, Record,
    StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long a change is held up at most. Only what waits for a change that is held up, instead of letting it go, takes so long.
const HELD_MAX: Duration = Duration::from_secs(30);

/// The store.
pub struct HeldStore {
    inner: MemoryStore,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    /// Since when changes are held up.
    held_since: Option<Instant>,
    /// What was held up for too long.
    was_let_go: bool,
    waiting: usize,
    defined: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl HeldStore {
    pub fn new(gauge: &Arc<MemoryGauge>) -> Arc<Self> {
        let inner = MemoryStore::new(Arc::clone(gauge));
        Arc::new(HeldStore { inner, state: Mutex::default(), opened: Condvar::new() })
    }

    /// Holds up what is written from now on, for as long as may be from now, or lets it go.
    pub fn hold(&self, is_held: bool) {
        self.state.lock().held_since = is_held.then(Instant::now);
        self.opened.notify_all();
    }

    /// Whether a writer waits.
    pub fn is_waited_for(&self) -> bool {
        self.state.lock().waiting > 0
    }

    /// Whether a change was held up for too long.
    pub fn was_let_go(&self) -> bool {
        self.state.lock().was_let_go
    }

    /// The definitions that a restart would find.
    pub fn defined(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.state.lock().defined.clone()
    }

    fn write(&self, records: &[Record<'_>]) {
        let mut state = self.state.lock();
        state.waiting += 1;
        while let Some(since) = state.held_since {
            self.opened.wait_until(&mut state, since + HELD_MAX);
            if state.held_since.is_some_and(|since| since.elapsed() >= HELD_MAX) {
                (state.held_since, state.was_let_go) = (None, true);
                state.waiting -= 1;
                self.opened.notify_all();
                drop(state);
                panic!("no one lets go what is held up: a thread of the runtime waits for it");
            }
        }
        state.waiting -= 1;
        for record in records {
            match record {
                Record::Defined { key, value } => {
                    drop(state.defined.insert(key.to_vec(), value.to_vec()));
                }
                Record::Forgotten { key } => drop(state.defined.remove(*key)),
                _ => {}
            }
        }
    }
}

impl Log for HeldStore {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        self.write(records);
        self.inner.append(records, sync, locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<bool, StoreError> {
        self.write(records);
        self.inner.settle(records, sync, positions)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        self.inner.unlogged()
    }

    fn end(&self) -> Lsn {
        self.inner.end()
    }

    fn durable(&self) -> Lsn {
        self.inner.durable()
    }

    fn deliverable(&self) -> Lsn {
        self.inner.deliverable()
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.inner.when_durable(lsn, waiter);
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn has_room(&self) -> bool {
        true
    }

    fn when_room(&self, waker: &Waker) {
        self.inner.when_room(waker);
    }
}

impl Messages for HeldStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        self.inner.keep(messages, locations)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.inner.reader()
    }

    fn spill_from(&self, bytes: u64) {
        self.inner.spill_from(bytes);
    }

    fn hold(&self, position: Position) {
        self.inner.hold(position);
    }

    fn release(&self, positions: &[Position]) {
        self.inner.release(positions);
    }
}
