//! What clients of a leader without a majority are delivered.

use crate::cluster::{Three, connect, try_get};
use crate::support::PATIENCE;
use courser::Node;
use courser_client::{ConsumeOptions, Outgoing, QueueOptions};
use serde_json::Value;
use std::cell::Cell;
use std::future::pending;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How often it is tried: on a busy machine the leader may notice before it has a message that the others do not have.
const ROUNDS: u32 = 5;

/// What the channels at a node have not acknowledged; none once it serves no more.
async fn unacked_at(node: &Node) -> Option<u64> {
    let http = node.addresses().http.first()?;
    let (_, channels) =
        try_get(*http, "/api/channels").await.filter(|(status, _)| *status == 200)?;
    let channels: Value = serde_json::from_str(&channels).expect("a list");
    let unacked = |channel: &Value| channel["messages_unacknowledged"].as_u64();
    Some(channels.as_array().expect("a list").iter().filter_map(unacked).sum())
}

/// A leader that the others have left has a message, and has handed it out. Returns whether it had before it noticed, and
/// what of it was delivered.
async fn delivered_without_majority() -> (bool, Vec<String>) {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    let mut consumer = channel.consume("q", ConsumeOptions::default()).await.expect("a consumer");
    let message = |body: &'static [u8]| Outgoing::new(body).persistent();
    channel.publish("", "q", message(b"before")).await.expect("published");
    let delivery = timeout(PATIENCE, consumer.next()).await.expect("in time");
    assert_eq!(delivery.expect("a connection").expect("a message").body(), b"before");

    let mut stopping = JoinSet::new();
    for index in (0..3).filter(|index| *index != leader) {
        let follower = three.nodes[index].take().expect("a follower");
        stopping.spawn(async move { follower.stop().await });
    }
    stopping.join_all().await;
    let _ = channel.publish("", "q", message(b"after")).await;
    let is_held = Cell::new(false);
    let handed_out = async {
        while !is_held.get() {
            is_held.set(unacked_at(three.node(leader)).await == Some(2));
            sleep(Duration::from_millis(5)).await;
        }
        pending().await
    };
    let mut delivered = Vec::new();
    let until_the_end = async {
        while let Ok(Some(delivery)) = consumer.next().await {
            delivered.push(String::from_utf8_lossy(delivery.body()).into_owned());
        }
    };
    let both = async { tokio::select!(() = until_the_end => {}, () = handed_out => {}) };
    timeout(PATIENCE, both).await.expect("the leader lets its clients go");
    (is_held.get(), delivered)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_the_others_have_left_delivers_nothing_that_they_do_not_have() {
    for _ in 0..ROUNDS {
        let (is_held, delivered) = delivered_without_majority().await;
        assert_eq!(delivered, Vec::<String>::new());
        if is_held {
            return;
        }
    }
    panic!("the leader has noticed each time before it handed out a message");
}
