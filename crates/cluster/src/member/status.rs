//! What is said of a group.

use crate::{Follower, Members, NodeId};
use std::sync::Arc;

/// Who leads the group, as far as this node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another node, or one that is not known.
    Following {
        /// Which node.
        leader: Option<NodeId>,
    },
    /// This node, and everything that was ever confirmed is in its log.
    Serving {
        /// In which term.
        term: u64,
    },
    /// This node can't follow without a copy of the leader's log, see [`CopySink`](crate::CopySink). The group has ended
    /// here, and is started again on the copy.
    Lacks {
        /// Who has offered one.
        leader: NodeId,
    },
    /// The group has ended on this node: its disk has failed, or consensus has.
    Ended {
        /// Why.
        reason: Arc<str>,
    },
}

/// How a group does.
#[derive(Clone, Debug)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// The newest term that it knows.
    pub term: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<NodeId>,
    /// Who takes part.
    pub members: Members,
    /// The entry that has made them what they are.
    pub members_index: u64,
    /// The last entry of its log.
    pub last: u64,
    /// Everything up to this entry is committed, as far as it knows.
    pub committed: u64,
    /// The others, if it leads.
    pub followers: Vec<Follower>,
    /// Bytes that it has placed as a leader, and no majority has.
    pub uncommitted_bytes: u64,
    /// How often this node has seen a leader come since it started.
    pub elections: u64,
}
