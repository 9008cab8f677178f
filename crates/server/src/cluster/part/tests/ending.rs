//! A node one of whose groups ends.

use super::super::super::questions::Question;
use super::*;
use bytes::{BufMut, Bytes, BytesMut};

/// What no node of the group says: that more is committed than there is.
fn contradiction(from: NodeId, to: NodeId, term: u64) -> Packet {
    let mut bytes = BytesMut::new();
    // A heartbeat.
    bytes.put_slice(&[5, 0]);
    let (log_term, index, commit) = (0, 0, u64::MAX);
    for number in [to.0, from.0, term, log_term, index, commit] {
        bytes.put_u64_le(number);
    }
    // What a heartbeat does not say, an empty context, and no entries.
    bytes.put_bytes(0, 3 * 8 + 1 + 4);
    Packet::decode(Bytes::from(bytes)).expect("a packet")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_one_of_whose_groups_ends_hands_the_others_over_before_it_ends() {
    let three = Three::start().await;
    let leader = three.leader(HOME).await;
    three.move_lead(ONE, leader).await;
    let node = &three.nodes[leader];
    let home = node.inner.groups.home().member().expect("it leads");
    let serves = |leadership: &Leadership| matches!(leadership, Leadership::Serving { .. });
    assert!(serves(&home.leadership().borrow()));

    let (own, other) =
        (node.inner.folder.node(), three.nodes[(leader + 1) % 3].inner.folder.node());
    let one = member(&three, leader);
    one.receive(contradiction(other, own, one.status().term + 1));
    let ended = tokio::time::timeout(PATIENCE, node.failed()).await.expect("a group has ended");
    assert!(ended.reason.contains("consensus failed"), "{}", ended.reason);
    assert!(!serves(&home.leadership().borrow()), "it leads home, and serves it no more");
    let question = serde_json::to_string(&Question::Lead { group: Some(HOME) }).expect("plain");
    let asks = three.nodes[(leader + 1) % 3].inner.endpoint.about();
    let takes_lead = node.inner.members.answer(&asks, &question).await;
    assert_eq!(takes_lead.as_deref(), Ok("false"), "nor does it take a lead");
    drop((one, home));
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_one_of_whose_groups_ends_does_not_wait_for_a_disk_that_never_answers() {
    let three = Three::start().await;
    let leader = three.leader(ONE).await;
    let node = &three.nodes[leader];
    // What it does with its disk is not done while this is held.
    let disk = Arc::clone(&node.inner.busy).write_owned().await;
    let (own, other) =
        (node.inner.folder.node(), three.nodes[(leader + 1) % 3].inner.folder.node());
    let one = member(&three, leader);
    one.receive(contradiction(other, own, one.status().term + 1));
    let ended = tokio::time::timeout(PATIENCE, node.failed()).await.expect("it says that it ends");
    assert!(ended.reason.contains("consensus failed"), "{}", ended.reason);
    drop((disk, one));
    three.stop().await;
}
