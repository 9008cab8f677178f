//! What a node waits for that is drained, and its clients.

use super::super::testing::{HOME, ONE, PATIENCE, Three, wait_until};
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PACE: Pace = Pace { group: 10, pause_ms: 0 };

/// A client of a node that says the first that a client says, and nothing after that.
async fn begin(three: &Three, node: usize) -> TcpStream {
    let before = three.front(node).clients.count();
    let client = TcpStream::connect(three.nodes[node].addresses().amqp[0]).await;
    let mut client = client.expect("a listener");
    client.write_all(b"AMQP\0\0\x09\x01").await.expect("a connection");
    let clients = || three.front(node).clients.count();
    wait_until("the client is passed on", async || clients() == before + 1).await;
    client
}

/// Waits for the end of a connection, whatever comes before.
async fn hear_end(client: &mut TcpStream) {
    let mut said = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, client.read_to_end(&mut said)).await;
    // It may be a reset.
    let _ended = reading.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_answer_is_ended_when_its_node_is_drained() {
    for groups in [1, 2] {
        let three = Three::start_with(|config| {
            config.cluster.groups = groups;
            // Nothing else ends it.
            config.amqp.handshake_timeout_ms = 10 * PATIENCE.as_millis() as u64;
        })
        .await;
        let home = three.leader(HOME).await;
        let drained = (home + 1) % 3;
        if groups == 2 {
            three.move_lead(ONE, home).await;
        }
        let mut silent = begin(&three, drained).await;
        three.front(drained).drain(PACE);
        hear_end(&mut silent).await;
        wait_until("none is left", async || three.front(drained).clients_left() == Some(0)).await;
        three.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_keeps_its_clients_until_others_lead_all_groups() {
    let three = Three::start_with(|config| {
        config.amqp.handshake_timeout_ms = 10 * PATIENCE.as_millis() as u64;
    })
    .await;
    let home = three.leader(HOME).await;
    let (drained, other) = ((home + 1) % 3, (home + 2) % 3);
    three.move_lead(ONE, drained).await;
    let mut client = begin(&three, drained).await;
    // No node would rather lead: the lead stays where it is.
    for node in [home, other, drained] {
        three.front(node).drain(PACE);
    }
    let waited = FAREWELL + 20 * LOOK_INTERVAL;
    let ended = tokio::time::timeout(waited, async {
        let mut said = [0; 4096];
        while !matches!(client.read(&mut said).await, Ok(0) | Err(_)) {}
    });
    assert!(ended.await.is_err(), "its node had to serve it");
    assert_eq!(three.front(drained).clients_left(), None, "it leads itself");
    assert_eq!(three.leader(ONE).await, drained);
    three.front(other).clients.resume();
    wait_until("another one leads", async || three.leader(ONE).await == other).await;
    hear_end(&mut client).await;
    wait_until("none is left", async || three.front(drained).clients_left() == Some(0)).await;
    three.stop().await;
}
