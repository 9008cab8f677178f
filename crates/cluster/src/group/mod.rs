//! One node's part in one group.

mod held;
mod lacking;
mod lead;
mod open;
mod probes;
mod ready;
mod rounds;
mod timeouts;

use crate::log::Room;
use crate::packet::Packet;
use crate::storage::LogStorage;
use crate::{Entry, GroupError, Members, NodeId, Options, ReplicaLog, Vote};
use held::Held;
use raft::{INVALID_ID, Progress, Raft, RawNode, StateRole};
use rounds::Round;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use timeouts::Timeouts;

/// One node's part in one group: see the crate's page.
///
/// After an error of kind [`GroupError`] it must not be used any more, and after a panic neither: the engine panics
/// when a message contradicts what is committed.
pub struct Group<L: ReplicaLog> {
    node: RawNode<LogStorage<L>>,
    options: Options,
    timeouts: Timeouts,
    members: Members,
    /// What is saved beside the log, when the log has synced this ticket; and the ticket of its term and vote.
    vote: Vote,
    vote_ticket: u64,
    promise_ticket: u64,
    /// What was applied, and the ticket of the members that it has made: until they are saved, a start finds them in the log.
    applied: VecDeque<(u64, u64)>,
    /// What waits for the disk, in the order in which it was written.
    unsynced: VecDeque<Unsynced>,
    packets: Vec<Packet>,
    /// Followers that were asked without a long entry whether they have the one before that, and which one that is.
    probed: BTreeMap<u64, u64>,
    /// What waits for room in the log.
    held: Held,
    /// The term in which the log was told to take batches.
    serving: Option<u64>,
    /// The round of [`Group::prove_lead`] that is under way in that term.
    proving: Option<Round>,
    /// What was last given to [`ReplicaLog::commit`].
    committed: u64,
    /// Bytes that this leader has placed, and those of them that are committed: index and sum of bytes so far.
    placed: VecDeque<(u64, u64)>,
    placed_bytes: u64,
    committed_bytes: u64,
    /// The leader whose log begins behind the end of this one.
    lacks: Option<NodeId>,
    /// The disk syncs nothing of what waits for it.
    disk_stands_still: bool,
}

/// Another member, as its leader knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Which one.
    pub node: NodeId,
    /// It has everything up to this entry, synced.
    pub matched: u64,
    /// It was heard lately.
    pub is_active: bool,
}

/// A step of the engine that counts when the log is synced up to `ticket`.
struct Unsynced {
    number: u64,
    ticket: u64,
    /// Said only then.
    packets: Vec<Packet>,
}

impl<L: ReplicaLog> Group<L> {
    /// A tick has passed.
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn tick(&mut self) -> Result<(), GroupError> {
        self.node.store().tick(self.options.read_bytes);
        if self.may_lead() {
            self.node.tick();
        } else {
            self.tick_without_room();
        }
        self.leave_joint()?;
        self.handle_ready()?;
        self.ask_again();
        self.offer_copies();
        self.room()
    }

    /// Takes a packet. One that is not for this node, whose frames are damaged, or for whose entries there is no room, is
    /// dropped, as if it had been lost. Entries for which room is being made wait for it, and others behind them; what
    /// else is said, as that the leader is there, is answered meanwhile.
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn step(&mut self, packet: Packet) -> Result<(), GroupError> {
        if packet.to() != self.options.node {
            return Ok(());
        }
        if packet.is_offer() {
            return self.take_offer(&packet);
        }
        if self.take_answer(&packet) || self.answer_round(&packet) {
            return Ok(());
        }
        if packet.helps_to_lead() && !self.may_lead() {
            return Ok(());
        }
        let log = &self.node.store().log;
        if !packet.entries().all(|entry| entry.is_some_and(|entry| log.is_valid(&entry))) {
            return Ok(());
        }
        if !packet.appends() {
            return self.take(packet);
        }
        self.held.push(packet);
        self.room()
    }

    /// Whether it is from the leader that this node follows, and of this term.
    fn is_of_leader(&self, packet: &Packet) -> bool {
        let raft = &self.node.raft;
        raft.state == StateRole::Follower
            && raft.leader_id == packet.from().0
            && raft.term == packet.message.term
    }

    /// Counts how long no leader was heard, for the sake of those who want to lead: this node does not.
    fn tick_without_room(&mut self) {
        let raft = &mut self.node.raft;
        raft.election_elapsed += 1;
        if raft.leader_id != INVALID_ID && raft.election_elapsed >= raft.election_timeout() {
            raft.become_follower(raft.term, INVALID_ID);
        }
    }

    /// Whether this node leads, or could write the entry that a leader begins with. The engine takes for granted that the
    /// disk of a new leader has all of its log: what asks others for votes waits for that, an own vote that is enough does not.
    fn may_lead(&self) -> bool {
        let raft = &self.node.raft;
        let has_synced = || raft.raft_log.persisted == raft.raft_log.last_index();
        let may_ask = || self.members.voters != [self.options.node] || has_synced();
        let can_write = || self.log().has_room_for_bare() && !self.disk_stands_still;
        raft.state == StateRole::Leader || (can_write() && may_ask())
    }

    /// Says whether the disk syncs nothing: this node does not want to lead then.
    pub fn set_disk_stands_still(&mut self, stands_still: bool) {
        self.disk_stands_still = stands_still;
    }

    /// There may be room in the log for what has waited for it.
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn room(&mut self) -> Result<(), GroupError> {
        while let Some(packet) = self.held.first() {
            // The engine takes no word back: what it has taken has to be written.
            let entries: Vec<Entry> = packet.entries().flatten().collect();
            let room = if entries.is_empty() { Room::Ready } else { self.log().room_for(&entries) };
            match (room, self.held.take_first_if(room != Room::Coming)) {
                (Room::Ready, Some(packet)) => self.take(packet)?,
                (Room::Full, _) => {}
                _ => break,
            }
        }
        Ok(())
    }

    fn take(&mut self, packet: Packet) -> Result<(), GroupError> {
        let probed = packet.says_what_is_there();
        match self.node.step(packet.message) {
            // A node does not answer one that it does not know (any more).
            Ok(()) | Err(raft::Error::StepPeerNotFound) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some((node, term, index)) = probed {
            self.end_probe(node, term, index);
        }
        self.handle_ready()
    }

    /// The log's ticket for what is on the disk has moved.
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn synced(&mut self) -> Result<(), GroupError> {
        self.handle_ready()?;
        self.room()
    }

    /// Entries that followers lack were read, see [`ReplicaLog::fetch`].
    ///
    /// # Errors
    /// When the group can't go on.
    pub fn fetched(&mut self) -> Result<(), GroupError> {
        let awaited = std::mem::take(&mut *self.node.store().awaited.borrow_mut());
        for follower in self.followers() {
            self.send_fetched(follower.node, &awaited);
        }
        self.handle_ready()
    }

    /// Sends a follower what there is of what it has waited for.
    fn send_fetched(&mut self, node: NodeId, awaited: &BTreeSet<u64>) {
        let next = self.node.raft.prs().get(node.0).map(|progress| progress.next_idx);
        if next.is_some_and(|next| awaited.contains(&next)) {
            self.send_next(node);
        }
    }

    /// Sends a follower what there is, as far as it may be on the way.
    fn send_next(&mut self, node: NodeId) {
        let raft = &mut self.node.raft;
        let next = |raft: &Raft<_>| raft.prs().get(node.0).map(|progress| progress.next_idx);
        let mut sent = next(raft);
        while let Some(from) = sent {
            raft.send_append(node.0);
            let last = raft.raft_log.last_index();
            sent = next(raft).filter(|next| (from + 1..=last).contains(next));
        }
    }

    /// The packets to be sent now.
    pub fn take_packets(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.packets)
    }

    /// A packet for this node could not be delivered.
    pub fn unreachable(&mut self, node: NodeId) {
        self.node.report_unreachable(node.0);
    }

    /// The newest term that this node knows.
    pub fn term(&self) -> u64 {
        self.node.raft.term
    }

    /// Who leads, as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        Some(NodeId(self.node.raft.leader_id)).filter(|leader| leader.0 != 0)
    }

    /// The term that this node leads and may serve in: it has committed an entry of its own there, so everything that was
    /// ever confirmed is in its log.
    pub fn serving(&self) -> Option<u64> {
        self.serving
    }

    /// Whether this node leads. It may not serve yet: see [`Group::serving`].
    pub fn leads(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Everything up to this entry is committed, as far as this node knows.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Who takes part, as of the last change that is committed.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Bytes that this leader has placed, and no majority has.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.placed_bytes - self.committed_bytes
    }

    /// The others, as this leader knows them; none on a follower.
    pub fn followers(&self) -> Vec<Follower> {
        let raft = &self.node.raft;
        if raft.state != StateRole::Leader {
            return Vec::new();
        }
        let others = raft.prs().iter().filter(|(id, _)| **id != raft.id);
        let follower = |(id, progress): (&u64, &Progress)| Follower {
            node: NodeId(*id),
            matched: progress.matched,
            is_active: progress.recent_active,
        };
        let mut followers: Vec<_> = others.map(follower).collect();
        followers.sort_unstable_by_key(|follower| follower.node);
        followers
    }

    /// The log.
    pub fn log(&self) -> &L {
        &self.node.store().log
    }

    /// The log, to write and sync it. It is placed and appended by the group alone.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.node.mut_store().log
    }
}
