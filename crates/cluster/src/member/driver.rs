//! What a group's thread does, one turn after the other.

use super::inbox::{Command, Inbox};
use super::{Lead, Leadership, Peers, Shared, Status};
use crate::copy::{CopyError, CopySource, Giver};
use crate::{Group, GroupError, JournalLog, LogError, NodeId, ProposeError, ReplicaLog};
use courser_journal::replica::{Events, Replica};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Entries that are proposed at once, before a look at what else waits.
const ENTRIES_A_TURN: usize = 8;
/// After so many ticks in which nothing was committed, though something waits, the broker is told that there is no room.
const STALLED_TICKS: u32 = 10;
/// After so many ticks in which the disk has synced nothing, though something waits, another node is to lead: it takes no lead
/// for a disk that is merely slow.
const DISK_TICKS: u32 = 100;
/// A follower that was not heard for so many is taken for absent.
const SILENT_TICKS: u32 = 20;

/// A group, and where its word goes. It does nothing by itself: see [`Driver::turn`].
pub struct Driver {
    node: NodeId,
    group: Group<JournalLog>,
    peers: Arc<dyn Peers>,
    pub(super) shared: Arc<Shared>,
    /// Something was appended and not taken yet.
    wants_to_propose: bool,
    /// The commit at the last tick, and for how many it has stood still while something waited.
    stood_at: u64,
    stood_ticks: u32,
    stalled: bool,
    /// What was synced at the last tick, and for how many it has stood still while something waited.
    disk_stood_at: u64,
    disk_stood_ticks: u32,
    leader: Option<NodeId>,
    elections: u64,
    /// That of the status that was told last.
    members_index: u64,
    /// For how many ticks each follower was not heard.
    silent_ticks: BTreeMap<NodeId, u32>,
}

impl Driver {
    pub(super) fn new(
        node: NodeId,
        group: Group<JournalLog>,
        replica: Arc<Replica>,
        inbox: Arc<Inbox>,
        peers: Arc<dyn Peers>,
    ) -> (Arc<Shared>, Self) {
        let leadership = Leadership::Following { leader: None };
        let shared = Arc::new(Shared {
            replica,
            inbox,
            leadership: watch::Sender::new(leadership),
            status: Mutex::new(status(node, &group, 0)),
            lead: Mutex::default(),
            restoring: Mutex::default(),
            disk_stands_still: AtomicBool::new(false),
        });
        let mut driver = Driver {
            node,
            members_index: group.members_index(),
            group,
            peers,
            shared: Arc::clone(&shared),
            wants_to_propose: false,
            stood_at: 0,
            stood_ticks: 0,
            stalled: false,
            disk_stood_at: 0,
            disk_stood_ticks: 0,
            leader: None,
            elections: 0,
            silent_ticks: BTreeMap::new(),
        };
        driver.tell();
        (shared, driver)
    }

    /// Does what waits, and counts a tick if one has passed. Returns whether to go on.
    ///
    /// # Errors
    /// When the group can't go on: the driver is not used any more then.
    pub fn turn(&mut self, ticked: bool) -> Result<bool, GroupError> {
        let waiting = self.shared.inbox.take();
        if let Some(failure) = waiting.failed {
            return Err(LogError(failure).into());
        }
        if waiting.stop {
            return Ok(false);
        }
        for packet in waiting.packets {
            self.group.step(packet)?;
        }
        if waiting.overrun {
            tracing::warn!(
                "no majority takes what this leader's broker has done: it gives up the lead, and what was not committed"
            );
            self.group.step_down()?;
        }
        if waiting.synced {
            self.group.synced()?;
        }
        if waiting.room {
            self.group.room()?;
        }
        if waiting.fetched {
            self.group.fetched()?;
        }
        if ticked {
            self.group.tick()?;
        }
        // What has no one waiting for it is proposed at a tick.
        self.wants_to_propose |= waiting.gathered || ticked;
        self.propose()?;
        // Behind the packets: they may have ended the round before.
        self.group.prove_lead();
        for command in waiting.commands {
            self.obey(command)?;
        }
        if ticked {
            self.watch_commit();
            self.hear();
            self.watch_disk()?;
        }
        // Who changes the members says by which it was decided.
        if ticked || self.group.members_index() != self.members_index {
            self.members_index = self.group.members_index();
            *self.shared.status.lock() = self.status();
        }
        self.tell();
        Ok(self.group.lacks().is_none())
    }

    /// The group.
    pub fn group(&self) -> &Group<JournalLog> {
        &self.group
    }

    /// See [`Member::transfer_to`](crate::Member::transfer_to).
    ///
    /// # Errors
    /// When this node does not lead.
    pub fn transfer_to(&mut self, node: NodeId) -> Result<(), ProposeError> {
        self.group.transfer_to(node)?;
        self.tell();
        Ok(())
    }

    fn propose(&mut self) -> Result<(), GroupError> {
        if !self.wants_to_propose {
            return Ok(());
        }
        match self.group.propose_gathered(ENTRIES_A_TURN) {
            Ok(true) => self.wants_to_propose = false,
            Ok(false) => self.shared.inbox.gathered(),
            // What was gathered without a lead to be proposed in is gone.
            Err(ProposeError::NotLeader) => self.wants_to_propose = self.group.serving().is_some(),
            Err(ProposeError::Failed(error)) => return Err(error),
            // Again when something was committed, or at the next tick.
            Err(_) => {}
        }
        Ok(())
    }

    /// What a copy needs to know, if this node may give one: it leads, or knows of none that does.
    fn giver(&self) -> Option<Giver> {
        let term = match self.group.leads() {
            true => self.group.serving().unwrap_or(0),
            false if self.group.leader().is_none() => 0,
            false => return None,
        };
        let members = self.group.members().clone();
        Some(Giver { term, members, members_index: self.group.members_index() })
    }

    /// A copy of the log, for a node that says from a leader of which terms it takes none. One that is too old a leader
    /// for that gives up its lead.
    ///
    /// # Errors
    /// Why there is none.
    pub fn copy(&mut self, above: Option<u64>) -> Result<CopySource, CopyError> {
        if let Some(above) = above.filter(|above| self.group.term() <= *above) {
            self.group.step_down().map_err(|_| CopyError::NotLeader)?;
            self.tell();
            return Err(CopyError::Term(above));
        }
        if above.is_some() && !self.group.leads() {
            return Err(CopyError::NotLeader);
        }
        let replica = Arc::clone(&self.shared.replica);
        CopySource::begin(&replica, || self.giver())
    }

    /// The leader whose log begins behind this one's end. The driver is not used any more then.
    pub fn lacks(&self) -> Option<NodeId> {
        self.group.lacks()
    }

    fn obey(&mut self, command: Command) -> Result<(), GroupError> {
        let (answer, done) = match command {
            Command::Give { above, answer } => {
                if above.is_some_and(|above| self.group.term() <= above) {
                    self.group.step_down()?;
                }
                // The caller may be gone.
                let _ = answer.send(self.giver());
                return Ok(());
            }
            Command::Change { since, changes, answer } => {
                (answer, self.group.change_members(since, &changes))
            }
            Command::Transfer { node, answer } => (answer, self.group.transfer_to(node)),
        };
        let failed = match &done {
            Err(ProposeError::Failed(error)) => Some(LogError(error.to_string()).into()),
            _ => None,
        };
        // The caller may be gone.
        let _ = answer.send(done);
        failed.map_or(Ok(()), Err)
    }

    /// Counts for how long each follower was not heard. The engine forgets whom it has heard each time that it looks whether
    /// they are a majority.
    fn hear(&mut self) {
        let followers = self.group.followers();
        self.silent_ticks.retain(|node, _| followers.iter().any(|follower| follower.node == *node));
        for follower in followers {
            let ticks = self.silent_ticks.entry(follower.node).or_default();
            *ticks = if follower.is_active { 0 } else { *ticks + 1 };
        }
    }

    fn status(&self) -> Status {
        let mut status = status(self.node, &self.group, self.elections);
        for follower in &mut status.followers {
            let silent = self.silent_ticks.get(&follower.node).copied().unwrap_or_default();
            follower.is_active |= silent < SILENT_TICKS;
        }
        status
    }

    /// Has the broker refuse messages while nothing becomes durable: its threads would wait for room in the log's buffer.
    fn watch_commit(&mut self) {
        let committed = self.group.committed();
        let waits = self.group.serving().is_some() && self.group.uncommitted_bytes() > 0;
        self.stood_ticks =
            if waits && committed == self.stood_at { self.stood_ticks + 1 } else { 0 };
        self.stood_at = committed;
        let stalled = self.stood_ticks >= STALLED_TICKS;
        if stalled != self.stalled {
            self.stalled = stalled;
            self.shared.replica.stall(stalled);
        }
    }

    /// Has another node lead while this one's disk stands still. Heartbeats need no disk, and the others commit without this
    /// one, but whatever the broker appends waits for room in the log's buffer before long.
    fn watch_disk(&mut self) -> Result<(), GroupError> {
        let log = self.group.log();
        let (waits, synced) = (log.synced() < log.written(), log.synced());
        let stood = waits && synced == self.disk_stood_at;
        self.disk_stood_ticks = if stood { self.disk_stood_ticks.saturating_add(1) } else { 0 };
        self.disk_stood_at = synced;
        let stands_still = self.disk_stood_ticks >= DISK_TICKS;
        self.group.set_disk_stands_still(stands_still);
        self.shared.disk_stands_still.store(stands_still, Ordering::Relaxed);
        if stands_still && self.others_are_a_majority() {
            tracing::warn!("the disk stands still: this node gives up the lead until it moves");
            self.group.step_down()?;
        }
        Ok(())
    }

    /// Whether this node leads, and its followers that were heard lately are a majority without it.
    fn others_are_a_majority(&self) -> bool {
        let voters = &self.group.members().voters;
        let is_heard = |node: &&NodeId| {
            self.silent_ticks.get(*node).is_some_and(|ticks| *ticks < SILENT_TICKS)
        };
        voters.iter().filter(is_heard).count() > voters.len() / 2
    }

    /// Says what has changed: packets to the others, and to those that watch it, who leads.
    fn tell(&mut self) {
        let mut by_node: BTreeMap<NodeId, Vec<_>> = BTreeMap::new();
        for packet in self.group.take_packets() {
            by_node.entry(packet.to()).or_default().push(packet);
        }
        for (node, packets) in by_node {
            self.peers.send(node, packets);
        }
        let leader = self.group.leader();
        if leader != self.leader {
            self.leader = leader;
            self.elections += u64::from(leader.is_some());
        }
        let now = match self.group.serving() {
            Some(term) => Leadership::Serving { term },
            None => Leadership::Following { leader: leader.filter(|leader| *leader != self.node) },
        };
        let is_new = *self.shared.leadership.borrow() != now;
        if is_new {
            self.change_lead(&now);
            *self.shared.status.lock() = self.status();
            self.shared.leadership.send_replace(now);
        }
    }

    /// Before those that watch the lead are told.
    fn change_lead(&self, now: &Leadership) {
        let log = self.group.log();
        let lead = match (now, log.serving()) {
            (Leadership::Serving { term }, Some(journal)) => {
                let last = self.group.committed();
                Some(Lead { term: *term, journal: Arc::clone(journal), last })
            }
            _ => None,
        };
        *self.shared.lead.lock() = lead;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Nothing is committed any more: a thread that has appended shall not wait.
        *self.shared.lead.lock() = None;
        self.shared.replica.follow();
        self.shared.leadership.send_replace(Leadership::Following { leader: None });
    }
}

fn status(node: NodeId, group: &Group<JournalLog>, elections: u64) -> Status {
    Status {
        node,
        term: group.term(),
        leader: group.leader(),
        members: group.members().clone(),
        members_index: group.members_index(),
        last: group.log().last().index,
        committed: group.committed(),
        followers: group.followers(),
        uncommitted_bytes: group.uncommitted_bytes(),
        elections,
    }
}
