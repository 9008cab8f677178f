//! Connecting again, with `--reconnect`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_client::Error;
use parking_lot::Mutex;
use tokio::time::Instant;

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Which connections have failed, and which of them are not back.
#[derive(Default)]
pub struct Recovery {
    recovered: AtomicU64,
    /// Why the last attempt of each of them has failed.
    away: Mutex<BTreeMap<String, String>>,
}

/// The attempts of one of them to connect again.
pub struct Attempts<'r> {
    recovery: &'r Recovery,
    name: String,
    /// Before the next attempt.
    wait: Duration,
    /// When it has connected last.
    connected: Instant,
}

impl Attempts<'_> {
    /// Its work has ended by `error`. Waits, longer each time, if it has connected shortly before: what has ended it
    /// then, such as a missing exchange, may do so again at once.
    pub async fn broken(&mut self, error: &Error) {
        if self.connected.elapsed() >= LONGEST_WAIT {
            self.wait = Duration::ZERO;
        }
        self.failed(error).await;
    }

    /// One more attempt has failed: waits, longer each time.
    pub async fn failed(&mut self, error: &Error) {
        self.recovery.away.lock().insert(self.name.clone(), error.to_string());
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
    }

    /// It is connected again.
    pub fn succeeded(&mut self) {
        self.connected = Instant::now();
        self.recovery.recovered.fetch_add(1, Relaxed);
        self.given_up();
    }

    /// It need not come back any more.
    pub fn given_up(&self) {
        self.recovery.away.lock().remove(&self.name);
    }
}

impl Recovery {
    /// For one of this name, which is connected.
    pub fn attempts(&self, name: String) -> Attempts<'_> {
        Attempts { recovery: self, name, wait: Duration::ZERO, connected: Instant::now() }
    }

    /// How often one has come back.
    #[must_use]
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Relaxed)
    }

    /// A sentence about each that is not back.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let away = self.away.lock();
        away.iter()
            .map(|(name, error)| format!("{name} could not connect again: {error}"))
            .collect()
    }
}
