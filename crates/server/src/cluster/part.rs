//! The part that a node has in its cluster: it joins, follows, serves while it leads, and takes a copy when it has to.

use super::copies;
use super::front::Serves;
use super::incoming::Outgoing;
use super::node::Inner;
use crate::server::StartError;
use crate::service::{self, Service};
use crate::storage;
use courser_cluster::forming::{Verdict, form, look_around};
use courser_cluster::transport::{About, Formation};
use courser_cluster::{
    Identity, Leadership, Member, MemberConfig, MemberError, NodeId, Options, Origin, Peers,
};
use courser_store::MemoryGauge;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// How long a tick of the group is: a leader that is lost is replaced after 10 to 20 of them.
const TICK: Duration = Duration::from_millis(50);
/// How long clients have to take note that the node does not lead any more.
const DEMOTION_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait before a copy of the log is asked for again.
const COPY_INTERVAL: Duration = Duration::from_secs(1);
/// How often members are looked for that are not connected, and for those that have caught up.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Inner {
    /// Runs the node until it stops.
    pub(super) async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let ended = tokio::select! {
            ended = self.take_part() => ended,
            _ = stopping.changed() => Ok(()),
        };
        self.demote(Serves::Nobody).await;
        if let Err(reason) = ended {
            self.ended.send_replace(Some(reason));
        }
    }

    /// Takes part in the cluster, until the group has ended for good: returns why.
    async fn take_part(&self) -> Result<(), String> {
        let (formation, mut origin) = self.formation().await?;
        loop {
            let opened = self.open(&formation, origin.clone()).await?;
            let lacks = match opened {
                Ok(member) => {
                    origin = Origin::Existing;
                    self.enter(&formation, &member).await?;
                    let lacks = tokio::select! {
                        ended = self.follow_lead(&member) => ended?,
                        () = self.look_after(&member) => return Err(self.removed(member).await),
                    };
                    self.leave(member).await;
                    Some(lacks)
                }
                Err(error) if error.needs_copy() => {
                    tracing::warn!(%error, "this node needs a copy of another node's log");
                    None
                }
                Err(error) => return Err(error.to_string()),
            };
            self.fetch_copy(&formation, &origin, lacks).await;
            origin = Origin::Existing;
        }
    }

    /// Serves while this node leads; returns when it needs a copy, which this other node offers, or with the reason why the
    /// group has ended.
    async fn follow_lead(&self, member: &Arc<Member>) -> Result<NodeId, String> {
        let mut leadership = member.leadership();
        let mut serving = None;
        loop {
            let now = leadership.borrow_and_update().clone();
            match now {
                Leadership::Ended { reason } => return Err(reason.to_string()),
                Leadership::Lacks { leader } => {
                    self.demote(Serves::There(leader)).await;
                    return Ok(leader);
                }
                Leadership::Serving { term } if serving == Some(term) => {}
                Leadership::Serving { term } => {
                    self.demote(Serves::Nobody).await;
                    serving = self.promote(member, term).await?.then_some(term);
                }
                Leadership::Following { leader } => {
                    serving = None;
                    self.demote(leader.map_or(Serves::Nobody, Serves::There)).await;
                }
            }
            leadership.changed().await.map_err(|_| "the group has ended".to_owned())?;
        }
    }

    /// What this node belongs to, as soon as it belongs to something, and where its copy of the log comes from.
    async fn formation(&self) -> Result<(Formation, Origin), String> {
        if let Some(formation) = self.folder.formation() {
            if self.folder.is_alone().map_err(|error| error.to_string())? {
                return Ok((self.adopt().await?, Origin::Existing));
            }
            self.roster.connect(&self.links, |_| true);
            return Ok((formation, Origin::Existing));
        }
        let join = self.config.lock().cluster.join.clone();
        let Some(formation) = form(&self.endpoint, &join, say).await else {
            return Ok((self.adopt().await?, Origin::Existing));
        };
        let origin = match formation.founders.contains(&self.folder.node()) {
            true => Origin::Founders(formation.founders.clone()),
            false => Origin::Joining,
        };
        Ok((formation, origin))
    }

    /// What the group on this node is run with.
    fn member_config(&self, formation: &Formation, origin: Origin) -> Result<MemberConfig, String> {
        let config = self.config.lock();
        let (group, segment_bytes) = (formation.group, formation.segment_bytes);
        Ok(MemberConfig {
            dir: self.folder.copy_dir().map_err(|error| error.to_string())?,
            disk: config.disk(),
            identity: Identity { group, segment_bytes },
            origin,
            options: Options::new(self.folder.node()),
            tick: TICK,
            journal: config.journal_options(),
        })
    }

    async fn open(
        &self,
        formation: &Formation,
        origin: Origin,
    ) -> Result<Result<Arc<Member>, MemberError>, String> {
        let config = self.member_config(formation, origin)?;
        let peers: Arc<dyn Peers> = Arc::new(Outgoing(Arc::clone(&self.links)));
        let thread = Arc::clone(&self.thread);
        let opened = self.blocking(move || Member::start(config, peers, &thread)).await?;
        Ok(opened.map(Arc::new))
    }

    /// Has others reach the group, and remembers what it belongs to.
    async fn enter(&self, formation: &Formation, member: &Arc<Member>) -> Result<(), String> {
        let (folder, kept) = (Arc::clone(&self.folder), formation.clone());
        let keeping = self.blocking(move || folder.set_formation(&kept)).await?;
        keeping.map_err(|error| error.to_string())?;
        self.endpoint.change(|about| {
            (about.formation, about.has_data) = (Some(formation.clone()), false);
        });
        self.member.store(Some(Arc::clone(member)));
        let About { cluster, name: node, address, .. } = self.endpoint.about();
        tracing::info!(cluster, node, address, "this node is in the cluster");
        Ok(())
    }

    /// Ends the group, whose copy of the log is to be replaced.
    async fn leave(&self, member: Arc<Member>) {
        self.member.store(None);
        if let Ok(Err(error)) | Err(error) = self.blocking(move || member.close()).await {
            tracing::warn!(
                error,
                "the copy of the log that is to be replaced was not closed in order"
            );
        }
    }

    /// Takes a copy of the log from whoever leads, however long that takes.
    async fn fetch_copy(&self, formation: &Formation, origin: &Origin, offered_by: Option<NodeId>) {
        tracing::info!("this node takes a copy of the log from the node that leads");
        loop {
            let known = self.roster.others();
            let first = known.iter().filter(|node| Some(node.id) == offered_by);
            let others = known.iter().filter(|node| Some(node.id) != offered_by);
            for node in first.chain(others) {
                let config = self.member_config(formation, origin.clone());
                let (endpoint, address) = (Arc::clone(&self.endpoint), node.address.clone());
                let runtime = Handle::current();
                let fetching = tokio::task::spawn_blocking(move || {
                    copies::fetch(&config?, &endpoint, &address, &runtime)
                });
                match fetching.await.map_err(|error| error.to_string()).and_then(|done| done) {
                    Ok(()) => {
                        return tracing::info!(from = node.name, "this node has a copy of the log");
                    }
                    Err(why) => tracing::info!(from = node.name, why, "no copy of the log"),
                }
            }
            tokio::time::sleep(COPY_INTERVAL).await;
        }
    }

    /// Opens the broker on the group's log and serves, if this node still leads then.
    async fn promote(&self, member: &Arc<Member>, term: u64) -> Result<bool, String> {
        tracing::info!(term, "this node leads the cluster");
        let (config, started) = (self.config(), Instant::now());
        let (opened_by, now_ms) = (Arc::clone(member), self.around.clock.now_ms());
        let settings = config.clone();
        let opening = self.blocking(move || {
            let gauge = Arc::new(MemoryGauge::default());
            let shards = opened_by.shards(term, Arc::clone(&gauge));
            let seed = getrandom::u64().map_err(StartError::Random)?;
            let limits = settings.broker_limits();
            let (broker, storage) = storage::open_on(&shards, gauge, limits, seed, now_ms)?;
            service::prepare(&broker, &settings)?;
            Ok::<_, StartError>((broker, storage))
        });
        let opened = opening.await?;
        let leads = || *member.leadership().borrow() == Leadership::Serving { term };
        let started_service = match opened {
            Ok((broker, storage)) if leads() => {
                Service::start(broker, storage, &config, &self.around).await
            }
            Ok(_) => return Ok(false),
            Err(error) => Err(error),
        };
        match started_service {
            Ok(service) => {
                let elapsed_ms = started.elapsed().as_millis() as u64;
                tracing::info!(term, elapsed_ms, "serving clients");
                self.front.set_serves(Serves::Here(Arc::new(service)));
                Ok(true)
            }
            // Whoever leads now does it.
            Err(error) if !leads() => {
                tracing::info!(term, %error, "this node leads no more");
                Ok(false)
            }
            Err(error) => Err(format!("this node can't serve, though it leads: {error}")),
        }
    }

    /// Closes every connection and drops the broker, if this node serves; says who does from now on.
    async fn demote(&self, serves: Serves) {
        let before = self.front.serves();
        self.front.set_serves(serves);
        let Serves::Here(service) = before else { return };
        tracing::info!("this node does not lead any more: closing its clients' connections");
        service.say_goodbye(DEMOTION_TIMEOUT).await;
        // The threads that make checkpoints end with it.
        if let Err(error) = self.blocking(move || drop(service)).await {
            tracing::error!(error, "the broker's end was interrupted");
        }
    }

    /// Does what blocks. It goes on when nobody waits for it any more because the node is stopped; what comes of it is dropped
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

    /// Finds members that are not connected, and has those vote that have caught up. Ends when this node is a member no
    /// more.
    async fn look_after(&self, member: &Arc<Member>) {
        let mut was_member = false;
        loop {
            self.look(member).await;
            let status = member.status();
            let is_member = status.members.contains(self.folder.node());
            let is_forgotten = is_member && status.leader.is_none();
            if was_member && !is_member || is_forgotten && self.members.was_removed(&status).await {
                return;
            }
            was_member |= is_member;
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Ends the group on a node that was removed, for good: what to say of it.
    async fn removed(&self, member: Arc<Member>) -> String {
        self.demote(Serves::Nobody).await;
        let folder = Arc::clone(&self.folder);
        if let Ok(Err(error)) = self.blocking(move || folder.set_removed()).await {
            tracing::error!(%error, "that this node was removed can't be kept");
        }
        self.leave(member).await;
        let About { cluster, name, .. } = self.endpoint.about();
        format!(
            "node '{name}' was removed from cluster '{cluster}': it does not start again with this data folder"
        )
    }

    async fn look(&self, member: &Arc<Member>) {
        let status = member.status();
        let is_member = |node| status.members.contains(node);
        // One that was just added does not know who its members are, before it has heard from a leader.
        let knows = !status.members.voters.is_empty();
        self.roster.connect(&self.links, |node| !knows || is_member(node));
        let own = self.folder.node();
        let voters = status.members.voters.iter();
        let is_away = |node: &&NodeId| **node != own && !self.links.is_connected(**node);
        if voters.filter(is_away).count() > 0 {
            let join = self.config.lock().cluster.join.clone();
            for seen in look_around(&self.endpoint, &join).await {
                if let Ok(about) = seen.met {
                    self.roster.met(&about);
                }
            }
        }
        let members = Arc::clone(&self.members);
        // Told in the log if it panics; asked again in a second.
        let looking = tokio::task::spawn_blocking(move || {
            members.promote();
            members.forget_strangers();
        });
        let _ = looking.await;
        self.step_back(member).await;
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
