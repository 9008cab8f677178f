//! A follower that is elected while it makes a checkpoint.

use crate::slow_disk::{Node, TWO, rounds_until};
use courser_cluster::{FollowerCheckpointError, NodeId};
use courser_journal::CheckpointError;
use courser_store::{
    Location, MessageRef, Opening, Position, Record, ShardId, Shards, Store, Sync,
};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const QUEUE: u64 = 1;
/// Messages of 1 kB, in segments of 64 KiB.
const MESSAGES: usize = 400;
/// One in so many stays.
const KEPT_ONE_IN: usize = 10;

pub fn opened(node: &Node) -> Arc<dyn Store> {
    let term = node.serves().expect("it serves");
    let shards = node.member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    opened.expect("it serves").shard.store()
}

/// Appends a record, and returns its position when both nodes have it.
pub fn append(nodes: &mut [Node; 2], store: &dyn Store, record: Record<'_>) -> Vec<Position> {
    let mut locations = Vec::new();
    store.append(&[record], Sync::Wanted, &mut locations).expect("there is room");
    let end = store.end();
    rounds_until(nodes, false, |_| store.durable() >= end);
    rounds_until(nodes, true, |nodes| nodes[1].committed() == nodes[0].committed());
    locations.iter().filter_map(Location::position).collect()
}

#[test]
fn a_follower_that_is_elected_while_it_looks_for_room_to_give_back_leads_at_once() {
    let mut nodes = TWO.map(Node::of_two);
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let store = opened(&nodes[0]);
    let message = MessageRef {
        address: b"\0\0",
        header: &[0; 14],
        body: &[1; 1000],
        ..MessageRef::default()
    };
    let record = Record::Message { queues: &[QUEUE], holders: 1, message };
    let mut settled = Vec::new();
    for number in 0..MESSAGES {
        let positions = append(&mut nodes, &*store, record);
        if !number.is_multiple_of(KEPT_ONE_IN) {
            settled.extend(positions);
        }
    }
    // By the first the follower knows what is live.
    append(&mut nodes, &*store, Record::Settled { queue: QUEUE, positions: &settled });
    nodes[1].member.checkpoint().expect("a good disk");
    append(&mut nodes, &*store, Record::Defined { key: b"key", value: b"value" });
    drop(store);

    let first = Path::new("group/0000000000000000.log");
    let hold = nodes[1].disk.hold_reads(first).expect("it is there");
    let follower = Arc::clone(&nodes[1].member);
    let making = thread::spawn(move || follower.checkpoint());
    assert!(hold.wait_until_reached(), "it looks for none");
    nodes[0].driver.transfer_to(NodeId(2)).expect("it leads");
    rounds_until(&mut nodes, false, |nodes| nodes[1].serves().is_some());
    assert!(hold.let_go(), "the group has waited for the disk");
    opened(&nodes[1]);
    let made = making.join().expect("no panic");
    let is_unwanted =
        |error| matches!(error, FollowerCheckpointError::Checkpoint(CheckpointError::Unwanted));
    assert!(made.is_err_and(is_unwanted), "it went on, and the lead has waited for it");
}
