//! Counts the bytes that waiting messages occupy, so that publishers can be held back in time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes held by all chunks of a store, overhead included.
#[derive(Debug, Default)]
pub struct MemoryGauge {
    used_bytes: AtomicU64,
}

impl MemoryGauge {
    /// Bytes held right now.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
