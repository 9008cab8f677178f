//! Counts the steps of loops that a client can make long, where debug assertions are on, so that tests
//! can tell what a frame costs on any machine.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Notes `steps` more: entries of a list, a table or a queue that were visited.
#[inline(always)]
pub(crate) fn count(steps: usize) {
    if cfg!(debug_assertions) {
        STEPS.set(STEPS.get() + steps as u64);
    }
}

/// The steps that this thread has taken so far; 0 in a build without debug assertions.
pub fn steps() -> u64 {
    STEPS.get()
}
