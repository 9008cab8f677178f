//! What happens without a client: the broker's own clock.

use crate::support::{Client, Heard, TestServer, short, wait_until};
use courser_codec::{FieldTable, Table, queue};
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
