//! The gate of a shard: passed by whoever changes something, shut by whoever needs a point in the log
//! before which everything has taken effect.
//!
//! It is passed once for each batch of messages and acknowledgements, by every thread, and shut once
//! for each checkpoint. One `RwLock` would make all of them write to one place in memory, which
//! processors hand to each other; here each thread writes to its own, and shutting takes them all.

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use std::sync::PoisonError;

/// What is held between the append of a change and its effect.
pub(crate) struct Gate(ShardedLock<()>);

impl Gate {
    /// A gate that stands open.
    pub fn new() -> Self {
        Gate(ShardedLock::new(()))
    }

    /// Passes it: until the guard is dropped, nobody shuts it. Waits while it is shut. A thread that
    /// is in it does not pass it again, as one that waits to shut it may be between the two.
    pub fn read(&self) -> ShardedLockReadGuard<'_, ()> {
        // It guards no data that a panic could leave half changed.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts it: waits until everybody is out, and keeps them out until the guard is dropped.
    pub fn write(&self) -> ShardedLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
