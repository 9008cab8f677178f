//! The run second by second.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::counters::Totals;

/// One second of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// End of the second, counted from the start of the run.
    pub at_s: f64,
    /// Whether it belongs to the warm-up.
    pub warmup: bool,
    /// Messages published, a second.
    pub published_per_s: f64,
    /// Messages consumed, a second.
    pub consumed_per_s: f64,
    /// Messages confirmed, a second.
    pub confirmed_per_s: f64,
    /// Messages confirmed since the run began.
    pub confirmed: u64,
    /// Latency from intended sending to consumption.
    pub consumer_latency: Option<PointLatency>,
    /// Latency from intended sending to the confirm.
    pub confirm_latency: Option<PointLatency>,
}

/// Latencies of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointLatency {
    /// Half of them are not longer.
    pub median_ns: u64,
    /// 99 % of them are not longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl PointLatency {
    /// The figures of a histogram, if there is anything in it.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            median_ns: histogram.value_at_percentile(50.0),
            p99_ns: histogram.value_at_percentile(99.0),
            max_ns: histogram.max(),
        })
    }
}

impl Point {
    /// A second in which `delta` came, `elapsed_s` seconds long. Latencies are added by who has them.
    #[must_use]
    pub fn new(at_s: f64, elapsed_s: f64, delta: Totals, confirmed: u64) -> Self {
        let per_s = |count: u64| count as f64 / elapsed_s.max(1e-9);
        Self {
            at_s,
            warmup: false,
            published_per_s: per_s(delta.published),
            consumed_per_s: per_s(delta.consumed),
            confirmed_per_s: per_s(delta.confirmed),
            confirmed,
            consumer_latency: None,
            confirm_latency: None,
        }
    }

    /// The line that is printed every second.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "published: {:.0} msg/s, consumed: {:.0} msg/s, confirmed: {}",
            self.published_per_s, self.consumed_per_s, self.confirmed
        )
    }
}
