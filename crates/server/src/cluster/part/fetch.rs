//! A copy of the log for a node that can't follow with what the others still have of it.

use super::super::copies::{self, NoCopy};
use super::super::group::Group;
use super::super::node::Inner;
use super::super::questions::Question;
use super::{LOOK_INTERVAL, ROOM_INTERVAL};
use courser_cluster::transport::{Formation, Node};
use courser_cluster::{GroupNumber, Leadership, Member, MemberError, NodeId, Origin};
use std::cmp::Reverse;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long to wait before a copy of the log is asked for again.
const COPY_INTERVAL: Duration = Duration::from_secs(1);

impl Inner {
    /// Waits until a node that follows needs a copy, as nothing can mend its log any more, and the others are a majority without
    /// it. Returns the leader.
    ///
    /// Until its copy is whole this node counts for no majority: what it has acknowledged is in a log that it can't read. Where
    /// the others need it, it follows on, as it can, and makes no checkpoint.
    pub(super) async fn copy_needed_from(&self, group: &Group, member: &Member) -> NodeId {
        let mut is_told = false;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let Leadership::Following { leader: Some(leader) } = *member.leadership().borrow()
            else {
                continue;
            };
            if !member.needs_copy() {
                continue;
            }
            if self.are_majority_without(group, member).await {
                return leader;
            }
            if !mem::replace(&mut is_told, true) {
                tracing::warn!(
                    group = group.number.0,
                    "this node needs a copy of another node's log, and follows on: the others are no majority without it"
                );
            }
        }
    }

    /// Whether the other voters of a group that take part in it with logs that they can use are a majority. Two nodes that need
    /// copies do not both find it so: each knows what it needs before it asks.
    async fn are_majority_without(&self, group: &Group, member: &Member) -> bool {
        let voters = member.status().members.voters;
        let others = self.roster.others().into_iter().filter(|node| voters.contains(&node.id));
        let question = Question::TakesPart { group: group.number };
        let answers: Vec<(_, bool)> = self.members.ask_each(others.collect(), &question).await;
        let sound = answers.iter().filter(|(_, takes_part)| *takes_part).count();
        sound > voters.len() / 2
    }

    /// The others, in the order in which they are asked for a copy: one that has offered it, those on which the group runs, and those
    /// that are silent, as they were removed, at the end. Each of these takes its time.
    async fn givers(&self, group: GroupNumber, offered_by: Option<NodeId>) -> Vec<Node> {
        let mut others = self.roster.others();
        let question = Question::TakesPart { group };
        let answers: Vec<(_, bool)> = self.members.ask_each(others.clone(), &question).await;
        let answer = |id| answers.iter().find(|(node, _)| node.id == id).map(|(_, said)| *said);
        others.sort_by_key(|node| (Some(node.id) != offered_by, Reverse(answer(node.id))));
        others
    }

    /// Takes a copy of the log, and opens it. Where there is none, the log is tried again as it is, and so on, until it needs no copy,
    /// or half of one says which change of members was the last: without that `since`, this node can't ask whether it was removed.
    pub(super) async fn copy_or_open(
        &self,
        group: &Group,
        formation: &Formation,
        origin: &mut Origin,
        mut offered_by: Option<NodeId>,
        since: Option<u64>,
    ) -> Result<Result<Arc<Member>, MemberError>, String> {
        let tries_on = |error: &MemberError| {
            error.needs_copy() && (since.is_some() || error.members_index().is_none())
        };
        loop {
            if self.fetch_copy(group, formation, origin, offered_by.take()).await {
                *origin = Origin::Existing;
            }
            let opened = self.open(group, formation, origin.clone()).await?;
            if !opened.as_ref().is_err_and(tries_on) {
                return Ok(opened);
            }
        }
    }

    /// Takes a copy of the log from the node that leads, and asks each of the others once for that. Returns whether there is one.
    /// Otherwise the log is tried again before they are asked again: what could not be read may have been the disk's connection,
    /// and the others may need this node's vote to have a leader.
    pub(super) async fn fetch_copy(
        &self,
        group: &Group,
        formation: &Formation,
        origin: &Origin,
        offered_by: Option<NodeId>,
    ) -> bool {
        let number = group.number;
        let mut pause = COPY_INTERVAL;
        for node in self.givers(number, offered_by).await {
            let config = self.member_config(number, formation, origin.clone());
            let (endpoint, address) = (Arc::clone(&self.endpoint), node.address.clone());
            let runtime = Handle::current();
            let fetching = tokio::task::spawn_blocking(move || {
                copies::fetch(number, &config?, &endpoint, &address, &runtime)
            });
            let fetched = fetching.await.map_err(|error| NoCopy::from(error.to_string()));
            match fetched.and_then(|done| done) {
                Ok(()) => {
                    tracing::info!(from = node.name, "this node has a copy of the log");
                    return true;
                }
                Err(NoCopy { why, lacks_room: true }) => {
                    tracing::warn!(
                        from = node.name,
                        why,
                        group = number.0,
                        "no room for a copy of the log; it is asked for until there is"
                    );
                    self.around.notices.group_waits(number.0, true);
                    // Another node's is as large.
                    pause = ROOM_INTERVAL;
                    break;
                }
                Err(NoCopy { why, .. }) => {
                    tracing::info!(from = node.name, why, "no copy of the log");
                }
            }
        }
        tokio::time::sleep(pause).await;
        false
    }
}
