//! Followers of which their leader does not know how far they have come.
//!
//! With each heartbeat that such a follower answers, the engine sends it anew what it may lack next, as that may have been lost. An
//! entry that is long is still on its way then, and what follows it waits behind all of these. So they are asked without it
//! first: what is sent to a follower of which that is known is sent once, until it says that it is not there.

use super::Group;
use crate::{NodeId, ReplicaLog};
use raft::eraftpb::{Message, MessageType};
use raft::{ProgressState, StateRole};

impl<L: ReplicaLog> Group<L> {
    /// Takes long entries out of what is sent to such followers.
    pub(super) fn shorten_probes(&mut self, messages: &mut [Message]) {
        let raft = &self.node.raft;
        let is_probed = |to| {
            let progress = raft.prs().get(to);
            progress.is_some_and(|progress| progress.state == ProgressState::Probe)
        };
        for message in messages {
            let bytes: usize = message.entries.iter().map(|entry| entry.data.len()).sum();
            if message.msg_type == MessageType::MsgAppend
                && bytes as u64 > self.options.packet_bytes
                && is_probed(message.to)
            {
                message.entries.clear();
                self.probed.insert(message.to, message.index);
            }
        }
    }

    /// A follower has said that it has everything up to this entry. The engine expects more of one that was asked whether it has, if
    /// it has known that before.
    pub(super) fn end_probe(&mut self, node: NodeId, term: u64, index: u64) {
        let raft = &mut self.node.raft;
        let is_asked = self.probed.get(&node.0) == Some(&index);
        if !is_asked || raft.state != StateRole::Leader || raft.term != term {
            return;
        }
        self.probed.remove(&node.0);
        let Some(progress) = raft.mut_prs().get_mut(node.0) else { return };
        let is_known = (progress.matched, progress.next_idx) == (index, index + 1);
        if progress.state == ProgressState::Probe && is_known {
            progress.become_replicate();
            self.send_next(node);
        }
    }
}
