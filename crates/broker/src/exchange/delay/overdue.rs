//! Messages that stay though their delay is over: the store does not take them, or they can't be read.

use courser_store::StoreError;

/// How long to wait when the disk is full, or a message can't be read.
pub(super) const RETRY_MS: u64 = 1000;
/// How long a message waits that is too large for the log by its way: by then that may be another one.
pub(super) const TOO_LARGE_RETRY_MS: u64 = 60_000;

/// Why nothing of what is due has gone.
pub(super) enum Stays {
    /// The first alone does not go, for so many milliseconds. It must not stop those behind it.
    First(StoreError, u64),
    /// The store takes nothing.
    All(StoreError),
}

impl From<StoreError> for Stays {
    fn from(error: StoreError) -> Self {
        Stays::All(error)
    }
}

/// That messages stay while others go, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// What the store said last.
    pub why: String,
    /// Until when the last of them waits.
    until_ms: u64,
}

impl Overdue {
    /// The same as `before`, if those still stay, with another one.
    pub(super) fn after(
        before: Option<Self>,
        why: &StoreError,
        (now_ms, until_ms): (u64, u64),
    ) -> Self {
        let (since_ms, others_ms) = match before {
            Some(before) if before.is_still(now_ms) => (before.since_ms, before.until_ms),
            _ => (now_ms, 0),
        };
        Overdue { since_ms, why: why.to_string(), until_ms: until_ms.max(others_ms) }
    }

    /// Whether some still stay, or have just gone.
    pub(super) fn is_still(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms.saturating_add(RETRY_MS)
    }
}
