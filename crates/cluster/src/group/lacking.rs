//! A follower whose next entries are gone at its leader: it is offered a copy of the log.
//!
//! The engine is told nothing of copies. The leader says from where on it has its log, for as long as the follower does not
//! say that it has enough; the follower's group ends, and is opened anew on the copy. What it says then is an answer to
//! entries as any other: everything up to there is on its disk.

use super::Group;
use crate::packet::Packet;
use crate::{GroupError, NodeId, ReplicaLog};
use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

impl<L: ReplicaLog> Group<L> {
    /// The leader that has offered a copy, without which this node can't follow. The group is of no use here any more.
    pub fn lacks(&self) -> Option<NodeId> {
        self.lacks
    }

    /// Tells those that lack entries from where on there are some. Without one of them there may be no majority that
    /// commits what a new leader needs to serve.
    pub(super) fn offer_copies(&mut self) {
        let lacking = std::mem::take(&mut *self.node.store().lacking.borrow_mut());
        if !self.leads() {
            return;
        }
        let first = self.log().before_first().index + 1;
        let offer = |to| Packet::offer(self.options.node, NodeId(to), self.term(), first);
        let offers: Vec<_> = lacking.into_iter().map(offer).collect();
        self.packets.extend(offers);
    }

    /// Says that there is enough here, or notices that there is not.
    pub(super) fn take_offer(&mut self, packet: &Packet) -> Result<(), GroupError> {
        if !self.is_of_leader(packet) {
            return Ok(());
        }
        let raft = &self.node.raft;
        let (leader, first) = (packet.from(), packet.message.index);
        // Committed, and on this disk: the leader has the same.
        let has = raft.raft_log.committed.min(raft.raft_log.persisted);
        if has + 1 < first {
            self.lacks = Some(leader);
            return Ok(());
        }
        let mut message = Message {
            from: raft.id,
            to: leader.0,
            term: raft.term,
            index: has,
            commit: has,
            ..Message::default()
        };
        message.set_msg_type(MessageType::MsgAppendResponse);
        self.packets.push(Packet { message });
        Ok(())
    }

    /// Gives up the lead, so that there is another term.
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn step_down(&mut self) -> Result<(), GroupError> {
        let raft = &mut self.node.raft;
        if raft.state == StateRole::Leader {
            raft.become_follower(raft.term, raft::INVALID_ID);
        }
        self.handle_ready()
    }

    /// The entry that has made the members what they are.
    pub fn members_index(&self) -> u64 {
        self.vote.members_index
    }
}
