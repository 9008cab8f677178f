//! An allocator that counts, and what something has cost by its counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are in use, the most of them since [`measured`] began, and all that were ever asked for.
static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does all of it; counting touches no memory that it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        TOTAL.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: what holds for this holds for that.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: what holds for this holds for that.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What something has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The most that was in use besides what was there before.
    pub memory_kib: usize,
    /// All that was asked for.
    pub work_kib: usize,
}

impl Cost {
    pub fn max(self, other: Self) -> Self {
        Cost {
            memory_kib: self.memory_kib.max(other.memory_kib),
            work_kib: self.work_kib.max(other.work_kib),
        }
    }

    pub fn is_within(self, bound: Self) -> bool {
        self.memory_kib <= bound.memory_kib && self.work_kib <= bound.work_kib
    }
}

/// What is in use.
pub fn used_kib() -> usize {
    USED.load(Ordering::Relaxed) / 1024
}

/// What `doing` returns, and what it has cost. Nothing else may be done meanwhile.
pub async fn measured<T>(doing: impl Future<Output = T>) -> (T, Cost) {
    let (used, total) = (USED.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed));
    MOST.store(used, Ordering::Relaxed);
    let done = doing.await;
    let memory = MOST.load(Ordering::Relaxed).saturating_sub(used);
    let work = TOTAL.load(Ordering::Relaxed) - total;
    (done, Cost { memory_kib: memory.div_ceil(1024), work_kib: work.div_ceil(1024) })
}
