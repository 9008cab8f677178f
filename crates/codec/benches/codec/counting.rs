//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a count beside it.
struct Counting;

thread_local! {
    /// Allocations of this thread and their bytes: tests run beside each other.
    static COUNT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// How often this thread has allocated, and how many bytes.
pub fn allocations() -> (u64, u64) {
    COUNT.get()
}

fn count(size_bytes: usize) {
    let (allocations, bytes) = COUNT.get();
    COUNT.set((allocations + 1, bytes + size_bytes as u64));
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise for `alloc` is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: the pointer came from the system's allocator, with this layout.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
