//! A node whose disk has changed what the others have freed, as their checkpoints stand for it.

use crate::cluster::Three;
use crate::cluster_damage::{
    HARMED, MESSAGES, body, consume, harm_frame, lead, place, publish_behind_checkpoints_of,
    publish_one_by_one,
};
use crate::cluster_operated::ctl;
use crate::support::{free_addresses, wait_until};
use courser_client::{Channel, Connection, Outgoing};
use std::time::Duration;

const FIRST: usize = 0;

/// Nodes of which the first leads, and the last one makes no checkpoint: the others have freed a message that its disk has changed.
/// With who has published it.
async fn start(nodes: usize) -> (Three, Connection, Channel) {
    let slow = nodes - 1;
    let three = Three::start_at(&free_addresses(nodes), |config| {
        let is_slow = config.cluster.node_name == ["a", "b", "c"][slow];
        config.journal.checkpoint_after_bytes = if is_slow { 1 << 30 } else { 1 << 20 };
    })
    .await;
    lead(&three, FIRST).await;
    let all: Vec<usize> = (0..nodes).collect();
    let connection = publish_behind_checkpoints_of(&three, FIRST, &all).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_purge("q").await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    let is_freed = |node: &usize| place(&three.configs[*node].data_dir, &body(HARMED)).is_none();
    wait_until("the others have freed it", async || {
        let filler = Outgoing::new(&[0; 256 << 10]).persistent();
        let confirm = channel.publish("", "filler", filler).await.expect("published");
        assert!(confirm.await.expect("a confirm").is_ack());
        channel.queue_purge("filler").await.expect("a queue");
        all[..slow].iter().all(is_freed)
    })
    .await;
    harm_frame(&three.configs[slow].data_dir);
    (three, connection, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_takes_a_copy_before_it_leads() {
    let (three, _connection, channel) = start(3).await;
    publish_one_by_one(&channel, (0..MESSAGES).map(body)).await;
    lead(&three, 2).await;
    consume(three.node(2), 0..MESSAGES).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_follows_takes_a_copy() {
    let (three, ..) = start(3).await;
    let scrub = async || {
        let scrubbed = ctl(&three.configs[2], &["-q", "journal", "scrub"]).await;
        String::from_utf8_lossy(&scrubbed.stdout).into_owned()
    };
    wait_until("it has a copy", async || scrub().await.contains("nothing is damaged")).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_follows_goes_on_where_the_others_are_no_majority_without_it() {
    let (three, _connection, channel) = start(2).await;
    let scrubbed = ctl(&three.configs[1], &["journal", "scrub"]).await;
    assert_eq!(scrubbed.status.code(), Some(69), "{scrubbed:?}");
    // Some of the intervals after which it looks whether it needs a copy.
    tokio::time::sleep(Duration::from_secs(4)).await;
    publish_one_by_one(&channel, (0..MESSAGES).map(body)).await;
    consume(three.node(FIRST), 0..MESSAGES).await;
    three.stop().await;
}
