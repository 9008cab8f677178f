//! Clients whose sockets take nothing, or little.

use crate::support::{Client, PATIENCE, TestServer, short, wait_until};
use courser_codec::basic;
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

/// A consumer that has got more than its socket takes, and a client that sees what becomes of it.
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
    let start = Instant::now();
    let (mut consumer, mut other) = with_consumer(&server).await;
    wait_until("it is disconnected", async || {
        // An error says that it is.
        let _ = consumer.stream.write_all(&HEARTBEAT).await;
        other.counts("q").await == (MESSAGES, 0)
    })
    .await;
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
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

/// Many publishes on channel 1 that go nowhere.
pub(crate) fn flood() -> Vec<u8> {
    // Nothing is ever bound to this key.
    let mut flood = Vec::new();
    let publish = basic::Publish { routing_key: short("nowhere"), ..Default::default() };
    publish.write_frame(1, &mut flood);
    flood.extend_from_slice(&[
        2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xce,
    ]);
    flood.repeat(100_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_stops_sending_gets_heartbeats_all_the_same() {
    let server = with_timeout(0).await;
    let client = Client::connect(server.address()).await;
    let (mut reading, mut writing) = client.stream.into_split();
    let flood = flood();
    let sending = tokio::spawn(async move { while writing.write_all(&flood).await.is_ok() {} });
    let mut beats = [0; 3 * HEARTBEAT.len()];
    let heard = tokio::time::timeout(PATIENCE, reading.read_exact(&mut beats)).await;
    heard.expect("heartbeats while it sends").expect("an open connection");
    assert_eq!(beats, *HEARTBEAT.repeat(3));
    assert!(!sending.is_finished());
    sending.abort();
    server.stop().await;
}
