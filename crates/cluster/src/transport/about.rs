//! Who a node is, as it says in handshakes.

use crate::NodeId;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Bytes of a cluster's or a node's name.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of an address: a host name, a colon and a port.
const ADDRESS_BYTES_MAX: usize = 262;
/// Nodes that one knows of. More than a group has members: those that were removed are forgotten late.
const KNOWN_MAX: usize = 64;

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The cluster that it belongs to, or wants to.
    pub cluster: String,
    /// Its number.
    pub node: NodeId,
    /// A number of its process, drawn when that starts.
    #[serde(default)]
    pub process: Option<u64>,
    /// Its name.
    pub name: String,
    /// Where others reach it, as `host:port`.
    pub address: String,
    /// The version of its build.
    pub version: String,
    /// Bytes of a segment of the log, if this node is to choose.
    pub segment_bytes: u64,
    /// What the number of the cluster is made of, if this node is to choose. Drawn for its folder, and told to nodes only.
    pub seed: u64,
    /// What it belongs to; none before it belongs to anything.
    pub formation: Option<Formation>,
    /// It has what a broker by itself has left in its folder, with which it can begin a cluster and not join one.
    #[serde(default)]
    pub has_data: bool,
    /// Others that it knows of.
    #[serde(default)]
    pub known: Vec<Node>,
}

/// What a cluster is, from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formation {
    /// The identity of its group.
    pub group: u64,
    /// Bytes of a segment of its log.
    pub segment_bytes: u64,
    /// The nodes that have made it, by their numbers.
    pub founders: Vec<NodeId>,
    /// What it was last recovered by, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

/// A [recovery](crate::forming::Survivor) of a cluster from one member's copy. The cluster is another one from then on, though
/// its log bears the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// How many there were, with this one.
    pub times: u32,
    /// Drawn for this one, so that two members that were recovered apart are two clusters.
    pub number: u64,
}

/// Two nodes of one cluster between which a recovery lies.
pub(super) struct Apart {
    /// What it means.
    pub why: String,
    /// The node that the recovery has left behind, if it is one of both.
    pub left_behind: Option<NodeId>,
}

/// A node, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Where others reach it, as `host:port`.
    pub address: String,
}

impl About {
    /// The node, without what it belongs to.
    pub fn node(&self) -> Node {
        Node { id: self.node, name: self.name.clone(), address: self.address.clone() }
    }

    /// Why this is not the other node, though both have the same number, if it is not.
    pub(crate) fn clash_with(&self, other: &About) -> Option<String> {
        let is_other = self.process?.ne(&other.process?);
        (self.node == other.node && is_other).then(|| {
            format!(
                "nodes '{}' ({}) and '{}' ({}) have the same number, as the data folder of one is a copy of the other's: start \
                 one of them with an empty folder",
                self.name, self.address, other.name, other.address
            )
        })
    }

    /// Whether a recovery lies between this node and another one of its cluster.
    pub(super) fn apart_from(&self, other: &About) -> Option<Apart> {
        let (one, two) = (self.formation.as_ref()?, other.formation.as_ref()?);
        if one.group != two.group || one.recovery == two.recovery {
            return None;
        }
        let times = |formation: &Formation| formation.recovery.map_or(0, |one| one.times);
        let (gone, kept) = match times(one).cmp(&times(two)) {
            Ordering::Less => (self, other),
            Ordering::Greater => (other, self),
            Ordering::Equal => {
                let why = format!(
                    "nodes '{}' and '{}' were recovered apart from each other, and are two clusters of the name '{}': keep \
                     one, and start the other with an empty folder",
                    self.name, other.name, self.cluster
                );
                return Some(Apart { why, left_behind: None });
            }
        };
        let why = format!(
            "cluster '{}' was recovered without node '{}', whose data folder is of before, as node '{}' says: start it with an \
             empty folder, and add it anew",
            kept.cluster, gone.name, kept.name
        );
        Some(Apart { why, left_behind: Some(gone.node) })
    }

    /// What is wrong with it, if something is.
    pub(super) fn refuses(&self) -> Option<&'static str> {
        let is_node = |node: &Node| {
            node.id.0 != 0
                && (1..=NAME_BYTES_MAX).contains(&node.name.len())
                && (1..=ADDRESS_BYTES_MAX).contains(&node.address.len())
        };
        match () {
            () if !(1..=NAME_BYTES_MAX).contains(&self.cluster.len()) => {
                Some("the name of the cluster has to have 1 to 64 bytes")
            }
            () if !is_node(&self.node()) => Some("it does not say who it is and where"),
            () if self.version.len() > NAME_BYTES_MAX => Some("its version is too long"),
            () if self.known.len() > KNOWN_MAX => Some("it knows too many nodes"),
            () if !self.known.iter().all(is_node) => Some("a node that it knows is none"),
            () if self.formation.as_ref().is_some_and(|one| one.founders.len() > KNOWN_MAX) => {
                Some("its cluster has too many founders")
            }
            () => None,
        }
    }
}
