//! What an endpoint counts.

use serde::Serialize;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of an endpoint.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) peers: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) published: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) unroutable: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) turned_away: AtomicU64,
    pub(crate) links: AtomicU64,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// ZeroMQ peers that are connected.
    pub peers: u64,
    /// Messages that came from them.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Messages that the broker has taken.
    pub published: u64,
    /// Messages that the broker has refused; those are tried again.
    pub refused: u64,
    /// Messages for which the broker had no queue.
    pub unroutable: u64,
    /// Messages handed over to peers.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Messages that could not be carried: malformed, too large, with a topic that its user may not write to, for a peer
    /// that is gone, or beyond what slow subscribers may hold.
    pub dropped: u64,
    /// Requests that were not answered in time.
    pub expired: u64,
    /// Peers that were not let in: wrong credentials, or too many.
    pub turned_away: u64,
    /// How often the endpoint has logged in at the broker.
    pub links: u64,
}

impl Metrics {
    /// The counters as they are.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            peers: read(&self.peers),
            received: read(&self.received),
            received_bytes: read(&self.received_bytes),
            published: read(&self.published),
            refused: read(&self.refused),
            unroutable: read(&self.unroutable),
            sent: read(&self.sent),
            sent_bytes: read(&self.sent_bytes),
            dropped: read(&self.dropped),
            expired: read(&self.expired),
            turned_away: read(&self.turned_away),
            links: read(&self.links),
        }
    }

    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn note_received(&self, size_bytes: usize) {
        Self::add(&self.received, 1);
        Self::add(&self.received_bytes, size_bytes as u64);
    }

    pub(crate) fn note_sent(&self, size_bytes: usize) {
        Self::add(&self.sent, 1);
        Self::add(&self.sent_bytes, size_bytes as u64);
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} peers; received {} ({} bytes), published {}, refused {}, unroutable {}; sent {} ({} bytes); \
             dropped {}, expired {}, turned away {}",
            self.peers,
            self.received,
            self.received_bytes,
            self.published,
            self.refused,
            self.unroutable,
            self.sent,
            self.sent_bytes,
            self.dropped,
            self.expired,
            self.turned_away
        )
    }
}
