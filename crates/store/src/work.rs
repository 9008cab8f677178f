//! The steps of loops that a client can make long, counted for each thread: so that the broker can let others have their turn
//! when a connection has taken many, and so that tests can tell what something costs on any machine.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Notes `steps` more: entries of a list, a table or a queue that were visited.
#[inline(always)]
pub fn count(steps: usize) {
    STEPS.set(STEPS.get().wrapping_add(steps as u64));
}

/// The steps that this thread has taken so far.
pub fn steps() -> u64 {
    STEPS.get()
}
