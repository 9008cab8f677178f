//! The times that a connection minds: heartbeats sent and missed (section 4.2.7 of the specification), and a deadline
//! for whatever it is waiting for.

use std::time::{Duration, Instant};

/// The clockwork of one connection. Heartbeats run from the moment that their interval is agreed on.
#[derive(Debug)]
pub(crate) struct Timers {
    /// When the handshake, or the end of a close, has taken too long.
    deadline: Option<Instant>,
    /// The latest time that a caller has told.
    now: Instant,
    /// Zero: no heartbeats.
    interval: Duration,
    last_received: Instant,
    last_sent: Instant,
    /// Before that its silence means nothing, and the deadline bounds it: one that opens a vhost may be read by no end until it
    /// is known where that is served.
    is_open: bool,
    /// While this side does not read, a silent peer proves nothing.
    is_watching: bool,
}

/// What has to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// The deadline has passed.
    Deadline,
    /// The peer has missed two heartbeats.
    PeerGone,
    /// A heartbeat has to be sent.
    Heartbeat,
}

impl Timers {
    /// No heartbeats yet, and no deadline where the time does not reach that far.
    pub fn new(now: Instant, deadline_in: Duration) -> Self {
        Self {
            deadline: now.checked_add(deadline_in),
            now,
            interval: Duration::ZERO,
            last_received: now,
            last_sent: now,
            is_open: false,
            is_watching: true,
        }
    }

    /// Tells what time it is.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// None where the time does not reach that far.
    pub fn set_deadline(&mut self, deadline_in: Duration) {
        self.deadline = self.now.checked_add(deadline_in);
    }

    pub fn clear_deadline(&mut self) {
        self.deadline = None;
    }

    /// The handshake is over: from now on the peer has to be heard every now and then.
    pub fn opened(&mut self) {
        self.deadline = None;
        self.is_open = true;
        self.last_received = self.now;
    }

    pub fn start_heartbeats(&mut self, interval_s: u16) {
        self.interval = Duration::from_secs(interval_s.into());
        self.last_received = self.now;
        self.last_sent = self.now;
    }

    pub fn stop_heartbeats(&mut self) {
        self.interval = Duration::ZERO;
    }

    /// The agreed interval in seconds, 0 for none.
    pub fn interval_s(&self) -> u64 {
        self.interval.as_secs()
    }

    /// Something has come from the peer.
    #[inline]
    pub fn received(&mut self, now: Instant) {
        self.now = now;
        self.last_received = now;
    }

    /// Something has been sent to the peer.
    pub fn sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// Whether silence of the peer counts from now on.
    pub fn watch(&mut self, is_watching: bool, now: Instant) {
        self.is_watching = is_watching;
        self.last_received = now;
    }

    /// When the peer has missed two heartbeats.
    fn gone_at(&self) -> Option<Instant> {
        (self.is_open && self.is_watching && !self.interval.is_zero())
            .then(|| self.last_received + self.interval * 2)
    }

    /// Half an interval after the last byte sent: one heartbeat may be late without harm.
    fn heartbeat_at(&self) -> Option<Instant> {
        (!self.interval.is_zero()).then(|| self.last_sent + self.interval / 2)
    }

    /// When something is due next.
    pub fn next(&self) -> Option<Instant> {
        [self.deadline, self.gone_at(), self.heartbeat_at()].into_iter().flatten().min()
    }

    /// What is due now, the most important first.
    pub fn due(&mut self, now: Instant) -> Due {
        self.now = now;
        let has_come = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if has_come(self.deadline) {
            Due::Deadline
        } else if has_come(self.gone_at()) {
            Due::PeerGone
        } else if has_come(self.heartbeat_at()) {
            Due::Heartbeat
        } else {
            Due::Nothing
        }
    }
}
