//! The part that a node has in its cluster: it joins, follows, serves while it leads, and takes a copy when it has to.

mod fetch;
mod joining;
mod lead;
mod removal;

use self::lead::tell_meanwhile;
use super::front::Serves;
use super::group::Group;
use super::incoming::Outgoing;
use super::mending;
use super::node::{BUSY_TIMEOUT, Inner};
use crate::config::Config;
use crate::server::StartError;
use crate::service::{self, Service, stopped};
use crate::storage;
use courser_cluster::forming::look_around;
use courser_cluster::transport::{About, Formation};
use courser_cluster::{
    GroupNumber, Identity, Leadership, Member, MemberConfig, MemberError, NodeId, Options, Origin,
    Peers, Status,
};
use courser_store::MemoryGauge;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// How long a tick of the group is: a leader that is lost is replaced after 10 to 20 of them.
const TICK: Duration = Duration::from_millis(50);
/// How long clients have to take note that the node does not lead any more.
const DEMOTION_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait before something is tried again for which there was no room, or no thread.
const ROOM_INTERVAL: Duration = Duration::from_secs(5);
/// How long the disk may not give a log that it has, before this node ends: what is there is not made anew meanwhile.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);
/// What the election timeouts of a node are drawn from is not the same in all groups: one node would lead all of them.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// How often members are looked for that are not connected, and for those that have caught up.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Inner {
    /// Runs the node until it stops.
    pub(super) async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut parts = JoinSet::new();
        let ended = tokio::select! {
            ended = self.take_part_in_all(&mut parts) => ended.map(drop),
            () = stopped(&mut stopping) => Ok(()),
        };
        if ended.is_err() {
            // The groups that go on until the process ends are led by this node, and it serves them no more.
            self.hand_over().await;
        }
        parts.shutdown().await;
        let groups = self.groups.all();
        for group in &groups {
            self.stop_serving(group).await;
        }
        let all_ended = async {
            for group in &groups {
                group.ended().await;
            }
        };
        let Err(reason) = ended else { return all_ended.await };
        // The disk that has failed may never answer: the process ends without what waits for it.
        if tokio::time::timeout(BUSY_TIMEOUT, all_ended).await.is_err() {
            tracing::warn!("the node ends while its disk is still waited for");
        }
        self.ended.send_replace(Some(reason));
    }

    /// Takes part in all groups, and in those that come, until one has ended for good: returns why.
    async fn take_part_in_all(
        self: &Arc<Self>,
        parts: &mut JoinSet<Result<Infallible, String>>,
    ) -> Result<Infallible, String> {
        let (formation, origin) = self.formation().await?;
        let home = Arc::clone(self.groups.home());
        parts.spawn(Arc::clone(self).take_part(home, formation, origin));
        let mut begun = BTreeSet::new();
        for (number, formation) in self.folder.groups() {
            begun.insert(number);
            parts.spawn(Arc::clone(self).begin_part(number, formation, Origin::Existing));
        }
        let mut founded = self.founded.lock().await;
        loop {
            tokio::select! {
                // One that waits for its thread is told of again, and may have a copy of the log.
                Some((number, formation)) = founded.recv() => if begun.insert(number) {
                    let origin = self.origin_of(&formation);
                    parts.spawn(Arc::clone(self).begin_part(number, formation, origin));
                },
                Some(ended) = parts.join_next() => {
                    return ended.map_err(|error| error.to_string())?;
                }
            }
        }
    }

    /// Takes part in a group, until it has ended for good: returns why.
    async fn take_part(
        self: Arc<Self>,
        group: Arc<Group>,
        formation: Formation,
        mut origin: Origin,
    ) -> Result<Infallible, String> {
        let (mut had_log, mut unread_since) = (false, None);
        let mut opened = self.open(&group, &formation, origin.clone()).await?;
        loop {
            let (lacks, since) = match opened {
                Ok(member) => {
                    (origin, had_log, unread_since) = (Origin::Existing, true, None);
                    self.enter(&group, &formation, &member).await?;
                    let lacks = tokio::select! {
                        ended = self.follow_lead(&group, &member) => ended?,
                        () = self.look_after(&group, &member) => {
                            return Err(self.removed(Some(member)).await);
                        }
                        why = self.left_behind(&group, Some(&member)) => return Err(why),
                    };
                    let since = member.status().members_index;
                    self.leave(&group, member).await;
                    tracing::info!(
                        group = group.number.0,
                        "this node takes a copy of the log from another node"
                    );
                    (Some(lacks), Some(since))
                }
                // Before the others: with any other error the disk has given the log, and that is noted.
                Err(error) if may_pass(&error, &mut unread_since) => {
                    self.try_later(group.number, Duration::ZERO, error).await;
                    opened = self.open(&group, &formation, origin.clone()).await?;
                    continue;
                }
                Err(error) if error.needs_copy() => {
                    tracing::warn!(%error, group = group.number.0, "this node needs a copy of another node's log");
                    if group.is_home() && matches!(origin, Origin::Joining) {
                        self.keep_joining(&formation).await?;
                    }
                    (None, error.members_index())
                }
                Err(error) if error.is_locked() && had_log => {
                    tracing::info!(%error, group = group.number.0, "this node still has the log that is to be replaced");
                    tokio::time::sleep(LOOK_INTERVAL).await;
                    opened = self.open(&group, &formation, origin.clone()).await?;
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            };
            // However often the log is tried again, these go on: what they wait for takes longer than one round.
            opened = tokio::select! {
                opened = self.copy_or_open(&group, &formation, &mut origin, lacks, since) => opened?,
                () = self.removed_meanwhile(&group, since) => {
                    return Err(self.removed(None).await);
                }
                why = self.left_behind(&group, None) => return Err(why),
            };
        }
    }

    /// Serves while this node leads; returns when it needs a copy, which this other node offers, or with the reason why the
    /// group has ended.
    async fn follow_lead(
        self: &Arc<Self>,
        group: &Arc<Group>,
        member: &Arc<Member>,
    ) -> Result<NodeId, String> {
        let mut leadership = member.leadership();
        let mut serving = None;
        loop {
            let now = leadership.borrow_and_update().clone();
            match now {
                Leadership::Ended { reason } => return Err(reason.to_string()),
                Leadership::Lacks { leader } => {
                    self.demote(group, Serves::There(leader)).await;
                    return Ok(leader);
                }
                Leadership::Serving { term } if serving == Some(term) => {}
                Leadership::Serving { term } => {
                    self.demote(group, Serves::Unknown).await;
                    let promoting = async {
                        group.ended().await;
                        self.promote(group, member, term).await
                    };
                    let promoted = tell_meanwhile(group, leadership.clone(), promoting).await?;
                    serving = promoted.then_some(term);
                }
                Leadership::Following { leader } => {
                    serving = None;
                    self.demote(group, leader.map_or(Serves::Unknown, Serves::There)).await;
                }
            }
            tokio::select! {
                changed = leadership.changed() => changed.map_err(|_| "the group has ended".to_owned())?,
                leader = self.copy_needed_from(group, member) => {
                    self.demote(group, Serves::There(leader)).await;
                    return Ok(leader);
                }
            }
        }
    }

    /// What a group on this node is run with.
    fn member_config(
        &self,
        number: GroupNumber,
        formation: &Formation,
        origin: Origin,
    ) -> Result<MemberConfig, String> {
        let config = self.config.lock();
        let (group, segment_bytes) = (formation.group, formation.segment_bytes);
        let options = Options::new(self.folder.node());
        let seed = options.seed ^ SEED_STEP.wrapping_mul(number.0.into());
        Ok(MemberConfig {
            dir: self.folder.copy_dir(number).map_err(|error| error.to_string())?,
            disk: Arc::clone(&self.disk),
            identity: Identity { group, segment_bytes },
            origin,
            options: Options { seed, ..options },
            tick: TICK,
            journal: config.journal_options(),
        })
    }

    async fn open(
        &self,
        group: &Group,
        formation: &Formation,
        origin: Origin,
    ) -> Result<Result<Arc<Member>, MemberError>, String> {
        let config = self.member_config(group.number, formation, origin)?;
        let peers: Arc<dyn Peers> = Arc::new(Outgoing(Arc::clone(&group.links)));
        let thread = Arc::clone(&group.thread);
        let opened = self.blocking(move || Member::start(config, peers, &thread)).await?;
        Ok(opened.map(Arc::new))
    }

    /// Ends the group on this node, whose copy of the log is to be replaced.
    async fn leave(&self, group: &Group, member: Arc<Member>) {
        group.set_member(None);
        if let Some(scrub) = self.members.scrub.get().cloned() {
            let name = mending::journal_of(group.number);
            // The folder is the member's for as long as anything has it.
            drop(self.blocking(move || scrub.let_go(&name)).await);
        }
        group.ended().await;
        group.nothing_sent().await;
        if let Ok(Err(error)) | Err(error) = self.blocking(move || member.close()).await {
            tracing::warn!(
                error,
                "the copy of the log that is to be replaced was not closed in order"
            );
        }
    }

    /// Does what blocks. It goes on when its caller is gone because the node is stopped; what comes of it is dropped
    /// before the node counts it as done.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let busy = Arc::clone(&self.busy).read_owned().await;
        let (sender, done) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _busy = busy;
            drop(sender.send(work()));
        });
        done.await.map_err(|_| "what was being done has panicked".to_owned())
    }

    /// Finds members that are not connected, and has those vote that have caught up. Ends when this node is a member of the
    /// cluster no more.
    async fn look_after(&self, group: &Arc<Group>, member: &Arc<Member>) {
        let mut was_member = false;
        let mut looking: Option<JoinHandle<()>> = None;
        loop {
            let status = member.status();
            // One that was just added does not know who its members are, before it has heard from a leader.
            let knows = !status.members.voters.is_empty();
            self.roster.connect(&group.links, |node| !knows || status.members.contains(node));
            if group.is_home() {
                self.look(&status).await;
            }
            // It asks other nodes, which may be silent: what follows does not wait for that. Told in the log if it panics.
            if looking.as_ref().is_none_or(JoinHandle::is_finished) {
                let (members, of) = (Arc::clone(&self.members), Arc::clone(group));
                looking = Some(tokio::task::spawn_blocking(move || members.look_after(&of)));
            }
            self.step_back(group, member).await;
            if group.is_home() {
                let is_member = status.members.contains(self.folder.node());
                let is_forgotten = knows && status.leader.is_none();
                // One that was stopped before it could keep its removal has that in its log.
                let since = is_member.then_some(status.members_index);
                let is_removed = was_member && !is_member
                    || is_forgotten && self.members.was_removed_since(group.number, since).await;
                if is_removed && self.members.has_left_all().await {
                    return;
                }
                was_member |= is_member;
                // One that does not know of its removal hears from no leader.
                if is_member && status.leader.is_some() {
                    self.members.has_stayed();
                }
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Looks for members that are not connected where the settings name nodes.
    async fn look(&self, status: &Status) {
        let own = self.folder.node();
        let links = &self.groups.home().links;
        let is_away = |node: &NodeId| *node != own && !links.is_connected(*node);
        if status.members.voters.iter().any(is_away) {
            let join = self.config.lock().cluster.join.clone();
            for seen in look_around(&self.endpoint, &join).await {
                if let Ok(about) = seen.met {
                    self.roster.met(&about);
                }
            }
        }
    }
}

/// Whether a group's log may be opened when that is tried again. `unread_since` is since when the disk has not given it: any other
/// error ends that.
fn may_pass(error: &MemberError, unread_since: &mut Option<Instant>) -> bool {
    if !error.is_unread() {
        *unread_since = None;
        return error.lacks_room() || error.lacks_thread();
    }
    unread_since.get_or_insert_with(Instant::now).elapsed() < UNREAD_TIMEOUT
}

#[cfg(test)]
mod tests;
