//! A node learns that it was removed from its cluster, or that the cluster was recovered without it, and ends.

use super::*;
use courser_cluster::transport::{DialError, Purpose};
use std::future::pending;

/// How long a node that was left behind has to be without a leader before it ends: longer than members of before, which start
/// one after the other, take to elect one.
const LEADERLESS: Duration = Duration::from_secs(10);

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
    /// has a leader stays: where a majority of before is there, the recovery may be the mistake. Without a `member` it waits for
    /// a copy, and stays while another member of before is there, which may bring it.
    pub(super) async fn left_behind(&self, group: &Group, member: Option<&Member>) -> String {
        if !group.is_home() {
            return pending().await;
        }
        let mut leaderless = Leaderless::since(Instant::now());
        loop {
            let has_leader = member.is_some_and(|member| member.status().leader.is_some());
            // Those that were removed are known, too, and may be silent: none is met without need.
            let (meets_others, left) =
                if has_leader { (true, None) } else { self.meet_others().await };
            let goes_on = has_leader || member.is_none() && meets_others;
            if leaderless.ends(Instant::now(), goes_on)
                && let Some(why) = left
            {
                return why;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Meets all others at once. Returns whether one of them lets this one in, and why one says that it was left behind.
    async fn meet_others(&self) -> (bool, Option<String>) {
        let mut meeting = JoinSet::new();
        for node in self.roster.others() {
            let endpoint = Arc::clone(&self.endpoint);
            meeting.spawn(async move { endpoint.dial(&node.address, Purpose::Meet, "").await });
        }
        let (mut meets_others, mut left) = (false, None);
        for met in meeting.join_all().await {
            match met {
                Ok(_) => meets_others = true,
                Err(DialError::LeftBehind(why)) => left = Some(why),
                Err(_) => {}
            }
        }
        (meets_others, left)
    }

    /// Ends the cluster on a node that was removed from it, for good: what to say of it.
    pub(super) async fn removed(&self, member: Option<Arc<Member>>) -> String {
        for group in self.groups.all() {
            self.demote(&group, Serves::Unknown).await;
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

/// Since when a node has had no leader.
struct Leaderless(Instant);

impl Leaderless {
    fn since(now: Instant) -> Self {
        Leaderless(now)
    }

    /// Whether it has had none for so long that there is none.
    fn ends(&mut self, now: Instant, has_leader: bool) -> bool {
        if has_leader {
            self.0 = now;
        }
        now.duration_since(self.0) >= LEADERLESS
    }
}

#[cfg(test)]
mod tests;
