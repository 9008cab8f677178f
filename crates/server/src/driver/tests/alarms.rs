//! Publishers that an alarm holds back.

use crate::clock::Clock;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::shared;
use courser_broker::{Broker, Limits};
use courser_client::{Connection, Credentials, Options, Outgoing, QueueOptions};
use courser_store::{MemoryGauge, MemoryStore};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// What messages may take, and a message that takes more.
const MEMORY_BYTES: u64 = 1 << 20;
static MESSAGE: [u8; 2 << 20] = [7; 2 << 20];

// No time passes but that for which a task waits.
#[tokio::test(start_paused = true)]
async fn a_publisher_is_told_of_an_alarm_and_of_its_end_at_once() {
    let gauge = Arc::new(MemoryGauge::default());
    let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let limits = Limits { memory_high_bytes: MEMORY_BYTES, ..Limits::default() };
    let shared =
        Arc::new(shared(Broker::new(store, gauge, limits, 7), &Clock::of(|| 1_800_000_000_000)));
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
    let (_stop, stopping) = watch::channel(false);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(&shared), stopping));
    let options = Options { credentials: Credentials::Anonymous, ..Options::default() };
    let connection = Connection::open_on(theirs, options).await.expect("a login");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::default()).await.expect("a queue");
    let mut blocked = connection.blocked();

    let begun = Instant::now();
    channel.publish("", "q", Outgoing::new(&MESSAGE)).await.expect("it is sent");
    blocked.wait_for(Option::is_some).await.expect("an open connection");
    assert_eq!(begun.elapsed().as_millis(), 0, "until it is told of the alarm");
    shared.broker.admin().purge_queue("/", b"q").expect("a queue");
    blocked.wait_for(Option::is_none).await.expect("an open connection");
    assert_eq!(begun.elapsed().as_millis(), 0, "until it is told of its end");
}
