//! The leads of the groups are spread over the nodes by what the groups do.
//!
//! The node that leads home looks every few seconds at who leads what, and has at most one lead moved: from the node with the most
//! to do to the one with the least, if that makes the most any node has to do clearly less. A lead that moves closes its group's
//! connections, so one that has moved stays for a minute. The home group stays where it is.

use super::front::Serves;
use super::leaving::leads_now;
use super::members::{Members, proposed};
use super::questions::Question;
use courser_cluster::{Follower, GroupNumber, Member, NodeId, Status};
use courser_management::ClusterError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(5);
/// How long a lead stays that has moved, as far as the leader of home knows.
const REST: Duration = Duration::from_secs(60);
/// How long a node may take to say what it does.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// By how much less the busier of two nodes has to have to do after a move: half of what an idle group counts for.
const GAIN_MIN: f64 = 0.5;
/// Entries that a node may lack of a group that is to lead it: what is on its way while all is well.
pub(super) const LAG_MAX: u64 = 1000;

/// What a group has done since its leader began to lead it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Load {
    group: GroupNumber,
    /// Messages published and delivered.
    messages: u64,
    /// Entries that the other members lack.
    lags: BTreeMap<NodeId, u64>,
}

/// What was seen of the groups' work.
#[derive(Default)]
pub(super) struct Spread {
    /// Locked during a look, also while other nodes are asked.
    seen: Mutex<Seen>,
    /// When the leads have moved that stay for a while.
    moved: Mutex<BTreeMap<GroupNumber, Instant>>,
    /// What the members lacked of each group when it was looked last.
    lags: Mutex<BTreeMap<GroupNumber, BTreeMap<NodeId, u64>>>,
    /// Leads stay where a test has put them.
    #[cfg(test)]
    pub is_off: std::sync::atomic::AtomicBool,
}

#[derive(Default)]
struct Seen {
    at: Option<Instant>,
    /// Who led which group, and what it had done.
    groups: BTreeMap<GroupNumber, (NodeId, u64)>,
}

impl Spread {
    /// What the members lacked of a group some seconds ago, if this node leads home.
    pub fn lags(&self, group: GroupNumber) -> Option<BTreeMap<NodeId, u64>> {
        self.lags.lock().get(&group).cloned()
    }

    /// Leaves the lead of a group where it has just been put, for a while.
    pub fn rests(&self, group: GroupNumber) {
        self.moved.lock().insert(group, Instant::now());
    }
}

/// A node that could lead, and the groups that it leads, each with how much it has to do.
type Leads = BTreeMap<NodeId, Vec<(GroupNumber, f64)>>;

impl Members {
    /// What the groups do that this node leads.
    pub(super) fn own_loads(&self) -> Vec<Load> {
        let all = self.groups.all().into_iter();
        let led = all.filter_map(|group| match group.serves() {
            Serves::Here(service) => {
                let counts = service.shared.broker.admin().message_counts();
                let messages = counts.publishes.published + counts.deliveries().handed_out();
                let lags = group.status().map(|status| lags(&status)).unwrap_or_default();
                Some(Load { group: group.number, messages, lags })
            }
            _ => None,
        });
        led.collect()
    }

    /// Has a lead moved if the leads are not spread, if this node leads home and it is time to look. Blocks.
    pub(super) fn spread(&self) {
        #[cfg(test)]
        if self.spread.is_off.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        self.look_at_leads();
    }

    /// The same, where leads do not stay.
    fn look_at_leads(&self) {
        let is_home_here = matches!(self.groups.home().serves(), Serves::Here(_));
        let mut seen = self.spread.seen.lock();
        if !is_home_here || !self.groups.are_several() {
            *seen = Seen::default();
            self.spread.moved.lock().clear();
            self.spread.lags.lock().clear();
            return;
        }
        if seen.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        let loads = self.runtime.block_on(self.loads());
        let all = loads.values().flatten();
        *self.spread.lags.lock() = all.map(|load| (load.group, load.lags.clone())).collect();
        let Some((group, to)) = self.next_move(&mut seen, &loads) else { return };
        match self.move_lead(group, to) {
            Ok(()) => {
                tracing::info!(
                    group = group.0,
                    to = self.name(to),
                    "the lead of the group moves, so that leads are spread"
                );
                self.spread.rests(group);
            }
            Err(error) => {
                tracing::debug!(%error, group = group.0, "the lead of a group can't be moved now")
            }
        }
    }

    /// The lead that is to move, and where to. Blocks.
    fn next_move(
        &self,
        seen: &mut Seen,
        loads: &BTreeMap<NodeId, Vec<Load>>,
    ) -> Option<(GroupNumber, NodeId)> {
        let leads = self.leads(seen, loads)?;
        let moved = {
            let mut moved = self.spread.moved.lock();
            moved.retain(|_, since| since.elapsed() < REST);
            moved.clone()
        };
        let may_move = |group: GroupNumber, to: NodeId| {
            let lag = loads.values().flatten().find(|load| load.group == group)?.lags.get(&to);
            let rests = group == GroupNumber::HOME || moved.contains_key(&group);
            // One that has to catch up first can't take the lead in time, and meanwhile the group takes nothing.
            lag.filter(|lag| !rests && **lag <= LAG_MAX)
        };
        let (group, to) = better(&leads, |group, to| may_move(group, to).is_some())?;
        if !self.would_take(group, to) {
            // Others may move meanwhile.
            self.spread.rests(group);
            return None;
        }
        let Serves::Here(home) = self.groups.home().serves() else { return None };
        self.runtime.block_on(leads_now(home)).then_some((group, to))
    }

    /// Whether a node would lead this group: it would not with a damaged log, and hand the lead on. Blocks.
    fn would_take(&self, group: GroupNumber, to: NodeId) -> bool {
        let question = Question::Lead { group: Some(group) };
        self.first_of(vec![to], &question, |said| said == "true").is_some()
    }

    /// What each node that would lead says of the groups that it leads. One that is drained or away is not among them.
    async fn loads(&self) -> BTreeMap<NodeId, Vec<Load>> {
        let Some(status) = self.status_of_member() else { return BTreeMap::new() };
        let own = self.endpoint.about().node;
        let mut all = BTreeMap::new();
        if self.reluctance().is_none() {
            all.insert(own, self.own_loads());
        }
        let mut asking = JoinSet::new();
        let voters = status.members.voters.iter().filter(|node| **node != own);
        for node in voters.filter_map(|id| self.roster.node(*id)) {
            let endpoint = Arc::clone(&self.endpoint);
            asking.spawn(async move {
                let ask = async |question: &Question| {
                    let question = serde_json::to_string(question).ok()?;
                    let asked = endpoint.ask(&node.address, &question);
                    tokio::time::timeout(ANSWER_TIMEOUT, asked).await.ok()?.ok()
                };
                if ask(&Question::Lead { group: None }).await? != "true" {
                    return None;
                }
                let loads = ask(&Question::Loads).await?;
                Some((node.id, serde_json::from_str(&loads).ok()?))
            });
        }
        all.extend(asking.join_all().await.into_iter().flatten());
        all
    }

    /// Who leads what, with how much each group had to do since the last look; nothing at the first look. Of a group that has
    /// another leader now, it is not known.
    fn leads(&self, seen: &mut Seen, loads: &BTreeMap<NodeId, Vec<Load>>) -> Option<Leads> {
        let now = Instant::now();
        let each =
            loads.iter().flat_map(|(node, loads)| loads.iter().map(move |load| (*node, load)));
        let new: BTreeMap<_, _> =
            each.map(|(node, load)| (load.group, (node, load.messages))).collect();
        let before = std::mem::replace(&mut seen.groups, new.clone());
        let seconds = seen.at.replace(now)?.elapsed().as_secs_f64().max(0.1);
        let rate = |group: &GroupNumber, node: NodeId, messages: u64| match before.get(group) {
            Some((led_by, then)) if *led_by == node => {
                messages.saturating_sub(*then) as f64 / seconds
            }
            _ => 0.0,
        };
        let rates: BTreeMap<GroupNumber, f64> = new
            .iter()
            .map(|(group, (node, messages))| (*group, rate(group, *node, *messages)))
            .collect();
        let total: f64 = rates.values().sum();
        // Half of what counts is how many groups there are, so that idle ones are spread too.
        let share = |group| match total {
            total if total < 1.0 => 1.0,
            total => 1.0 + rates[group] / total * rates.len() as f64,
        };
        let mut leads: Leads = loads.keys().map(|node| (*node, Vec::new())).collect();
        for (group, (node, _)) in &new {
            leads.entry(*node).or_default().push((*group, share(group)));
        }
        Some(leads)
    }

    /// Has the node that leads a group hand its lead to another one. Blocks.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn move_lead(&self, group: GroupNumber, to: NodeId) -> Result<(), ClusterError> {
        let unknown = || ClusterError::NotFound(format!("no group {group} of the cluster"));
        let own = self.endpoint.about().node;
        let leader = self.groups.get(group).ok_or_else(unknown)?.leader(own);
        let leader = leader.and_then(|leader| self.roster.node(leader));
        let unled = || ClusterError::Unavailable(format!("no node leads group {group} now"));
        let leader = leader.ok_or_else(unled)?;
        self.ask(&leader, &Question::HandOver { group, to }).map(drop)
    }

    /// Hands the lead of a group to a node, if this one has it.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn hand_over(
        &self,
        group: GroupNumber,
        to: NodeId,
    ) -> Result<(), ClusterError> {
        let member: Option<Arc<Member>> =
            self.groups.get(group).and_then(|group| match group.serves() {
                Serves::Here(_) => group.member(),
                _ => None,
            });
        let unled = || ClusterError::Unavailable(format!("this node does not lead group {group}"));
        let member = member.ok_or_else(unled)?;
        if !member.status().members.voters.contains(&to) {
            return Err(ClusterError::Refused(format!(
                "node '{}' does not vote in group {group} yet",
                self.name(to)
            )));
        }
        // The group's thread may have to wait for its disk first.
        let transfer = tokio::task::spawn_blocking(move || member.transfer_to(to)).await;
        transfer.map_or_else(|error| Err(ClusterError::Unavailable(error.to_string())), proposed)
    }
}

/// Entries that the other members lack of a group that this node leads.
pub(super) fn lags(status: &Status) -> BTreeMap<NodeId, u64> {
    let lag = |one: &Follower| (one.node, status.last.saturating_sub(one.matched));
    status.followers.iter().map(lag).collect()
}

/// The lead that is better moved, and where to: from the node with the most to do to the one with the least of those that may take
/// it.
fn better(
    leads: &Leads,
    may_move: impl Fn(GroupNumber, NodeId) -> bool,
) -> Option<(GroupNumber, NodeId)> {
    let sum = |groups: &[(GroupNumber, f64)]| groups.iter().map(|(_, load)| load).sum::<f64>();
    let sums = || leads.iter().map(|(node, groups)| (*node, sum(groups)));
    let (busiest, most) = sums().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let moves = leads[&busiest].iter().filter_map(|(group, load)| {
        let able = sums().filter(|(node, _)| *node != busiest && may_move(*group, *node));
        let (idlest, least) = able.min_by(|one, other| one.1.total_cmp(&other.1))?;
        // What the busier of the two has to do after the move.
        let after = (most - load).max(least + load);
        Some((*group, idlest, after))
    });
    let (group, to, after) = moves.min_by(|one, other| one.2.total_cmp(&other.2))?;
    (after <= most - GAIN_MIN).then_some((group, to))
}

#[cfg(test)]
mod tests;
