//! What the API asks of the cluster that the broker is a node of.

use serde_json::Value;

/// The cluster, as whoever runs the node knows it. Nothing here is asked on a thread that must not be blocked.
pub trait Cluster: Send + Sync {
    /// Its members, who leads, and how far they are.
    fn status(&self) -> Value;

    /// The name of this node.
    fn node_name(&self) -> String;

    /// The names of all members, and whether this node reaches them.
    fn nodes(&self) -> Vec<(String, bool)>;

    /// Whether this node knows who leads.
    fn has_leader(&self) -> bool;

    /// Whether there would be no majority without this node.
    fn is_quorum_critical(&self) -> bool;

    /// Takes the node at an address in. It votes when it has caught up.
    ///
    /// # Errors
    /// Why it can't be.
    fn add(&self, address: &str) -> Result<Value, ClusterError>;

    /// Removes a member.
    ///
    /// # Errors
    /// Why it can't be.
    fn remove(&self, node: &str) -> Result<(), ClusterError>;

    /// Has a member lead, or the one that lacks least. Returns its name.
    ///
    /// # Errors
    /// Why it can't.
    fn transfer_leader(&self, to: Option<&str>) -> Result<String, ClusterError>;

    /// Its metrics, in the text format of Prometheus.
    fn metrics(&self) -> String;
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
