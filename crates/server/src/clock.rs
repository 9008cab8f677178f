//! What time it is, for everything that has to survive a restart or that clients can see: times to live, delays, leases.
//!
//! It is the machine's wall clock, which may be set. Handshakes, heartbeats and other times of connections are not
//! measured by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A clock that a broker goes by.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    shift_ms: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self::default()
    }

    /// One that differs from the machine's by so many milliseconds, which may change at any time: for tests of what
    /// happens when a clock is set.
    pub fn shifted(shift_ms: Arc<AtomicI64>) -> Self {
        Clock { shift_ms: Some(shift_ms) }
    }

    /// Milliseconds since 1970.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let system_ms = since.as_secs() * 1000 + u64::from(since.subsec_millis());
        match &self.shift_ms {
            None => system_ms,
            Some(shift_ms) => system_ms.saturating_add_signed(shift_ms.load(Ordering::Relaxed)),
        }
    }
}
