//! What happens without a client: the broker's own clock.

use crate::support::{Client, Heard, HeldDisk, TestServer, short, wait_until};
use courser::{Clock, Surroundings};
use courser_codec::{FieldTable, Table, queue};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

async fn declare(client: &mut Client, name: &str, arguments: FieldTable) {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let declare = queue::Declare { queue: short(name), arguments, ..Default::default() };
    let declared = client.call(declare).await;
    assert!(matches!(declared, Heard::DeclareOk { .. }), "{declared:?}");
}

#[tokio::test]
async fn a_message_expires_in_time_and_its_dead_letter_comes_to_who_waits_for_it() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.declare("dead").await;
    client.consume("dead", true).await;
    let arguments = FieldTable::new()
        .with("x-message-ttl", 200)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare(&mut client, "q", arguments).await;
    let start = Instant::now();
    client.publish("q", b"m").await;
    assert_eq!(client.next().await, Heard::Delivery { tag: 1, body: b"m".into() });
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(199), "{elapsed:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_earlier_time_is_not_slept_through() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    declare(&mut client, "late", FieldTable::new().with("x-message-ttl", 3_600_000)).await;
    client.publish("late", b"stays").await;
    assert_eq!(client.count("late").await, 1);
    declare(&mut client, "early", FieldTable::new().with("x-message-ttl", 50)).await;
    client.publish("early", b"goes").await;
    wait_until("it expires", async || client.count("early").await == 0).await;
    assert_eq!(client.count("late").await, 1);
    server.stop().await;
}

const HOUR_MS: i64 = 3_600_000;

/// A queue with one message that lives for this long.
async fn with_message(client: &mut Client, name: &str, ttl_ms: i64) {
    declare(client, name, FieldTable::new().with("x-message-ttl", ttl_ms as i32)).await;
    client.publish(name, b"m").await;
    assert_eq!(client.count(name).await, 1);
}

#[tokio::test]
async fn a_clock_that_is_set_forward_makes_due_what_it_passes() {
    let ahead_ms = Arc::new(AtomicI64::new(0));
    let server = TestServer::start_with_clock(&ahead_ms).await;
    let mut client = Client::connect(server.address()).await;
    with_message(&mut client, "hour", HOUR_MS).await;
    with_message(&mut client, "day", 24 * HOUR_MS).await;
    ahead_ms.store(HOUR_MS + 1000, Ordering::Relaxed);
    wait_until("the hour is over", async || client.count("hour").await == 0).await;
    assert_eq!(client.count("day").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_puts_off_what_is_due() {
    let ahead_ms = Arc::new(AtomicI64::new(0));
    let server = TestServer::start_with_clock(&ahead_ms).await;
    let mut client = Client::connect(server.address()).await;
    with_message(&mut client, "before", 500).await;
    ahead_ms.store(-HOUR_MS, Ordering::Relaxed);
    // What comes later lives as long as it should, and no longer.
    with_message(&mut client, "after", 500).await;
    wait_until("it expires", async || client.count("after").await == 0).await;
    assert_eq!(client.count("before").await, 1, "it has another hour");
    ahead_ms.store(0, Ordering::Relaxed);
    wait_until("it expires too", async || client.count("before").await == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn connections_do_not_mind_a_clock_that_is_set() {
    let ahead_ms = Arc::new(AtomicI64::new(0));
    let server = TestServer::start_with_clock(&ahead_ms).await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    for ahead in [24 * HOUR_MS, -24 * HOUR_MS, 0] {
        ahead_ms.store(ahead, Ordering::Relaxed);
        assert!(client.is_silent(300).await, "no farewell");
        client.publish("q", b"m").await;
    }
    assert_eq!(client.count("q").await, 3);
    server.stop().await;
}

#[tokio::test]
async fn no_queue_expires_while_the_log_is_opened() {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    let arguments = FieldTable::new().with("x-expires", HOUR_MS as i32 / 2).to_entries();
    let arguments = Table::from_entries(&arguments);
    let declare =
        queue::Declare { queue: short("kept"), durable: true, arguments, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    client.publish_persistent("kept", b"m").await;
    assert_eq!(client.count("kept").await, 1);
    drop(client);
    let (ahead_ms, disk) = (Arc::new(AtomicI64::new(0)), HeldDisk::default());
    disk.slow_reads_down(Some(&ahead_ms));
    let clock = Clock::shifted(Arc::clone(&ahead_ms));
    let started_ms = clock.now_ms();
    let surroundings = Surroundings { clock, disk: Some(Arc::new(disk.clone())) };
    let server = server.restart_within(surroundings, |config| config.journal.scrub_days = 0).await;
    disk.slow_reads_down(None);
    let ahead_ms = ahead_ms.load(Ordering::Relaxed);
    assert!(ahead_ms >= HOUR_MS, "the log was read");
    let began_ms = server.admin().queue("/", b"kept").expect("it is there").used_ms;
    assert!(began_ms >= started_ms + ahead_ms as u64, "it is idle since clients can use it");
    let mut client = Client::connect(server.address()).await;
    with_message(&mut client, "due", 1).await;
    wait_until("what is due later has gone", async || client.count("due").await == 0).await;
    assert_eq!(client.count("kept").await, 1);
    server.stop().await;
}
