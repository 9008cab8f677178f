//! Counts the bytes that waiting messages occupy, so that publishers can be held back in time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes held by all chunks of a store, and by bodies that are shared, overhead included.
#[derive(Debug, Default)]
pub struct MemoryGauge {
    used_bytes: AtomicU64,
    waiting_bytes: AtomicU64,
}

impl MemoryGauge {
    /// Bytes held right now.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the messages that chunks hold, with their bodies. Others are held by who publishes or sends them, and would not
    /// be given back if more messages waited on the disk.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Adds a chunk that takes so many bytes itself and holds a body of so many, which counts for itself.
    pub(crate) fn add_chunk(&self, own: usize, body: usize) {
        self.add(own);
        self.waiting_bytes.fetch_add((own + body) as u64, Ordering::Relaxed);
    }

    /// The same when it goes.
    pub(crate) fn sub_chunk(&self, own: usize, body: usize) {
        self.sub(own);
        self.waiting_bytes.fetch_sub((own + body) as u64, Ordering::Relaxed);
    }
}
