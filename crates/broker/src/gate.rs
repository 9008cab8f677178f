//! The gate of a shard: passed by every thread that changes something, shut by a checkpoint, which needs a
//! point in the log before which everything has taken effect.
//!
//! It is passed once for each batch of messages and acknowledgements, by every thread, and shut once
//! for each checkpoint. One `RwLock` would make all of them write to one place in memory, which
//! processors hand to each other; here each thread writes to its own, and shutting takes them all.
//!
//! While one thread is in it, a checkpoint waits, and with that every other thread. So nothing is done
//! in it that takes as long as another program likes: [`assert_outside`] holds that in debug builds, and
//! [`assert_inside`] that a change and its effect are in it.

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use std::sync::PoisonError;

/// What is held between the append of a change and its effect.
pub(crate) struct Gate(ShardedLock<()>);

/// A thread is in a gate, or keeps it shut.
#[must_use]
pub(crate) struct Held<G> {
    _guard: G,
    #[cfg(debug_assertions)]
    gate: usize,
}

impl Gate {
    /// A gate that stands open.
    pub fn new() -> Self {
        Gate(ShardedLock::new(()))
    }

    /// Passes it: until the guard is dropped, no thread shuts it. Waits while it is shut. A thread that
    /// is in it does not pass it again, as one that waits to shut it may be between the two.
    pub fn read(&self) -> Held<ShardedLockReadGuard<'_, ()>> {
        self.enter();
        // It guards no data that a panic could leave half changed.
        self.held(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shuts it: waits until every thread is out, and keeps them out until the guard is dropped.
    pub fn write(&self) -> Held<ShardedLockWriteGuard<'_, ()>> {
        self.enter();
        self.held(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn held<G>(&self, guard: G) -> Held<G> {
        Held {
            _guard: guard,
            #[cfg(debug_assertions)]
            gate: self.address(),
        }
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// The gates that this thread is in.
    static INSIDE: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(debug_assertions)]
impl Gate {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn enter(&self) {
        INSIDE.with_borrow_mut(|inside| {
            assert!(!inside.contains(&self.address()), "a thread passes a gate that it is in");
            inside.push(self.address());
        });
    }
}

#[cfg(not(debug_assertions))]
impl Gate {
    #[inline(always)]
    fn enter(&self) {}
}

#[cfg(debug_assertions)]
impl<G> Drop for Held<G> {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| {
            inside.retain(|gate| *gate != self.gate);
        });
    }
}

/// In debug builds, panics if this thread is in a gate: `what` may take long, or waits itself for what
/// others do in the gate.
#[inline]
pub(crate) fn assert_outside(what: &str) {
    #[cfg(debug_assertions)]
    INSIDE.with_borrow(|inside| {
        assert!(inside.is_empty() || std::thread::panicking(), "{what} in a gate");
    });
    let _ = what;
}

/// In debug builds, panics if this thread is in no gate: a checkpoint might begin in the middle of `what`.
#[inline]
pub(crate) fn assert_inside(what: &str) {
    #[cfg(debug_assertions)]
    INSIDE.with_borrow(|inside| {
        assert!(!inside.is_empty() || std::thread::panicking(), "{what} outside the gate");
    });
    let _ = what;
}
