//! Deletions of which the log can't be told yet, as it has no room.

use courser_broker::admin::NewQueue;
use courser_broker::{Broker, Limits};
use courser_store::{
    Location, Log, Lsn, MemoryGauge, MemoryStore, MessageRef, Messages, Position, Reader, Record,
    StoreError, Sync, Unlogged, Waiter,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// After so long another thread is not only slow.
const STUCK: Duration = Duration::from_secs(60);

type Once = Box<dyn FnOnce() + Send>;

/// Has no room for one change, and does something when it lets go of what that was to tell it.
struct Full {
    store: MemoryStore,
    is_full: AtomicBool,
    before_release: Mutex<Option<Once>>,
}

impl Messages for Full {
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
        Messages::release(&self.store, positions);
    }
}

impl Unlogged for Full {
    fn release(&self, _positions: &[Position]) {
        let call = self.before_release.lock().take();
        call.into_iter().for_each(|call| call());
    }
}

impl Log for Full {
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        match self.is_full.swap(false, Ordering::Relaxed) {
            true => Err(StoreError::Full),
            false => self.store.append(records, sync, locations),
        }
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
        self.store.settle(records, sync, positions)
    }

    fn unlogged(&self) -> Option<&dyn Unlogged> {
        Some(self)
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
        None
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    fn when_room(&self, waker: &Waker) {
        waker.wake_by_ref();
    }
}

#[test]
fn others_declare_while_a_deletion_lets_go_of_what_the_log_has_yet_to_be_told() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(Full {
        store: MemoryStore::new(Arc::clone(&gauge)),
        is_full: AtomicBool::new(false),
        before_release: Mutex::default(),
    });
    let broker = Broker::new(store.clone(), gauge, Limits::default(), 7);
    let admin = broker.admin();
    let durable = || NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("/", "q", durable()).expect("a new queue");
    let ((begin, begun), (go_on, goes_on), (tell, told)) = (channel(), channel(), channel());
    *store.before_release.lock() = Some(Box::new(move || {
        begin.send(()).expect("it is waited for");
        tell.send(goes_on.recv_timeout(STUCK)).expect("it is waited for");
    }));
    store.is_full.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(admin.delete_queue("/", b"q", false, false), Ok(0)));
        begun.recv_timeout(STUCK).expect("something is let go of");
        admin.declare_queue("/", "other", durable()).expect("a new queue");
        go_on.send(()).unwrap_or_default();
        assert_eq!(told.recv_timeout(STUCK).expect("it goes on"), Ok(()), "the declare has waited");
    });
}
