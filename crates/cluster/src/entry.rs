//! Entries of a group's log, and what names them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A node of the cluster. A number is never used again, also not by a node that has lost its disk: what it has said
/// would be forgotten. 0 is none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which of a cluster's groups: a log with the vhosts that are in it. Each has the same members, and elects its own leader.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct GroupNumber(pub u16);

impl GroupNumber {
    /// The group that every cluster has. It also has what concerns all of them: members, users, and where vhosts are.
    pub const HOME: GroupNumber = GroupNumber(0);
}

impl fmt::Display for GroupNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which entry: two logs that have the same one are the same up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryId {
    /// The term of the leader that made it.
    pub term: u64,
    /// Its number in the log: from 1, without gaps.
    pub index: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of term {}", self.index, self.term)
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A batch of records.
    Batch,
    /// The first of a leader: it has no content, and proves by its commit that the term is led.
    Start,
    /// A change of the members.
    Members,
}

/// One entry, as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: EntryId,
    /// What it is.
    pub kind: EntryKind,
    /// The whole frame: it says also where in the log it stands.
    pub frame: Bytes,
}
