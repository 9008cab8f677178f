//! A node of a cluster: it keeps a copy of everything, and serves clients when it leads.
//!
//! - [`node`]: its start and its end.
//! - [`part`]: how it takes part, and what happens when the lead changes.
//! - [`adopting`]: how it begins a cluster with the data of a broker by itself.
//! - [`answers`]: what it answers over HTTP when it does not lead.
//! - [`definitions`]: what other groups have of home's definitions.
//! - [`passing`]: what a client and the node that leads say to each other.
//! - [`opening`]: whether the client has been let in by that.
//! - [`drain`]: how it is made ready to be stopped.
//! - [`figures`]: what it counts.
//! - [`recovering`]: a cluster of one from what a stopped member has.
//! - [`redirect`], [`handshake`], [`watched`], [`replayed`]: a client that comes to one group and is served by another.
//! - [`whereabouts`]: which group a vhost is in.
//! - [`front`]: a client that comes to this node is served here, or passed on to the node that leads.
//! - [`group`], [`groups`]: the logs that the nodes have together, each with its leader.
//! - [`other_nodes`]: how it reaches the one that leads, for its clients.
//! - [`founding`]: how groups come to be, and keep the members that the cluster has.
//! - [`tunnel`]: clients that come by way of another node.
//! - [`incoming`]: what comes from other nodes.
//! - [`copies`]: whole copies of the log, for a node that can't follow.
//! - [`moving`], [`carrying`]: how a vhost goes to another group.
//! - [`members`]: what an operator sees of the cluster and does to it.
//! - [`questions`]: what nodes ask each other.
//! - [`succession`]: who leads next.
//! - [`roster`]: who and where the other nodes are.
//! - [`security`]: TLS between nodes.
//! - [`sockets`]: WebSockets of clients that have come to a node which does not lead.
//! - [`spread`]: which node leads which group.

mod adopting;
mod answers;
mod apis;
mod carrying;
mod copies;
mod definitions;
mod drain;
mod figures;
mod founding;
mod front;
mod group;
mod groups;
mod handshake;
mod incoming;
mod leaving;
mod members;
mod mending;
mod moving;
mod node;
mod opening;
mod other_nodes;
mod part;
mod passing;
mod questions;
mod recovering;
mod redirect;
mod reloads;
mod replayed;
mod roster;
mod security;
#[cfg(test)]
mod simulated;
mod sockets;
mod spread;
mod succession;
#[cfg(test)]
mod testing;
mod tunnel;
mod watched;
mod whereabouts;

pub(crate) use apis::Apis;
pub(crate) use front::Front;
pub(crate) use groups::GROUPS_MAX;
pub use node::Node;
pub use recovering::{RecoveryError, recover};
pub(crate) use redirect::Newcomer;
#[cfg(test)]
pub(crate) use {
    front::Serves,
    other_nodes::{OtherNodes, Tunnel},
    simulated::SimulatedFront,
    testing::{pass_on, serve_elsewhere},
};
