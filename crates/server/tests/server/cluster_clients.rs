//! Clients that come by way of a node which does not lead, and do not behave.

use crate::cluster::{Three, connect, get};
use crate::cluster_sockets::is_held;
use crate::support::{Client, Heard, PATIENCE, Process, free_addresses, wait_until};
use courser::{Config, Inherited, Node};
use courser_connection::client::Config as ClientConfig;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// More than sockets hold, on both ways to a client.
const MESSAGES: u32 = 60;
const SIZE: usize = 1_000_000;
/// Longer than any test waits.
const FOR_EVER_MS: u64 = 1_000_000;
/// Places of each node.
const PLACES: usize = 8;
/// Files that each node may have open.
const DESCRIPTORS: usize = 160;

/// A consumer by way of a follower which has got more than its socket takes, and both ends of that.
async fn with_consumer(three: &Three, follower: usize) -> (Client, SocketAddr, SocketAddr) {
    let leader = three.wait_for_leader().await;
    let at = three.node(follower).addresses().amqp[0];
    let mut other = Client::connect(three.node(leader).addresses().amqp[0]).await;
    other.declare("q").await;
    let mut consumer = Client::connect(at).await;
    consumer.consume("q", false).await;
    let peer = consumer.stream.local_addr().expect("an address");
    assert!(is_held(at, peer));
    for _ in 0..MESSAGES {
        other.publish("q", &vec![7; SIZE]).await;
    }
    other.counts("q").await;
    (consumer, at, peer)
}

fn with_timeout(config: &mut Config, send_timeout_ms: u64) {
    config.amqp.send_timeout_ms = send_timeout_ms;
    config.limits.memory_high_bytes = 1 << 30;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_disconnects_who_never_reads() {
    let three = Three::start_with(|config| with_timeout(config, 1500)).await;
    let follower = (three.wait_for_leader().await + 1) % 3;
    let start = Instant::now();
    let (_consumer, local, peer) = with_consumer(&three, follower).await;
    wait_until("the follower holds it no more", async || !is_held(local, peer)).await;
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_disconnects_who_never_reads_when_the_leader_is_done_with_it() {
    let change = |config: &mut Config| {
        let is_first = config.cluster.node_name == "a";
        with_timeout(config, if is_first { 0 } else { 1500 });
    };
    let mut three = Three::start_with(change).await;
    if three.wait_for_leader().await == 0 {
        three.nodes[0].take().expect("it runs").stop().await.expect("a clean stop");
        three.wait_for_leader().await;
        let again = Node::start_on(three.configs[0].clone(), Inherited::default()).await;
        three.nodes[0] = Some(again.expect("a node"));
    }
    let (_consumer, local, peer) = with_consumer(&three, 0).await;
    wait_until("the follower holds it no more", async || !is_held(local, peer)).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_logs_in_at_a_follower_keeps_nobody_out() {
    let change = |config: &mut Config| {
        config.amqp.handshake_timeout_ms = FOR_EVER_MS;
        config.limits.connections_max = PLACES;
    };
    let three = Three::start_with(change).await;
    let leader = three.wait_for_leader().await;
    let follower = three.node((leader + 1) % 3);
    let address = follower.addresses().amqp[0];
    let mut silent = Vec::new();
    for _ in 0..PLACES + 2 {
        let mut stream = TcpStream::connect(address).await.expect("a listener");
        stream.write_all(b"AMQP\0\0\x09\x01").await.expect("a connection");
        // What the leader says first; one that had to make room hears nothing.
        let _ = timeout(PATIENCE, stream.read(&mut [0; 1024])).await.expect("in time");
        silent.push(stream);
    }
    let mut logged_in = Vec::new();
    for _ in 0..PLACES {
        logged_in.push(connect(follower).await);
    }
    // Those who have logged in stay.
    let mut late = Client::begin(address, ClientConfig::default()).await;
    assert_eq!(late.next().await, Heard::Gone);
    for connection in &logged_in {
        connection.open_channel().await.expect("it is there");
    }
    drop(logged_in);
    three.stop().await;
}

/// Three nodes in processes of their own, with few descriptors, by their HTTP addresses.
fn limited(folders: &[TempDir]) -> Vec<(Process, SocketAddr)> {
    let (listen, http) = (free_addresses(3), free_addresses(3));
    let join: Vec<String> = listen.iter().map(SocketAddr::to_string).collect();
    let start = |(nth, folder): (usize, &TempDir)| {
        let mut command = Command::new("sh");
        let exec = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" --listen 127.0.0.1:0");
        command.args(["-c", &exec]).arg(Process::command().get_program());
        command.current_dir(folder.path());
        command.env("COURSER_CLUSTER_NAME", "test").env("COURSER_CLUSTER_JOIN", join.join(","));
        command.env("COURSER_CLUSTER_NODE_NAME", nth.to_string());
        command.env("COURSER_CLUSTER_LISTEN", &join[nth]);
        command.env("COURSER_CLUSTER_SECRET", "what all nodes of this test know");
        command.env("COURSER_MANAGEMENT_LISTEN", http[nth].to_string());
        command.env("COURSER_METRICS_LISTEN", "none").env("COURSER_LOG_LEVEL", "warn");
        (Process::start_with(command), http[nth])
    };
    folders.iter().enumerate().map(start).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_follower_leave_descriptors_to_its_journal_and_the_operator() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let nodes = limited(&folders);
    let mut leader = None;
    wait_until("a leader", async || {
        let (_, status) = get(nodes[0].1, "/api/cluster").await;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        leader = status["leader"].as_str().and_then(|name| name.parse::<usize>().ok());
        leader.is_some()
    })
    .await;
    let (follower, _) = &nodes[(leader.expect("found above") + 1) % 3];
    let mut idle = vec![Client::connect(follower.address).await];
    loop {
        let mut client = Client::begin(follower.address, ClientConfig::default()).await;
        match client.next().await {
            Heard::Opened => idle.push(client),
            Heard::Gone => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(idle.len() > 30, "{} connections", idle.len());
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", follower.id()));
    let free = DESCRIPTORS - descriptors.expect("a process").count();
    assert!(free >= 16, "{free} descriptors are left");
}
