//! Latencies: recorded by many, collected every second, summed up at the end.

use hdrhistogram::Histogram;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// Longest latency that is told apart, an hour; longer ones count as that.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Decimal digits that a recorded value keeps.
const DIGITS: u8 = 3;

/// A histogram of nanoseconds, from 1 to an hour, with three digits.
///
/// # Panics
/// Never: the bounds are constants that the histogram takes.
#[must_use]
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("constant bounds")
}

/// Where one producer or consumer puts its latencies, and where the sampler takes them.
pub struct Recorder {
    interval: Mutex<Histogram<u64>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { interval: Mutex::new(new_histogram()) }
    }
}

impl Recorder {
    /// The histogram, to record many latencies under one lock.
    pub fn lock(&self) -> Recording<'_> {
        Recording(self.interval.lock())
    }

    /// Adds what was recorded since the last time to `into`, and forgets it.
    pub fn take_into(&self, into: &mut Histogram<u64>) {
        let mut interval = self.interval.lock();
        if !interval.is_empty() {
            // Histograms with the same bounds always add up.
            let _ = into.add(&*interval);
            interval.reset();
        }
    }
}

/// Access to a [`Recorder`].
pub struct Recording<'r>(MutexGuard<'r, Histogram<u64>>);

impl Recording<'_> {
    /// Records a latency in nanoseconds.
    #[inline]
    pub fn add(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns.max(1));
    }
}

/// The figures of a histogram that the report shows, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// How many latencies there are.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// Half of them are not longer.
    pub median_ns: u64,
    /// 75 % of them are not longer.
    pub p75_ns: u64,
    /// 95 % of them are not longer.
    pub p95_ns: u64,
    /// 99 % of them are not longer.
    pub p99_ns: u64,
    /// 99.9 % of them are not longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Summary {
    /// The figures of a histogram, if there is anything in it.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |percentile| histogram.value_at_percentile(percentile);
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            min_ns: histogram.min(),
            median_ns: at(50.0),
            p75_ns: at(75.0),
            p95_ns: at(95.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: histogram.max(),
        })
    }
}

/// A point of a percentile plot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentilePoint {
    /// From 0 to 100.
    pub percentile: f64,
    /// So much of the messages, or more, took no longer than this.
    pub latency_ns: u64,
}

/// The curve of a histogram, with more points the nearer it comes to 100 %.
#[must_use]
pub fn percentile_curve(histogram: &Histogram<u64>) -> Vec<PercentilePoint> {
    const TICKS_PER_HALF_DISTANCE: u32 = 8;
    let points = histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE);
    points
        .map(|point| PercentilePoint {
            percentile: point.quantile_iterated_to() * 100.0,
            latency_ns: point.value_iterated_to(),
        })
        .collect()
}
