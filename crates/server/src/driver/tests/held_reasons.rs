//! Channels that the broker closes by itself, where the reason waits until it is certainly current.

use crate::clock::Clock;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::shared;
use courser_broker::{Broker, Limits};
use courser_client::{Connection, ConsumeOptions, Credentials, Options, QueueOptions};
use courser_journal::testing::WatchedStore;
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::yield_now;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_reason_is_told_when_that_is_proven_and_nothing_else_comes() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(WatchedStore::new(Arc::new(MemoryStore::new(Arc::clone(&gauge)))));
    let broker = Broker::new(Arc::clone(&store) as _, gauge, Limits::default(), 7);
    let shared = Arc::new(shared(broker, &Clock::of(|| 1_800_000_000_000)));
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
    let (_stop, stopping) = watch::channel(false);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping));
    let options = Options { credentials: Credentials::Anonymous, ..Options::default() };
    let connection = Connection::open_on(theirs, options).await.expect("a login");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    let mut deliveries = channel.consume("q", ConsumeOptions::default()).await.expect("a consumer");

    store.contest();
    shared.broker.admin().close_channel("a test", 1, "closed by a test").expect("the channel");
    let asked = async {
        while !store.awaits_proof().0 {
            yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("the reason waits");
    assert_eq!(store.awaits_proof(), (true, 1), "the connection is told");
    store.prove();
    let told = tokio::time::timeout(PATIENCE, deliveries.next()).await.expect("it is told");
    let told = told.expect_err("the channel is closed").to_string();
    assert!(told.contains("closed by a test"), "{told}");
}
