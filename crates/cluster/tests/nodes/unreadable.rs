//! A node whose disk can't read some of what it had.

use crate::one_of_three::{THREE, journal, of_three, turns_until};
use crate::slow_checkpoint::opened;
use crate::slow_disk::{Node, Sent, config};
use courser_cluster::{CopySink, Member, NodeId, Peers};
use courser_journal::testing::Faults;
use courser_store::{Record, Sync};
use std::sync::Arc;

/// In the only segment, and behind what is in other files.
const BAD: u64 = 40_000;

#[test]
fn a_node_whose_disk_can_not_read_its_log_is_brought_a_copy() {
    let mut nodes = Vec::from(THREE.map(of_three));
    turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| nodes[0].serves().is_some());
    let store = opened(&nodes[0]);
    for key in 0..20u8 {
        let record = Record::Defined { key: &[key], value: &[7; 10_000] };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("there is room");
        let end = store.end();
        turns_until(&mut nodes, &[0], &[0, 1, 2], |nodes| {
            store.durable() >= end && nodes[2].committed() == nodes[0].committed()
        });
    }
    drop(store);
    let Node { disk, member, driver, .. } = nodes.pop().expect("the third");
    let term = member.status().term;
    member.close().expect("a good disk");
    drop((member, driver));

    disk.set_faults(Faults { bad_spot: BAD..BAD + 1, ..Faults::default() });
    let config = || config(THREE[2], &THREE, &disk, journal());
    let sent = Arc::new(Sent::default());
    let start = || Member::idle(config(), Arc::clone(&sent) as Arc<dyn Peers>);
    let error = start().err().expect("its log can't be read");
    assert!(error.needs_copy(), "{error}");
    let mut sink = CopySink::new(&config()).expect("a copy mends it");
    assert_eq!(sink.needs_term_above(), Some(term));

    nodes[0].driver.transfer_to(NodeId(2)).expect("it leads");
    turns_until(&mut nodes, &[0], &[0, 1], |nodes| nodes[1].serves().is_some());
    let mut copy = nodes[1].driver.copy(Some(term)).expect("it leads in a later term");
    while let Some(chunk) = copy.next_chunk().expect("a good disk") {
        sink.chunk(&chunk).expect("pages are written whole");
    }
    sink.finish().expect("a good disk");
    let (member, driver) = start().expect("a whole copy");
    let member = Arc::new(member);
    nodes.push(Node { disk: disk.clone(), member, driver, sent: Arc::clone(&sent) });
    turns_until(&mut nodes, &[0, 1], &[0, 1, 2], |nodes| {
        nodes[2].committed() == nodes[1].committed()
    });
}
