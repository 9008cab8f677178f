//! Pages of the log that a disk has lost, each with many small entries, in a cluster.

use crate::cluster::{Three, connect, node_config};
use crate::cluster_damage::{lead, place, publish_one_by_one};
use crate::cluster_members::wait_until_it_votes;
use crate::support::{Client, free_addresses, wait_until};
use courser::{Inherited, Node};
use courser_client::QueueOptions;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const MESSAGES: usize = 300;
/// Those whose entries are in pages that are lost.
const LOST: Range<usize> = 20..280;
const PAGE_BYTES: u64 = 4096;

fn body(number: usize) -> Vec<u8> {
    format!("this is message {number:03} of many").into_bytes()
}

/// Publishes messages one by one, each an entry of its own, until these nodes have all of them on their disks.
async fn publish(three: &Three, leader: usize, nodes: &[usize]) {
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    publish_one_by_one(&channel, (0..MESSAGES).map(body)).await;
    for node in nodes {
        have_all(&three.configs[*node].data_dir).await;
    }
}

/// Waits until a node has the last message on its disk.
async fn have_all(folder: &Path) {
    let last = body(MESSAGES - 1);
    wait_until("it has all", async || place(folder, &last).is_some()).await;
}

/// Has a disk lose the pages with many of the messages.
fn lose(folder: &Path) {
    let (log, from) = place(folder, &body(LOST.start)).expect("it is there");
    let (same, to) = place(folder, &body(LOST.end)).expect("it is there");
    assert_eq!(log, same, "one segment has all");
    let (from, to) = (from / PAGE_BYTES * PAGE_BYTES, to / PAGE_BYTES * PAGE_BYTES);
    assert!(to - from >= 8 * PAGE_BYTES, "several pages");
    let file = fs::File::options().write(true).open(log).expect("a log");
    file.write_all_at(&vec![0; (to - from) as usize], from).expect("written");
}

fn assert_whole(folder: &Path) {
    for number in LOST {
        assert!(place(folder, &body(number)).is_some(), "{number} is there again");
    }
}

/// A consumer gets all messages.
async fn consume(node: &Node) {
    let mut client = Client::connect(node.addresses().amqp[0]).await;
    client.consume("q", true).await;
    for number in 0..MESSAGES {
        assert_eq!(client.bodies(1).await, [body(number)], "message {number}");
    }
}

/// The names of the nodes in the order of their ids, in which they are asked.
fn in_order(three: &Three, leader: usize) -> Vec<usize> {
    let status = three.node(leader).status();
    let id = |node: &usize| {
        let all = status["members"].as_array().expect("members");
        let own = all.iter().find(|member| member["name"] == three.node(*node).name());
        own.expect("it is one")["id"].as_str().expect("an id").to_owned()
    };
    let mut nodes: Vec<usize> = (0..3).collect();
    nodes.sort_by_key(id);
    nodes
}

/// Stops a node; what comes in its place takes connections and says nothing.
async fn silence(three: &mut Three, node: usize) -> JoinHandle<()> {
    let address = three.configs[node].cluster.listen.clone();
    three.nodes[node].take().expect("a node").stop().await.expect("a clean stop");
    let mut listener = None;
    wait_until("its address is free", async || {
        listener = TcpListener::bind(&address).await.ok();
        listener.is_some()
    })
    .await;
    let listener = listener.expect("bound above");
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok(taken) = listener.accept().await {
            held.push(taken);
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_were_lost_come_together_before_a_node_serves_though_another_one_is_silent() {
    let mut three = Three::start().await;
    let first = three.wait_for_leader().await;
    let [silent, next, leader] = in_order(&three, first)[..] else { panic!("three nodes") };
    lead(&three, leader).await;
    publish(&three, leader, &[0, 1, 2]).await;
    let folder = three.configs[next].data_dir.clone();
    lose(&folder);
    let holds = silence(&mut three, silent).await;
    lead(&three, next).await;
    // It serves, or on a slow machine the one that it has handed the lead to.
    drop(connect(three.node(next)).await);
    consume(three.node(next)).await;
    assert_whole(&folder);
    three.stop().await;
    holds.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_gets_at_once_what_is_in_pages_that_the_leader_has_lost() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let (away, other) = ((leader + 1) % 3, (leader + 2) % 3);
    three.nodes[away].take().expect("a node").stop().await.expect("a clean stop");
    publish(&three, leader, &[leader, other]).await;
    lose(&three.configs[leader].data_dir);
    let back = Node::start_on(three.configs[away].clone(), Inherited::default()).await;
    three.nodes[away] = Some(back.expect("a node"));
    have_all(&three.configs[away].data_dir).await;
    assert_whole(&three.configs[leader].data_dir);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_added_votes_though_the_leader_has_lost_pages_of_what_it_is_brought() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    publish(&three, leader, &[0, 1, 2]).await;
    lose(&three.configs[leader].data_dir);
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_addresses(1)[0];
    let addresses = three.configs.iter().map(|config| &config.cluster.listen);
    let join: Vec<_> = addresses.map(|one| one.parse().expect("an address")).collect();
    let config = node_config(&folder, "d", address, &join);
    let added = Node::start_on(config.clone(), Inherited::default()).await.expect("a node");
    let first = three.node(leader);
    wait_until("it is added", async || first.add(&address.to_string()).await.is_ok()).await;
    wait_until_it_votes(first, &added.name()).await;
    // It may vote a moment before it has everything.
    have_all(&config.data_dir).await;
    assert_whole(&config.data_dir);
    // On a busy machine another node may have come to lead, which has read its own copy.
    if three.wait_for_leader().await == leader {
        assert_whole(&three.configs[leader].data_dir);
    }
    added.stop().await.expect("a clean stop");
    three.stop().await;
}
