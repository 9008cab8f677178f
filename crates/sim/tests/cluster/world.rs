//! Nodes with brokers, and a network that loses, delays, reorders and cuts. Nothing runs by itself: the same seed gives the
//! same history.

use crate::model::Model;
use crate::node::{Copying, Node, Serving, Turned};
use crate::paused::Paused;
use bytes::{Bytes, BytesMut};
use courser_cluster::{NodeId, Packet};
use courser_journal::replica::Replica;
use courser_journal::testing::{Faults, Rng};
use std::collections::{BTreeMap, BTreeSet};

/// Packets on the way; what is more is lost.
const PACKETS_MAX: usize = 300;

pub struct World {
    pub rng: Rng,
    pub nodes: Vec<Node>,
    pub model: Model,
    packets: Vec<Bytes>,
    /// Links that carry nothing, each in one direction.
    cut: BTreeSet<(NodeId, NodeId)>,
    /// Nodes that are paused, with what waits at their sockets.
    pub paused: BTreeMap<usize, Paused>,
    /// How often a node has noticed that it lacks a copy, and how many it was brought.
    pub copies_begun: usize,
    pub copies: usize,
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
            paused: BTreeMap::new(),
            copies_begun: 0,
            copies: 0,
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
        self.paused.remove(&at);
        self.nodes[at].crash(power_too);
        for node in &mut self.nodes {
            // What it was sending ends here.
            drop(node.copying.take_if(|copying| copying.from == at));
        }
    }

    /// One turn of a node's group.
    pub fn turn(&mut self, at: usize, ticked: bool) {
        if self.paused.contains_key(&at) {
            return;
        }
        let Some(running) = &mut self.nodes[at].running else { return };
        match running.turn(ticked, &mut self.rng, &mut self.model) {
            Turned::GoesOn => self.collect(at),
            Turned::PowerOff => self.crash(at, true),
            Turned::Lacks => {
                self.nodes[at].running = None;
                self.nodes[at].lacks = true;
                self.copies_begun += 1;
            }
        }
    }

    /// Brings a node that lacks a copy the next piece of one.
    pub fn copy(&mut self, at: usize) {
        if !self.nodes[at].lacks {
            return;
        }
        let Some(mut copying) = self.nodes[at].copying.take() else { return self.begin_copy(at) };
        let Ok(chunk) = copying.source.next_chunk() else { return };
        let Some(chunk) = chunk else {
            // It may have failed at its end: then it is begun again.
            if copying.sink.finish().is_ok() {
                self.copies += 1;
            }
            return self.start(at);
        };
        if copying.sink.chunk(&chunk).is_ok() {
            self.nodes[at].copying = Some(copying);
        }
    }

    fn begin_copy(&mut self, at: usize) {
        let Ok(sink) = self.nodes[at].sink() else { return };
        for from in (0..self.nodes.len()).filter(|from| *from != at) {
            let Some(running) = &mut self.nodes[from].running else { continue };
            if let Ok(source) = running.driver.copy(sink.needs_term_above()) {
                self.nodes[at].copying = Some(Copying { source, sink, from });
                return;
            }
        }
    }

    /// One round of a node's log threads, and of its group.
    pub fn flush(&mut self, at: usize) {
        if self.paused.contains_key(&at) {
            return;
        }
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

    pub fn deliver_all(&mut self) {
        for packet in std::mem::take(&mut self.packets) {
            self.hand_over(packet);
        }
    }

    pub fn lose_packet(&mut self) {
        if !self.packets.is_empty() {
            let which = self.rng.below(self.packets.len() as u64) as usize;
            self.packets.swap_remove(which);
        }
    }

    pub fn lose_packets(&mut self) {
        self.packets.clear();
    }

    pub fn hand_over(&mut self, bytes: Bytes) {
        let packet = Packet::decode(bytes.clone()).expect("a packet is read as it was written");
        let link = (packet.from(), packet.to());
        let at = link.1.0 as usize - 1;
        if self.cut.contains(&link) {
            return;
        }
        if let Some(paused) = self.paused.get_mut(&at) {
            paused.packets.push(bytes);
        } else if let Some(running) = &self.nodes[at].running {
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

    /// The node that leads in the newest term, whether or not it serves.
    pub fn leads(&self) -> Option<usize> {
        let groups =
            self.nodes.iter().map(|node| node.running.as_ref().map(|one| one.driver.group()));
        let leads = groups
            .enumerate()
            .filter_map(|(at, group)| group.filter(|one| one.leads()).map(|one| (one.term(), at)));
        leads.max().map(|(_, at)| at)
    }

    /// The broker of a node that serves.
    pub fn serving(&mut self, at: usize) -> &mut Serving {
        self.nodes[at].serving().expect("it serves")
    }

    /// What changes of queues were answered with, since this was last asked.
    pub fn answers(&mut self, at: usize) -> Vec<&'static str> {
        std::mem::take(&mut self.serving(at).answers)
    }

    /// A client of the node publishes, to a broker that may have been deposed.
    pub fn publish(&mut self, at: usize) {
        if self.paused.contains_key(&at) {
            return;
        }
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

    /// A client of the node publishes a short message.
    pub fn publish_short(&mut self, at: usize) {
        let id = self.model.next();
        self.serving(at).publish_sized(&[(id, 10)]);
        self.turn(at, false);
    }

    /// A consumer at the node takes a message for good.
    pub fn take(&mut self, at: usize) {
        self.get(at, true);
    }

    /// A consumer at the node takes a message: for good, or without an acknowledgement.
    pub fn get(&mut self, at: usize, for_good: bool) {
        if self.paused.contains_key(&at) {
            return;
        }
        let World { nodes, model, .. } = self;
        let Some(running) = &mut nodes[at].running else { return };
        if let Some(serving) = running.serving.iter_mut().chain(&mut running.deposed).last() {
            serving.take(model, for_good);
        }
        self.turn(at, false);
    }

    pub fn checkpoint(&mut self, at: usize) {
        if self.paused.contains_key(&at) {
            return;
        }
        if let Some(running) = &mut self.nodes[at].running {
            running.checkpoint();
        }
        self.turn(at, false);
    }

    /// As [`World::quiet_round`], with the checkpoints that are wanted.
    pub fn living_round(&mut self) {
        self.quiet_round();
        for at in 0..self.nodes.len() {
            self.nodes[at].running.iter_mut().for_each(|running| running.keep_house());
            self.turn(at, false);
        }
    }

    /// Some time in which nothing is lost.
    pub fn quiet_round(&mut self) {
        for at in 0..self.nodes.len() {
            self.turn(at, true);
            self.flush(at);
        }
        self.deliver_all();
        for at in 0..self.nodes.len() {
            self.flush(at);
            self.copy(at);
        }
    }

    /// As a quiet round, in which no log thread does anything.
    pub fn round_without_disks(&mut self) {
        (0..self.nodes.len()).for_each(|at| self.turn(at, true));
        self.deliver_all();
    }

    /// As a quiet round, in which the log thread of one node does nothing.
    pub fn round_without_disk(&mut self, idle: usize) {
        for at in 0..self.nodes.len() {
            self.turn(at, true);
            if at != idle {
                self.flush(at);
            }
        }
        self.deliver_all();
    }

    /// Everything comes back, and a node serves what was confirmed.
    pub fn settle(&mut self) {
        self.heal();
        (0..self.nodes.len()).for_each(|at| self.wake(at));
        for _ in 0..400 {
            for at in 0..self.nodes.len() {
                self.nodes[at].disk.set_faults(Faults::default());
                self.nodes[at].disk.set_capacity(u64::MAX);
                // Some have yet to notice that their power is off.
                self.start(at);
            }
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

    /// The term that is served.
    pub fn leader_term(&mut self) -> Option<u64> {
        let leader = self.leader()?;
        self.nodes[leader].serving().map(|serving| serving.term)
    }

    pub fn transfer(&mut self, from: usize, to: usize) {
        let to = self.nodes[to].id;
        let running = self.nodes[from].running.as_mut().expect("it runs");
        running.driver.transfer_to(to).expect("it leads");
        self.collect(from);
    }

    /// Leaves no room on a node's disk for more files.
    pub fn fill_disk(&mut self, at: usize) {
        let disk = &self.nodes[at].disk;
        disk.set_capacity(disk.used_bytes());
    }

    pub fn free_disk(&mut self, at: usize) {
        self.nodes[at].disk.set_capacity(u64::MAX);
    }

    /// Flips a bit in the middle of the log of a node that is down.
    pub fn damage(&mut self, at: usize) {
        let disk = &self.nodes[at].disk;
        let mut segments = disk.names();
        segments.retain(|path| path.extension().is_some_and(|end| end == "log"));
        let first = segments.iter().min().expect("there is a log");
        disk.corrupt(first, 6000, 4);
    }

    /// The log of a node that runs.
    pub fn replica(&self, at: usize) -> &Replica {
        self.nodes[at].running.as_ref().expect("it runs").driver.group().log().replica()
    }

    /// The last entry of a node that runs.
    pub fn last(&self, at: usize) -> u64 {
        self.replica(at).last().index
    }

    pub fn committed(&self, at: usize) -> Option<u64> {
        self.nodes[at].running.as_ref().map(|running| running.driver.group().committed())
    }
}
