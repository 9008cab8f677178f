//! A node learns that it was removed from its cluster, and ends.

use super::*;
use std::future::pending;

impl Inner {
    /// Ends when others say that the node was removed from the cluster after the last change of members that it knows, which one
    /// that was never in it does not. Its group, which would notice, does not run.
    pub(super) async fn removed_meanwhile(&self, group: &Group, since: Option<u64>) {
        let Some(since) = since.filter(|_| group.is_home()) else { return pending().await };
        while !(self.members.was_removed_since(group.number, since).await
            && self.members.has_left_all().await)
        {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
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
