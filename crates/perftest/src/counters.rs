//! Running totals, updated by producers and consumers a batch at a time and sampled every second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

/// A running total and when it last grew.
#[derive(Debug, Default)]
pub struct Counter {
    total: AtomicU64,
    last_ns: AtomicU64,
}

impl Counter {
    /// Adds `count` messages that came at this moment of the monotonic clock.
    #[inline]
    pub fn add(&self, count: u64, now_ns: u64) {
        self.total.fetch_add(count, Relaxed);
        self.last_ns.fetch_max(now_ns, Relaxed);
    }

    /// The total.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// When something was added last, in monotonic nanoseconds; 0 if nothing ever was.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        self.last_ns.load(Relaxed)
    }
}

/// Totals since the run began.
#[derive(Debug)]
pub struct Counters {
    /// Messages handed to a connection.
    pub published: Counter,
    /// Messages of this run that arrived at a consumer.
    pub consumed: Counter,
    /// Messages that the broker has confirmed.
    pub confirmed: Counter,
    /// Messages that the broker has refused.
    pub nacked: Counter,
    /// Mandatory messages that came back.
    pub returned: Counter,
    /// Messages that arrived or came back, and are of another run.
    pub foreign: Counter,
    /// Messages that consumers have refused, as `--nack-every` says.
    pub refused: Counter,
    /// Messages without an answer when their connection broke.
    pub uncertain: Counter,
    /// Messages that arrived after the warm-up and were published in it.
    pub from_warmup: Counter,
    measure_from_ns: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            published: Counter::default(),
            consumed: Counter::default(),
            confirmed: Counter::default(),
            nacked: Counter::default(),
            returned: Counter::default(),
            foreign: Counter::default(),
            refused: Counter::default(),
            uncertain: Counter::default(),
            from_warmup: Counter::default(),
            measure_from_ns: AtomicU64::new(u64::MAX),
        }
    }
}

/// The totals at one moment, or what came between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// See [`Counters::published`].
    pub published: u64,
    /// See [`Counters::consumed`].
    pub consumed: u64,
    /// See [`Counters::confirmed`].
    pub confirmed: u64,
    /// See [`Counters::nacked`].
    pub nacked: u64,
    /// See [`Counters::returned`].
    pub returned: u64,
    /// See [`Counters::foreign`].
    pub foreign: u64,
}

impl Counters {
    /// The warm-up is over: latencies of messages that are sent from this moment on count.
    pub fn measure_from(&self, now_ns: u64) {
        self.measure_from_ns.store(now_ns, Relaxed);
    }

    /// The moment from which a message's latency counts; never, until the warm-up is over.
    #[must_use]
    pub fn measuring_from_ns(&self) -> u64 {
        self.measure_from_ns.load(Relaxed)
    }

    /// The totals now.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals {
            published: self.published.total(),
            consumed: self.consumed.total(),
            confirmed: self.confirmed.total(),
            nacked: self.nacked.total(),
            returned: self.returned.total(),
            foreign: self.foreign.total(),
        }
    }
}

impl Totals {
    /// What has come since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            published: self.published - before.published,
            consumed: self.consumed - before.consumed,
            confirmed: self.confirmed - before.confirmed,
            nacked: self.nacked - before.nacked,
            returned: self.returned - before.returned,
            foreign: self.foreign - before.foreign,
        }
    }
}
