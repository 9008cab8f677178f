//! A node whose disk damages its last checkpoint while it runs.

use crate::slow_checkpoint::{append, opened};
use crate::slow_disk::{Node, TWO, rounds_until};
use courser_cluster::NodeId;
use courser_store::{Opening, Record, ShardId, Shards, Store};

/// Has the disk of a node change its last checkpoint.
fn damage(node: &Node) {
    let names = node.disk.names().into_iter();
    let checkpoints =
        names.filter(|name| name.extension().is_some_and(|kind| kind == "checkpoint"));
    node.disk.corrupt(&checkpoints.max().expect("it has one"), 60, 1);
}

fn define(nodes: &mut [Node; 2], store: &dyn Store, keys: std::ops::Range<u8>) {
    for key in keys {
        append(nodes, store, Record::Defined { key: &[key], value: b"value" });
    }
}

#[test]
fn a_node_whose_last_checkpoint_is_damaged_makes_the_next_one_and_leads() {
    let mut nodes = TWO.map(Node::of_two);
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let store = opened(&nodes[0]);
    for number in 0..3 {
        define(&mut nodes, &*store, 10 * number..10 * number + 10);
        nodes[1].member.checkpoint().expect("a good disk");
    }
    damage(&nodes[1]);
    define(&mut nodes, &*store, 30..40);
    nodes[1].member.checkpoint().expect("the one before is whole, and the log behind it");

    define(&mut nodes, &*store, 40..50);
    nodes[1].member.checkpoint().expect("a good disk");
    damage(&nodes[1]);
    nodes[0].driver.transfer_to(NodeId(2)).expect("it leads");
    rounds_until(&mut nodes, false, |nodes| nodes[1].serves().is_some());
    let shards = nodes[1].member.shards(nodes[1].serves().expect("it serves"), Default::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let recovered = opened.expect("the one before is whole, and the log behind it").recovered;
    assert_eq!(recovered.definitions.len(), 50);
}
