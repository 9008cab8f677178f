//! Nodes of one group on disks that crash, and a network that loses, delays, reorders, repeats and cuts.
//!
//! Nothing runs by itself: the same seed gives the same history.

mod proofs;
mod settle;

use crate::copy::Copy;
use crate::model::{Model, Record};
use bytes::{Bytes, BytesMut};
use courser_cluster::{Change, Group, GroupError, NodeId, Options, Packet, ProposeError};
use courser_journal::testing::{FakeDisk, Faults, Rng};
use std::collections::BTreeSet;

/// Packets on the way; what is more is lost.
const PACKETS_MAX: usize = 400;

/// One node.
pub struct Node<C: Copy> {
    pub id: NodeId,
    disk: FakeDisk,
    pub group: Option<Group<C>>,
    /// Records that wait for their confirm: what, where, of which term.
    waiting: Vec<(Record, u64, u64)>,
    serving: Option<u64>,
    /// Rounds that have to prove that it leads, and the newest term in which a node had served when each was asked for.
    asked: Vec<(u64, u64)>,
    seen: u64,
    starts: u64,
}

/// The nodes, what is between them, and what must hold.
pub struct World<C: Copy> {
    pub rng: Rng,
    pub nodes: Vec<Node<C>>,
    pub model: Model,
    packets: Vec<Bytes>,
    /// Links that carry nothing, each in one direction.
    cut: BTreeSet<(NodeId, NodeId)>,
    next_message: u64,
}

impl<C: Copy> World<C> {
    /// `founders` nodes that form a group, and `others` that may be taken into it.
    pub fn new(seed: u64, founders: usize, others: usize) -> Self {
        let ids: Vec<NodeId> = (1..=(founders + others) as u64).map(NodeId).collect();
        let node = |id: &NodeId| {
            let disk = FakeDisk::new(seed ^ id.0 << 40);
            C::create(&disk, &ids[..founders]);
            Node {
                id: *id,
                disk,
                group: None,
                waiting: Vec::new(),
                serving: None,
                asked: Vec::new(),
                seen: 0,
                starts: 0,
            }
        };
        let mut world = World {
            rng: Rng::new(seed),
            nodes: ids.iter().map(node).collect(),
            model: Model::default(),
            packets: Vec::new(),
            cut: BTreeSet::new(),
            next_message: 1,
        };
        (0..world.nodes.len()).for_each(|at| world.start(at));
        world
    }

    /// Starts a node that is down, with what its disk has.
    pub fn start(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.group.is_some() {
            return;
        }
        node.disk.set_faults(Faults::default());
        node.starts += 1;
        let log = C::open(&node.disk).expect("a disk without faults");
        let seed = self.rng.number();
        let options =
            Options { seed, packet_bytes: 300, packets_in_flight: 4, ..Options::new(node.id) };
        let group = Group::open(&options, log).expect("what was written can be taken up");
        node.seen = 0;
        node.group = Some(group);
        self.observe(at);
    }

    /// Stops a node at once: killed, or with its power lost.
    pub fn crash(&mut self, at: usize, power_too: bool) {
        let node = &mut self.nodes[at];
        node.group = None;
        node.waiting.clear();
        node.asked.clear();
        node.serving = None;
        if power_too { node.disk.lose_power() } else { node.disk.kill() }
    }

    /// Lets a node do something. Its power goes if its disk says so.
    pub fn with<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Group<C>) -> Result<T, GroupError>,
    ) -> Option<T> {
        let group = self.nodes[at].group.as_mut()?;
        match act(group) {
            Ok(done) => {
                self.observe(at);
                Some(done)
            }
            Err(GroupError::Log(error)) if error.0.contains("the power is off") => {
                self.crash(at, true);
                None
            }
            Err(error) => panic!("node {} can't go on: {error}", self.nodes[at].id),
        }
    }

    /// Sees what a node has to say, and holds it against the model.
    fn observe(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(group) = &mut node.group else { return };
        group.prove_lead();
        for packet in group.take_packets() {
            let mut bytes = BytesMut::new();
            packet.encode(&mut bytes);
            self.packets.push(bytes.freeze());
        }
        self.model.commits(node.id, node.seen, group);
        node.seen = group.committed();
        let serving = group.serving();
        if let Some(term) = serving.filter(|_| serving != node.serving) {
            self.model.serves(node.id, term, group);
        }
        node.see_proofs(serving);
        node.serving = serving;
        // Clients of a leader that is none any more lose their connections.
        node.waiting.retain(|(_, _, term)| serving == Some(*term));
        while let Some((record, index, _)) = node.waiting.first().copied() {
            if index > node.seen {
                break;
            }
            node.waiting.remove(0);
            self.model.confirms(node.id, record, index);
        }
        if self.packets.len() > PACKETS_MAX {
            let lost = self.rng.below(self.packets.len() as u64) as usize;
            self.packets.swap_remove(lost);
        }
    }

    pub fn tick(&mut self, at: usize) {
        self.with(at, Group::tick);
    }

    /// One round of a node's log thread, in which what is fetched is read too.
    pub fn flush(&mut self, at: usize) {
        self.with(at, |group| {
            let flushed = group.log_mut().flush();
            flushed.map_err(|error| courser_cluster::LogError(error.to_string()))?;
            group.synced()?;
            group.fetched()
        });
    }

    /// A node stops after its log thread has synced, and before it has told another one.
    pub fn crash_after_sync(&mut self, at: usize) {
        let Some(group) = &mut self.nodes[at].group else { return };
        // Its disk may fail just then: that is a crash too.
        let _ = group.log_mut().flush();
        self.crash(at, true);
    }

    /// Delivers one of the packets on the way, unless its link is cut.
    pub fn deliver(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let which = self.rng.below(self.packets.len() as u64) as usize;
        let repeats = self.rng.one_in(30);
        let bytes =
            if repeats { self.packets[which].clone() } else { self.packets.swap_remove(which) };
        self.hand_over(bytes);
    }

    fn hand_over(&mut self, bytes: Bytes) {
        let packet = Packet::decode(bytes).expect("a packet is read as it was written");
        let link = (packet.from(), packet.to());
        let Some(at) = self.nodes.iter().position(|node| node.id == link.1) else { return };
        if !self.cut.contains(&link) {
            self.with(at, |group| group.step(packet));
        }
    }

    /// Flips a bit in the last frame of some packet: it has to count as lost.
    pub fn damage(&mut self) {
        let with_entries =
            |bytes: &Bytes| Packet::decode(bytes.clone()).is_ok_and(|packet| packet.has_entries());
        let Some(which) = self.packets.iter().position(with_entries) else { return };
        let mut bytes = self.packets[which].to_vec();
        let bit = self.rng.below(8 * 40) as usize;
        let end = bytes.len() - 1;
        bytes[end - bit / 8] ^= 1 << (bit % 8);
        self.packets[which] = bytes.into();
    }

    pub fn lose_packet(&mut self) {
        if !self.packets.is_empty() {
            let which = self.rng.below(self.packets.len() as u64) as usize;
            self.packets.swap_remove(which);
        }
    }

    /// Publishes a message, or acknowledges one, at a node that serves.
    pub fn publish(&mut self, at: usize) {
        let Some(term) = self.nodes[at].serving else { return };
        let mut record = Record::Message(self.next_message);
        if self.rng.one_in(3) {
            let unacknowledged = self.model.unacknowledged();
            if !unacknowledged.is_empty() {
                let which = self.rng.below(unacknowledged.len() as u64) as usize;
                record = Record::Acknowledged(unacknowledged[which]);
            }
        }
        self.next_message += 1;
        let index = self.with(at, |group| {
            let mut batch = group.log_mut().batch(record);
            let proposed = match group.propose(&mut batch) {
                Ok(_) => group.propose_gathered(usize::MAX),
                Err(error) => Err(error),
            };
            match proposed {
                Ok(_) => {}
                Err(ProposeError::NotLeader | ProposeError::Behind(_)) => return Ok(None),
                Err(ProposeError::Failed(error)) => return Err(error),
                Err(error) => panic!("a batch is refused: {error}"),
            }
            let holds = |index: &u64| {
                let entry = group.log().entry(*index);
                entry.is_some_and(|entry| C::records(&entry).contains(&record))
            };
            Ok((1..=group.log().last().index).rfind(holds))
        });
        if let Some(Some(index)) = index {
            self.nodes[at].waiting.push((record, index, term));
            self.observe(at);
        }
    }

    /// Asks a node that serves to change the members.
    pub fn change_members(&mut self, at: usize) {
        let mut changes = Vec::new();
        for _ in 0..1 + self.rng.below(2) {
            let node = self.nodes[self.rng.below(self.nodes.len() as u64) as usize].id;
            changes.push(match self.rng.below(3) {
                0 => Change::AddVoter(node),
                1 => Change::AddLearner(node),
                _ => Change::Remove(node),
            });
        }
        self.change(at, &changes);
    }

    pub fn change(&mut self, at: usize, changes: &[Change]) {
        self.ask(at, |group| group.change_members(group.members_index(), changes));
    }

    /// Asks a node that serves to let another one lead.
    pub fn transfer(&mut self, at: usize) {
        let to = self.rng.below(self.nodes.len() as u64) as usize;
        self.hand_over_lead(at, to);
    }

    pub fn hand_over_lead(&mut self, at: usize, to: usize) {
        let to = self.nodes[to].id;
        self.ask(at, |group| group.transfer_to(to));
    }

    /// A node gives up the lead while its disk is slow: what it has just placed is not synced.
    pub fn give_up_lead(&mut self, at: usize) {
        self.publish(at);
        self.with(at, Group::step_down);
        let ticks = 4 * Options::new(NodeId(1)).election_ticks;
        (0..self.rng.below(ticks as u64)).for_each(|_| self.tick(at));
    }

    fn ask(&mut self, at: usize, what: impl FnOnce(&mut Group<C>) -> Result<(), ProposeError>) {
        self.with(at, |group| match what(group) {
            Err(ProposeError::Failed(error)) => Err(error),
            _ => Ok(()),
        });
    }

    /// The power of a node goes at one of its next operations on the disk.
    pub fn lose_power_soon(&mut self, at: usize) {
        let after = self.rng.below(12);
        self.nodes[at]
            .disk
            .set_faults(Faults { power_off_after: Some(after), ..Faults::default() });
    }

    /// Cuts all links of a node, in both directions or in one.
    pub fn isolate(&mut self, at: usize) {
        let ways = self.rng.below(3);
        self.cut_links(at, ways);
    }

    /// Cuts all links of a node.
    pub fn cut_off(&mut self, at: usize) {
        self.cut_links(at, 2);
    }

    fn cut_links(&mut self, at: usize, ways: u64) {
        let node = self.nodes[at].id;
        for other in self.nodes.iter().map(|other| other.id).filter(|other| *other != node) {
            if ways != 0 {
                self.cut.insert((node, other));
            }
            if ways != 1 {
                self.cut.insert((other, node));
            }
        }
    }

    /// Cuts one link in one direction.
    pub fn cut_link(&mut self) {
        let mut any = || self.nodes[self.rng.below(self.nodes.len() as u64) as usize].id;
        self.cut.insert((any(), any()));
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// A tick, a sync and the packets of everybody.
    pub fn round(&mut self) {
        self.round_with_syncs_of(|_| true);
    }

    /// A tick and the packets of everybody; only some sync.
    pub fn round_with_syncs_of(&mut self, syncs: impl Fn(usize) -> bool) {
        self.round_of(|_| true, syncs);
    }

    /// The packets of everybody; time passes for some, and some sync.
    fn round_of(&mut self, ticks: impl Fn(usize) -> bool, syncs: impl Fn(usize) -> bool) {
        let syncing: Vec<usize> = (0..self.nodes.len()).filter(|at| syncs(*at)).collect();
        (0..self.nodes.len()).filter(|at| ticks(*at)).for_each(|at| self.tick(at));
        syncing.iter().for_each(|at| self.flush(*at));
        for bytes in std::mem::take(&mut self.packets) {
            self.hand_over(bytes);
        }
        syncing.iter().for_each(|at| self.flush(*at));
    }

    /// No node stops and no packet is lost for some time, except where links are cut: long enough for an election.
    pub fn quiet_spell(&mut self) {
        for _ in 0..10 + self.rng.below(40) {
            self.round();
            self.ask_all_for_proofs();
            if let Some(leader) = self.leader() {
                self.publish(leader);
            }
        }
    }

    /// The term that a node serves in.
    pub fn serving(&self, at: usize) -> Option<u64> {
        self.nodes[at].serving
    }

    /// The node that serves in the newest term.
    pub fn leader(&self) -> Option<usize> {
        let serving = (0..self.nodes.len()).filter(|at| self.nodes[*at].serving.is_some());
        serving.max_by_key(|at| self.nodes[*at].serving)
    }
}
