//! A follower whose disk takes its time: what waits for it is not the group.

use crate::one_of_three::{journal, turns_until};
use crate::slow_checkpoint::opened;
use crate::support::PATIENCE;
use courser_cluster::{
    Driver, Identity, Leadership, Member, MemberConfig, NodeId, Options, Origin, Packet, Peers,
    ReplicaLog,
};
use courser_journal::testing::FakeDisk;
use courser_store::{Opening, Record, ShardId, Shards, Sync};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const TWO: [NodeId; 2] = [NodeId(1), NodeId(2)];
pub const ELECTION_TICKS: usize = 10;
pub const READ_BYTES: u64 = 1 << 20;

#[derive(Default)]
pub struct Sent(pub Mutex<Vec<Packet>>);

impl Peers for Sent {
    fn send(&self, _to: NodeId, packets: Vec<Packet>) {
        self.0.lock().extend(packets);
    }
}

pub fn config(
    id: NodeId,
    founders: &[NodeId],
    disk: &FakeDisk,
    journal: courser_journal::Options,
) -> MemberConfig {
    MemberConfig {
        dir: PathBuf::from("group"),
        disk: Arc::new(disk.clone()),
        identity: Identity { group: 7, segment_bytes: journal.segment_bytes },
        origin: Origin::Founders(founders.to_vec()),
        options: Options {
            election_ticks: ELECTION_TICKS,
            read_bytes: READ_BYTES,
            ..Options::new(id)
        },
        tick: Duration::ZERO,
        journal,
    }
}

/// A node whose group has no thread.
pub struct Node {
    pub disk: FakeDisk,
    pub member: Arc<Member>,
    pub driver: Driver,
    pub sent: Arc<Sent>,
}

impl Node {
    pub fn new(id: NodeId, founders: &[NodeId], journal: courser_journal::Options) -> Self {
        let (disk, sent) = (FakeDisk::new(id.0), Arc::new(Sent::default()));
        let config = config(id, founders, &disk, journal);
        let opened = Member::idle(config, Arc::clone(&sent) as Arc<dyn Peers>);
        let (member, driver) = opened.expect("a new copy");
        Node { disk, member: Arc::new(member), driver, sent }
    }

    /// Its journal has its threads.
    pub fn of_two(id: NodeId) -> Self {
        let journal = courser_journal::Options { segment_bytes: 64 << 10, ..Default::default() };
        Self::new(id, &TWO, journal)
    }

    pub fn serves(&self) -> Option<u64> {
        match *self.member.leadership().borrow() {
            Leadership::Serving { term } => Some(term),
            _ => None,
        }
    }

    pub fn committed(&self) -> u64 {
        self.driver.group().committed()
    }
}

/// A turn of both; time passes for the first one only, which leads therefore.
fn round(nodes: &mut [Node; 2], ticked: bool) {
    let [leader, follower] = nodes;
    leader.driver.turn(ticked).expect("a good disk");
    follower.driver.turn(false).expect("a good disk");
    deliver(nodes);
}

/// Brings what was said to those that are there.
pub fn deliver(nodes: &[Node]) {
    for from in nodes {
        for packet in from.sent.0.lock().drain(..) {
            let to = nodes.iter().find(|node| node.member.status().node == packet.to());
            if let Some(to) = to {
                to.member.receive(packet);
            }
        }
    }
}

/// Rounds until that holds. The threads of the journals do what they do meanwhile.
pub fn rounds_until(nodes: &mut [Node; 2], ticked: bool, holds: impl Fn(&[Node; 2]) -> bool) {
    let begun = Instant::now();
    while !holds(nodes) {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        round(nodes, ticked);
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_follower_whose_disk_is_making_a_file_answers_its_leader_meanwhile() {
    let mut nodes = TWO.map(Node::of_two);
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let term = nodes[0].serves().expect("it has just served");
    let shards = nodes[0].member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let store = opened.expect("it serves").shard.store();

    let hold = nodes[1].disk.hold_new_files();
    let value = vec![7; 16 << 10];
    for number in 0..40u32 {
        let record = Record::Defined { key: &number.to_le_bytes(), value: &value };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("the leader has room");
        round(&mut nodes, false);
    }
    for _ in 0..5 * ELECTION_TICKS {
        round(&mut nodes, true);
    }
    assert_eq!(nodes[0].serves(), Some(term), "the leader was not heard");
    assert!(store.durable() < store.end(), "the follower has had all files that it needs");
    assert!(hold.let_go(), "the group has waited for the disk");
    let end = store.end();
    rounds_until(&mut nodes, false, |_| store.durable() >= end);
    rounds_until(&mut nodes, true, |nodes| nodes[1].committed() == nodes[0].committed());
    assert_eq!(nodes[0].serves(), Some(term));
}

#[test]
fn a_follower_whose_disk_does_not_sync_answers_its_leader_meanwhile() {
    let mut nodes = TWO.map(Node::of_two);
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let term = nodes[0].serves().expect("it has just served");
    let shards = nodes[0].member.shards(term, Arc::default());
    let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
    let store = opened.expect("it serves").shard.store();

    let hold = nodes[1].disk.hold_syncs();
    store
        .append(&[Record::Defined { key: b"key", value: b"value" }], Sync::Wanted, &mut Vec::new())
        .expect("the leader has room");
    for _ in 0..5 * ELECTION_TICKS {
        round(&mut nodes, true);
    }
    assert_eq!(nodes[0].serves(), Some(term), "the leader was not heard");
    assert!(store.durable() < store.end(), "what is not synced was acknowledged");
    assert!(hold.let_go(), "the group has waited for the disk");
    rounds_until(&mut nodes, false, |_| store.durable() >= store.end());
    assert_eq!(nodes[0].serves(), Some(term));
}

/// More than half of what the follower's buffer takes, and three of them less than a packet may have.
const LARGE_BYTES: usize = 40 << 10;

#[test]
fn a_follower_whose_buffer_takes_less_than_a_packet_answers_its_leader_meanwhile() {
    let [id, other] = TWO;
    let journal = |buffer_bytes| courser_journal::Options {
        segment_bytes: 1 << 20,
        buffer_bytes,
        ..Default::default()
    };
    let (leader, follower) = (journal(1 << 20), journal(64 << 10));
    let mut nodes = [Node::new(id, &TWO, leader), Node::new(other, &TWO, follower)];
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
    let term = nodes[0].serves().expect("it has just served");
    let store = opened(&nodes[0]);
    let value = vec![7; LARGE_BYTES];
    // Without a turn in between, so that the follower gets them together.
    for number in 0..3u8 {
        let record = Record::Defined { key: &[number], value: &value };
        store.append(&[record], Sync::Wanted, &mut Vec::new()).expect("the leader has room");
    }

    let hold = nodes[1].disk.hold_syncs();
    let mut longest = 0;
    for _ in 0..5 * ELECTION_TICKS {
        nodes[0].driver.turn(true).expect("a good disk");
        let sent = nodes[0].sent.0.lock().iter().map(Packet::encoded_len).max();
        longest = longest.max(sent.unwrap_or(0));
        deliver(&nodes);
        nodes[1].driver.turn(false).expect("a good disk");
        deliver(&nodes);
    }
    assert!(longest > 3 * LARGE_BYTES, "they come one by one");
    assert_eq!(nodes[0].serves(), Some(term), "the leader was not heard");
    assert!(store.durable() < store.end(), "what is not synced was acknowledged");
    assert!(hold.let_go(), "the group has waited for the disk");
    rounds_until(&mut nodes, false, |_| store.durable() >= store.end());
    assert_eq!(nodes[0].serves(), Some(term));
}

#[test]
fn a_vote_is_given_when_it_is_on_the_disk_and_the_group_does_not_wait_for_that() {
    let mut nodes = TWO.map(Node::of_two);
    let hold = nodes[1].disk.hold_syncs();
    rounds_until(&mut nodes, true, |nodes| nodes[1].driver.group().term() > 0);
    for _ in 0..5 * ELECTION_TICKS {
        round(&mut nodes, true);
    }
    assert_eq!(nodes[0].serves(), None, "a vote that may be forgotten was given");
    assert_eq!(nodes[0].driver.group().leader(), None);
    assert!(hold.let_go(), "the group has waited for the disk");
    rounds_until(&mut nodes, true, |nodes| nodes[0].serves().is_some());
}

#[test]
fn a_node_whose_vote_is_enough_leads_again_when_the_disk_has_its_log() {
    let [id, _] = TWO;
    let mut node = Node::new(id, &[id], journal());
    let serves = |nodes: &[Node]| nodes[0].serves().is_some();
    turns_until(slice::from_mut(&mut node), &[0], &[0], serves);
    let store = opened(&node);
    store
        .append(&[Record::Defined { key: b"key", value: b"value" }], Sync::Wanted, &mut Vec::new())
        .expect("the leader has room");
    node.driver.turn(false).expect("a good disk");
    let last = node.driver.group().log().last();
    assert!(last.index > node.committed(), "it was not placed, or is on the disk");

    let given = node.driver.copy(node.serves());
    assert!(given.is_err() && node.serves().is_none(), "it has not given up the lead");
    for _ in 0..3 * ELECTION_TICKS {
        node.driver.turn(true).expect("a good disk");
        assert_eq!(node.driver.group().leader(), None, "the disk does not have its log");
    }
    turns_until(slice::from_mut(&mut node), &[0], &[0], serves);
    assert!(node.committed() > last.index);
    assert_eq!(node.driver.group().log().term(last.index), Some(last.term));
}
