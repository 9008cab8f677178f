//! What the engine wants done: saved, written, said, and applied, in the order that makes promises hold.

use super::{Group, Unsynced};
use crate::members::Members;
use crate::packet::Packet;
use crate::storage::{from_engine, kind_of_made, to_engine};
use crate::{Entry, EntryId, EntryKind, GroupError, LogError, PlaceError, ReplicaLog};
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeV2, Entry as EngineEntry, EntryType, HardState, Message};
use raft::{INVALID_ID, StateRole};

/// Largest change of members that is looked at.
const CHANGE_BYTES_MAX: usize = 1 << 10;

impl<L: ReplicaLog> Group<L> {
    /// Does everything that the engine wants done now.
    pub(super) fn handle_ready(&mut self) -> Result<(), GroupError> {
        loop {
            self.timeouts.apply(&mut self.node, self.options.election_ticks);
            self.take_synced();
            if !self.node.has_ready() {
                return Ok(());
            }
            self.handle_one()?;
        }
    }

    fn handle_one(&mut self) -> Result<(), GroupError> {
        let mut ready = self.node.ready();
        self.stop_serving();
        // First these: a cut waits for what has a ticket, and the log was asked whether it has to wait before that.
        let made = self.write_in_runs(&ready.take_entries())?;
        if let Some(state) = ready.hs() {
            self.save_promise(state)?;
        }
        let mut now = ready.take_messages();
        self.shorten_probes(&mut now);
        let now = to_packets(now, &made);
        let later = to_packets(ready.take_persisted_messages(), &made);
        let packets = self.say(now, later);
        let (number, ticket) = (ready.number(), self.log().written());
        self.unsynced.push_back(Unsynced { number, ticket, packets });
        let committed = ready.take_committed_entries();
        self.node.advance_append_async(ready);
        self.apply(&committed)?;
        self.publish_commit(u64::MAX)?;
        self.start_serving();
        Ok(())
    }

    /// Says what may be said at once, and returns the rest. That this node is there promises nothing, and what else it says
    /// waits for the disk. Nothing is led in a term that may be forgotten: a node that is alone elects itself at once.
    fn say(&mut self, now: Vec<Packet>, mut later: Vec<Packet>) -> Vec<Packet> {
        self.packets.extend(later.extract_if(.., |packet| packet.only_answers()));
        if self.log().synced() >= self.promise_ticket {
            self.packets.extend(now);
            return later;
        }
        now.into_iter().chain(later).collect()
    }

    fn stop_serving(&mut self) {
        let raft = &self.node.raft;
        let leads = raft.state == StateRole::Leader;
        if self.serving.is_some_and(|term| !leads || raft.term != term) {
            (self.serving, self.proving) = (None, None);
            self.node.mut_store().log.follow();
        }
    }

    fn start_serving(&mut self) {
        let raft = &self.node.raft;
        let leads = raft.state == StateRole::Leader && raft.commit_to_current_term();
        let term = raft.term;
        if leads && self.serving.is_none() {
            self.serving = Some(term);
            // What an earlier lead of this node has placed was committed, or is gone.
            self.placed.clear();
            self.committed_bytes = self.placed_bytes;
            self.node.mut_store().log.lead(term);
        }
    }

    /// Term and vote are on the disk before anything is promised in that term: see [`Group::say`].
    fn save_promise(&mut self, state: &HardState) -> Result<(), GroupError> {
        if (state.term, state.vote) != (self.vote.term, self.vote.voted_for) {
            (self.vote.term, self.vote.voted_for) = (state.term, state.vote);
            self.save_vote()?;
            self.promise_ticket = self.vote_ticket;
        }
        Ok(())
    }

    fn save_vote(&mut self) -> Result<(), LogError> {
        let log = &mut self.node.mut_store().log;
        log.save_vote(&self.vote)?;
        self.vote_ticket = log.written();
        Ok(())
    }

    /// Puts entries into the log. Before a change of members, the log is told what is committed: with the change it will
    /// know after a restart that the one before was, see [`ReplicaLog::committed_hint`]. Returns those that the engine has made, as
    /// they stand in the log.
    fn write_in_runs(&mut self, entries: &[EngineEntry]) -> Result<Vec<Entry>, GroupError> {
        let mut made = Vec::new();
        for run in entries.chunk_by(|_, next| next.entry_type == EntryType::EntryNormal) {
            self.publish_commit(run[0].index - 1)?;
            self.write(run, &mut made)?;
        }
        Ok(made)
    }

    /// Puts entries into the log: those of another leader where it has them, those that the engine has made where there
    /// is room. What this leader has proposed is there already.
    fn write(&mut self, entries: &[EngineEntry], made: &mut Vec<Entry>) -> Result<(), GroupError> {
        let Some(first) = entries.first() else { return Ok(()) };
        let store = self.node.mut_store();
        let _ = store.changes.split_off(&first.index);
        let mut theirs = Vec::new();
        for entry in entries {
            let id = EntryId { term: entry.term, index: entry.index };
            let framed = from_engine(entry);
            if entry.entry_type != EntryType::EntryNormal {
                let payload = framed.as_ref().map(|framed| store.log.payload(framed));
                store.changes.insert(entry.index, payload.unwrap_or_else(|| entry.data.clone()));
            }
            if let Some(framed) = framed {
                let is_there = store.log.term(id.index) == Some(id.term);
                if !is_there || !theirs.is_empty() {
                    theirs.push(framed);
                }
            } else {
                let kind = kind_of_made(entry);
                let placed = store.log.place_bare(id, kind, &entry.data);
                let frame = placed.map_err(into_log_error)?.frame;
                made.push(Entry { id, kind, frame });
            }
        }
        if !theirs.is_empty() {
            store.log.append(&theirs)?;
        }
        store.last = store.log.last().index;
        store.log.ask_sync();
        Ok(())
    }

    /// What the disk has by now counts, and what hung on it is said.
    fn take_synced(&mut self) {
        let synced = self.log().synced();
        let mut number = None;
        while let Some(next) = self.unsynced.pop_front_if(|next| next.ticket <= synced) {
            number = Some(next.number);
            self.packets.extend(next.packets);
        }
        self.publish_applied();
        if let Some(number) = number {
            self.node.on_persist_ready(number);
        }
    }

    fn apply(&mut self, committed: &[EngineEntry]) -> Result<(), GroupError> {
        let Some(last) = committed.last() else { return Ok(()) };
        for entry in committed.iter().filter(|entry| entry.entry_type != EntryType::EntryNormal) {
            self.change_takes_effect(entry.index)?;
        }
        self.node.advance_apply_to(last.index);
        self.tell_applied(last.index);
        Ok(())
    }

    /// Tells the log what was applied, when the members are saved that it has made.
    pub(super) fn tell_applied(&mut self, index: u64) {
        self.applied.push_back((self.vote_ticket, index));
        self.publish_applied();
    }

    fn publish_applied(&mut self) {
        let saved = self.log().synced();
        while let Some((_, index)) = self.applied.pop_front_if(|(ticket, _)| *ticket <= saved) {
            self.log_mut().applied(index);
        }
    }

    /// The change of members at `index` is committed. A start applies it again until they are saved.
    pub(super) fn change_takes_effect(&mut self, index: u64) -> Result<(), GroupError> {
        let payload = self.node.mut_store().changes.remove(&index);
        let payload = payload.ok_or(GroupError::Change(index))?;
        if payload.len() > CHANGE_BYTES_MAX {
            return Err(GroupError::Change(index));
        }
        let change = ConfChangeV2::parse_from_bytes(&payload);
        let change = change.map_err(|_| GroupError::Change(index))?;
        let state = self.node.apply_conf_change(&change)?;
        self.members = Members::from_engine(&state);
        (self.vote.members, self.vote.members_index) = (self.members.encode(), index);
        self.save_vote()?;
        // The engine goes on leading without a vote, and stumbles over itself when it counts the votes.
        let raft = &mut self.node.raft;
        if raft.state == StateRole::Leader && !raft.promotable() {
            raft.become_follower(raft.term, INVALID_ID);
        }
        Ok(())
    }

    /// Tells the log what is committed; of that, no more than up to `last`.
    fn publish_commit(&mut self, last: u64) -> Result<(), LogError> {
        let raft = &self.node.raft;
        let committed = raft.raft_log.committed.min(last);
        if committed <= self.committed {
            return Ok(());
        }
        self.committed = committed;
        self.node.mut_store().log.commit(committed)?;
        while let Some((_, bytes)) = self.placed.pop_front_if(|(index, _)| *index <= committed) {
            self.committed_bytes = bytes;
        }
        Ok(())
    }
}

/// What is to be sent, with entries that the engine has made as they stand in the log.
fn to_packets(messages: Vec<Message>, made: &[Entry]) -> Vec<Packet> {
    let mut packets = Vec::with_capacity(messages.len());
    for mut message in messages {
        for entry in message.entries.iter_mut().filter(|entry| from_engine(entry).is_none()) {
            if let Some(made) = made.iter().find(|made| made.id.index == entry.index) {
                *entry = to_engine(made);
            }
        }
        if Packet::can_be_sent(&message) {
            packets.push(Packet { message });
        }
    }
    packets
}

fn into_log_error(error: PlaceError) -> LogError {
    match error {
        PlaceError::Full => LogError("the log has no room for an entry of the group itself".into()),
        PlaceError::Failed(failed) => failed,
    }
}

/// What the engine is told of a batch that was placed.
pub(super) fn proposed(id: EntryId, frame: bytes::Bytes) -> EngineEntry {
    to_engine(&Entry { id, kind: EntryKind::Batch, frame })
}
