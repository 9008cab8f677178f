//! A vhost goes to another group.
//!
//! The node that leads home has the node that leads the other group take it in ([`super::carrying`]), and says then, in home's log, that it
//! is there: that is the one point at which it has moved. Before, what has arrived is forgotten, and the vhost goes on
//! where it was; after, it is accepted where it is, and removed where it was, as soon as these groups hear of it.
//!
//! Each move has a number: of two moves the later one has the greater number, also if another node has led home. What comes late of
//! an earlier move, or of a node that has led home before, does nothing to a later one.
//!
//! A vhost that stands still, or has arrived, when the lead of home changed, is found by the next node that leads home: as no move is
//! going on then, what home says of it decides.

mod answers;
mod request;

use super::carrying::{blocking, give, take};
use super::front::{Front, Serves, Way};
use super::questions::Question;
use super::tunnel::Note;
use courser_broker::admin::{Admin, VhostHandle};
use courser_cluster::{GroupNumber, Leadership};
use courser_management::{ClusterError, Settled};
use request::Open;
pub(super) use request::{Progress, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, RwLock};

/// How long the node that takes a vhost in looks for the one that has it.
const GIVER_PATIENCE: Duration = Duration::from_secs(5);
/// How long a group may take to remove what is left of a vhost that was in it before.
const REMOVED_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is asked how far it is.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// Answers in a row that it may owe.
const SILENCES_MAX: u32 = 10;
/// How long home may take to have on a majority of disks where the vhost is, before operators are told.
const SAID_TIMEOUT: Duration = Duration::from_secs(30);
/// How long who looks at the vhosts of all groups, and who changes where one is, wait for each other.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a move waits until those before it are settled.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the leader of home looks whether an earlier one has left a move in the middle.
const SETTLE_INTERVAL: Duration = Duration::from_secs(5);
/// Moves that are remembered.
const MOVES_MAX: usize = 64;
/// Bytes of a pipe within the process.
const PIPE_BYTES: usize = 256 << 10;

/// Moves, by their vhosts and numbers.
type All = BTreeMap<(String, u64), Progress>;

/// The moves that this node has to do with.
#[derive(Default)]
pub(super) struct Moves {
    front: Weak<Front>,
    /// As home: how far they are.
    own: parking_lot::Mutex<All>,
    /// As the node that takes them in.
    taking: parking_lot::Mutex<All>,
    /// How many numbers this node has given to moves.
    numbers: AtomicU32,
    /// Held while one is going on, and during the look for those that stopped in the middle.
    turn: Mutex<()>,
    settled: parking_lot::Mutex<Option<Instant>>,
    /// Held for writing while a vhost changes its group, and for reading by who looks at the vhosts of all groups.
    changes: Arc<RwLock<()>>,
}

impl Moves {
    pub fn of(front: &Weak<Front>) -> Self {
        Moves { front: Weak::clone(front), ..Moves::default() }
    }

    /// Waits while a vhost changes its group.
    pub async fn settled(&self) -> Settled {
        let waiting = Arc::clone(&self.changes).read_owned();
        tokio::time::timeout(CHANGE_TIMEOUT, waiting).await.ok()
    }
}

fn note(all: &mut All, which: (String, u64), progress: Progress) {
    if all.len() >= MOVES_MAX && !all.contains_key(&which) {
        all.retain(|_, progress| *progress == Progress::Running);
    }
    all.insert(which, progress);
}

/// Whether home says of a vhost that was `known` elsewhere that it is in this group.
fn is_said_to_be_in(home: &Admin, known: &VhostHandle, group: GroupNumber) -> bool {
    let is_in = |vhost: &VhostHandle| vhost.group() == group.0;
    match group {
        // What has arrived there has the name then.
        GroupNumber::HOME => home.vhost_handle(known.name()).as_ref().is_some_and(is_in),
        _ => is_in(known),
    }
}

/// Those of a term are greater than those of the terms before.
fn first_number(term: u64) -> u64 {
    term << 32
}

impl Front {
    /// Begins to move a vhost, if this node leads home.
    ///
    /// # Errors
    /// Why it can't be moved, or not now.
    pub(super) fn begin_move(self: &Arc<Self>, vhost: &str, to: u16) -> Result<(), ClusterError> {
        let home = self.home_admin()?;
        let known = home.vhost_handle(vhost);
        let known = known.ok_or_else(|| ClusterError::NotFound(format!("no vhost '{vhost}'")))?;
        let (from, to) = (GroupNumber(known.group()), GroupNumber(to));
        if from == to {
            return Err(ClusterError::Refused(format!("vhost '{vhost}' is in group {to} already")));
        }
        if self.groups.get(to).is_none() {
            return Err(ClusterError::NotFound(format!("no group {to} of the cluster")));
        }
        let term = self.home_term().map_err(ClusterError::Unavailable)?;
        // By which operators are told of it.
        let number = self.number_in(term);
        let mut own = self.moves.own.lock();
        if let Some(((name, _), _)) = own.iter().find(|(_, how)| **how == Progress::Running) {
            return Err(ClusterError::Unavailable(format!(
                "vhost '{name}' is just being moved: wait until it has arrived"
            )));
        }
        note(&mut own, (vhost.to_owned(), number), Progress::Running);
        drop(own);
        let (front, vhost) = (Arc::clone(self), vhost.to_owned());
        tokio::spawn(async move {
            let progress = match front.run_move(&home, (&known, term), from, to).await {
                Ok(messages) => {
                    tracing::info!(vhost, %from, %to, messages, "the vhost has moved to another group");
                    Progress::Done(messages)
                }
                Err(why) => {
                    tracing::warn!(vhost, %from, %to, why, "the vhost could not be moved");
                    Progress::Failed(why)
                }
            };
            note(&mut front.moves.own.lock(), (vhost, number), progress);
        });
        Ok(())
    }

    /// How far a move is that this node has begun since it leads home: of those before, others may have moved the vhost since.
    ///
    /// # Errors
    /// When it has begun none.
    pub(super) fn moved(&self, vhost: &str) -> Result<Progress, ClusterError> {
        let term = self.home_term().map_err(ClusterError::Unavailable)?;
        let numbers = (vhost.to_owned(), first_number(term))..=(vhost.to_owned(), u64::MAX);
        let own = self.moves.own.lock();
        let progress = own.range(numbers).next_back().map(|(_, progress)| progress.clone());
        progress.ok_or_else(|| {
            ClusterError::NotFound(format!("vhost '{vhost}' is not being moved by this node"))
        })
    }

    fn home_admin(&self) -> Result<Admin, ClusterError> {
        match self.serves() {
            Serves::Here(service) => Ok(service.shared.broker.admin()),
            _ => Err(ClusterError::Unavailable("this node does not lead the cluster".into())),
        }
    }

    /// The term in which this node leads home.
    fn home_term(&self) -> Result<u64, String> {
        let leadership = self.groups.home().member().map(|member| member.leadership());
        let term = leadership.and_then(|leadership| match *leadership.borrow() {
            Leadership::Serving { term } => Some(term),
            _ => None,
        });
        term.ok_or_else(|| "this node does not lead the cluster any more".to_owned())
    }

    /// The number of the next move, greater than those that any node has given before.
    fn next_number(&self) -> Result<u64, String> {
        Ok(self.number_in(self.home_term()?))
    }

    /// The next one of a term in which this node led home, or still does.
    fn number_in(&self, term: u64) -> u64 {
        let count = self.moves.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        first_number(term) | u64::from(count)
    }

    async fn run_move(
        self: &Arc<Self>,
        home: &Admin,
        (known, term): (&VhostHandle, u64),
        from: GroupNumber,
        to: GroupNumber,
    ) -> Result<u64, String> {
        let busy = "the move before is just being settled: try again in a few seconds";
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.moves.turn.lock());
        let _turn = turn.await.map_err(|_| busy)?;
        // Greater than that by which those before it were given up meanwhile.
        let number = self.number_in(term);
        let moved = async {
            let messages = self.have_it_taken((known.name(), number), from, to).await?;
            // Who lists all vhosts meanwhile would find it twice, or not at all.
            let alone = Arc::clone(&self.moves.changes).write_owned();
            let alone = tokio::time::timeout(CHANGE_TIMEOUT, alone).await;
            let (admin, vhost) = (home.clone(), known.clone());
            let said = blocking(move || match to {
                GroupNumber::HOME => admin.accept_vhost(vhost.name(), Some(&vhost)),
                to => admin.set_vhost_group(&vhost, to.0),
            });
            match said.await {
                // What came behind that may have failed: home's log has it, and the other group the only copy that counts.
                Err(why) if is_said_to_be_in(home, known, to) => {
                    tracing::error!(vhost = known.name(), %to, why, "the vhost has moved all the same");
                    Ok((messages, alone))
                }
                said => said.map(|()| (messages, alone)),
            }
        };
        let (messages, alone) = match moved.await {
            Ok(moved) => moved,
            Err(why) => {
                // Where it is, one that home has said to be there may not be adopted yet.
                for (group, keeps_arrival) in [(to, false), (from, true)] {
                    let vhost = known.name().to_owned();
                    let request = Request::GiveUp { vhost, group, number, keeps_arrival };
                    // If the node is away, this is done once it is back.
                    drop(self.ask_leader(group, request).await);
                }
                return Err(why);
            }
        };
        let _alone = self.is_said(home, known.name(), alone).await?;
        self.spread_definitions().await;
        if from == GroupNumber::HOME {
            let admin = home.clone();
            if let Err(why) = blocking(move || admin.clear_moved_vhosts()).await {
                tracing::warn!(
                    vhost = known.name(),
                    why,
                    "what the vhost has left in home can't be removed yet"
                );
            }
        }
        Ok(messages)
    }

    /// Waits until home has on a majority of disks where a vhost is. Until then it may come to be so, or not: if this node loses the
    /// lead, the next leader of home decides by what it has. Others wait with `alone` for a while only.
    async fn is_said<T>(&self, home: &Admin, vhost: &str, alone: T) -> Result<Option<T>, String> {
        let (mut durable, mut alone) = (home.durable(), Some(alone));
        loop {
            if let Ok(said) = tokio::time::timeout(SAID_TIMEOUT, &mut durable).await {
                return said.map(|()| alone).map_err(|fault| fault.explanation);
            }
            drop(alone.take());
            self.home_term()?;
            tracing::warn!(
                vhost,
                "home has no majority of disks that says where the vhost is: its move waits for one"
            );
        }
    }

    /// Has the node that leads the other group take a vhost in.
    async fn have_it_taken(
        &self,
        (vhost, number): (&str, u64),
        from: GroupNumber,
        to: GroupNumber,
    ) -> Result<u64, String> {
        let name = || vhost.to_owned();
        self.ask_leader(to, Request::Take { vhost: name(), from, to, number }).await?;
        let mut silences = 0;
        loop {
            tokio::time::sleep(ASK_INTERVAL).await;
            let answer = self.ask_leader(to, Request::Taking { vhost: name(), number }).await;
            let progress = answer.and_then(|answer| {
                serde_json::from_str::<Progress>(&answer).map_err(|error| error.to_string())
            });
            match progress {
                Ok(Progress::Running) => silences = 0,
                Ok(Progress::Done(messages)) => return Ok(messages),
                Ok(Progress::Failed(why)) => return Err(why),
                Err(_) if silences < SILENCES_MAX => silences += 1,
                Err(why) => return Err(why),
            }
        }
    }

    /// Asks the node that leads a group, which may be this one.
    async fn ask_leader(&self, group: GroupNumber, request: Request) -> Result<String, String> {
        let own = self.endpoint.about().node;
        let leader = self.groups.get(group).and_then(|group| group.leader(own));
        let leader = leader.ok_or_else(|| format!("no node leads group {group} now"))?;
        if leader == own {
            return self.answer_move(request);
        }
        self.ask(leader, &Question::Move(request)).await.map_err(|error| error.to_string())
    }

    /// Takes a vhost in from the node that leads the group that has it, which may be this one.
    async fn take_vhost(
        &self,
        admin: Admin,
        (vhost, number): (&str, u64),
        (from, to): (GroupNumber, GroupNumber),
    ) -> Result<u64, String> {
        let group = self.groups.get(from).ok_or_else(|| format!("there is no group {from}"))?;
        // It may have been here, and be about to be removed.
        let until = Instant::now() + REMOVED_TIMEOUT;
        while to != GroupNumber::HOME && admin.vhost(vhost).is_some() && Instant::now() < until {
            tokio::time::sleep(ASK_INTERVAL).await;
        }
        let note = Note::vhost((vhost, number), from, &self.endpoint.about().name);
        match self.way(&group, &note, GIVER_PATIENCE, None).await {
            Err(why) => Err(format!("group {from} can't be asked for it: {why}")),
            Ok(Way::There(_, tunnel)) => take(admin, (vhost, number), tunnel).await,
            Ok(Way::Here(service)) => {
                let (own, other) = tokio::io::duplex(PIPE_BYTES);
                let (giver, stopping) = (service.shared.broker.admin(), service.stopping());
                drop(service);
                tokio::spawn(give(giver, (vhost.to_owned(), number), own, stopping));
                take(admin, (vhost, number), other).await
            }
        }
    }

    /// Ends moves that an earlier node that led home has left in the middle, if this one leads home and it is time to look.
    pub(super) async fn settle_moves(&self) {
        let Ok(home) = self.home_admin() else { return };
        let is_time = {
            let mut settled = self.moves.settled.lock();
            let is_time = settled.is_none_or(|at| at.elapsed() >= SETTLE_INTERVAL);
            if is_time {
                *settled = Some(Instant::now());
            }
            is_time
        };
        if !is_time || !self.groups.are_several() {
            return;
        }
        let Ok(_turn) = self.moves.turn.try_lock() else { return };
        self.clear_left(&home).await;
        // Of moves before this; the next one has a greater number.
        let Ok(number) = self.next_number() else { return };
        for group in self.groups.all() {
            let group = group.number;
            // A node that is away is asked again.
            let Ok(answer) = self.ask_leader(group, Request::Open { group }).await else {
                continue;
            };
            let Ok(Open { held, arrived }) = serde_json::from_str(&answer) else { continue };
            let is_in = |vhost: &String| home.vhost(vhost).map(|view| view.group) == Some(group.0);
            // The others are as home says, and the group is about to hear of it.
            let held = held.into_iter().filter(is_in).map(|vhost| (vhost, true));
            let arrived = arrived.into_iter().filter(|vhost| !is_in(vhost));
            let left: Vec<_> = held.chain(arrived.map(|vhost| (vhost, false))).collect();
            if left.is_empty() || !is_durable(&home).await {
                continue;
            }
            for (vhost, keeps_arrival) in left {
                tracing::info!(vhost, %group, "a move that was left in the middle is given up");
                let request = Request::GiveUp { vhost, group, number, keeps_arrival };
                drop(self.ask_leader(group, request).await);
            }
        }
    }

    /// Removes what is left in home of vhosts that have moved away.
    async fn clear_left(&self, home: &Admin) {
        if !is_durable(home).await {
            return;
        }
        let admin = home.clone();
        match blocking(move || admin.clear_moved_vhosts()).await {
            Ok(vhosts) if vhosts.is_empty() => {}
            Ok(vhosts) => tracing::info!(
                vhosts = vhosts.join(", "),
                "removed from home what vhosts had left that have moved"
            ),
            Err(why) => tracing::warn!(why, "what vhosts have left in home can't be removed yet"),
        }
    }
}

/// Whether all that home says is on a majority of disks: else it may not be so, a deletion too, at the next leader of home.
async fn is_durable(home: &Admin) -> bool {
    matches!(tokio::time::timeout(CHANGE_TIMEOUT, home.durable()).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests;
