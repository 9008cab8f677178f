//! What a follower notes of messages, so that the broker that is opened when it leads reads none.

use crate::slow_checkpoint::append;
use crate::slow_disk::{Node, TWO, rounds_until};
use courser_cluster::NodeId;
use courser_store::{
    Key, MessageRef, NO_KEY, Noting, Opened, Opening, Priority, Record, ShardId, Shards,
};
use std::sync::Arc;

const QUEUE: u64 = 1;

/// Takes the first byte of a body for a priority and a key; all queues hold messages apart.
#[derive(Debug)]
struct FirstOfBody;

impl Noting for FirstOfBody {
    fn priority(&self, message: &MessageRef<'_>) -> Option<u8> {
        message.body.first().copied()
    }

    fn keeps_apart(&self, _key: &[u8], value: &[u8]) -> Option<(u64, Box<[u8]>)> {
        Some((value[0].into(), Box::default()))
    }

    fn key(&self, _by: &[u8], message: &MessageRef<'_>) -> Key {
        message.body.first().map_or(NO_KEY, |first| [*first; 16])
    }
}

/// The shard of the node that leads.
fn open(node: &Node) -> Opened {
    let shards = node.member.shards(node.serves().expect("it serves"), Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    opened.expect("it serves")
}

#[test]
fn a_follower_that_comes_to_lead_knows_of_messages_what_their_queues_have_to_know() {
    let journal = || courser_journal::Options {
        segment_bytes: 64 << 10,
        noting: Some(&FirstOfBody),
        ..Default::default()
    };
    let mut nodes = TWO.map(|id| Node::new(id, &TWO, journal()));
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let store = open(&nodes[0]).shard.store();
    append(&mut nodes, &*store, Record::Defined { key: b"q", value: &[QUEUE as u8] });
    for number in 0..40u8 {
        let bytes = [number];
        let body = &bytes[usize::from(number.is_multiple_of(7))..];
        let message =
            MessageRef { address: b"\0\0", header: &[0; 14], body, ..MessageRef::default() };
        append(&mut nodes, &*store, Record::Message { queues: &[QUEUE], holders: 1, message });
        // Twice, so that a checkpoint begins with one that was made likewise; the last messages are in none.
        if number == 10 || number == 20 {
            nodes[1].member.checkpoint().expect("a good disk");
        }
    }
    drop(store);
    nodes[0].driver.transfer_to(NodeId(2)).expect("it leads");
    rounds_until(&mut nodes, false, |nodes| nodes[1].serves().is_some());
    let opened = open(&nodes[1]);
    let index = &opened.recovered.queues[&QUEUE];
    let found = index.messages().map(|found| (found.priority, index.key(found.position)));
    let expected = (0..40u8).map(|number| match number.is_multiple_of(7) {
        true => (Priority::Unsaid, Some(NO_KEY)),
        false => (Priority::Is(number), Some([number; 16])),
    });
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}
