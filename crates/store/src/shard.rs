//! Which shard is meant.

use std::fmt;

/// The number of a shard: a log with its state. The same on every machine that holds a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u64);

impl ShardId {
    /// The shard that a broker always has. What is defined for the whole broker is in its log.
    pub const HOME: ShardId = ShardId(0);
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
