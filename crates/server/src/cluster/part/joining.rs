//! A node comes to belong to a cluster and its groups, and remembers that.

use super::*;
use crate::storage::rest_after_failure;
use courser_cluster::forming::{Folder, FolderError, Verdict, form};
use std::fmt::Display;

impl Inner {
    /// What this node belongs to, as soon as it belongs to something, and where its copy of the log comes from.
    pub(super) async fn formation(&self) -> Result<(Formation, Origin), String> {
        if let Some(formation) = self.folder.formation() {
            if self.folder.is_alone().map_err(|error| error.to_string())? {
                return Ok((self.adopt().await?, Origin::Existing));
            }
            self.roster.connect(&self.groups.home().links, |_| true);
            let origin = if self.folder.joins() { Origin::Joining } else { Origin::Existing };
            return Ok((formation, origin));
        }
        let join = self.config.lock().cluster.join.clone();
        let Some(formation) = form(&self.endpoint, &join, say).await else {
            return Ok((self.adopt().await?, Origin::Existing));
        };
        let origin = self.origin_of(&formation);
        Ok((formation, origin))
    }

    /// Where this node's copy of a group's log comes from of which it has heard.
    pub(super) fn origin_of(&self, formation: &Formation) -> Origin {
        let home = self.endpoint.about().formation;
        // Of those who founded it before a recovery, one is left.
        let founders = match home {
            Some(home) if home.recovery != formation.recovery => home.founders,
            _ => formation.founders.clone(),
        };
        match founders.contains(&self.folder.node()) {
            true => Origin::Founders(founders),
            false => Origin::Joining,
        }
    }

    /// Has others reach the group, and remembers that this node is in it.
    pub(super) async fn enter(
        &self,
        group: &Group,
        formation: &Formation,
        member: &Arc<Member>,
    ) -> Result<(), String> {
        let (number, kept) = (group.number, formation.clone());
        self.keep(number, move |folder| match number {
            GroupNumber::HOME => folder.set_formation(&kept),
            other => folder.set_group(other, &kept),
        })
        .await?;
        self.around.notices.group_waits(number.0, false);
        group.set_member(Some(Arc::clone(member)));
        if !group.is_home() {
            tracing::info!(group = number.0, "this node has its part in the group");
            return Ok(());
        }
        self.endpoint.change(|about| {
            (about.formation, about.has_data) = (Some(formation.clone()), false);
        });
        let About { cluster, name: node, address, .. } = self.endpoint.about();
        tracing::info!(cluster, node, address, "this node is in the cluster");
        Ok(())
    }

    /// Remembers that this node was taken in: stopped before it has its copy, it goes on with that.
    pub(super) async fn keep_joining(&self, formation: &Formation) -> Result<(), String> {
        let kept = formation.clone();
        self.keep(GroupNumber::HOME, move |folder| folder.set_joining(&kept)).await
    }

    /// Keeps something in the node's folder for a group, as soon as there is room for it.
    async fn keep(
        &self,
        number: GroupNumber,
        keep: impl Fn(&Folder) -> Result<(), FolderError> + Send + Sync + 'static,
    ) -> Result<(), String> {
        let keep = Arc::new(keep);
        loop {
            let (folder, keep) = (Arc::clone(&self.folder), Arc::clone(&keep));
            match self.blocking(move || keep(&folder)).await? {
                Ok(()) => return Ok(()),
                Err(error) if error.lacks_room() => {
                    self.try_later(number, Duration::ZERO, error).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Says that a group can't go on here yet, and waits until it is to be tried again: the longer, the longer that `took`.
    pub(in super::super) async fn try_later(
        &self,
        number: GroupNumber,
        took: Duration,
        error: impl Display,
    ) {
        tracing::warn!(
            error = error.to_string(),
            group = number.0,
            "this node can't take part in the group yet: it tries again"
        );
        self.around.notices.group_waits(number.0, true);
        tokio::time::sleep(rest_after_failure(took).max(ROOM_INTERVAL)).await;
    }

    /// Takes part in a group besides home, as soon as there is a thread for it, until that has ended for good: returns why.
    pub(super) async fn begin_part(
        self: Arc<Self>,
        number: GroupNumber,
        formation: Formation,
        origin: Origin,
    ) -> Result<Infallible, String> {
        let group = loop {
            match self.groups.start(number, &self.endpoint, &self.roster) {
                Ok(group) => break group,
                Err(error) => {
                    self.groups.lacks_thread(number);
                    self.try_later(number, Duration::ZERO, error).await;
                }
            }
        };
        self.groups.add(Arc::clone(&group));
        self.take_part(group, formation, origin).await
    }
}

/// Tells the log why the node is not in a cluster yet.
fn say(verdict: &Verdict) {
    match verdict {
        Verdict::Formed(_) | Verdict::Begins => {}
        Verdict::Waits(missing) => {
            for (address, why) in missing {
                tracing::info!(address, why, "waiting to form the cluster");
            }
        }
        Verdict::NotAdded(names) => tracing::warn!(
            members = names.join(", "),
            "there is a cluster, and this node is not in it: add it with 'courser ctl cluster add ADDRESS' at a member"
        ),
        Verdict::Wrong(why) => tracing::error!(why, "this node can't join the cluster"),
    }
}
