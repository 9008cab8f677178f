//! Rounds in which a leader has the others say whether they still follow it.
//!
//! The engine has such rounds too, but each answer to one of its heartbeats has it send anew what a follower that is slow has
//! not answered. That is right for the few heartbeats that tell of the leader, and of rounds there are as many as answers want. So
//! the engine hears nothing of these: followers say the number of a round back, whatever else they are about, and the answers
//! are counted here. The engine of a follower hears nothing of them either: it keeps what it has to remember of each of its
//! steps until the disk has all that was written before, and a disk may stand still for long.

use super::Group;
use crate::{NodeId, ReplicaLog, packet::Packet};
use raft::StateRole;
use std::collections::BTreeSet;

/// One of these rounds.
pub(super) struct Round {
    number: u64,
    /// Who has said in it that they follow, and the leader itself.
    following: BTreeSet<u64>,
}

impl<L: ReplicaLog> Group<L> {
    /// Has the others say whether they still follow this node, if an answer waits for that and no round is under way: a
    /// majority that does has made no other node the leader before the round began. Packets that are lost are sent
    /// again with the next heartbeats.
    pub fn prove_lead(&mut self) {
        if self.serving.is_none() || self.proving.is_some() {
            return;
        }
        let Some(number) = self.log_mut().begin_proof() else { return };
        self.proving = Some(Round { number, following: BTreeSet::from([self.options.node.0]) });
        self.ask_followers();
        self.end_round();
    }

    /// With a heartbeat of the engine's, asks those again that have not answered. The members may be others by now.
    pub(super) fn ask_again(&mut self) {
        if self.node.raft.heartbeat_elapsed() == 0 {
            self.ask_followers();
            self.end_round();
        }
    }

    fn ask_followers(&mut self) {
        let Some(round) = &self.proving else { return };
        let (raft, from) = (&self.node.raft, self.options.node);
        let voters = raft.prs().conf().voters().ids();
        let silent = voters.iter().filter(|id| !round.following.contains(id));
        let ask = |to| Packet::ask_whether_followed(from, NodeId(to), raft.term, round.number);
        self.packets.extend(silent.map(ask));
    }

    /// Answers a packet, if it asks for that in a round of the leader that this node follows. The leader was heard, and nothing
    /// else has changed. To all others the engine has something else to say, or something to learn from them.
    pub(super) fn answer_round(&mut self, packet: &Packet) -> bool {
        if !self.is_of_leader(packet) {
            return false;
        }
        let raft = &mut self.node.raft;
        let Some(answer) = packet.answer_to_round(raft.raft_log.committed) else { return false };
        raft.election_elapsed = 0;
        self.packets.push(answer);
        true
    }

    /// Takes an answer to a round, if it is one: to the round that is under way, it counts. What was said to an earlier lead is
    /// left to the engine, which passes over it.
    pub(super) fn take_answer(&mut self, packet: &Packet) -> bool {
        let raft = &self.node.raft;
        let is_to_this_lead = raft.state == StateRole::Leader && packet.message.term == raft.term;
        let Some(number) = packet.answers_round().filter(|_| is_to_this_lead) else { return false };
        if let Some(round) = self.proving.as_mut().filter(|round| round.number == number) {
            round.following.insert(packet.from().0);
            self.end_round();
        }
        true
    }

    /// Ends the round if a majority has answered, both of them while one is exchanged for the other.
    fn end_round(&mut self) {
        let prs = self.node.raft.prs();
        let is_over =
            |round: &mut Round| prs.has_quorum(&round.following.iter().copied().collect());
        if let Some(round) = self.proving.take_if(is_over) {
            self.log_mut().proven(round.number);
        }
    }
}
