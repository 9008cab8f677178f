//! What the API asks of the cluster that the broker is a node of.

use crate::ScrubState;
use crate::runtime::{AskedSetting, SettingInEffect};
use serde_json::Value;

/// How far a node's drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// It is drained: by a command that was not taken back, and since it was started.
    pub draining: bool,
    /// How many clients it still has, if another node leads.
    pub clients: Option<usize>,
}

/// How far a vhost is that goes to another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VhostMove {
    /// It is on its way.
    Running,
    /// It is there, with so many messages.
    Done(u64),
    /// It is where it was, and why.
    Failed(String),
}

/// The cluster, as the server knows it. Nothing here is asked on a thread that must not be blocked.
pub trait Cluster: Send + Sync {
    /// Its members, who leads, and how far they are.
    fn status(&self) -> Value;

    /// The name of this node.
    fn node_name(&self) -> String;

    /// All members, as this node sees them.
    fn nodes(&self) -> Vec<ClusterNode>;

    /// The members of a group, each of them with whether its part of the group runs, as this node sees them. None while this node
    /// has no part in it.
    fn replicas(&self, group: u16) -> Vec<ClusterNode>;

    /// What is short on the other members that answer, each with the member's name. Takes seconds at most.
    fn alarms_elsewhere(&self) -> Vec<(String, &'static str)>;

    /// Whether this node gives up its clients, see [`Cluster::drain`].
    fn is_draining(&self) -> bool;

    /// Why clients should not be sent to this node, if there is a reason.
    fn why_not_ready(&self) -> Option<String>;

    /// Whether there would be no majority without this node.
    fn is_quorum_critical(&self) -> bool;

    /// Takes the node at an address in. It votes when it has caught up.
    ///
    /// # Errors
    /// Why it can't be.
    fn add(&self, address: &str) -> Result<Value, ClusterError>;

    /// Removes a member. Returns those that are left and do not vote yet: they are no replacement before they do.
    ///
    /// # Errors
    /// Why it can't be.
    fn remove(&self, node: &str) -> Result<Vec<String>, ClusterError>;

    /// Has a member lead a group, or the one that lacks least. Returns its name.
    ///
    /// # Errors
    /// Why it can't.
    fn transfer_leader(&self, group: u16, to: Option<&str>) -> Result<String, ClusterError>;

    /// Begins to move a vhost to another group: its clients are told to go, and find it there.
    ///
    /// # Errors
    /// Why it can't be moved.
    fn move_vhost(&self, vhost: &str, group: u16) -> Result<(), ClusterError>;

    /// How far that is.
    ///
    /// # Errors
    /// When this node has not begun to move it.
    fn moved(&self, vhost: &str) -> Result<VhostMove, ClusterError>;

    /// Has a node take no new clients, and close the connections of those that it has, `group` at a time with pauses between.
    /// Returns how many there are, if another node leads already. What has begun is not begun anew.
    ///
    /// # Errors
    /// Why it can't.
    fn drain(&self, node: &str, group: usize, pause_ms: u64)
    -> Result<Option<usize>, ClusterError>;

    /// How far the drain of a node is.
    ///
    /// # Errors
    /// Why it can't be known.
    fn drained(&self, node: &str) -> Result<Drained, ClusterError>;

    /// Has a node that was drained take clients again.
    ///
    /// # Errors
    /// Why it can't.
    fn resume(&self, node: &str) -> Result<(), ClusterError>;

    /// How far a node is with reading its logs for damage, which it begins, if `start` is set.
    ///
    /// # Errors
    /// Why it can't be known.
    fn scrub(&self, node: &str, start: bool) -> Result<ScrubState, ClusterError>;

    /// What a setting of a node that can change is, or has become.
    ///
    /// # Errors
    /// Why it can't be known, or can't be that.
    fn runtime_setting(
        &self,
        node: &str,
        asked: &AskedSetting,
    ) -> Result<SettingInEffect, ClusterError>;

    /// Its metrics, in the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// A member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: ClusterRole,
    /// Whether the node that was asked reaches it.
    pub is_connected: bool,
}

/// What a member does in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterRole {
    /// It leads.
    Leader,
    /// It votes.
    Follower,
    /// It has to catch up before it votes.
    Learner,
}

impl ClusterRole {
    /// Its name, as the API has it.
    pub fn name(self) -> &'static str {
        match self {
            ClusterRole::Leader => "leader",
            ClusterRole::Follower => "follower",
            ClusterRole::Learner => "learner",
        }
    }
}

/// Why something can't be done to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// There is no such node.
    #[error("{0}")]
    NotFound(String),
    /// It makes no sense.
    #[error("{0}")]
    Refused(String),
    /// Not now, or not on this node.
    #[error("{0}")]
    Unavailable(String),
}
