//! What time it is.
//!
//! For everything that has to survive a restart or that clients can see (times to live, delays, leases) it is the
//! machine's wall clock, which may be set. Handshakes, heartbeats and other times of connections go by [`now`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time that connections go by: that of the runtime's timers, which tests may pause.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A clock that a broker goes by.
#[derive(Clone, Default)]
pub struct Clock {
    other: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self::default()
    }

    /// One that says what the function does, in milliseconds since 1970: for tests.
    pub fn of(now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Clock { other: Some(Arc::new(now_ms)) }
    }

    /// One that differs from the machine's by so many milliseconds, which may change at any time: for tests of what
    /// happens when a clock is set.
    pub fn shifted(shift_ms: Arc<AtomicI64>) -> Self {
        Self::of(move || system_ms().saturating_add_signed(shift_ms.load(Ordering::Relaxed)))
    }

    /// Milliseconds since 1970.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        match &self.other {
            None => system_ms(),
            Some(now_ms) => now_ms(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("is_system", &self.other.is_none()).finish()
    }
}

fn system_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() * 1000 + u64::from(since.subsec_millis())
}
