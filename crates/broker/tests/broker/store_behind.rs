//! A store that has enough to write: who publishes persistent messages is not read meanwhile.

use crate::support::{Message, World, declare_with};
use courser_broker::{Broker, Limits};
use courser_codec::FieldTable;
use courser_store::{
    Location, Log, Lsn, MemoryGauge, MemoryStore, MessageRef, Messages, Position, Reader, Record,
    Store, StoreError, Sync, Waiter,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Waker;

struct Slow {
    store: MemoryStore,
    is_behind: AtomicBool,
}

impl Log for Slow {
    fn is_behind(&self) -> bool {
        self.is_behind.load(Relaxed)
    }

    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError> {
        self.store.append(records, sync, locations)
    }

    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<(), StoreError> {
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

    fn when_room(&self, waker: &Waker) {
        self.store.when_room(waker);
    }
}

impl Messages for Slow {
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

    fn release(&self, position: Position) {
        self.store.release(position);
    }

    fn release_unlogged(&self, positions: &[Position]) {
        self.store.release_unlogged(positions);
    }
}

#[test]
fn publishers_of_persistent_messages_wait_while_the_store_is_behind_and_nobody_else_does() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let store = Arc::new(Slow { store, is_behind: AtomicBool::new(false) });
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let world = World { broker: Broker::new(shared, gauge, Limits::default(), 7) };
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    declare_with(&mut publisher, "q", true, &FieldTable::new());
    consumer.consume("q");
    let lasting = Message::new("", "q", "x");
    let lasting = lasting.with_properties(|properties| properties.delivery_mode = Some(2));
    let fleeting = Message::new("", "q", "x");

    assert!(publisher.publish_and_flush(&lasting).is_none());
    store.is_behind.store(true, Relaxed);
    let before_it_is_read = publisher.session().pace_with_store();
    assert!(before_it_is_read.is_some_and(|mut pace| pace.wait_on()));
    let mut pace = publisher.publish_and_flush(&lasting).expect("the store is behind");
    assert!(pace.wait_on());

    assert!(publisher.publish_and_flush(&fleeting).is_none(), "it asks nothing of the store");
    assert!(publisher.session().pace_with_store().is_none());
    consumer.ack(1);
    assert!(consumer.session().pace_with_store().is_none(), "acknowledgements make room");

    store.is_behind.store(false, Relaxed);
    assert!(!pace.wait_on());
    assert!(publisher.publish_and_flush(&lasting).is_none());
}
