//! How much memory the thread of a test has.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread has allocated.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static TAKEN_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; the counters are constants that need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD_BYTES.set(HELD_BYTES.get() + layout.size() as i64);
        TAKEN_BYTES.set(TAKEN_BYTES.get() + layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD_BYTES.set(HELD_BYTES.get() - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has allocated and not given back.
pub fn allocated_bytes() -> i64 {
    HELD_BYTES.get()
}

/// Bytes that this thread has allocated so far, those that it has given back included.
pub fn taken_bytes() -> i64 {
    TAKEN_BYTES.get()
}
