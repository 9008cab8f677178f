//! Three nodes, of which one was away, or has a disk that stands still.

use crate::slow_disk::{ELECTION_TICKS, Node, READ_BYTES, deliver};
use bytes::BytesMut;
use courser_cluster::NodeId;
use courser_store::{Opening, Record, ShardId, Shards, Sync};
use std::sync::Arc;

pub const THREE: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
/// More than anything takes.
const TURNS_MAX: usize = 400;

/// A journal that writes when it is told to.
pub fn journal() -> courser_journal::Options {
    courser_journal::Options { segment_bytes: 1 << 20, threads: false, ..Default::default() }
}

pub fn of_three(id: NodeId) -> Node {
    Node::new(id, &THREE, journal())
}

/// A turn of all, in which time passes for some, and the disks of some do what they have to.
fn turn(nodes: &mut [Node], ticks: &[usize], disks: &[usize]) {
    for (at, node) in nodes.iter_mut().enumerate() {
        node.driver.turn(ticks.contains(&at)).expect("a good disk");
        if disks.contains(&at) {
            let log = node.driver.group().log().replica();
            while log.flush_once() {}
            log.maintain_once();
        }
    }
    deliver(nodes);
}

/// Turns until that holds.
pub fn turns_until(
    nodes: &mut [Node],
    ticks: &[usize],
    disks: &[usize],
    holds: impl Fn(&[Node]) -> bool,
) {
    for _ in 0..TURNS_MAX {
        if holds(nodes) {
            return;
        }
        turn(nodes, ticks, disks);
    }
    panic!("it does not come");
}

#[test]
fn a_leader_whose_disk_stands_still_lets_another_node_lead_until_it_moves() {
    let mut nodes = THREE.map(of_three);
    turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| nodes[0].serves().is_some());
    turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| nodes[2].committed() == nodes[0].committed());
    let term = nodes[0].serves().expect("it has just served");
    let shards = nodes[0].member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let store = opened.expect("it serves").shard.store();
    (0..ELECTION_TICKS).for_each(|_| turn(&mut nodes, &[0], &[0, 1, 2]));
    // As long as nothing waits for its disk, that may rest.
    (0..TURNS_MAX).for_each(|_| turn(&mut nodes, &[0], &[1, 2]));
    assert_eq!(nodes[0].serves(), Some(term));

    let record = Record::Defined { key: b"key", value: b"value" };
    store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("the leader has room");
    let end = store.end();
    turns_until(&mut nodes, &[0], &[1, 2], |_| store.durable() >= end);
    assert_eq!(nodes[0].serves(), Some(term), "the others keep what it writes");
    assert!(!nodes[0].member.disk_stands_still());
    turns_until(&mut nodes, &[0], &[1, 2], |nodes| nodes[0].serves().is_none());
    assert!(nodes[0].member.disk_stands_still(), "others are told that it would not lead");
    let next = |nodes: &[Node]| nodes[1].serves().or(nodes[2].serves());
    turns_until(&mut nodes, &[0, 1, 2], &[1, 2], |nodes| next(nodes).is_some());
    turns_until(&mut nodes, &[0, 1, 2], &[0, 1, 2], |nodes| {
        let committed = nodes.iter().map(Node::committed);
        next(nodes).is_some() && committed.clone().min() == committed.max()
    });
    assert!(!nodes[0].member.disk_stands_still());
}

/// Bytes that a leader has just said to a node.
fn said_to(leader: &Node, node: NodeId) -> u64 {
    let mut bytes = BytesMut::new();
    let sent = leader.sent.0.lock();
    sent.iter().filter(|packet| packet.to() == node).for_each(|packet| packet.encode(&mut bytes));
    bytes.len() as u64
}

#[test]
fn a_follower_that_was_away_gets_no_more_in_a_tick_than_may_be_read() {
    let mut nodes = THREE.map(of_three);
    turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| nodes[0].serves().is_some());
    turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| nodes[2].committed() == nodes[0].committed());
    let term = nodes[0].serves().expect("it has just served");
    let shards = nodes[0].member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let store = opened.expect("it serves").shard.store();
    let value = vec![7; 256 << 10];
    for number in 0..40u32 {
        let record = Record::Defined { key: &number.to_le_bytes(), value: &value };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("the leader has room");
        for _ in 0..TURNS_MAX {
            turn(&mut nodes[..2], &[0], &[0, 1]);
            if store.durable() >= store.end() {
                break;
            }
        }
    }
    assert!(store.durable() >= store.end(), "two are a majority");

    let entry_bytes = 2 * value.len() as u64;
    for _ in 0..TURNS_MAX {
        if nodes[2].committed() == nodes[0].committed() {
            return;
        }
        nodes[0].driver.turn(true).expect("a good disk");
        let bytes = said_to(&nodes[0], NodeId(3));
        assert!(bytes <= READ_BYTES + entry_bytes, "{bytes} bytes in one tick");
        deliver(&nodes);
        turn(&mut nodes, &[], &[0, 1, 2]);
    }
    panic!("it does not catch up");
}
