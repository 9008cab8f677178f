//! How groups besides home come to be, and which members they have.
//!
//! The home group's log says which there are: the node that leads it writes one down before it tells the others, so that all nodes
//! ever know the same founders of a group. Each group then has the members that the cluster has: its leader adds and
//! removes what home has added and removed.

use super::front::Serves;
use super::groups::GROUPS_MAX;
use super::members::Members;
use super::questions::Question;
use courser_broker::admin::{Admin, ClusterGroup};
use courser_cluster::transport::{Formation, Node};
use courser_cluster::{Change, GroupNumber, MEMBERS_MAX, Member, NodeId, Status};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a group that is written down may take to be on a majority of disks.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a node that knows all groups is told of them again: it may have forgotten them in a crash.
const TELL_INTERVAL: Duration = Duration::from_secs(10);
/// How long a node that has just started may take to hear of all groups.
const SETTLED: Duration = Duration::from_secs(30);

/// What was said of the groups.
#[derive(Default)]
pub(super) struct Told {
    /// Which nodes have been told of how many, and when.
    nodes: Mutex<BTreeMap<NodeId, (usize, Instant)>>,
    /// The number that the settings wanted when it was said that there are more.
    too_few: AtomicU16,
    /// Since when they want more than there are on a node that does not lead home, and whether that was said.
    too_many: Mutex<Option<(Instant, bool)>>,
}

impl Members {
    /// Founds the groups that the settings want and that are not there yet, and tells the members of all, if this node leads
    /// home. Blocks.
    pub(super) fn found_groups(&self) {
        let Serves::Here(service) = self.groups.home().serves() else {
            return self.warn_of_more_groups();
        };
        let admin = service.shared.broker.admin();
        let wanted = self.groups_wanted;
        let there = admin.cluster_groups();
        let missing = (1..wanted).filter(|number| there.iter().all(|one| one.number != *number));
        let missing: Vec<u16> = missing.collect();
        let count = there.len() + 1;
        if usize::from(wanted) < count && self.told.too_few.swap(wanted, Relaxed) != wanted {
            tracing::warn!(
                wanted,
                count,
                "cluster.groups is less than the groups that there are: their number does not shrink"
            );
        }
        if !missing.is_empty()
            && let Err(why) = self.found(&admin, &missing)
        {
            return tracing::warn!(why, "groups of the cluster can't be founded yet");
        }
        let groups: Vec<_> = admin.cluster_groups().iter().filter_map(read).collect();
        let unaware = self.unaware_of(groups.len());
        if groups.is_empty() || unaware.is_empty() {
            return;
        }
        // What is not on a majority of disks may be founded otherwise by the next leader.
        let durable = async { tokio::time::timeout(DURABLE_TIMEOUT, admin.durable()).await };
        match self.runtime.block_on(durable) {
            Ok(Ok(())) => self.tell_groups(&groups, unaware),
            Ok(Err(fault)) => tracing::warn!(%fault, "groups of the cluster can't be founded"),
            Err(_) => tracing::warn!("groups of the cluster are on no majority of disks yet"),
        }
    }

    /// Says that there will be more groups once this node leads home, unless they come from the one that leads it now.
    fn warn_of_more_groups(&self) {
        let (wanted, there) = (usize::from(self.groups_wanted), self.groups.all().len());
        let mut too_many = self.told.too_many.lock();
        if wanted <= there {
            *too_many = None;
            return;
        }
        let (since, is_said) = too_many.get_or_insert_with(|| (Instant::now(), false));
        if !*is_said && since.elapsed() > SETTLED {
            *is_said = true;
            tracing::warn!(
                wanted,
                there,
                "cluster.groups is more here than there are groups: there will be as many, for good, once this node leads the \
                 cluster; set the same number on all nodes"
            );
        }
    }

    /// Writes groups down in the log of home.
    fn found(&self, admin: &Admin, missing: &[u16]) -> Result<(), String> {
        let home = self.endpoint.about().formation.ok_or("the cluster is not formed yet")?;
        let status = self.status_of_member().ok_or("this node is in no cluster")?;
        if status.members.is_joint() || status.members.voters.is_empty() {
            return Err("its members are being changed".into());
        }
        for number in missing {
            let formation = Formation {
                group: identity(home.group, *number),
                segment_bytes: home.segment_bytes,
                founders: status.members.voters.clone(),
                recovery: home.recovery,
            };
            let formation = serde_json::to_vec(&formation).map_err(|error| error.to_string())?;
            let group = ClusterGroup { number: *number, formation };
            admin.define_cluster_group(&group).map_err(|fault| fault.to_string())?;
        }
        tracing::info!(groups = missing.len(), "this node founds groups of the cluster");
        Ok(())
    }

    /// Members that may not know of so many groups.
    fn unaware_of(&self, count: usize) -> Vec<Node> {
        let Some(status) = self.status_of_member() else { return Vec::new() };
        let mut told = self.told.nodes.lock();
        told.retain(|node, _| status.members.contains(*node));
        let is_told = |node: &NodeId| {
            let known = told.get(node);
            known.is_some_and(|(known, at)| *known == count && at.elapsed() < TELL_INTERVAL)
        };
        let members = status.members.voters.iter().chain(&status.members.learners);
        members.filter(|node| !is_told(node)).filter_map(|id| self.roster.node(*id)).collect()
    }

    /// Tells nodes which groups there are.
    fn tell_groups(&self, groups: &[(GroupNumber, Formation)], nodes: Vec<Node>) {
        let own = self.endpoint.about().node;
        let (mut told, others): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|it| it.id == own);
        if let Err(error) = self.take_groups(groups.to_vec()) {
            tracing::debug!(error, "this node can't take part in all groups yet");
            told.clear();
        }
        let question = Question::Groups(groups.to_vec());
        // Together: those that are silent take their time.
        let said: Vec<(Node, String)> = self.runtime.block_on(self.ask_each(others, &question));
        told.extend(said.into_iter().map(|(node, _)| node));
        let told = told.into_iter().map(|node| (node.id, (groups.len(), Instant::now())));
        self.told.nodes.lock().extend(told);
    }

    /// Has this node take part in groups that it has no part in yet.
    pub(super) fn take_groups(&self, groups: Vec<(GroupNumber, Formation)>) -> Result<(), String> {
        for (number, formation) in groups {
            if !(1..GROUPS_MAX).contains(&number.0) {
                return Err(format!("there can be no group {number}"));
            }
            if self.groups.get(number).is_none() {
                let told = self.founded.try_send((number, formation));
                told.map_err(|_| "this node is still busy with other groups".to_owned())?;
            }
        }
        Ok(())
    }

    /// Adds and removes what home has added and removed, if this node leads the group. Blocks.
    pub(super) fn keep_members(&self, member: &Member) {
        if let Some(home) = self.status_of_member() {
            self.follow_members(member, &home);
        }
    }

    /// The same with what this node knows of home, which may be old. Returns what it has proposed.
    fn follow_members(&self, member: &Member, home: &Status) -> Option<Change> {
        let (status, own) = (member.status(), self.endpoint.about().node);
        let leads = status.leader == Some(own);
        if !leads || status.members.is_joint() || home.members.is_joint() {
            return None;
        }
        // One that has only just begun to follow home does not know them.
        if home.members.voters.is_empty() {
            return None;
        }
        let change = next_change(&status.members, &home.members, own)?;
        let (Change::AddVoter(node) | Change::AddLearner(node) | Change::Remove(node)) = change;
        let is_added = !matches!(change, Change::Remove(_));
        if self.is_member_of_home(home, node)? != is_added {
            return None;
        }
        match member.change_members(status.members_index, &[change]) {
            Ok(()) => tracing::info!(?change, "the group follows the cluster's members"),
            Err(error) => tracing::debug!(%error, "the group's members can't be changed yet"),
        }
        Some(change)
    }

    /// Whether home has a node as a member; none if that is not known now. Who leads home knows: this node may not have heard yet
    /// that one was added or removed.
    fn is_member_of_home(&self, home: &Status, node: NodeId) -> Option<bool> {
        let leader = home.leader.and_then(|leader| self.roster.node(leader))?;
        let said = self.ask(&leader, &Question::Member(node));
        let said = said.map_err(|error| error.to_string());
        match said.and_then(|said| said.parse().map_err(|_| format!("it says '{said}'"))) {
            Ok(is_member) => Some(is_member),
            Err(error) => {
                tracing::debug!(error, %node, "it is not known yet whether a node is a member");
                None
            }
        }
    }
}

/// How a group that this node leads comes nearer to the members of home. One at a time: the next when this one is committed.
fn next_change(
    group: &courser_cluster::Members,
    home: &courser_cluster::Members,
    own: NodeId,
) -> Option<Change> {
    let mut wanted = home.voters.iter().chain(&home.learners);
    let missing = wanted.find(|node| !group.contains(**node));
    // A leader that home has removed hands the lead over, and leaves it to the next one.
    let is_unknown = |node: &&NodeId| **node != own && !home.contains(**node);
    let unknown = group.voters.iter().chain(&group.learners).find(is_unknown);
    // There may be no room before the other one is gone.
    let is_full = group.voters.len() + group.learners.len() >= MEMBERS_MAX;
    let added = missing.filter(|_| !(is_full && unknown.is_some()));
    added.map(|node| Change::AddLearner(*node)).or(unknown.map(|node| Change::Remove(*node)))
}

fn read(group: &ClusterGroup) -> Option<(GroupNumber, Formation)> {
    match serde_json::from_slice(&group.formation) {
        Ok(formation) => Some((GroupNumber(group.number), formation)),
        Err(error) => {
            tracing::error!(group = group.number, %error, "what the log says of a group makes no sense");
            None
        }
    }
}

/// What the copies of a group's log are known by.
fn identity(home: u64, number: u16) -> u64 {
    let mut hash = Sha256::new();
    hash.update(home.to_le_bytes());
    hash.update(number.to_le_bytes());
    let hash = hash.finalize();
    let first = hash.first_chunk::<8>().map_or(1, |bytes| u64::from_le_bytes(*bytes));
    first.max(1)
}

#[cfg(test)]
mod tests;
