//! How far the log has to be durable for some changes to be.

use courser_store::Lsn;
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the log behind the last of some changes.
#[derive(Debug, Default)]
pub(crate) struct LogEnd(AtomicU64);

impl LogEnd {
    /// One more of them is in the log, before `lsn`.
    pub fn reach(&self, lsn: Lsn) {
        self.0.fetch_max(lsn.0, Ordering::AcqRel);
    }

    pub fn lsn(&self) -> Lsn {
        Lsn(self.0.load(Ordering::Acquire))
    }
}
