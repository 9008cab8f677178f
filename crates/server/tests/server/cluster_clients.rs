//! Clients that come by way of a node which does not lead, and do not behave.

use crate::cluster::{Three, connect, get};
use crate::cluster_members::request;
use crate::cluster_sockets::is_held;
use crate::support::{Client, Heard, PATIENCE, Process, free_addresses, wait_until};
use courser::{Config, Inherited, Node};
use courser_codec::{Table, connection};
use courser_connection::client::Config as ClientConfig;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
/// Files that each node may have open, where one vhost is for all.
const DESCRIPTORS: usize = 160;
/// The same where vhosts are in two groups.
const MORE_DESCRIPTORS: usize = 400;

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
async fn who_never_logs_in_at_a_follower_keeps_no_other_out() {
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
pub(crate) fn limited(
    folders: &[TempDir],
    groups: u16,
    descriptors: usize,
) -> Vec<(Process, SocketAddr)> {
    let (listen, http) = (free_addresses(3), free_addresses(3));
    let join: Vec<String> = listen.iter().map(SocketAddr::to_string).collect();
    let start = |(nth, folder): (usize, &TempDir)| {
        let mut command = Command::new("sh");
        let exec = format!("ulimit -n {descriptors} && exec \"$0\" --listen 127.0.0.1:0");
        command.args(["-c", &exec]).arg(Process::command().get_program());
        command.current_dir(folder.path());
        command.env("COURSER_CLUSTER_NAME", "test").env("COURSER_CLUSTER_JOIN", join.join(","));
        command.env("COURSER_CLUSTER_NODE_NAME", nth.to_string());
        command.env("COURSER_CLUSTER_LISTEN", &join[nth]);
        command.env("COURSER_CLUSTER_SECRET", "what all nodes of this test know");
        command.env("COURSER_CLUSTER_GROUPS", groups.to_string());
        command.env("COURSER_AMQP_HANDSHAKE_TIMEOUT_MS", FOR_EVER_MS.to_string());
        command.env("COURSER_MANAGEMENT_LISTEN", http[nth].to_string());
        command.env("COURSER_METRICS_LISTEN", "none").env("COURSER_LOG_LEVEL", "warn");
        (Process::start_with(command), http[nth])
    };
    folders.iter().enumerate().map(start).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_a_follower_leave_descriptors_to_its_journal_and_the_operator() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let nodes = limited(&folders, 1, DESCRIPTORS);
    let follower = &leading_none(&nodes, 1).await.0;
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
    let free = DESCRIPTORS - descriptors(follower.id());
    assert!(free >= 16, "{free} descriptors are left");
}

/// A node that leads none of so many groups, when all have leaders.
async fn leading_none(nodes: &[(Process, SocketAddr)], groups: usize) -> &(Process, SocketAddr) {
    let mut found = None;
    wait_until("leaders", async || {
        let (_, status) = get(nodes[0].1, "/api/cluster").await;
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        let others = status["groups"].as_array().into_iter().flatten();
        let all = std::iter::once(&status).chain(others).map(|one| one["leader"].as_str());
        let leaders: Option<Vec<&str>> = all.collect();
        found = leaders
            .filter(|leaders| leaders.len() == groups)
            .and_then(|leaders| (0..nodes.len()).find(|nth| !leaders.contains(&&*nth.to_string())));
        found.is_some()
    })
    .await;
    &nodes[found.expect("found above")]
}

fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("a process").count()
}

/// The most that a process has at a time, until it is told to end.
fn most_descriptors(process: u32, ended: &AtomicBool) -> usize {
    let mut most = 0;
    while !ended.load(Relaxed) {
        most = most.max(descriptors(process));
        std::thread::sleep(Duration::from_millis(1));
    }
    most
}

/// Reads frames up to a method, by the numbers of its class and its own. Returns false if the connection ends before that.
async fn has_read_up_to(stream: &mut TcpStream, wanted: (u16, u16)) -> bool {
    loop {
        let mut head = [0; 7];
        if timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("in time").is_err() {
            return false;
        }
        let len = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
        let mut rest = vec![0; len + 1];
        if timeout(PATIENCE, stream.read_exact(&mut rest)).await.expect("in time").is_err() {
            return false;
        }
        let number = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        if (number(0), number(2)) == wanted {
            return true;
        }
    }
}

/// A client that is logged in, and has not said which vhost it wants.
async fn logged_in(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let mut said = b"AMQP\0\0\x09\x01".to_vec();
    let (mechanism, response) = ("PLAIN".try_into().expect("short"), &b"\0guest\0guest"[..]);
    let locale = "en_US".try_into().expect("short");
    let client_properties = Table::default();
    connection::StartOk { client_properties, mechanism, response, locale }
        .write_frame(0, &mut said);
    stream.write_all(&said).await.expect("a connection");
    let tune = (connection::Tune::CLASS_ID, connection::Tune::METHOD_ID);
    assert!(has_read_up_to(&mut stream, tune).await, "it is not logged in");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_all_go_to_another_group_at_once_leave_descriptors_to_the_journal() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let nodes = limited(&folders, 2, MORE_DESCRIPTORS);
    let (follower, http) = leading_none(&nodes, 2).await;
    let permissions = r#"{"configure":".*","write":".*","read":".*"}"#;
    for (path, body) in [
        ("PUT /api/vhosts/away", r#"{"group":1}"#),
        ("PUT /api/permissions/away/guest", permissions),
    ] {
        wait_until("it is there", async || request(*http, path, body).await.0 / 100 == 2).await;
    }
    let mut open = Vec::new();
    let away = connection::Open { virtual_host: "away".try_into().expect("short") };
    away.write_frame(0, &mut open);
    // A quarter of all is for others than clients.
    let for_clients = MORE_DESCRIPTORS * 3 / 4 - descriptors(follower.id());
    let mut clients = Vec::new();
    for _ in 0..for_clients / 2 {
        let mut client = logged_in(follower.address).await;
        let mut said = Vec::new();
        connection::TuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 }
            .write_frame(0, &mut said);
        client.write_all(&said).await.expect("a connection");
        clients.push(client);
    }
    let (id, ended) = (follower.id(), Arc::<AtomicBool>::default());
    let watching = std::thread::spawn({
        let ended = Arc::clone(&ended);
        move || most_descriptors(id, &ended)
    });
    for client in &mut clients {
        client.write_all(&open).await.expect("a connection");
    }
    for client in &mut clients {
        // On a slow machine some are sent away, having waited too long for a descriptor.
        has_read_up_to(client, (connection::OpenOk::CLASS_ID, connection::OpenOk::METHOD_ID)).await;
    }
    ended.store(true, Relaxed);
    let free = MORE_DESCRIPTORS - watching.join().expect("no panic");
    assert!(free >= 16, "{free} descriptors were left");
}
