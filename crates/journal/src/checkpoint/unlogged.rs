//! Changes of the owner that the log does not know, because there was no room for them.
//!
//! A checkpoint that begins after such a change is made without what the change has removed, and
//! stands for it from then on. Until there are two, which a start may need, what the change has removed
//! has to stay as it is.

use crate::Lsn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Which checkpoint stands for everything that the log does not know. Checkpoints are counted from
/// the start; the number of none, and of those that the start has found, is zero.
#[derive(Default)]
pub struct Unlogged {
    begun: AtomicU64,
    done: AtomicU64,
    /// The last checkpoint before `done` that counts: what a start falls back to.
    done_before: AtomicU64,
    /// The first checkpoint that stands for all changes so far, if it starts at `from` or later.
    needed: AtomicU64,
    from: AtomicU64,
    /// The start has found two checkpoints. The newer one may stand for changes of which the log does not know, and the older
    /// one not.
    found_two: AtomicBool,
}

impl Unlogged {
    /// Notes a change that has taken effect in the owner's state, or will before a checkpoint that begins from now on finds where
    /// it starts, with the log ending at `end`. Returns the number of the checkpoint that will stand for it.
    pub fn note(&self, end: Lsn) -> u64 {
        // One that has begun already may have looked at the state before.
        let number = self.begun.load(SeqCst) + 1;
        self.from.fetch_max(end.0, SeqCst);
        self.needed.fetch_max(number, SeqCst);
        number
    }

    /// A checkpoint begins: the owner says next where it starts, and its state is looked at. Returns its number.
    pub fn begin(&self) -> u64 {
        self.begun.fetch_add(1, SeqCst) + 1
    }

    /// The checkpoint of this number counts from now on.
    pub fn finish(&self, number: u64) {
        self.done_before.store(self.done.swap(number, SeqCst), SeqCst);
    }

    /// The older of the two checkpoints that are kept: it and all later ones stand for what waits for
    /// this number.
    pub fn done_before(&self) -> u64 {
        self.done_before.load(SeqCst)
    }

    /// The start has found two checkpoints.
    pub fn note_two_found(&self) {
        self.found_two.store(true, SeqCst);
    }

    /// Whether the older of the two checkpoints that are kept may not stand for changes that the newer one stands for, as both
    /// are of before the start.
    pub fn is_older_in_doubt(&self) -> bool {
        self.found_two.load(SeqCst) && self.done.load(SeqCst) == 0
    }

    /// Whether there are changes that neither the log nor the last checkpoint, which starts at
    /// `start`, knows.
    pub fn is_any(&self, start: Lsn) -> bool {
        self.needed.load(SeqCst) > self.done.load(SeqCst) || self.from.load(SeqCst) > start.0
    }
}
