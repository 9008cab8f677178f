//! The cluster as this node knows it: its members, and what is asked of them.

mod operated;

use super::founding::Told;
use super::front::{Front, Serves};
use super::group::Group;
use super::groups::Groups;
use super::moving::Progress;
use super::questions::Question;
use super::roster::Roster;
use super::spread::{Spread, lags};
use crate::clock;
use crate::notices::Notices;
use crate::runtime_settings::RuntimeSettings;
use crate::scrub::Scrubber;
use courser_cluster::transport::{About, DialError, Endpoint, Formation, Node};
use courser_cluster::{
    Change, Follower, GroupNumber, Leadership, Member, NodeId, ProposeError, Status,
};
use courser_management::{
    AskedSetting, Cluster, ClusterError, ClusterNode, ClusterRole, Drained, ScrubState,
    SettingInEffect, VhostMove,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How long the lead stays after an operator has been told that it goes.
const TRANSFER_DELAY: Duration = Duration::from_millis(200);

/// The cluster, as this node knows it.
pub(super) struct Members {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) roster: Arc<Roster>,
    /// It has what answers in the name of these members.
    pub(super) front: Weak<Front>,
    pub(super) groups: Arc<Groups>,
    /// How many groups the settings want.
    pub(super) groups_wanted: u16,
    /// Where groups are told that this node is to have a part in.
    pub(super) founded: mpsc::Sender<(GroupNumber, Formation)>,
    pub(super) told: Told,
    pub(super) spread: Spread,
    /// Home has removed this node.
    pub(super) is_leaving: AtomicBool,
    /// This node hands over what it leads, as it ends.
    pub(super) is_ending: AtomicBool,
    /// What reads this node's logs for damage.
    pub(super) scrub: OnceLock<Arc<Scrubber>>,
    /// When the others were asked last how their disks are.
    pub(super) heard_of_disks: Mutex<Option<Instant>>,
    /// Those of the others that have said whether theirs have room.
    pub(super) rooms: Mutex<BTreeMap<NodeId, bool>>,
    /// Those that have said last that a group waits there.
    pub(super) waiting: Mutex<BTreeSet<NodeId>>,
    pub(super) notices: Arc<Notices>,
    /// Settings of this node that an operator can change.
    pub(super) runtime_settings: Arc<RuntimeSettings>,
    /// Nodes that did not answer when they were asked for what is damaged, and when that was.
    pub(super) silent: Mutex<BTreeMap<NodeId, Instant>>,
    pub(super) runtime: Handle,
}

impl Members {
    /// The cluster as the node of this front knows it.
    pub fn new(
        front: &Arc<Front>,
        roster: &Arc<Roster>,
        groups_wanted: u16,
        founded: mpsc::Sender<(GroupNumber, Formation)>,
        (notices, runtime_settings): (&Arc<Notices>, &Arc<RuntimeSettings>),
    ) -> Arc<Self> {
        Arc::new(Members {
            endpoint: Arc::clone(&front.endpoint),
            roster: Arc::clone(roster),
            front: Arc::downgrade(front),
            groups: Arc::clone(&front.groups),
            groups_wanted,
            founded,
            told: Told::default(),
            spread: Spread::default(),
            is_leaving: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            scrub: OnceLock::new(),
            heard_of_disks: Mutex::default(),
            rooms: Mutex::default(),
            waiting: Mutex::default(),
            notices: Arc::clone(notices),
            runtime_settings: Arc::clone(runtime_settings),
            silent: Mutex::default(),
            runtime: Handle::current(),
        })
    }

    /// Does what is to be done now and then for a group. Blocks.
    pub fn look_after(&self, group: &Group) {
        let Some(member) = group.member() else { return };
        self.promote(group, &member);
        self.mend(group, &member);
        if group.is_home() {
            self.forget_strangers();
            self.hear_of_disks(&member);
            self.found_groups();
            self.spread();
            if let Some(front) = self.front.upgrade() {
                self.runtime.block_on(front.settle_moves());
            }
        } else {
            self.keep_members(&member);
        }
    }

    /// Has nodes vote that were added and have caught up.
    fn promote(&self, group: &Group, member: &Member) {
        let status = member.status();
        let committed_before = group.committed_before(status.committed, clock::now());
        let is_leading = matches!(*member.leadership().borrow(), Leadership::Serving { .. });
        if !is_leading || status.members.is_joint() {
            return;
        }
        if let Some(node) = caught_up(&status, committed_before) {
            let change = Change::AddVoter(node);
            match member.change_members(status.members_index, &[change]) {
                Ok(()) => tracing::info!(%node, "the node has caught up, and votes now"),
                Err(error) => tracing::debug!(%error, "a node that has caught up can't vote yet"),
            }
        }
    }

    /// Forgets nodes that were removed, where there are many.
    fn forget_strangers(&self) {
        let Some(Status { members, .. }) = self.status_of_member() else { return };
        // One that was just added does not know who its members are, before it has heard from a leader.
        if !members.voters.is_empty() {
            self.roster.forget_strangers(|node| members.contains(node));
        }
    }

    pub(super) fn status_of_member(&self) -> Option<Status> {
        self.groups.home().status()
    }

    pub(super) fn name(&self, id: NodeId) -> String {
        self.roster.node(id).map_or_else(|| format!("{:016x}", id.0), |node| node.name)
    }

    pub(super) fn is_connected(&self, id: NodeId) -> bool {
        id == self.endpoint.about().node || self.groups.home().links.is_connected(id)
    }

    /// Whether a voter takes part in a group, as far as this node sees.
    pub(super) fn takes_part(&self, group: &Group, id: NodeId) -> bool {
        id == self.endpoint.about().node || group.links.takes_part(id)
    }

    /// The groups of which a voter that is lost would cost the majority, those that have none, and those of which nothing is
    /// known here.
    fn critical_groups(&self, node: NodeId) -> impl Iterator<Item = GroupNumber> {
        let is_critical = move |group: &Arc<Group>| {
            let Some(status) = group.status() else { return true };
            let (needed, there) = self.majority(group, &status);
            let counts = status.members.voters.contains(&node) && self.takes_part(group, node);
            there < needed + usize::from(counts)
        };
        let (all, unknown) = self.groups.all_and_unknown();
        let known = all.into_iter().filter(is_critical);
        known.map(|group| group.number).chain(unknown)
    }

    /// One of the groups besides home.
    fn group(&self, group: &Group) -> Value {
        let own = self.endpoint.about().node;
        let (leader, number) = (group.leader(own), group.number.0);
        let led_by = leader.map(|leader| self.name(leader));
        let Some(status) = group.status() else {
            return json!({ "group": number, "leader": led_by, "state": "waits for a copy of the log" });
        };
        // Those of the groups that others lead are only known where home is led.
        let lags = match leader {
            Some(leader) if leader == own => Some(lags(&status)),
            _ => self.spread.lags(group.number),
        };
        let named = |(id, lag)| (self.name(id), lag);
        let lags = lags.map(|all| all.into_iter().map(named).collect::<BTreeMap<_, u64>>());
        let (needed, there) = self.majority(group, &status);
        let voters: Vec<String> = status.members.voters.iter().map(|id| self.name(*id)).collect();
        json!({
            "group": number,
            "state": if there < needed { "no majority" } else { "running" },
            "leader": led_by,
            "term": status.term,
            "committed": status.committed,
            "last": status.last,
            "uncommitted_bytes": status.uncommitted_bytes,
            "elections": status.elections,
            "voters": voters,
            "lag_entries": lags,
        })
    }

    /// How many voters of a group have to agree, and how many take part, as far as this node sees.
    pub(super) fn majority(&self, group: &Group, status: &Status) -> (usize, usize) {
        let voters = &status.members.voters;
        let there = voters.iter().filter(|node| self.takes_part(group, **node)).count();
        (voters.len() / 2 + 1, there)
    }

    fn member(&self, status: &Status, id: NodeId) -> ClusterNode {
        let role = match () {
            () if status.leader == Some(id) => ClusterRole::Leader,
            () if status.members.learners.contains(&id) => ClusterRole::Learner,
            () => ClusterRole::Follower,
        };
        ClusterNode { name: self.name(id), role, is_connected: self.is_connected(id) }
    }

    fn node(&self, status: &Status, id: NodeId) -> Value {
        let node = self.roster.node(id);
        let follower = status.followers.iter().find(|follower| follower.node == id);
        let member = self.member(status, id);
        json!({
            "name": member.name,
            "id": format!("{:016x}", id.0),
            "address": node.map(|node| node.address),
            "role": member.role.name(),
            "connected": member.is_connected,
            "lag_entries": follower.map(|follower| status.last.saturating_sub(follower.matched)),
            "version": self.roster.version(id),
            "room": self.room(id),
        })
    }

    /// Whether this node knows who leads.
    pub(super) fn has_leader(&self) -> bool {
        !matches!(self.groups.home().serves(), Serves::Unknown)
    }

    /// Whether the disk of this node has room, as far as is known.
    pub(super) fn has_room(&self) -> bool {
        self.groups.all().iter().all(|group| group.member().is_none_or(|one| one.has_room()))
    }

    /// Whether a member's disk has room, as it has said last, if it has.
    fn room(&self, id: NodeId) -> Option<bool> {
        match id == self.endpoint.about().node {
            true => Some(self.has_room()),
            false => self.rooms.lock().get(&id).copied(),
        }
    }

    fn front_or_end(&self) -> Result<Arc<Front>, ClusterError> {
        self.front.upgrade().ok_or_else(|| ClusterError::Unavailable("this node ends".into()))
    }

    /// The home group, if this node leads it.
    pub(super) fn leading(&self) -> Result<Arc<Member>, ClusterError> {
        let home = self.groups.home();
        match (home.member(), home.serves()) {
            (Some(member), Serves::Here(_)) => Ok(member),
            _ => Err(ClusterError::Unavailable("this node does not lead the cluster".into())),
        }
    }

    /// The member of this name. Nodes that were removed may have had the same one.
    fn member_named(&self, status: &Status, name: &str) -> Option<Node> {
        let mut all = status.members.voters.iter().chain(&status.members.learners);
        all.find_map(|id| self.roster.node(*id).filter(|node| node.name == name))
    }

    /// The member of this name or number.
    pub(super) fn named(&self, status: &Status, name: &str) -> Result<Node, ClusterError> {
        let unknown = || {
            let all = status.members.voters.iter().chain(&status.members.learners);
            let names: Vec<String> = all.map(|id| self.name(*id)).collect();
            ClusterError::NotFound(format!(
                "no node '{name}': the members are {}",
                names.join(", ")
            ))
        };
        let by_id = || {
            let id = NodeId(u64::from_str_radix(name, 16).ok().filter(|_| name.len() == 16)?);
            let unnamed = || Node { id, name: name.into(), address: String::new() };
            let is_member = status.members.contains(id);
            is_member.then(|| self.roster.node(id).unwrap_or_else(unnamed))
        };
        self.member_named(status, name).or_else(by_id).ok_or_else(unknown)
    }
}

/// A node that does not vote yet and has what was committed the time before. What was committed since is no measure: under load, one
/// whose disk is the slowest never has all of it at once.
fn caught_up(status: &Status, committed_before: u64) -> Option<NodeId> {
    let has_caught_up = |follower: &&Follower| {
        status.members.learners.contains(&follower.node)
            && follower.is_active
            && follower.matched >= committed_before.min(status.committed)
    };
    status.followers.iter().find(has_caught_up).map(|follower| follower.node)
}

pub(super) fn proposed(done: Result<(), ProposeError>) -> Result<(), ClusterError> {
    done.map_err(|error| match error {
        ProposeError::NotLeader => {
            ClusterError::Unavailable("this node does not lead the cluster".into())
        }
        ProposeError::BadChange(why) => ClusterError::Refused(why.into()),
        error => ClusterError::Unavailable(error.to_string()),
    })
}

#[cfg(test)]
mod tests;
