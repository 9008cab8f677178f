//! Heartbeats: when to send one, and when a silent peer counts as gone (section 4.2.7 of the specification).

use std::time::{Duration, Instant};

/// The clockwork of one connection. It runs from the moment that the interval is agreed on.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// Zero: no heartbeats.
    interval: Duration,
    last_received: Instant,
    last_sent: Instant,
    /// While this side does not read, a silent peer proves nothing.
    watching: bool,
}

impl Heartbeat {
    pub fn off(now: Instant) -> Self {
        Self { interval: Duration::ZERO, last_received: now, last_sent: now, watching: true }
    }

    pub fn start(&mut self, interval_s: u16, now: Instant) {
        self.interval = Duration::from_secs(interval_s.into());
        self.last_received = now;
        self.last_sent = now;
    }

    pub fn stop(&mut self) {
        self.interval = Duration::ZERO;
    }

    #[inline]
    pub fn received(&mut self, now: Instant) {
        self.last_received = now;
    }

    pub fn sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    pub fn watch(&mut self, watching: bool, now: Instant) {
        self.watching = watching;
        self.last_received = now;
    }

    /// A peer that has missed two heartbeats is gone.
    fn gone_at(&self) -> Instant {
        self.last_received + self.interval * 2
    }

    /// Half an interval after the last octet sent: one heartbeat may be late without harm.
    fn due_at(&self) -> Instant {
        self.last_sent + self.interval / 2
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        if self.interval.is_zero() {
            return None;
        }
        Some(if self.watching { self.due_at().min(self.gone_at()) } else { self.due_at() })
    }

    pub fn is_due(&self, now: Instant) -> bool {
        !self.interval.is_zero() && now >= self.due_at()
    }

    pub fn is_peer_gone(&self, now: Instant) -> bool {
        !self.interval.is_zero() && self.watching && now >= self.gone_at()
    }

    pub fn interval(&self) -> Duration {
        self.interval
    }
}
