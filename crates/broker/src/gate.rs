//! The gate of a shard: passed by every thread that changes something, and watched by a checkpoint. This needs a point in
//! the log before which everything has taken effect, where it begins, and one behind everything that has taken effect when
//! it was written: some changes are in the log first, and some, as removals, take effect first.
//!
//! It is passed once for each batch of messages and acknowledgements, by every thread, and watched twice for each
//! checkpoint. One `RwLock` would make all of them write to one place in memory, which processors hand to each other; here
//! each thread writes to its own part.
//!
//! A checkpoint takes the end of the log, and waits until all that were in the gate then have left it, one part after the
//! other. What others append meanwhile lies behind that end. When it has written the state it waits so once more, and takes
//! the end of the log then. So other threads do not wait for the checkpoint, nor for a thread that is in the gate for long, as
//! one that reads messages from a slow disk; but for a few that share its part.
//!
//! What may be done in it says [`critical`], which debug builds check; so they do with [`assert_inside`] that a change and its
//! effect are in it, whichever comes first.

use courser_auth::NoHashing;
use courser_store::blocking;
use courser_store::critical::{self, Section, Within};
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

/// Parts of a gate. Threads beyond that many, at one time, share them.
const PARTS: usize = 64;

/// The number of a thread that passes gates, which another one gets when it has ended.
struct Number(usize);

/// Numbers of threads that have ended, and how many were given out.
static NUMBERS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

thread_local! {
    /// Which part a thread passes by.
    static NUMBER: Number = {
        let (free, given) = &mut *NUMBERS.lock();
        Number(free.pop().unwrap_or_else(|| {
            *given += 1;
            *given - 1
        }))
    };
}

impl Drop for Number {
    fn drop(&mut self) {
        NUMBERS.lock().0.push(self.0);
    }
}

/// What is held from the first to the second of a change's append and its effect.
pub(crate) struct Gate(Box<[CachePadded<RwLock<()>>]>);

/// A thread is in a gate.
#[must_use]
pub(crate) struct Held<'a> {
    _part: RwLockReadGuard<'a, ()>,
    _section: Within,
    _no_hashing: NoHashing,
    #[cfg(debug_assertions)]
    gate: usize,
}

impl Gate {
    /// A gate that no thread is in.
    pub fn new() -> Self {
        Gate((0..PARTS).map(|_| CachePadded::default()).collect())
    }

    /// Passes it: until the guard is dropped, [`Gate::wait_for_passers`] waits for this thread. A thread that is in it does not
    /// pass it again, as one that waits for it may be between the two.
    pub fn read(&self) -> Held<'_> {
        let section = self.enter();
        Held {
            _part: blocking::read(&self.0[NUMBER.with(|number| number.0 % PARTS)]),
            _section: section,
            _no_hashing: NoHashing::begin(),
            #[cfg(debug_assertions)]
            gate: self.address(),
        }
    }

    /// Waits until all threads have left it that are in it now. Others may be in it by then.
    pub fn wait_for_passers(&self) {
        critical::assert_outside("threads in a gate are waited for");
        for part in &self.0 {
            drop(part.write());
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

    fn enter(&self) -> Within {
        INSIDE.with_borrow_mut(|inside| {
            assert!(!inside.contains(&self.address()), "a thread passes a gate that it is in");
            let section = critical::enter(Section::Gate);
            inside.push(self.address());
            section
        })
    }
}

#[cfg(not(debug_assertions))]
impl Gate {
    #[inline(always)]
    fn enter(&self) -> Within {
        critical::enter(Section::Gate)
    }
}

#[cfg(debug_assertions)]
impl Drop for Held<'_> {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| {
            inside.retain(|gate| *gate != self.gate);
        });
    }
}

/// In debug builds, panics if this thread is in no gate: a checkpoint might begin or end in the middle of `what`.
#[inline]
pub(crate) fn assert_inside(what: &str) {
    #[cfg(debug_assertions)]
    INSIDE.with_borrow(|inside| {
        assert!(!inside.is_empty() || std::thread::panicking(), "{what} outside the gate");
    });
    let _ = what;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    #[test]
    fn a_thread_that_has_ended_leaves_its_part_to_another() {
        let of_a_thread =
            |_| thread::scope(|scope| scope.spawn(|| NUMBER.with(|number| number.0)).join());
        let numbers: BTreeSet<usize> =
            (0..1000).map(of_a_thread).map(|number| number.expect("no panic")).collect();
        // Other tests have threads meanwhile.
        assert!(numbers.len() < 500, "{}", numbers.len());
    }
}
