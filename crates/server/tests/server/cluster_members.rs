//! Nodes that come to a cluster and go from it.

use crate::cluster::{Three, connect, get, node_config};
use crate::support::{PATIENCE, config_in, free_addresses, wait_until};
use courser::{Config, HttpListen, Inherited, Node, Server, StartError};
use courser_client::{Connection, Error, Outgoing, QueueOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn start(config: &Config) -> Node {
    Node::start_on(config.clone(), Inherited::default()).await.expect("a node")
}

pub(crate) async fn remove(node: &Node, name: &str) -> u16 {
    change(node, &format!("DELETE /api/cluster/nodes/{name}"), "").await.0
}

pub(crate) async fn change(node: &Node, what: &str, sent: &str) -> (u16, String) {
    request(node.addresses().http[0], what, sent).await
}

/// The answer of the HTTP API at an address.
pub(crate) async fn request(address: SocketAddr, what: &str, sent: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let len = sent.len();
    let head = format!(
        "{what} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\
         Connection: close\r\nContent-Length: {len}\r\n\r\n{sent}"
    );
    stream.write_all(head.as_bytes()).await.expect("a listener");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.expect("a status"), body.unwrap_or_default())
}

/// Waits until a node has caught up and votes.
pub(crate) async fn wait_until_it_votes(leader: &Node, name: &str) {
    let begun = Instant::now();
    loop {
        let status = leader.status();
        let mut members = status["members"].as_array().into_iter().flatten();
        if members.any(|member| member["name"] == name && member["role"] == "follower") {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{name} does not vote: {status}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many connections are still open, after all have heard what they are to hear.
fn open(connections: &[Connection]) -> usize {
    connections.iter().filter(|connection| connection.is_open()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_drained_closes_its_clients_connections_group_by_group() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let (drained, other) = (three.node((leader + 1) % 3), three.node((leader + 2) % 3));
    let mut connections = Vec::new();
    for _ in 0..5 {
        connections.push(connect(drained).await);
    }
    let elsewhere = connect(other).await;
    let path = format!("PUT /api/cluster/drain/{}", drained.name());
    assert_eq!(change(other, &path, r#"{"group":0}"#).await.0, 400);
    // Time enough to see that there are groups.
    let pace = r#"{"group":2,"pause_ms":700}"#;
    let (status, body) = change(other, &path, pace).await;
    assert_eq!((status, body.as_str()), (200, r#"{"clients":5}"#));
    wait_until("the first group has gone", async || open(&connections) == 3).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(open(&connections), 3, "the second has to wait");
    wait_until("all have gone", async || open(&connections) == 0).await;
    for connection in &connections {
        let Error::ConnectionClosed(why) = connection.closed().await else {
            panic!("it was not told why")
        };
        assert_eq!(why.code, 320);
        assert_eq!(why.text, "CONNECTION_FORCED - Node was put into maintenance mode");
    }
    wait_until("none is left", async || change(other, &path, pace).await.1 == r#"{"clients":0}"#)
        .await;
    let uri = format!("amqp://{}", drained.addresses().amqp[0]);
    assert!(Connection::open(&uri).await.is_err(), "it takes no client");
    assert_eq!(get(drained.addresses().http[0], "/health/ready").await.0, 503);
    assert!(elsewhere.is_open());

    let path = format!("DELETE /api/cluster/drain/{}", drained.name());
    assert_eq!(change(other, &path, "").await.0, 204);
    assert_eq!(get(drained.addresses().http[0], "/health/ready").await.0, 200);
    drop(connect(drained).await);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_drained_hands_the_lead_over_first() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let (drained, other) = (three.node(leader), three.node((leader + 1) % 3));
    let path = format!("PUT /api/cluster/drain/{}", drained.name());
    wait_until("it is drained", async || {
        change(other, &path, "{}").await == (200, r#"{"clients":0}"#.to_owned())
    })
    .await;
    assert_ne!(three.wait_for_leader().await, leader);
    assert_eq!(drained.status()["draining"], true);
    drop(connect(other).await);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stops_leaves_the_lead_to_a_node_that_is_not_drained() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let (drained, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let path = format!("PUT /api/cluster/drain/{}", three.node(drained).name());
    wait_until("it is drained", async || change(three.node(leader), &path, "{}").await.0 == 200)
        .await;
    three.nodes[leader].take().expect("the leader").stop().await.expect("a clean stop");
    assert_eq!(three.wait_for_leader().await, other);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_leads_for_as_long_as_no_other_would() {
    let mut three = Three::start().await;
    let first = three.wait_for_leader().await;
    let others = [(first + 1) % 3, (first + 2) % 3];
    for drained in others {
        let path = format!("PUT /api/cluster/drain/{}", three.node(drained).name());
        let drained = async || change(three.node(first), &path, "{}").await.0 == 200;
        wait_until("it is drained", drained).await;
    }
    // Clients would have nowhere to go.
    let path = format!("PUT /api/cluster/drain/{}", three.node(first).name());
    let (status, why) = change(three.node(first), &path, "{}").await;
    assert!(status == 503 && why.contains("takes clients: take another one back first"), "{why}");
    three.nodes[first].take().expect("the leader").stop().await.expect("a clean stop");
    let leader = three.wait_for_leader().await;
    drop(connect(three.node(leader)).await);
    let other = others.into_iter().find(|one| *one != leader).expect("another one");
    let path = format!("DELETE /api/cluster/drain/{}", three.node(other).name());
    assert_eq!(change(three.node(leader), &path, "").await.0, 204);
    wait_until("the one that takes clients leads", async || three.wait_for_leader().await == other)
        .await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_removed_stops_and_does_not_start_again() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let (gone, away) = ((leader + 1) % 3, (leader + 2) % 3);
    // One is there when it is removed, the other one is not.
    let stopped = three.nodes[away].take().expect("a node");
    let names = [three.node(gone).name(), stopped.name()];
    wait_until("the removal", async || remove(three.node(leader), &names[0]).await == 204).await;
    let removed = three.nodes[gone].take().expect("a node");
    let failed = tokio::time::timeout(PATIENCE, removed.failed()).await;
    let reason = failed.expect("a node that ends").reason;
    assert!(reason.contains("was removed from cluster 'test'"), "{reason}");
    removed.stop().await.expect("a clean stop");
    stopped.stop().await.expect("a clean stop");
    let again = Node::start_on(three.configs[gone].clone(), Inherited::default()).await;
    assert!(matches!(again.err(), Some(StartError::Folder(_))));

    three.nodes[away] = Some(start(&three.configs[away]).await);
    three.wait_for_leader().await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_was_away_when_it_was_removed_learns_it_when_it_is_back() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let away = (leader + 1) % 3;
    let stopped = three.nodes[away].take().expect("a node");
    let name = stopped.name();
    stopped.stop().await.expect("a clean stop");
    wait_until("the removal", async || remove(three.node(leader), &name).await == 204).await;
    let back = start(&three.configs[away]).await;
    let failed = tokio::time::timeout(PATIENCE, back.failed()).await;
    assert!(failed.expect("a node that ends").reason.contains("was removed"));
    assert!(three.node(leader).status()["leader"].is_string());
    drop(back);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_was_stopped_before_it_could_keep_its_removal_learns_it_when_it_is_back() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let gone = (leader + 1) % 3;
    let removed = three.nodes[gone].take().expect("a node");
    let name = removed.name();
    wait_until("the removal", async || remove(three.node(leader), &name).await == 204).await;
    let failed = tokio::time::timeout(PATIENCE, removed.failed()).await;
    assert!(failed.expect("a node that ends").reason.contains("was removed"));
    removed.stop().await.expect("a clean stop");
    // Its log has the removal, and the file not yet.
    let file = three.configs[gone].data_dir.join("cluster.json");
    let text = std::fs::read_to_string(&file).expect("a file");
    let mut kept: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(kept["removed"], true);
    kept["removed"] = json!(false);
    std::fs::write(&file, kept.to_string()).expect("a file");
    let back = start(&three.configs[gone]).await;
    let failed = tokio::time::timeout(PATIENCE, back.failed()).await;
    assert!(failed.expect("a node that ends").reason.contains("was removed"));
    drop(back);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_were_removed_are_not_taken_for_members_of_their_names() {
    let mut three = Three::start().await;
    for node in &mut three.nodes {
        node.take().expect("a node").stop().await.expect("a clean stop");
    }
    // As if folders had been lost again and again, and the others had told of it late.
    let files = three.configs.iter().map(|config| config.data_dir.join("cluster.json"));
    let files: Vec<_> = files.collect();
    let known = |file: &Path| {
        let text = std::fs::read_to_string(file).expect("a file");
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        kept
    };
    for file in &files {
        let mut kept = known(file);
        let nodes = kept["known"].as_array_mut().expect("a list");
        let names = ["a", "b", "c"].iter().cycle().enumerate().take(30);
        nodes.extend(names.map(
            |(number, name)| json!({ "id": number + 100, "name": name, "address": "127.0.0.1:1" }),
        ));
        std::fs::write(file, kept.to_string()).expect("a file");
    }
    for (node, config) in three.nodes.iter_mut().zip(&three.configs) {
        *node = Some(start(config).await);
    }
    let leader = three.wait_for_leader().await;
    for name in ["a", "b", "c"] {
        let drain = format!("PUT /api/cluster/drain/{name}");
        wait_until("it is drained", async || {
            change(three.node(leader), &drain, "{}").await.0 == 200
        })
        .await;
        let resume = format!("DELETE /api/cluster/drain/{name}");
        wait_until("it is resumed", async || {
            change(three.node(leader), &resume, "").await.0 == 204
        })
        .await;
    }
    let count = |file: &PathBuf| known(file)["known"].as_array().expect("a list").len();
    wait_until("they are forgotten", async || files.iter().all(|file| count(file) < 20)).await;
    three.stop().await;
}

async fn publish(uri: &str, count: u8) {
    let connection = Connection::open(uri).await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("kept", QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    for number in 0..count {
        let body = [number];
        let message = Outgoing::new(&body).persistent();
        let confirm = channel.publish("", "kept", message).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
    }
}

async fn expect(node: &Node, numbers: std::ops::Range<u8>) {
    let connection = connect(node).await;
    let channel = connection.open_channel().await.expect("a channel");
    for number in numbers {
        let message = channel.get("kept", true).await.expect("a queue").expect("a message");
        assert_eq!(message.body(), [number]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_by_itself_has_kept_is_the_beginning_of_a_cluster() {
    let folders: Vec<TempDir> = (0..3).map(|_| tempfile::tempdir().expect("a folder")).collect();
    let addresses = free_addresses(3);
    let names = ["a", "b", "c"];
    let configs: Vec<Config> = (0..3)
        .map(|one| node_config(&folders[one], names[one], addresses[one], &addresses))
        .collect();
    let mut alone = config_in(&folders[0]);
    alone.journal.segment_bytes = 1 << 20;
    let server = Server::start(alone.clone()).await.expect("a broker");
    publish(&format!("amqp://{}", server.addresses()[0]), 20).await;
    server.stop().await.expect("a clean stop");

    // While others of the list are away nothing is begun, and the broker can go on by itself.
    let waiting = start(&configs[0]).await;
    assert_eq!(waiting.status()["state"], "forming");
    waiting.stop().await.expect("a clean stop");
    let server = Server::start(alone.clone()).await.expect("a broker");
    server.stop().await.expect("a clean stop");

    let (first, second, third) =
        (start(&configs[0]).await, start(&configs[1]).await, start(&configs[2]).await);
    expect(&first, 0..5).await;
    for (node, address) in [(&second, addresses[1]), (&third, addresses[2])] {
        wait_until("the node is added", async || first.add(&address.to_string()).await.is_ok())
            .await;
        wait_until_it_votes(&first, &node.name()).await;
    }
    let back = Server::start(alone).await.map(drop);
    assert!(back.is_err(), "{back:?}");
    first.stop().await.expect("a clean stop");
    expect(&third, 5..15).await;
    let first = start(&configs[0]).await;
    wait_until("it follows", async || first.status()["leader"].is_string()).await;
    second.stop().await.expect("a clean stop");
    expect(&first, 15..20).await;
    first.stop().await.expect("a clean stop");
    third.stop().await.expect("a clean stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_every_node_want_the_login_that_the_settings_want() {
    let listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    let three = Three::start_with(|config| {
        config.metrics.listen = listen.clone();
        config.metrics.authentication = true;
    })
    .await;
    let leader = three.wait_for_leader().await;
    for node in three.running() {
        let address = node.addresses().metrics[0];
        wait_until("metrics", async || get(address, "/metrics").await.0 == 200).await;
        let mut stream = TcpStream::connect(address).await.expect("a listener");
        let head = "GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("a listener");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(!answer.contains("courser_cluster"), "{answer}");
    }
    let other = three.node((leader + 1) % 3).addresses().metrics[0];
    assert!(get(other, "/metrics").await.1.contains("courser_cluster_is_leader 0"));
    three.stop().await;
}
