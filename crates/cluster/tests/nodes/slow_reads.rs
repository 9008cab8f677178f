//! A leader whose disk takes its time to read what a follower lacks: its group does not wait for that.

use crate::slow_checkpoint::opened;
use crate::slow_disk::{ELECTION_TICKS, Node, deliver};
use crate::support::PATIENCE;
use courser_cluster::NodeId;
use courser_store::{Record, Store, Sync};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const THREE: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
/// Those that are there while the last one lags.
const TWO: usize = 2;

fn start() -> [Node; 3] {
    let journal = courser_journal::Options { segment_bytes: 4 << 20, ..Default::default() };
    THREE.map(|id| Node::new(id, &THREE, journal.clone()))
}

/// A turn of these nodes, which hear of each other alone; time passes for the first one only, which leads therefore.
fn round(nodes: &mut [Node], ticked: bool) {
    for (index, node) in nodes.iter_mut().enumerate() {
        node.driver.turn(ticked && index == 0).expect("a good disk");
    }
    deliver(nodes);
}

/// Rounds until that holds. The threads of the journals do what they do meanwhile.
fn rounds_until(nodes: &mut [Node], holds: impl Fn(&[Node]) -> bool) {
    let begun = Instant::now();
    while !holds(nodes) {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        round(nodes, true);
        sleep(Duration::from_millis(1));
    }
}

/// Appends a record, and waits until a majority has it.
fn append(nodes: &mut [Node], store: &dyn Store) {
    let record = Record::Defined { key: b"key", value: &[7; 20_000] };
    store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("there is room");
    let end = store.end();
    rounds_until(nodes, |_| store.durable() >= end);
}

#[test]
fn while_a_leader_reads_what_a_follower_lacks_it_leads_and_commits_with_the_other() {
    let mut nodes = start();
    rounds_until(&mut nodes, |nodes| nodes[0].serves().is_some());
    let term = nodes[0].serves().expect("it has just served");
    let store = opened(&nodes[0]);
    for _ in 0..20 {
        append(&mut nodes[..TWO], &*store);
    }
    let lacked = nodes[0].committed();
    assert!(nodes[2].committed() + 20 <= lacked);

    let first = Path::new("group/0000000000000000.log");
    let hold = nodes[0].disk.hold_reads(first).expect("it is there");
    // All three again. What was said to the last one meanwhile is lost.
    for _ in 0..5 * ELECTION_TICKS {
        append(&mut nodes, &*store);
        round(&mut nodes, true);
    }
    assert!(hold.wait_until_reached(), "nothing is read");
    assert_eq!(nodes[0].serves(), Some(term), "the leader was not heard, or has heard no follower");
    let status = nodes[0].member.status();
    let last = status.followers.iter().find(|follower| follower.node == THREE[2]);
    assert!(last.is_some_and(|last| last.is_active && last.matched < lacked), "{status:?}");
    assert_eq!(nodes[2].driver.group().leader(), Some(THREE[0]));
    assert!(hold.let_go(), "the group has waited for the disk");
    rounds_until(&mut nodes, |nodes| nodes[2].committed() == nodes[0].committed());
    assert_eq!(nodes[0].serves(), Some(term));
}
