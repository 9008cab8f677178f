//! Confirms of persistent messages, sent by the connection's task or by the log thread.

use crate::support::{Client, Heard, PATIENCE, TestServer, short};
use courser_codec::{confirm, queue};
use std::net::SocketAddr;

async fn confirming(address: SocketAddr, name: &str) -> Client {
    let mut client = Client::connect(address).await;
    let declare = queue::Declare { queue: short(name), durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    let selected = client.call(confirm::Select { nowait: false }).await;
    assert_eq!(selected, Heard::Reply("confirm.select-ok"));
    client
}

/// Publishes one message after the other, each when the one before is confirmed.
async fn publish_one_by_one(address: SocketAddr, name: String, count: u64) {
    let mut client = confirming(address, &name).await;
    for number in 1..=count {
        client.publish_persistent(&name, b"one").await;
        assert_eq!(client.next().await, Heard::Confirm { first: number, last: number });
    }
    client.close().await;
}

/// Publishes, and goes without waiting for the confirm.
async fn publish_and_go(address: SocketAddr, name: String, count: u64) {
    for _ in 0..count {
        let mut client = confirming(address, &name).await;
        client.publish_persistent(&name, b"unheard").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_publish_is_confirmed_while_others_come_and_go() {
    let server = TestServer::start().await;
    let address = server.address();
    let mut publishers = tokio::task::JoinSet::new();
    for number in 0..3 {
        // The last one goes on alone, with the log to itself.
        publishers.spawn(publish_one_by_one(address, format!("q{number}"), 100 << number));
    }
    publishers.spawn(publish_and_go(address, "gone".to_owned(), 50));
    let all =
        async { while publishers.join_next().await.transpose().expect("no panic").is_some() {} };
    tokio::time::timeout(PATIENCE * 3, all).await.expect("all confirms");
    let mut client = Client::connect(address).await;
    let declare = queue::Declare { queue: short("q2"), passive: true, ..Default::default() };
    let counted = client.call(declare).await;
    assert_eq!(counted, Heard::DeclareOk { messages: 400, consumers: 0 });
    server.stop().await;
}

#[tokio::test]
async fn confirms_and_deliveries_share_a_connection() {
    let server = TestServer::start().await;
    let mut client = confirming(server.address(), "q").await;
    client.consume("q", true).await;
    for number in 1..=200 {
        client.publish_persistent("q", &[number as u8]).await;
        let (mut confirmed, mut delivered) = (false, false);
        while !(confirmed && delivered) {
            match client.next().await {
                Heard::Confirm { first, last } => {
                    assert_eq!((first, last), (number, number));
                    confirmed = true;
                }
                Heard::Delivery { body, .. } => {
                    assert_eq!(body, [number as u8]);
                    delivered = true;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    client.close().await;
    server.stop().await;
}
