//! A follower that lacks a long entry, while it is not known how far it has come.

use crate::slow_checkpoint::opened;
use crate::slow_disk::{Node, TWO, deliver, rounds_until};
use crate::support::PATIENCE;
use courser_cluster::Packet;
use courser_store::{Record, Sync};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// More than a packet has of entries that are not alone in it.
const LONG_BYTES: usize = 200 << 10;
/// Ticks of the leader, with a heartbeat in two.
const ROUNDS: usize = 100;

#[test]
fn a_follower_that_lacks_a_long_entry_is_sent_it_once() {
    let journal = courser_journal::Options { segment_bytes: 4 << 20, ..Default::default() };
    let mut nodes = TWO.map(|id| Node::new(id, &TWO, journal.clone()));
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let store = opened(&nodes[0]);
    let record = Record::Defined { key: b"key", value: &[7; LONG_BYTES] };
    store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("the leader has room");
    nodes[0].driver.turn(false).expect("a good disk");
    let is_long = |packet: &&Packet| packet.encoded_len() > LONG_BYTES;
    let long_of = |node: &Node| node.sent.0.lock().iter().filter(is_long).count();
    assert_eq!(long_of(&nodes[0]), 1);
    // It is lost. By the next heartbeat the leader hears that it is not there.
    nodes[0].sent.0.lock().clear();

    // As long as this is held, the follower does not say that it has come.
    let hold = nodes[1].disk.hold_syncs();
    let (mut sent, mut left) = (0, ROUNDS);
    let begun = Instant::now();
    while left > 0 {
        assert!(begun.elapsed() < PATIENCE, "it is not sent");
        nodes[0].driver.turn(true).expect("a good disk");
        sent += long_of(&nodes[0]);
        deliver(&nodes);
        nodes[1].driver.turn(false).expect("a good disk");
        deliver(&nodes);
        left -= usize::from(sent > 0);
        // The leader reads it meanwhile.
        sleep(Duration::from_millis(1));
    }
    assert_eq!(sent, 1);
    assert!(hold.let_go(), "the group has waited for the disk");
    let end = store.end();
    rounds_until(&mut nodes, true, |nodes| store.durable() >= end && nodes[1].committed() > 1);
}
