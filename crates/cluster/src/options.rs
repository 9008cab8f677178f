//! What can be set about a group.

use crate::NodeId;

/// Times are in ticks: one is the time between two calls of [`Group::tick`](crate::Group::tick).
#[derive(Clone, Debug)]
pub struct Options {
    /// This node.
    pub node: NodeId,
    /// What the election timeouts of this node are drawn from. Should differ from node to node.
    pub seed: u64,
    /// A follower that has heard from no node for this long, and up to as long again, wants to lead; a leader that has
    /// not heard from a majority for this long stops leading.
    pub election_ticks: usize,
    /// A leader says this often that it is there.
    pub heartbeat_ticks: usize,
    /// Bytes of entries in one packet, if it is more than one entry.
    pub packet_bytes: u64,
    /// Packets of entries on the way to a follower that has not answered them.
    pub packets_in_flight: usize,
    /// Bytes of entries that are read for followers in one tick, and one entry. Entries may be large, and this node's thread also
    /// has to say that it leads.
    pub read_bytes: u64,
    /// Bytes that may wait for a majority before nothing more is taken.
    pub uncommitted_bytes: u64,
}

impl Options {
    /// The usual ones, for ticks of 50 ms: an election begins 0.5 to 1 s after the leader was heard last.
    pub fn new(node: NodeId) -> Self {
        Options {
            node,
            seed: node.0,
            election_ticks: 10,
            heartbeat_ticks: 2,
            packet_bytes: 128 << 10,
            packets_in_flight: 256,
            read_bytes: 16 << 20,
            uncommitted_bytes: 256 << 20,
        }
    }
}
