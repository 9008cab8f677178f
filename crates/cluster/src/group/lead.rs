//! What only a leader is asked for.

use super::Group;
use super::ready::proposed;
use crate::members::to_conf_change;
use crate::{Change, EntryId, GroupError, NodeId, PlaceError, Placed, ProposeError, ReplicaLog};
use raft::StateRole;
use raft::eraftpb::{ConfChangeV2, Message, MessageType};

impl<L: ReplicaLog> Group<L> {
    /// Places a batch in the log, and offers it to the others. It is confirmed when
    /// [`durable`](courser_store::Log::durable) reaches its end; if another node leads before, it may be cut off. None if
    /// there was nothing in it.
    ///
    /// # Errors
    /// Nothing is placed then.
    pub fn propose(&mut self, batch: &mut L::Batch) -> Result<Option<Placed>, ProposeError> {
        self.may_propose()?;
        let waiting = self.uncommitted_bytes();
        if waiting > self.options.uncommitted_bytes {
            return Err(ProposeError::Behind(waiting));
        }
        let raft = &self.node.raft;
        let id = EntryId { term: raft.term, index: raft.raft_log.last_index() + 1 };
        let placed = self.node.mut_store().log.place(id, batch).map_err(|error| match error {
            PlaceError::Full => ProposeError::Full,
            PlaceError::Failed(failed) => ProposeError::Failed(failed.into()),
        })?;
        let Some(placed) = placed else { return Ok(None) };
        self.placed_bytes += placed.frame.len() as u64;
        self.placed.push_back((id.index, self.placed_bytes));
        let mut message = Message { from: self.options.node.0, ..Message::default() };
        message.set_msg_type(MessageType::MsgPropose);
        message.entries = vec![proposed(id, placed.frame.clone())].into();
        self.node.raft.step(message).map_err(GroupError::from)?;
        let engine = self.node.raft.raft_log.last_index();
        if engine != id.index {
            return Err(GroupError::OutOfStep { log: id.index, engine }.into());
        }
        self.handle_ready()?;
        Ok(Some(placed))
    }

    /// Proposes what has gathered in the log, as so many entries at most. Returns whether that was all.
    ///
    /// # Errors
    /// What was not proposed stays gathered.
    pub fn propose_gathered(&mut self, entries_max: usize) -> Result<bool, ProposeError> {
        for _ in 0..entries_max {
            if self.propose(&mut L::Batch::default())?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Changes the members; several at once by way of a joint configuration, which the leader leaves at a tick. Takes
    /// effect when it is committed. `since` is the [`members_index`](Self::members_index) of the members by which it was decided
    /// on: it may mean something else for others.
    ///
    /// # Errors
    /// When it can't be done now, the members are others since, or it makes no sense. Nothing is changed then.
    pub fn change_members(&mut self, since: u64, changes: &[Change]) -> Result<(), ProposeError> {
        self.may_propose()?;
        let is_under_way = self.node.raft.has_pending_conf() || self.members.is_joint();
        if is_under_way || self.members_index() != since {
            return Err(ProposeError::ChangeUnderWay);
        }
        if let Some(reason) = self.members.refuses(changes) {
            return Err(ProposeError::BadChange(reason));
        }
        self.propose_change(&to_conf_change(changes))
    }

    /// Proposes a change behind all that has gathered. The engine numbers it before it is placed, so nothing may gather
    /// between.
    fn propose_change(&mut self, change: &ConfChangeV2) -> Result<(), ProposeError> {
        self.log_mut().pause(true);
        let proposed = self.propose_gathered(usize::MAX).and_then(|_| {
            if !self.log().has_room_for_bare() {
                return Err(ProposeError::Full);
            }
            let proposed = self.node.propose_conf_change(Vec::new(), change.clone());
            proposed.map_err(GroupError::from)?;
            Ok(self.handle_ready()?)
        });
        self.log_mut().pause(false);
        proposed
    }

    /// Hands the lead over to a member, when that has everything. Until then, and for an election timeout at most,
    /// nothing is taken.
    ///
    /// # Errors
    /// When this node does not lead.
    pub fn transfer_to(&mut self, node: NodeId) -> Result<(), ProposeError> {
        self.may_propose()?;
        self.node.transfer_leader(node.0);
        Ok(self.handle_ready()?)
    }

    fn may_propose(&self) -> Result<(), ProposeError> {
        let raft = &self.node.raft;
        let is_leader = raft.state == StateRole::Leader && raft.lead_transferee.is_none();
        if is_leader && self.serving.is_some() { Ok(()) } else { Err(ProposeError::NotLeader) }
    }

    /// Ends the exchange of one majority for another. The engine could do that by itself, except for a leader that is
    /// deposed before; so each leader does it.
    pub(super) fn leave_joint(&mut self) -> Result<(), GroupError> {
        let wants = self.members.is_joint() && !self.node.raft.has_pending_conf();
        if !wants || self.may_propose().is_err() {
            return Ok(());
        }
        match self.propose_change(&ConfChangeV2::default()) {
            Err(ProposeError::Failed(error)) => Err(error),
            // Else another tick will do.
            _ => Ok(()),
        }
    }
}
