//! Groups as they run: with threads, and a clock that counts their ticks.

use crate::node::{IDENTITY, QUEUE};
use courser_broker::{Broker, Limits};
use courser_cluster::{
    Change, CopySink, GroupThread, Leadership, Member, MemberConfig, NodeId, Options, Origin,
    Packet, Peers,
};
use courser_codec::Method;
use courser_journal::testing::FakeDisk;
use courser_sim::{Client, PLAIN, Received, state};
use courser_store::{MemoryGauge, OpenShard, Opening, ShardId, Shards};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// Long enough for a machine that does a lot besides.
const PATIENCE: u32 = 12_000;
const PAUSE: Duration = Duration::from_millis(5);

/// Hands packets over to who is there.
#[derive(Default)]
struct Net(Mutex<BTreeMap<NodeId, Arc<Member>>>);

struct Wire(Arc<Net>);

impl Peers for Wire {
    fn send(&self, to: NodeId, packets: Vec<Packet>) {
        let member = self.0.0.lock().get(&to).cloned();
        if let Some(member) = member {
            packets.into_iter().for_each(|packet| member.receive(packet));
        }
    }
}

struct Cluster {
    net: Arc<Net>,
    disks: BTreeMap<NodeId, FakeDisk>,
}

/// A broker on the node that leads.
struct Leader {
    node: NodeId,
    member: Arc<Member>,
    shard: Arc<dyn OpenShard>,
    broker: Arc<Broker>,
    client: Client,
}

impl Cluster {
    fn start() -> Self {
        let disks: BTreeMap<_, _> = (1..=3).map(|id| (NodeId(id), FakeDisk::new(id))).collect();
        let cluster = Cluster { net: Arc::default(), disks };
        cluster.disks.keys().for_each(|node| cluster.start_node(*node));
        cluster
    }

    fn config(&self, node: NodeId) -> MemberConfig {
        MemberConfig {
            dir: PathBuf::from("group"),
            disk: Arc::new(self.disks[&node].clone()),
            identity: IDENTITY,
            origin: Origin::Founders(self.disks.keys().copied().collect()),
            // No election begins because the machine is busy.
            options: Options { election_ticks: 100, ..Options::new(node) },
            tick: Duration::from_millis(20),
            journal: courser_journal::Options {
                buffer_bytes: 64 << 10,
                checkpoint_after_bytes: 64 << 10,
                ..courser_journal::Options::default()
            },
        }
    }

    fn start_node(&self, node: NodeId) {
        let wire = Arc::new(Wire(Arc::clone(&self.net)));
        let thread = Arc::new(GroupThread::start().expect("a thread"));
        let member = Member::start(self.config(node), wire, &thread).expect("a good copy");
        self.net.0.lock().insert(node, Arc::new(member));
    }

    fn stop_node(&self, node: NodeId) {
        let member = self.net.0.lock().remove(&node).expect("it runs");
        member.close().expect("a good disk");
    }

    fn member(&self, node: NodeId) -> Arc<Member> {
        Arc::clone(&self.net.0.lock()[&node])
    }

    /// A broker on whichever node serves.
    fn leader(&self) -> Leader {
        wait("a node serves", || {
            let members: Vec<_> =
                self.net.0.lock().iter().map(|(id, member)| (*id, Arc::clone(member))).collect();
            members.into_iter().find_map(|(node, member)| {
                let Leadership::Serving { term } = *member.leadership().borrow() else {
                    return None;
                };
                let gauge = Arc::new(MemoryGauge::default());
                let shards = member.shards(term, Arc::clone(&gauge));
                // It may have lost the lead just now.
                let opened = shards.open(ShardId::HOME, Opening::Existing, &mut |_| {}).ok()?;
                let broker =
                    Broker::new(opened.shard.store(), gauge, Limits::default(), term.into());
                broker.restore(opened.recovered).expect("what was written can be read");
                let client = Client::new(&broker);
                Some(Leader { node, member, shard: opened.shard, broker, client })
            })
        })
    }
}

impl Leader {
    fn declare(&mut self) {
        self.client.declare(QUEUE, None).expect("there is room");
        let client = &mut self.client;
        wait("the queue is declared", || {
            client.receive().iter().any(|one| matches!(one, Received::Answered(_))).then_some(())
        });
        client.request(PLAIN, &Method::ConfirmSelect(Default::default())).expect("supported");
    }

    /// Publishes these messages, and waits for all confirms.
    fn publish(&mut self, ids: std::ops::Range<u64>) {
        let mut last = 0;
        for id in ids {
            let published = self.client.publish(PLAIN, "", QUEUE, &[(id, 1000)], true);
            last = published.expect("there is room");
        }
        let client = &mut self.client;
        wait("everything is confirmed", || {
            client.receive().contains(&Received::Confirmed(last)).then_some(())
        });
    }
}

fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        sleep(PAUSE);
    }
    panic!("waited in vain: {what}");
}

#[test]
fn groups_with_threads_serve_what_was_confirmed_after_the_leader_stops() {
    let cluster = Cluster::start();
    let mut first = cluster.leader();
    first.declare();
    first.publish(1..300);
    let node = first.node;
    drop(first);
    cluster.stop_node(node);
    let mut second = cluster.leader();
    assert_ne!(second.node, node);
    assert_eq!(second.client.take_all(QUEUE).expect("declared"), (1..300).collect::<Vec<_>>());
}

#[test]
fn members_change_while_clients_publish() {
    let cluster = Cluster::start();
    let mut leader = cluster.leader();
    leader.declare();
    let other = *cluster.disks.keys().find(|node| **node != leader.node).expect("three");
    let member = Arc::clone(&leader.member);
    let changes = std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let has = |wanted: usize| {
                wait("the change is committed", || {
                    (member.status().members.voters.len() == wanted).then_some(())
                });
            };
            let change = |change| {
                let since = member.status().members_index;
                member.change_members(since, &[change]).expect("it leads");
            };
            for _ in 0..5 {
                change(Change::Remove(other));
                has(2);
                change(Change::AddVoter(other));
                has(3);
            }
        });
        leader.publish(1..600);
        changes.join()
    });
    changes.expect("all changes are made");
    leader.publish(600..610);
    assert_eq!(leader.client.take_all(QUEUE).expect("declared"), (1..610).collect::<Vec<_>>());
}

#[test]
fn a_node_that_was_away_is_brought_a_copy_beside_the_traffic() {
    let cluster = Cluster::start();
    let mut leader = cluster.leader();
    leader.declare();
    leader.publish(1..50);
    let away = *cluster.disks.keys().find(|node| **node != leader.node).expect("three");
    cluster.stop_node(away);
    for round in 1..5 {
        leader.publish(100 * round..100 * round + 100);
        leader.shard.checkpoint(&state(&leader.broker)).expect("there is room");
    }
    cluster.start_node(away);
    let mut watched = cluster.member(away).leadership();
    let from = wait("it notices what it lacks", || match *watched.borrow_and_update() {
        Leadership::Lacks { leader } => Some(leader),
        _ => None,
    });
    assert_eq!(from, leader.node);
    drop(watched);
    cluster.stop_node(away);
    let mut sink = CopySink::new(&cluster.config(away)).expect("a good disk");
    let mut source = leader.member.copy(sink.needs_term_above()).expect("it leads");
    leader.publish(1000..1100);
    while let Some(chunk) = source.next_chunk().expect("a good disk") {
        sink.chunk(&chunk).expect("a good disk");
    }
    sink.finish().expect("all has come");
    cluster.start_node(away);
    wait("it has caught up", || {
        let (follower, leader) = (cluster.member(away).status(), leader.member.status());
        (follower.committed == leader.committed).then_some(())
    });
    leader.member.transfer_to(away).expect("it leads");
    drop(leader);
    let mut next = cluster.leader();
    assert_eq!(next.node, away);
    let expected: Vec<_> = (1..50).chain(100..500).chain(1000..1100).collect();
    assert_eq!(next.client.take_all(QUEUE).expect("declared"), expected);
}
