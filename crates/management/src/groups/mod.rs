//! A cluster with several groups: each vhost is in one, and each group is a broker of its own.
//!
//! The broker of group 0 is *home*: it has the users, the permissions and the list of all vhosts, and its API answers for all
//! groups. What is about one vhost is passed on to the group that has it; what is about all of them is asked of every
//! group and put together, as if it were from one broker. Where a group can't be reached nothing is answered at all: a part must
//! not be taken for everything.
//!
//! - [`scopes`]: which requests are answered how;
//! - [`answer`]: does that;
//! - [`link`]: connections to the API of the other groups;
//! - [`inside`]: on whose behalf requests come over these;
//! - [`rows`]: lists, merged row by row;
//! - [`parts`]: answers that are put together whole, and [`sums`], [`nodes`], [`documents`]: how;
//! - [`events`]: what happens, from all groups;
//! - [`imports`]: definitions, each to where it belongs.

pub(crate) mod answer;
mod documents;
mod events;
mod imports;
pub(crate) mod inside;
pub(crate) mod link;
mod nodes;
mod parts;
mod rows;
mod scopes;
mod sums;

pub(crate) use imports::LIMITS;
pub(crate) use sums::WEIGHT;

use crate::RelayStream;
use crate::refusal::Refusal;
use courser_broker::admin::{VhostSettings, VhostView};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;

/// The group whose API answers for all.
pub const HOME: u16 = 0;

/// What comes later.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The groups of a cluster, as the node knows them on which home is. Nothing here blocks.
pub trait Groups: Send + Sync {
    /// The group that a vhost is in; none if there is no such vhost.
    fn group_of(&self, vhost: &str) -> Option<u16>;

    /// The groups besides home, in their order.
    fn others(&self) -> Vec<u16>;

    /// A connection to the API of the broker that leads a group ([`crate::Api::serve_inside`] at the other end).
    fn connect(&self, group: u16) -> Later<io::Result<RelayStream>>;

    /// Has the other groups get what was changed of what they have a copy of, and waits until they have it, for 2 s at most.
    fn changed(&self) -> Later<()>;

    /// Says in the settings of a new vhost which group it is in.
    fn place(&self, vhost: &str, settings: &mut VhostSettings, group: u16);
}

/// The group that a new vhost goes to: the one that is asked for, or the one with the fewest vhosts, of several the first.
///
/// # Errors
/// When there is no such group.
pub(crate) fn for_new(
    groups: &dyn Groups,
    vhosts: &[VhostView],
    wanted: Option<u16>,
) -> Result<u16, Refusal> {
    let mut counts: BTreeMap<u16, usize> =
        groups.others().into_iter().chain([HOME]).map(|group| (group, 0)).collect();
    if let Some(wanted) = wanted {
        return match counts.contains_key(&wanted) {
            true => Ok(wanted),
            false => Err(no_group(wanted)),
        };
    }
    for group in vhosts.iter().filter_map(|vhost| groups.group_of(&vhost.name)) {
        if let Some(count) = counts.get_mut(&group) {
            *count += 1;
        }
    }
    let fewest = counts.into_iter().min_by_key(|(group, count)| (*count, *group));
    Ok(fewest.map_or(HOME, |(group, _)| group))
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
