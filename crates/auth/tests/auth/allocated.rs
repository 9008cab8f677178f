//! How much memory the thread of a test asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread has allocated.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static MOST_BYTES: Cell<i64> = const { Cell::new(0) };
    static TAKEN_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; the counters are constants that need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD_BYTES.set(HELD_BYTES.get() + layout.size() as i64);
        MOST_BYTES.set(MOST_BYTES.get().max(HELD_BYTES.get()));
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
pub fn held_bytes() -> i64 {
    HELD_BYTES.get()
}

/// What something has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The most that it had at one time.
    pub memory_kib: i64,
    /// All of it.
    pub work_kib: i64,
}

/// What `doing` returns, and what it costs.
pub fn measured<T>(doing: impl FnOnce() -> T) -> (T, Cost) {
    let (held, taken) = (HELD_BYTES.get(), TAKEN_BYTES.get());
    MOST_BYTES.set(held);
    let done = doing();
    let memory_kib = (MOST_BYTES.get() - held) / 1024;
    (done, Cost { memory_kib, work_kib: (TAKEN_BYTES.get() - taken) / 1024 })
}
