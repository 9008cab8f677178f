//! Clients whose sockets take nothing, or little.

use crate::support::{Client, TestServer, wait_until};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HEARTBEAT: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0xce];
/// More than sockets hold.
const MESSAGES: u32 = 40;
const SIZE: usize = 1_000_000;

async fn with_timeout(send_timeout_ms: u64) -> TestServer {
    TestServer::start_with(|config| {
        config.amqp.send_timeout_ms = send_timeout_ms;
        config.amqp.heartbeat_s = 2;
        config.limits.memory_high_bytes = 1 << 30;
    })
    .await
}

/// A consumer that has got more than its socket takes, and somebody who sees what becomes of it.
async fn with_consumer(server: &TestServer) -> (Client, Client) {
    let mut consumer = Client::connect(server.address()).await;
    consumer.declare("q").await;
    consumer.consume("q", false).await;
    let mut other = Client::connect(server.address()).await;
    for _ in 0..MESSAGES {
        other.publish("q", &vec![7; SIZE]).await;
    }
    (consumer, other)
}

#[tokio::test]
async fn a_consumer_that_never_reads_is_disconnected_in_spite_of_its_heartbeats() {
    let server = with_timeout(1500).await;
    let (mut consumer, mut other) = with_consumer(&server).await;
    let start = Instant::now();
    wait_until("it is disconnected", async || {
        // An error says that it is.
        let _ = consumer.stream.write_all(&HEARTBEAT).await;
        other.counts("q").await == (MESSAGES, 0)
    })
    .await;
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    server.stop().await;
}

#[tokio::test]
async fn a_consumer_that_reads_slowly_is_not_disconnected() {
    let server = with_timeout(3000).await;
    let (mut consumer, mut other) = with_consumer(&server).await;
    let start = Instant::now();
    let mut some = vec![0; SIZE];
    while start.elapsed() < Duration::from_secs(6) {
        consumer.stream.read_exact(&mut some).await.expect("more of it");
        consumer.stream.write_all(&HEARTBEAT).await.expect("an open connection");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(other.counts("q").await.1, 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn without_the_setting_who_never_reads_stays() {
    let server = with_timeout(0).await;
    let (mut consumer, mut other) = with_consumer(&server).await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        consumer.stream.write_all(&HEARTBEAT).await.expect("an open connection");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(other.counts("q").await.1, 1);
    }
    server.stop().await;
}
