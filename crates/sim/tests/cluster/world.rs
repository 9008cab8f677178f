//! Nodes with brokers, and a network that loses, delays, reorders and cuts. Nothing runs by itself: the same seed gives the
//! same history.

use crate::model::Model;
use crate::node::Node;
use bytes::{Bytes, BytesMut};
use courser_cluster::{NodeId, Packet};
use courser_journal::testing::{Faults, Rng};
use std::collections::BTreeSet;

/// Packets on the way; what is more is lost.
const PACKETS_MAX: usize = 300;

pub struct World {
    pub rng: Rng,
    pub nodes: Vec<Node>,
    pub model: Model,
    packets: Vec<Bytes>,
    /// Links that carry nothing, each in one direction.
    cut: BTreeSet<(NodeId, NodeId)>,
}

impl World {
    pub fn new(seed: u64, nodes: u64) -> Self {
        let ids: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
        let mut world = World {
            rng: Rng::new(seed),
            nodes: ids.iter().map(|id| Node::new(*id, &ids, seed)).collect(),
            model: Model::default(),
            packets: Vec::new(),
            cut: BTreeSet::new(),
        };
        (0..world.nodes.len()).for_each(|at| world.start(at));
        world
    }

    pub fn start(&mut self, at: usize) {
        let seed = self.rng.number();
        self.nodes[at].start(seed);
        self.collect(at);
    }

    pub fn crash(&mut self, at: usize, power_too: bool) {
        self.nodes[at].crash(power_too);
    }

    /// One turn of a node's group.
    pub fn turn(&mut self, at: usize, ticked: bool) {
        let Some(running) = &mut self.nodes[at].running else { return };
        if running.turn(ticked, &mut self.rng, &mut self.model) {
            self.collect(at);
        } else {
            self.crash(at, true);
        }
    }

    /// One round of a node's log threads, and of its group.
    pub fn flush(&mut self, at: usize) {
        let Some(running) = &mut self.nodes[at].running else { return };
        running.flush();
        self.turn(at, false);
    }

    /// Takes what a node has sent, and what its clients are told.
    fn collect(&mut self, at: usize) {
        let Some(running) = &mut self.nodes[at].running else { return };
        for packet in std::mem::take(&mut *running.sent.0.lock()) {
            let mut bytes = BytesMut::new();
            packet.encode(&mut bytes);
            self.packets.push(bytes.freeze());
        }
        for serving in running.serving.iter_mut().chain(&mut running.deposed) {
            serving.receive(&mut self.model);
        }
        while self.packets.len() > PACKETS_MAX {
            let lost = self.rng.below(self.packets.len() as u64) as usize;
            self.packets.swap_remove(lost);
        }
    }

    pub fn deliver(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let which = self.rng.below(self.packets.len() as u64) as usize;
        let bytes = match self.rng.one_in(30) {
            true => self.packets[which].clone(),
            false => self.packets.swap_remove(which),
        };
        self.hand_over(bytes);
    }

    pub fn lose_packet(&mut self) {
        if !self.packets.is_empty() {
            let which = self.rng.below(self.packets.len() as u64) as usize;
            self.packets.swap_remove(which);
        }
    }

    fn hand_over(&mut self, bytes: Bytes) {
        let packet = Packet::decode(bytes).expect("a packet is read as it was written");
        let link = (packet.from(), packet.to());
        let at = link.1.0 as usize - 1;
        if self.cut.contains(&link) {
            return;
        }
        if let Some(running) = &self.nodes[at].running {
            running.member.receive(packet);
            self.turn(at, false);
        }
    }

    /// Cuts a node off.
    pub fn isolate(&mut self, at: usize) {
        let node = self.nodes[at].id;
        for other in self.nodes.iter().map(|node| node.id).filter(|other| *other != node) {
            self.cut.extend([(node, other), (other, node)]);
        }
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    pub fn lose_power_soon(&mut self, at: usize) {
        let power_off_after = Some(self.rng.below(60));
        self.nodes[at].disk.set_faults(Faults { power_off_after, ..Faults::default() });
    }

    /// The node that serves in the newest term.
    pub fn leader(&mut self) -> Option<usize> {
        let serving = |node: &mut Node| node.serving().map(|serving| serving.term);
        let terms: Vec<_> = self.nodes.iter_mut().map(serving).collect();
        let newest = (0..terms.len()).max_by_key(|at| terms[*at])?;
        terms[newest].map(|_| newest)
    }

    /// A client of the node publishes, to a broker that may have been deposed.
    pub fn publish(&mut self, at: usize) {
        let World { nodes, rng, model, .. } = self;
        let Some(running) = &mut nodes[at].running else { return };
        let mut all: Vec<_> = running.serving.iter_mut().chain(&mut running.deposed).collect();
        if all.is_empty() {
            return;
        }
        let which = rng.below(all.len() as u64) as usize;
        let ids: Vec<u64> = (0..1 + rng.below(4)).map(|_| model.next()).collect();
        match rng.one_in(8) {
            true => all[which].transact(ids[0]),
            false => all[which].publish(&ids, rng),
        }
        self.turn(at, false);
    }

    /// A consumer at the node takes a message.
    pub fn take(&mut self, at: usize) {
        let World { nodes, model, .. } = self;
        let Some(running) = &mut nodes[at].running else { return };
        if let Some(serving) = running.serving.iter_mut().chain(&mut running.deposed).last() {
            serving.take(model);
        }
        self.turn(at, false);
    }

    /// Makes a checkpoint, which lets go of entries: not while somebody lacks some.
    pub fn checkpoint(&mut self, at: usize) {
        let committed: BTreeSet<_> = (0..self.nodes.len()).map(|at| self.committed(at)).collect();
        if committed.len() > 1 {
            return;
        }
        if let Some(running) = &mut self.nodes[at].running {
            running.checkpoint();
        }
        self.turn(at, false);
    }

    /// Some time in which nothing is lost.
    pub fn quiet_round(&mut self) {
        for at in 0..self.nodes.len() {
            self.turn(at, true);
            self.flush(at);
        }
        for packet in std::mem::take(&mut self.packets) {
            self.hand_over(packet);
        }
        (0..self.nodes.len()).for_each(|at| self.flush(at));
    }

    /// Everything comes back, and somebody serves what was confirmed.
    pub fn settle(&mut self) {
        self.heal();
        (0..self.nodes.len()).for_each(|at| {
            if self.nodes[at].running.is_some() {
                self.nodes[at].disk.set_faults(Faults::default());
            }
            self.start(at);
        });
        for _ in 0..400 {
            self.quiet_round();
            let Some(leader) = self.leader() else { continue };
            let committed = self.committed(leader);
            if (0..self.nodes.len()).all(|at| self.committed(at) == committed) {
                return;
            }
        }
        let commits: Vec<_> = (0..self.nodes.len()).map(|at| self.committed(at)).collect();
        panic!("the group does not come to rest: {commits:?}");
    }

    pub fn committed(&self, at: usize) -> Option<u64> {
        self.nodes[at].running.as_ref().map(|running| running.driver.group().committed())
    }
}
