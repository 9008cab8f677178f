//! What the other groups have of home's definitions: users, permissions, global parameters, and what is said of their vhosts.
//!
//! The node that leads a group asks the one that leads home every second whether anything has changed, and before it
//! serves; what it hears is what has changed since, and is on a majority of disks at home. After a change by an operator, home has
//! all groups ask at once, and the operator's answer waits for them.

use super::front::{Front, Serves};
use super::group::Group;
use super::questions::Question;
use crate::notices::Notices;
use crate::service::{Service, stopped};
use courser_broker::Broker;
use courser_broker::admin::{Admin, GroupDefinitions};
use courser_cluster::GroupNumber;
use courser_store::Lsn;
use pieces::{Asked, Gathering, PIECE_BYTES, Pieces, Turn};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(super) mod pieces;

pub(super) use pieces::Part;

/// How often a group asks home.
const PULL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a group waits for home before it serves with what it has.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before home is asked again, when a request waits for it.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long what a group gets may take to be on a majority of disks.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a group asks in vain before an operator is told.
pub(super) const TOLD_AFTER: Duration = Duration::from_secs(10);
/// How long a request waits for groups to have what home has.
const HELD_TIMEOUT: Duration = Duration::from_secs(2);

/// How far home's definitions have come, as this node knows.
pub(super) struct Spreading {
    /// The version that all groups are known to have.
    held_by_all: AtomicU64,
    /// Those that are on their way from this node.
    pieces: Arc<Pieces>,
    pub(super) notices: Arc<Notices>,
}

impl Spreading {
    pub fn new(notices: &Arc<Notices>) -> Self {
        let (pieces, notices) = (Arc::new(Pieces::of(PIECE_BYTES)), Arc::clone(notices));
        Spreading { held_by_all: AtomicU64::new(0), pieces, notices }
    }
}

impl Front {
    /// Home's broker, if this node leads home.
    fn home_here(&self) -> Result<Admin, String> {
        match self.serves() {
            Serves::Here(service) => Ok(service.shared.broker.admin()),
            _ => Err("this node does not lead the cluster".into()),
        }
    }

    /// What a group that has adopted version `have` has to adopt now, if this node leads home; nothing if it has all of it. Where
    /// that is much, it has its turn, which is to last until it has got it.
    ///
    /// # Errors
    /// Why it is not known, or that the group has asked anew.
    async fn definitions(
        &self,
        group: GroupNumber,
        have: Lsn,
    ) -> Result<Option<(Asked, GroupDefinitions, Option<Turn>)>, String> {
        let home = self.home_here()?;
        if home.definitions_version() == have {
            return Ok(None);
        }
        let mut asked = self.spreading.pieces.asked(group, have);
        let taking = self.take_definitions(home, group, have);
        let (taken, turn) = asked.unless_anew(taking).await?;
        Ok(Some((asked, taken, turn)))
    }

    async fn take_definitions(
        &self,
        home: Admin,
        group: GroupNumber,
        have: Lsn,
    ) -> Result<(GroupDefinitions, Option<Turn>), String> {
        let look = self.spreading.pieces.look().await;
        let (taken, look) = take(&home, group, have, look).await?;
        let is_little = taken.encoded_len() < PIECE_BYTES;
        let little = is_little.then_some(taken);
        drop(look);
        // Without a majority at home, none waits for it while it has its turn.
        durable(&home).await?;
        if let Some(taken) = little {
            return Ok((taken, None));
        }
        drop(home);
        let turn = self.spreading.pieces.turn().await;
        // Another node may lead by now, or there is more.
        let home = self.home_here()?;
        let (taken, turn) = take(&home, group, have, turn).await?;
        durable(&home).await?;
        Ok((taken, Some(turn)))
    }

    /// The same as a text, or the first piece of it, or the one that is asked for; an empty one if there is nothing.
    pub(super) async fn definitions_text(
        &self,
        group: GroupNumber,
        have: Lsn,
        part: Option<Part>,
    ) -> Result<String, String> {
        if let Some(part) = part {
            return self.spreading.pieces.next(group, have, part);
        }
        let taken = self.definitions(group, have).await?;
        let Some((asked, taken, turn)) = taken else { return Ok(String::new()) };
        let pieces = Arc::clone(&self.spreading.pieces);
        aside(move || pieces.first(asked, &taken, turn)).await?
    }

    /// Has the broker of a group, which this node leads, adopt what home has now, unless it has `version` already.
    ///
    /// # Errors
    /// Why it could not.
    pub(super) async fn adopt(
        &self,
        group: &Group,
        broker: &Arc<Broker>,
        version: Option<Lsn>,
    ) -> Result<(), String> {
        // A caller that waits here mostly finds that it is done.
        let _alone = group.adopting.lock().await;
        let admin = broker.admin();
        let has = |version: Lsn| admin.adopted_version() >= version;
        if version.is_some_and(has) {
            return Ok(());
        }
        let asked = self.ask_for_definitions(group, admin.adopted_version()).await?;
        if let Some(definitions) = asked {
            let (to, unknown) = (admin.clone(), admin.vhosts_unknown_at_home());
            let adopted = aside(move || to.adopt_definitions(definitions)).await?;
            if adopted.map_err(|fault| fault.explanation)? {
                let version = admin.adopted_version().0;
                tracing::debug!(group = group.number.0, version, "definitions of home adopted");
                warn_of_unknown(group.number, &unknown, admin.vhosts_unknown_at_home());
            }
        }
        match version.is_none_or(has) {
            true => Ok(()),
            false => Err("home does not have them on a majority of disks yet".into()),
        }
    }

    async fn ask_for_definitions(
        &self,
        group: &Group,
        have: Lsn,
    ) -> Result<Option<GroupDefinitions>, String> {
        let leader = match self.serves() {
            Serves::Here(_) => {
                let definitions = self.definitions(group.number, have).await?;
                return Ok(definitions.map(|(_, taken, _)| taken));
            }
            Serves::There(leader) => leader,
            Serves::Unknown => return Err("no node leads the cluster".into()),
        };
        let (group, have) = (group.number, have.0);
        let mut gathering = Gathering::of(PIECE_BYTES);
        loop {
            let question = Question::Definitions { group, have, part: gathering.wants() };
            let text = tokio::select! {
                asked = self.ask(leader, &question) => asked.map_err(|error| error.to_string())?,
                // It answers late while it has no majority: as long as it has been cut off.
                () = self.groups.home().serves_no_more(leader) => {
                    return Err("the lead of the cluster has moved".into());
                }
            };
            let added;
            (gathering, added) = aside(move || {
                let added = gathering.add(&text);
                (gathering, added)
            })
            .await?;
            if let ControlFlow::Break(all) = added? {
                return Ok(all);
            }
        }
    }

    /// Has the broker of a group adopt what home has before it serves. If home can't be asked for some seconds, it serves with
    /// what it has; `goes_on` says whether it is still to serve at all.
    pub(super) async fn adopt_at_first(
        &self,
        group: &Group,
        broker: &Arc<Broker>,
        goes_on: impl Fn() -> bool,
    ) {
        let until = Instant::now() + FIRST_PATIENCE;
        let mut reason = "it takes too long".to_owned();
        while goes_on() && Instant::now() < until {
            match tokio::time::timeout_at(until, self.adopt(group, broker, None)).await {
                Ok(Ok(())) => return,
                Ok(Err(why)) => reason = why,
                Err(_) => break,
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        let (group, version) = (group.number.0, broker.admin().adopted_version().0);
        tracing::warn!(group, reason, version, "the group serves with earlier definitions of home");
    }

    /// Has the broker of a group follow home as long as it serves.
    pub(super) fn follow_home(self: &Arc<Self>, group: &Arc<Group>, service: &Service) {
        let (front, group) = (Arc::clone(self), Arc::clone(group));
        let broker = Arc::downgrade(&service.shared.broker);
        let mut stopping = service.stopping();
        tokio::spawn(async move {
            let number = group.number.0;
            let mut failing: Option<Instant> = None;
            loop {
                let next = async {
                    tokio::time::sleep(PULL_INTERVAL).await;
                    let broker = broker.upgrade()?;
                    Some(front.adopt(&group, &broker, None).await)
                };
                // Home may take longer to answer.
                let since = failing.unwrap_or_else(Instant::now);
                let telling = async {
                    tokio::time::sleep_until(since + TOLD_AFTER).await;
                    front.spreading.notices.group_is_behind(number, true);
                    std::future::pending().await
                };
                let adopted = tokio::select! {
                    adopted = next => adopted,
                    adopted = telling => adopted,
                    () = stopped(&mut stopping) => None,
                };
                let Some(adopted) = adopted else { break };
                if let (Err(reason), None) = (&adopted, failing) {
                    tracing::warn!(
                        group = number,
                        reason,
                        "the group can't get the definitions of home"
                    );
                }
                failing = adopted.err().map(|_| since);
                let is_behind = failing.is_some_and(|since| since.elapsed() >= TOLD_AFTER);
                front.spreading.notices.group_is_behind(number, is_behind);
            }
            // The node that leads it now says it.
            front.spreading.notices.group_is_behind(number, false);
        });
    }

    /// Waits, for 2 s at most, until a group that this node leads has a version of home's definitions on a majority of disks: the
    /// next leader of the group has it then, too.
    ///
    /// # Errors
    /// Why it does not have it, or that another node leads the group.
    pub(super) async fn wait_for_version(
        &self,
        number: GroupNumber,
        version: Lsn,
    ) -> Result<(), String> {
        let group = self.groups.get(number).ok_or_else(|| format!("there is no group {number}"))?;
        let until = Instant::now() + HELD_TIMEOUT;
        loop {
            let Serves::Here(service) = group.serves() else {
                return Err(format!("this node does not lead group {number}"));
            };
            let broker = Arc::clone(&service.shared.broker);
            drop(service);
            let having = async {
                self.adopt(&group, &broker, Some(version)).await?;
                broker.admin().durable().await.map_err(|fault| fault.to_string())
            };
            let why = match tokio::time::timeout_at(until, having).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(why)) => why,
                Err(_) => return Err(format!("home, or group {number}, takes too long")),
            };
            drop(broker);
            if Instant::now() + RETRY_INTERVAL >= until {
                return Err(why);
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Waits, for 2 s at most, until all groups have what has been changed at home so far, if this node leads home. Returns those
    /// that are not known to have it; one without a leader gets it before it serves again.
    pub(crate) async fn spread_definitions(self: &Arc<Self>) -> Vec<u16> {
        let (all, unknown) = self.groups.all_and_unknown();
        let others = all.into_iter().filter(|group| !group.is_home());
        let unknown = unknown.into_iter().map(|group| group.0);
        let Serves::Here(service) = self.serves() else {
            return others.map(|group| group.number.0).chain(unknown).collect();
        };
        let version = service.shared.broker.admin().definitions_version();
        drop(service);
        if self.spreading.held_by_all.load(Ordering::Acquire) >= version.0 {
            return Vec::new();
        }
        let mut waiting = JoinSet::new();
        for group in others {
            let front = Arc::clone(self);
            waiting.spawn(async move {
                let until = Instant::now() + HELD_TIMEOUT;
                let having = tokio::time::timeout_at(until, front.have_adopt(&group, version));
                let has = having.await.unwrap_or(false);
                if !has {
                    let (group, version) = (group.number.0, version.0);
                    tracing::debug!(group, version, "a group does not have home's definitions yet");
                }
                (group.number.0, has)
            });
        }
        let lacking = waiting.join_all().await.into_iter().filter(|(_, has)| !has);
        let lacking: Vec<u16> = lacking.map(|(group, _)| group).chain(unknown).collect();
        if lacking.is_empty() {
            self.spreading.held_by_all.fetch_max(version.0, Ordering::AcqRel);
        }
        lacking
    }

    /// Has the leader of a group adopt a version of home's definitions. Returns whether it has; it has not if there is no leader.
    async fn have_adopt(&self, group: &Group, version: Lsn) -> bool {
        loop {
            let adopted = match group.serves() {
                Serves::Unknown => return false,
                Serves::Here(_) => self.wait_for_version(group.number, version).await,
                Serves::There(leader) => {
                    let question = Question::Adopt { group: group.number, version: version.0 };
                    let asked = self.ask(leader, &question).await;
                    asked.map(drop).map_err(|error| error.to_string())
                }
            };
            if adopted.is_ok() {
                return true;
            }
            // Another node may lead it now.
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// What a group has to adopt, taken while it may; then it still may.
async fn take(
    home: &Admin,
    group: GroupNumber,
    have: Lsn,
    turn: Turn,
) -> Result<(GroupDefinitions, Turn), String> {
    let home = home.clone();
    // The turn lasts as long as this, also if nothing waits for it any more.
    let (taken, turn) = aside(move || (home.definitions_of_group(group.0, have), turn)).await?;
    Ok((taken.map_err(|fault| fault.to_string())?, turn))
}

/// Does what takes long with many definitions away from the threads that serve connections.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}

/// Waits until what was taken is on a majority of disks at home: the next leader of home may not have it before.
async fn durable(home: &Admin) -> Result<(), String> {
    match tokio::time::timeout(DURABLE_TIMEOUT, home.durable()).await {
        Ok(durable) => durable.map_err(|fault| fault.to_string()),
        Err(_) => Err("the definitions of home are on no majority of disks yet".into()),
    }
}

/// Says which vhosts the group has kept in a recovery besides those of before.
fn warn_of_unknown(group: GroupNumber, before: &[String], now: Vec<String>) {
    for vhost in now.into_iter().filter(|vhost| !before.contains(vhost)) {
        tracing::warn!(
            vhost,
            group = group.0,
            "the group has a vhost that home does not know since the cluster was recovered: it is kept, and served again when it \
             is added to this group ('courser ctl add_vhost NAME --group GROUP')"
        );
    }
}

#[cfg(test)]
mod tests;
