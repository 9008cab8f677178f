//! A store that has enough to write: who publishes persistent messages is not read meanwhile.

use crate::support::{Message, World, declare_with};
use courser_broker::{Broker, Limits};
use courser_codec::FieldTable;
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore, Store};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn only_publishers_of_persistent_messages_wait_while_the_store_is_behind() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = MemoryStore::new(Arc::clone(&gauge));
    let store = Arc::new(WatchedStore::new(Arc::new(store)));
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let broker = Broker::new(shared, gauge, Limits::default(), 7);
    let world = World { broker, log: None };
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    declare_with(&mut publisher, "q", true, &FieldTable::new());
    consumer.consume("q");
    let lasting = Message::new("", "q", "x");
    let lasting = lasting.with_properties(|properties| properties.delivery_mode = Some(2));
    let fleeting = Message::new("", "q", "x");

    assert!(publisher.publish_and_flush(&lasting).is_none());
    store.set_behind(true);
    let before_it_is_read = publisher.session().pace_with_store();
    assert!(before_it_is_read.is_some_and(|pace| pace.wait_on(Duration::ZERO)));
    let pace = publisher.publish_and_flush(&lasting).expect("the store is behind");
    assert!(pace.wait_on(Duration::ZERO));

    assert!(publisher.publish_and_flush(&fleeting).is_none(), "it asks nothing of the store");
    assert!(publisher.session().pace_with_store().is_none());
    consumer.ack(1);
    assert!(consumer.session().pace_with_store().is_none(), "acknowledgements make room");

    store.set_behind(false);
    assert!(!pace.wait_on(Duration::ZERO));
    assert!(publisher.publish_and_flush(&lasting).is_none());
}
