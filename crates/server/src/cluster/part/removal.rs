//! A node learns that it was removed from its cluster, or that the cluster was recovered without it, and ends.

use super::*;
use courser_cluster::transport::{DialError, Purpose};
use std::future::pending;

impl Inner {
    /// Ends when others say that the node was removed from the cluster after the last change of members that it knows, which one
    /// that was never in it does not. Its group, which would notice, does not run.
    pub(super) async fn removed_meanwhile(&self, group: &Group, since: Option<u64>) {
        if !group.is_home() || since.is_none() {
            return pending().await;
        }
        while !(self.members.was_removed_since(group.number, since).await
            && self.members.has_left_all().await)
        {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Ends when another node says that the cluster was recovered without this one, and why this one can't go on then. One that
    /// has heard from a leader stays: where a majority of before is there, the recovery may be the mistake.
    pub(super) async fn left_behind(&self, group: &Group, has_leader: impl Fn() -> bool) -> String {
        while group.is_home() {
            for node in self.roster.others() {
                let met = self.endpoint.dial(&node.address, Purpose::Meet, "").await;
                if has_leader() {
                    return pending().await;
                }
                if let Err(DialError::LeftBehind(why)) = met {
                    return why;
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        pending().await
    }

    /// Ends the cluster on a node that was removed from it, for good: what to say of it.
    pub(super) async fn removed(&self, member: Option<Arc<Member>>) -> String {
        for group in self.groups.all() {
            self.demote(&group, Serves::Nobody).await;
        }
        let folder = Arc::clone(&self.folder);
        if let Ok(Err(error)) = self.blocking(move || folder.set_removed()).await {
            tracing::error!(%error, "that this node was removed can't be kept");
        }
        if let Some(member) = member {
            self.leave(self.groups.home(), member).await;
        }
        let About { cluster, name, .. } = self.endpoint.about();
        format!(
            "node '{name}' was removed from cluster '{cluster}': it does not start again with this data folder"
        )
    }
}
