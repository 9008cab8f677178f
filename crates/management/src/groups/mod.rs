//! A cluster with several groups: each vhost is in one, and each group is a broker of its own.
//!
//! The broker of group 0 is *home*: it has the users, the permissions and the list of all vhosts, and its API answers for all
//! groups. What is about one vhost is passed on to the group that has it; what is about all of them is asked of every
//! group and put together, as if it were from one broker. Where a group can't be reached nothing is answered at all: a part must
//! not be taken for everything. Only what is counted over all groups, what needs attention included, goes without those in which
//! the node can't take part yet: that may last, and has to be seen.
//!
//! - [`scopes`]: which requests are answered how;
//! - [`answer`]: does that;
//! - [`link`]: connections to the API of the other groups;
//! - [`inside`]: on whose behalf requests come over these;
//! - [`rows`]: lists, merged row by row;
//! - [`parts`]: answers that are put together whole, and [`sums`], [`nodes`], [`documents`]: how;
//! - [`gather`]: how many of these are answered at the same time;
//! - [`events`]: what happens, from all groups;
//! - [`imports`]: definitions, each to where it belongs.

pub(crate) mod answer;
mod documents;
mod events;
mod gather;
mod imports;
pub(crate) mod inside;
pub(crate) mod link;
mod nodes;
mod parts;
mod rows;
mod scopes;
mod sums;

pub(crate) use sums::WEIGHT;

use crate::RelayStream;
use crate::call::Call;
use crate::refusal::Refusal;
use serde_json::{Map, Value};
use std::io;
use std::pin::Pin;
use tokio::sync::OwnedRwLockReadGuard;

/// The group whose API answers for all.
pub const HOME: u16 = 0;

/// What comes later.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Keeps vhosts in their groups, so that who lists all of them finds each once.
pub type Settled = Option<OwnedRwLockReadGuard<()>>;

/// The groups of a cluster, as the node knows them on which home is. Nothing here blocks.
pub trait Groups: Send + Sync {
    /// The groups besides home, in their order.
    fn others(&self) -> Vec<u16>;

    /// Those of them that the node can't reach, as it can't take part in them yet.
    fn without_part(&self) -> Vec<u16>;

    /// Those of them that a node leads.
    fn led(&self) -> Vec<u16>;

    /// A connection to the API of the broker that leads a group ([`crate::Api::serve_inside`] at the other end).
    fn connect(&self, group: u16) -> Later<io::Result<RelayStream>>;

    /// Waits while a vhost changes its group, for 2 s at most. None does as long as what comes is kept.
    fn settled(&self) -> Later<Settled>;

    /// Has the other groups get what was changed of what they have a copy of, and waits until they have it, for 2 s at most.
    /// Returns those that are not known to have it.
    fn changed(&self) -> Later<Vec<u16>>;
}

/// How many groups there are, home included.
pub(crate) fn count(call: &Call) -> u16 {
    let others = call.api.settings.groups.as_ref().map(|groups| groups.others());
    others.and_then(|others| others.last().copied()).unwrap_or(HOME) + 1
}

/// The groups that a new vhost may be put into where the request names none. Home is led: it answers.
pub(crate) fn led(call: &Call) -> Vec<u16> {
    let others = call.api.settings.groups.as_ref().map(|groups| groups.led());
    std::iter::once(HOME).chain(others.into_iter().flatten()).collect()
}

/// The groups that no node leads.
pub(crate) fn leaderless(call: &Call) -> Vec<u16> {
    let Some(groups) = &call.api.settings.groups else { return Vec::new() };
    let led = groups.led();
    groups.others().into_iter().filter(|group| !led.contains(group)).collect()
}

/// Refuses a group that there is not.
pub(crate) fn no_group(group: u16) -> Refusal {
    Refusal::bad_request(format!(
        "there is no group {group} in this cluster (cluster.groups says how many there are)"
    ))
}

/// The group that the body of a request names.
///
/// # Errors
/// When it is no number of a group.
pub(crate) fn wanted(body: &Map<String, Value>) -> Result<Option<u16>, Refusal> {
    let wrong = || Refusal::bad_request("group is no number of a group");
    match body.get("group") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
            number.map(Some).ok_or_else(wrong)
        }
    }
}
