//! What a push endpoint has in hand while no peer is there, and the broker takes back.

use crate::gateway::peer;
use crate::gateway_peers::receive;
use crate::support::{Client, Heard, TestServer, free_addresses, short, wait_until};
use courser_broker::admin::{Admin, QueueView};
use courser_codec::{FieldTable, Table, queue};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// More than the half hour that consumers of quorum queues have.
const TOO_LONG_MS: i64 = 31 * 60 * 1000;

/// A broker whose clock the test may move, with a quorum queue `tasks` and a push endpoint that consumes it.
async fn with_push(ahead_ms: &Arc<AtomicI64>, address: SocketAddr) -> (TestServer, Client) {
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    let arguments = FieldTable::new().with("x-queue-type", "quorum").to_entries();
    let arguments = Table::from_entries(&arguments);
    let declare =
        queue::Declare { queue: short("tasks"), durable: true, arguments, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    client.close().await;
    let server = server
        .restart_with_clock(ahead_ms, |config| {
            let endpoint = serde_json::json!([{
                "socket": "push", "bind": format!("tcp://{address}"), "queue": "tasks",
            }]);
            let endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
            config.gateway.endpoints = endpoints;
        })
        .await;
    let client = Client::connect(server.address()).await;
    (server, client)
}

fn tasks(admin: &Admin) -> QueueView {
    admin.queue("/", b"tasks").expect("the queue")
}

/// How often the endpoint has connected to the broker.
fn links(server: &TestServer) -> u64 {
    server.gateway_counts(|endpoint| endpoint.links)
}

/// Has the endpoint take all messages that there are.
async fn hand_over(server: &TestServer, client: &mut Client, bodies: &[&str]) {
    for body in bodies {
        client.publish_persistent("tasks", body.as_bytes()).await;
    }
    let admin = server.admin();
    let held = async || tasks(&admin).unacked == bodies.len();
    wait_until("the endpoint has them all", held).await;
}

/// A peer gets these messages, each once: the last one is published when the others have come.
async fn assert_each_once(address: SocketAddr, client: &mut Client, bodies: &[&str]) {
    let mut peer = peer(address, b"PULL").await.expect("a peer");
    for body in bodies {
        assert_eq!(receive(&mut peer).await, [body.as_bytes()]);
    }
    client.publish_persistent("tasks", b"last").await;
    assert_eq!(receive(&mut peer).await, [b"last"]);
}

#[tokio::test]
async fn messages_that_were_taken_back_from_an_endpoint_without_peers_are_delivered_once() {
    let (ahead_ms, address) = (Arc::new(AtomicI64::new(0)), free_addresses(1)[0]);
    let (server, mut client) = with_push(&ahead_ms, address).await;
    let bodies = ["1", "2", "3", "4", "5"];
    hand_over(&server, &mut client, &bodies).await;
    ahead_ms.store(TOO_LONG_MS, Ordering::Relaxed);
    wait_until("the endpoint consumes again", async || links(&server) == 2).await;
    assert_each_once(address, &mut client, &bodies).await;
    server.stop().await;
}

#[tokio::test]
async fn a_message_in_hand_is_not_sent_once_its_connection_has_ended() {
    let (ahead_ms, address) = (Arc::new(AtomicI64::new(0)), free_addresses(1)[0]);
    let (server, mut client) = with_push(&ahead_ms, address).await;
    hand_over(&server, &mut client, &["1"]).await;
    let admin = server.admin();
    let inside: Vec<_> = admin.connections(None).expect("all").iter().collect();
    for endpoint in inside.iter().filter(|one| one.peer.is_none()) {
        admin.close_connection(&endpoint.name, "a test").expect("it is there");
    }
    wait_until("the endpoint consumes again", async || links(&server) == 2).await;
    assert_each_once(address, &mut client, &["1"]).await;
    server.stop().await;
}
