//! How a node leaves the cluster: home removes it first, and then each of the other groups, as `keep_members` has them follow.
//!
//! Until a group has done so, the node counts among its voters, and may be one without whom they decide nothing. So a node that
//! home has removed goes on in the other groups, without leading any, and ends when the last of them has removed it.

use super::front::Serves;
use super::group::Group;
use super::members::Members;
use super::questions::Question;
use crate::service::Service;
use courser_cluster::transport::Node;
use courser_cluster::{GroupNumber, NodeId, Status};
use courser_management::ClusterError;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long an operator who removes a node is kept waiting until all groups have removed it.
const LEAVING_TIMEOUT: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// How long a majority may take to say that this node leads. Less than who asks waits.
const CURRENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The answer to [`Question::Removed`] that it was.
const REMOVED: &str = "removed";

impl Members {
    /// Answers [`Question::Removed`], if this node leads the group, and a majority says so: another one may not have heard yet
    /// that the node was added, or added again.
    pub(super) async fn removed_answer(
        &self,
        node: NodeId,
        group: GroupNumber,
        since: Option<u64>,
    ) -> String {
        let is_removed = |status: Status| {
            let is_later = since.is_none_or(|since| status.members_index > since);
            is_later && !status.members.contains(node)
        };
        let group = self.groups.get(group);
        let Some(Serves::Here(service)) = group.as_ref().map(|group| group.serves()) else {
            return String::new();
        };
        if !group.and_then(|group| group.status()).is_some_and(is_removed) {
            return String::new();
        }
        if leads_now(service).await { REMOVED.to_owned() } else { String::new() }
    }

    /// Answers [`Question::Member`], if this node leads home, and a majority says so: another one may have added the node.
    pub(super) async fn member_answer(&self, node: NodeId) -> Result<String, String> {
        let home = self.groups.home();
        let (Some(status), Serves::Here(service)) = (home.status(), home.serves()) else {
            return Err("this node does not lead the cluster".into());
        };
        if !leads_now(service).await {
            return Err("no majority says that this node leads the cluster".into());
        }
        Ok(status.members.contains(node).to_string())
    }

    /// Whether the node that leads a group says that it has removed this one after the change of members at the entry `since`, the
    /// last that is known here; if none is, whether the group does without this node.
    pub(super) async fn was_removed_since(&self, group: GroupNumber, since: Option<u64>) -> bool {
        let question = Question::Removed { group, since };
        let said: Vec<(_, String)> = self.ask_each(self.roster.others(), &question).await;
        said.iter().any(|(_, said)| said == REMOVED)
    }

    /// Takes note that home has removed this node. Returns whether the other groups have, too.
    pub(super) async fn has_left_all(&self) -> bool {
        let own = self.endpoint.about().node;
        let mut is_in = Vec::new();
        for group in self.groups.all().iter().filter(|group| !group.is_home()) {
            let status = group.status();
            // A group that has not added it yet has brought it no log: it knows no members.
            let known = status.filter(|status| !status.members.voters.is_empty());
            let since = known.as_ref().map(|status| status.members_index);
            if known.is_none_or(|status| status.members.contains(own))
                && !self.was_removed_since(group.number, since).await
            {
                is_in.push(group.number.0);
            }
        }
        if !self.is_leaving.swap(true, Relaxed) {
            tracing::warn!(
                groups = ?is_in,
                "this node was removed from the cluster: it ends when these groups have removed it"
            );
        }
        is_in.is_empty()
    }

    /// Takes note that home has this node.
    pub(super) fn has_stayed(&self) {
        if self.is_leaving.swap(false, Relaxed) {
            tracing::info!("this node is a member of the cluster again");
        }
    }

    /// Whether home has removed this node, which still has a part in other groups.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Refuses to remove a node from these members of home, if those that are left would be no majority in a group.
    pub(super) fn may_remove(
        &self,
        home: &courser_cluster::Members,
        node: &Node,
    ) -> Result<(), ClusterError> {
        let keeps = |group: &Arc<Group>| {
            group.status().is_some_and(|status| {
                keeps_majority(home, &status.members, node.id, |id| self.takes_part(group, id))
            })
        };
        let (all, unknown) = self.groups.all_and_unknown();
        let loses = all.iter().find(|group| !keeps(group)).map(|group| group.number);
        // What is not known of a group may be that.
        if let Some(group) = loses.or(unknown.first().copied()) {
            return Err(ClusterError::Refused(format!(
                "without node '{}' group {group} has no majority: start the other nodes first, or wait until those have \
                 their copies of the log",
                node.name
            )));
        }
        Ok(())
    }

    /// The members of home that do not vote yet in each group.
    pub(super) fn not_voting(&self) -> Vec<String> {
        let Some(home) = self.status_of_member() else { return Vec::new() };
        let groups: Vec<Status> =
            self.groups.all().iter().filter_map(|group| group.status()).collect();
        let members = home.members.voters.iter().chain(&home.members.learners);
        let not_yet = members.filter(|id| !groups.iter().all(|it| it.members.voters.contains(*id)));
        not_yet.map(|id| self.name(*id)).collect()
    }

    /// Waits until all groups have removed a node, which home had as a member at the entry `since`. Blocks.
    ///
    /// # Errors
    /// When it takes too long, or home has the node again.
    pub(super) fn wait_until_left(&self, node: &Node, since: u64) -> Result<(), ClusterError> {
        let until = Instant::now() + LEAVING_TIMEOUT;
        loop {
            let all = self.groups.all().into_iter();
            let with_it = all.filter(|group| {
                group.status().is_some_and(|status| status.members.contains(node.id))
            });
            let left: Vec<String> = with_it.map(|group| group.number.to_string()).collect();
            if left.is_empty() {
                return Ok(());
            }
            let is_member =
                |home: Status| home.members_index > since && home.members.contains(node.id);
            if self.status_of_member().is_some_and(is_member) {
                return Err(ClusterError::Refused(format!(
                    "node '{}' is a member again: it was added before it had left all groups, or the lead of home has moved \
                     before it was removed",
                    node.name
                )));
            }
            if Instant::now() >= until {
                let (name, left) = (&node.name, left.join(", "));
                return Err(ClusterError::Unavailable(format!(
                    "node '{name}' is being removed, and has not left group {left} yet: it has to stay up until then"
                )));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// Whether a majority says that this node leads the group that it serves: it may have slept, and not know yet that another one
/// does.
pub(super) async fn leads_now(service: Arc<Service>) -> bool {
    let current = service.shared.broker.admin().current();
    drop(service);
    match current {
        Some(current) => {
            matches!(tokio::time::timeout(CURRENT_TIMEOUT, current).await, Ok(Ok(())))
        }
        None => true,
    }
}

/// Whether a group has a majority once a node is removed from these members of home: those that home has removed before count no
/// more, as the group is about to follow.
fn keeps_majority(
    home: &courser_cluster::Members,
    group: &courser_cluster::Members,
    removed: NodeId,
    takes_part: impl Fn(NodeId) -> bool,
) -> bool {
    let is_left = |id: &&NodeId| **id != removed && home.contains(**id);
    let left = group.voters.iter().filter(is_left);
    let there = left.clone().filter(|id| takes_part(**id)).count();
    there > left.count() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_a_group_is_about_to_remove_count_for_no_majority() {
        let of = |ids: &[u64]| courser_cluster::Members {
            voters: ids.iter().copied().map(NodeId).collect(),
            ..Default::default()
        };
        let all = of(&[1, 2, 3, 4]);
        let keeps = |home: &[u64], removed| {
            keeps_majority(&of(home), &all, NodeId(removed), |id| id != NodeId(4))
        };
        assert!(keeps(&[1, 2, 3, 4], 2));
        assert!(!keeps(&[1, 3, 4], 3), "1 and 4 are left, and 4 is not there");
        assert!(keeps(&[1, 3, 4], 4));
    }
}
