//! A store with somebody between it and the broker.

use courser_store::{
    Figures, Location, Log, Lsn, MessageRef, Messages, Position, Reader, Record, Store, StoreError,
    Sync, Waiter,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

/// Done once, before something is appended.
type Call = Box<dyn FnOnce() + Send>;

/// Any store; a test can say that it is behind, and be called before it takes the next change.
pub struct WatchedStore {
    store: Arc<dyn Store>,
    is_behind: AtomicBool,
    before_append: Mutex<Option<Call>>,
}

impl WatchedStore {
    /// Stands before `store`, and does nothing yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        WatchedStore { store, is_behind: AtomicBool::new(false), before_append: Mutex::default() }
    }

    /// Has `call` called before the next change is appended.
    pub fn before_next_append(&self, call: impl FnOnce() + Send + 'static) {
        *self.before_append.lock() = Some(Box::new(call));
    }

    /// Nothing is called before the next change any more.
    pub fn call_nothing(&self) {
        *self.before_append.lock() = None;
    }

    /// Says that it has enough to write, or has not.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    fn call(&self) {
        let call = self.before_append.lock().take();
        call.into_iter().for_each(|call| call());
    }
}

impl Log for WatchedStore {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        self.call();
        self.store.append(records, sync, locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        self.call();
        self.store.settle(records, sync, positions)
    }

    fn end(&self) -> Lsn {
        self.store.end()
    }

    fn durable(&self) -> Lsn {
        self.store.durable()
    }

    fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.store.when_durable(lsn, waiter);
    }

    fn failure(&self) -> Option<String> {
        self.store.failure()
    }

    fn has_room(&self) -> bool {
        self.store.has_room()
    }

    fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed) || self.store.is_behind()
    }

    fn when_room(&self, waker: &Waker) {
        self.store.when_room(waker);
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }
}

impl Messages for WatchedStore {
    fn keep(
        &self,
        messages: &mut dyn Iterator<Item = MessageRef<'_>>,
        locations: &mut Vec<Location>,
    ) -> Result<(), StoreError> {
        self.store.keep(messages, locations)
    }

    fn reader(&self) -> Box<dyn Reader> {
        self.store.reader()
    }

    fn hold(&self, position: Position) {
        self.store.hold(position);
    }

    fn release(&self, positions: &[Position]) {
        self.store.release(positions);
    }

    fn release_unlogged(&self, positions: &[Position]) {
        self.store.release_unlogged(positions);
    }
}
