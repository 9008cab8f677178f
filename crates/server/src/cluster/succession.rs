//! Who leads next: a node that takes clients and whose disk has room, if there is one; for home, one that takes part in all groups.

use super::front::Serves;
use super::group::Group;
use super::members::Members;
use super::node::Inner;
use super::questions::Question;
use super::spread::{LAG_MAX, lags};
use crate::clock;
use courser_cluster::{GroupNumber, Member, NodeId, Status};
use courser_management::ClusterError;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long other nodes may take to say whether they would lead.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a group goes on whose lead was to be handed over, before that is tried again: while it is tried, for as long as an
/// election timeout, the group takes nothing.
const HAND_OVER_REST: Duration = Duration::from_secs(10);

impl Members {
    /// Why another node should rather lead than this one, if there is such a reason.
    pub(super) fn reluctance(&self) -> Option<&'static str> {
        let is_draining = self.front.upgrade().is_some_and(|front| front.clients.is_draining());
        match () {
            () if is_draining => Some("it is drained"),
            () if self.is_leaving() => Some("it was removed from the cluster"),
            () if !self.has_room() => Some("its disk is full"),
            () => None,
        }
    }

    /// Why another node should rather lead this group, also if this one does. Home answers for all groups, and what is asked of
    /// one in which its leader has no part is answered by no node.
    pub(super) fn reluctance_to_lead(&self, group: GroupNumber) -> Option<&'static str> {
        let lacks_group = || group == GroupNumber::HOME && self.notices.has_waiting_group();
        let lacking = || lacks_group().then_some("it can't take part in another group yet");
        self.reluctance().or_else(lacking)
    }

    /// Why another node should rather come to lead a group than this one. One that leads already goes on with a damaged log.
    pub(super) fn reluctance_to_begin(&self, group: GroupNumber) -> Option<&'static str> {
        let member = || self.groups.get(group).and_then(|group| group.member());
        self.reluctance_to_lead(group).or_else(|| match member()? {
            member if member.wants_pieces() || member.needs_copy() => {
                Some("its log of the group is damaged")
            }
            member if member.disk_stands_still() => Some("its disk stands still"),
            _ => None,
        })
    }

    /// The member that would lead a group soonest, of those that say that they would: the one that lacks least.
    pub(super) async fn willing(&self, group: GroupNumber, status: &Status) -> Option<NodeId> {
        let question = serde_json::to_string(&Question::Lead { group: Some(group) }).ok()?;
        let mut asking = JoinSet::new();
        for follower in followers(status) {
            let Some(node) = self.roster.node(follower) else { continue };
            let (endpoint, question) = (Arc::clone(&self.endpoint), question.clone());
            asking.spawn(async move {
                let asked = endpoint.ask(&node.address, &question);
                let said = tokio::time::timeout(ANSWER_TIMEOUT, asked).await;
                // One of an older version does not understand.
                matches!(said, Ok(Ok(said)) if said == "true").then_some(follower)
            });
        }
        let willing: Vec<NodeId> = asking.join_all().await.into_iter().flatten().collect();
        next_leader(status, |node| willing.contains(&node))
    }

    /// The member of this name, if it would lead a group or does.
    ///
    /// # Errors
    /// Why it would not.
    pub(super) fn would_lead(
        &self,
        group: GroupNumber,
        status: &Status,
        name: &str,
    ) -> Result<NodeId, ClusterError> {
        let node = self.named(status, name)?;
        let wants = self.ask(&node, &Question::Lead { group: Some(group) })?;
        if status.leader != Some(node.id) && wants != "true" {
            return Err(ClusterError::Refused(format!(
                "node '{name}' is drained, has a disk without room or that stands still, can't take part in one of the groups or has a \
                 damaged log of group {group}, and would hand the lead on"
            )));
        }
        Ok(node.id)
    }

    /// Has a member lead a group besides home, or the one that comes after its leader. Returns its name.
    ///
    /// # Errors
    /// Why it can't.
    pub(super) fn transfer_group(
        &self,
        number: GroupNumber,
        to: Option<&str>,
    ) -> Result<String, ClusterError> {
        let unknown = || ClusterError::NotFound(format!("the cluster has no group {number}"));
        let status = self.groups.get(number).ok_or_else(unknown)?.status();
        let away =
            || ClusterError::Unavailable(format!("this node has no log of group {number} yet"));
        let status = status.ok_or_else(away)?;
        let node = match to {
            Some(name) => self.would_lead(number, &status, name)?,
            None => {
                let question = Question::Lead { group: Some(number) };
                let next = self.first_of(next_leaders(&status), &question, |said| said == "true");
                let no_other = || ClusterError::Unavailable("no other node could lead now".into());
                next.ok_or_else(no_other)?
            }
        };
        if status.leader != Some(node) {
            self.move_lead(number, node)?;
            self.spread.rests(number);
        }
        Ok(self.name(node))
    }

    /// The member that is to lead a group next: if none would, the one that could soonest.
    pub(super) async fn successor(&self, group: GroupNumber, status: &Status) -> Option<NodeId> {
        let willing = self.willing(group, status).await;
        willing.or_else(|| next_leader(status, |_| true))
    }
}

/// When a node that would rather not lead a group hands the lead over: not again and again, if another one does not come to lead.
#[derive(Default)]
pub(super) struct HandOvers(Mutex<Option<Instant>>);

impl HandOvers {
    /// Whether it may be handed over `now`, which is noted.
    fn begin(&self, now: Instant) -> bool {
        let mut last = self.0.lock();
        let may = last.is_none_or(|last| now.duration_since(last) >= HAND_OVER_REST);
        if may {
            *last = Some(now);
        }
        may
    }
}

/// Whether a member has nearly all of the log of the group that this node leads: until it has the rest, the group takes nothing.
fn has_nearly_all(status: &Status, node: NodeId) -> bool {
    lags(status).get(&node).is_some_and(|lag| *lag <= LAG_MAX)
}

/// Members that are there and vote.
fn followers(status: &Status) -> impl Iterator<Item = NodeId> {
    let is_voter = |node: &NodeId| status.members.voters.contains(node);
    let active = status.followers.iter().filter(|follower| follower.is_active);
    active.map(|follower| follower.node).filter(is_voter)
}

/// How far a member is, if it is known: to the leader.
fn matched(status: &Status, node: NodeId) -> Option<u64> {
    let found = status.followers.iter().find(|follower| follower.node == node);
    found.map(|follower| follower.matched)
}

/// The one of some members that lacks least.
fn next_leader(status: &Status, may: impl Fn(NodeId) -> bool) -> Option<NodeId> {
    followers(status).filter(|node| may(*node)).max_by_key(|node| matched(status, *node))
}

/// Those that vote and do not lead, first the one that lacks least.
fn next_leaders(status: &Status) -> Vec<NodeId> {
    let voters = status.members.voters.iter().copied();
    let mut others: Vec<NodeId> = voters.filter(|node| Some(*node) != status.leader).collect();
    others.sort_by_key(|node| Reverse(matched(status, *node)));
    others
}

impl Inner {
    /// If this node leads and another one should rather, has that one lead. To be called now and then.
    pub(super) async fn step_back(&self, group: &Group, member: &Arc<Member>) {
        if !matches!(group.serves(), Serves::Here(_)) {
            return;
        }
        let Some(why) = self.members.reluctance_to_lead(group.number) else { return };
        let status = member.status();
        let next = self.members.willing(group.number, &status).await;
        // It is the one that lacks least.
        let Some(next) = next.filter(|next| has_nearly_all(&status, *next)) else { return };
        if group.hand_overs.begin(clock::now()) {
            self.hand_lead_to(Some(next), group, member, why).await;
        }
    }

    /// Has another node lead that would, if there is one.
    pub(super) async fn hand_lead_over(&self, group: &Group, member: &Arc<Member>, why: &str) {
        let next = self.members.willing(group.number, &member.status()).await;
        self.hand_lead_to(next, group, member, why).await;
    }

    /// Has another node lead, as this one can't serve: if none would, the one that could soonest.
    pub(super) async fn give_lead_up(&self, group: &Group, member: &Arc<Member>, why: &str) {
        let next = self.members.successor(group.number, &member.status()).await;
        self.hand_lead_to(next, group, member, why).await;
    }

    async fn hand_lead_to(
        &self,
        next: Option<NodeId>,
        group: &Group,
        member: &Arc<Member>,
        why: &str,
    ) {
        let Some(next) = next else { return };
        let (to, group) = (self.members.name(next), group.number.0);
        tracing::warn!(to, group, "this node hands the lead over: {why}");
        let handing = Arc::clone(member);
        let handed = tokio::task::spawn_blocking(move || handing.transfer_to(next)).await;
        if let Ok(Err(error)) = handed {
            tracing::warn!(%error, "the lead was not handed over");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HAND_OVER_REST, HandOvers, LAG_MAX, NodeId, Status, has_nearly_all, next_leaders};
    use courser_cluster::{Follower, Members};

    #[test]
    fn who_is_to_lead_next_is_asked_in_the_order_of_what_the_members_lack() {
        let [leader, slow, quick] = [1, 2, 3].map(NodeId);
        let follower = |node, matched| Follower { node, matched, is_active: true };
        let mut status = Status {
            node: leader,
            term: 1,
            leader: Some(leader),
            members: Members { voters: vec![leader, slow, quick], ..Members::default() },
            members_index: 1,
            last: 20,
            committed: 20,
            followers: vec![follower(slow, 10), follower(quick, 20)],
            uncommitted_bytes: 0,
            elections: 1,
        };
        assert_eq!(next_leaders(&status), [quick, slow]);
        status.last = 10 + LAG_MAX;
        assert!(has_nearly_all(&status, slow), "what is on its way while all is well");
        status.last += 1;
        assert!(!has_nearly_all(&status, slow) && has_nearly_all(&status, quick));
        // As a follower knows it.
        status.followers.clear();
        assert_eq!(next_leaders(&status), [slow, quick]);
    }

    #[test]
    fn a_lead_that_is_not_taken_is_not_handed_over_again_at_once() {
        let (hand_overs, now) = (HandOvers::default(), crate::clock::now());
        assert!(hand_overs.begin(now));
        assert!(!hand_overs.begin(now + HAND_OVER_REST / 2));
        assert!(hand_overs.begin(now + HAND_OVER_REST));
        assert!(!hand_overs.begin(now + HAND_OVER_REST * 3 / 2));
    }
}
