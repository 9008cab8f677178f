//! A node comes to belong to a cluster and its groups, and remembers that.

use super::*;
use courser_cluster::forming::{Verdict, form};

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
        let number = group.number;
        loop {
            let (folder, kept) = (Arc::clone(&self.folder), formation.clone());
            let keep = move || match number {
                GroupNumber::HOME => folder.set_formation(&kept),
                other => folder.set_group(other, &kept),
            };
            match self.blocking(keep).await? {
                Ok(()) => break,
                Err(error) if error.lacks_room() => {
                    tracing::warn!(%error, group = number.0, "no room to keep the group; it is tried until there is");
                    tokio::time::sleep(ROOM_INTERVAL).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
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
        let (folder, kept) = (Arc::clone(&self.folder), formation.clone());
        let keeping = self.blocking(move || folder.set_joining(&kept));
        keeping.await?.map_err(|error| error.to_string())
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
