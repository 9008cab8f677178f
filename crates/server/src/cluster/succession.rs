//! Who leads next: a node that takes clients and whose disk has room, if there is one.

use super::front::Serves;
use super::group::Group;
use super::members::Members;
use super::node::Inner;
use super::questions::Question;
use courser_cluster::{Member, NodeId, Status};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long other nodes may take to say whether they would lead.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

impl Members {
    /// Why another node should rather lead than this one, if there is such a reason.
    pub(super) fn reluctance(&self) -> Option<&'static str> {
        let is_draining = self.front.upgrade().is_some_and(|front| front.clients.is_draining());
        match () {
            () if is_draining => Some("it is drained"),
            () if !self.has_room() => Some("its disk is full"),
            () => None,
        }
    }

    /// The member that would lead soonest, of those that say that they would: the one that lacks least.
    pub(super) async fn willing(&self, status: &Status) -> Option<NodeId> {
        let question = serde_json::to_string(&Question::Lead).ok()?;
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

    /// The member that is to lead next: if none would, the one that could soonest.
    pub(super) async fn successor(&self, status: &Status) -> Option<NodeId> {
        let willing = self.willing(status).await;
        willing.or_else(|| next_leader(status, |_| true))
    }
}

/// Members that are there and vote.
fn followers(status: &Status) -> impl Iterator<Item = NodeId> {
    let is_voter = |node: &NodeId| status.members.voters.contains(node);
    let active = status.followers.iter().filter(|follower| follower.is_active);
    active.map(|follower| follower.node).filter(is_voter)
}

/// The one of some members that lacks least.
fn next_leader(status: &Status, may: impl Fn(NodeId) -> bool) -> Option<NodeId> {
    let matched = |node: &NodeId| {
        let found = status.followers.iter().find(|follower| follower.node == *node);
        found.map(|follower| follower.matched)
    };
    followers(status).filter(|node| may(*node)).max_by_key(matched)
}

impl Inner {
    /// If this node leads and another one should rather, has that one lead. To be called now and then.
    pub(super) async fn step_back(&self, group: &Group, member: &Arc<Member>) {
        if !matches!(group.serves(), Serves::Here(_)) {
            return;
        }
        let Some(why) = self.members.reluctance() else { return };
        let Some(next) = self.members.willing(&member.status()).await else { return };
        let (to, group) = (self.members.name(next), group.number.0);
        tracing::warn!(to, group, "this node hands the lead over: {why}");
        let handing = Arc::clone(member);
        let handed = tokio::task::spawn_blocking(move || handing.transfer_to(next)).await;
        if let Ok(Err(error)) = handed {
            tracing::warn!(%error, "the lead was not handed over");
        }
    }
}
