//! Collects figures every second, and sums them up.

use std::sync::Arc;

use hdrhistogram::Histogram;

use crate::context::Context;
use crate::counters::Totals;
use crate::latency::{Recorder, new_histogram};
use crate::prometheus::Latencies;
use crate::series::{Point, PointLatency};

/// The figures of a run so far.
pub struct Sampler {
    context: Arc<Context>,
    consumer_recorders: Vec<Arc<Recorder>>,
    confirm_recorders: Vec<Arc<Recorder>>,
    /// Latencies of the whole run, without the warm-up.
    pub consumer_latency: Histogram<u64>,
    /// The same for confirms.
    pub confirm_latency: Histogram<u64>,
    /// Second by second.
    pub series: Vec<Point>,
    /// Totals when the warm-up was over.
    pub base: Totals,
    /// When the warm-up was over, in monotonic nanoseconds.
    pub measured_from_ns: Option<u64>,
    started_ns: u64,
    last_ns: u64,
    last: Totals,
    interval: Histogram<u64>,
}

impl Sampler {
    /// For a run that starts now.
    pub fn new(context: Arc<Context>, now_ns: u64) -> Self {
        let recorders = |count| (0..count).map(|_| Arc::default()).collect();
        Self {
            consumer_recorders: recorders(context.options.consumers),
            confirm_recorders: recorders(context.options.producers),
            context,
            consumer_latency: new_histogram(),
            confirm_latency: new_histogram(),
            series: Vec::new(),
            base: Totals::default(),
            measured_from_ns: None,
            started_ns: now_ns,
            last_ns: now_ns,
            last: Totals::default(),
            interval: new_histogram(),
        }
    }

    /// Where this consumer puts its latencies.
    pub fn consumer_recorder(&self, index: usize) -> Arc<Recorder> {
        self.consumer_recorders[index].clone()
    }

    /// Where this producer puts its latencies.
    pub fn confirm_recorder(&self, index: usize) -> Arc<Recorder> {
        self.confirm_recorders[index].clone()
    }

    /// Everybody is connected; the first second begins.
    pub fn start(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.last_ns = now_ns;
    }

    /// The warm-up is over.
    pub fn measure_from(&mut self, now_ns: u64) {
        self.base = self.context.counters.totals();
        self.measured_from_ns = Some(now_ns);
        self.context.counters.measure_from(now_ns);
    }

    /// When the next second is over, counted from the start, so that samples that come late do not add up.
    pub fn next_ns(&self) -> u64 {
        const SECOND_NS: u64 = 1_000_000_000;
        let seconds = (self.last_ns - self.started_ns) / SECOND_NS;
        self.started_ns + (seconds + 1) * SECOND_NS
    }

    /// Collects what has come since the last time.
    pub fn sample(&mut self, now_ns: u64) -> &Point {
        let totals = self.context.counters.totals();
        let seconds = |from_ns: u64| now_ns.saturating_sub(from_ns) as f64 / 1e9;
        let mut point = Point::new(
            seconds(self.started_ns),
            seconds(self.last_ns),
            totals.since(self.last),
            totals.confirmed,
        );
        point.warmup = self.measured_from_ns.is_none();
        let recorders = &self.consumer_recorders;
        point.consumer_latency = collect(recorders, &mut self.interval, &mut self.consumer_latency);
        let recorders = &self.confirm_recorders;
        point.confirm_latency = collect(recorders, &mut self.interval, &mut self.confirm_latency);
        if self.context.options.metrics.is_some() {
            let latencies = [&self.consumer_latency, &self.confirm_latency].map(Latencies::of);
            *self.context.latencies.lock() = latencies.into();
        }
        self.last = totals;
        self.last_ns = now_ns;
        self.series.push(point);
        &self.series[self.series.len() - 1]
    }

    /// Collects the rest. It becomes a point of its own only if it is long enough for its rates to mean something.
    pub fn finish(&mut self, now_ns: u64) {
        const POINT_MIN_S: f64 = 0.5;
        self.sample(now_ns);
        let (last, before) = match &self.series[..] {
            [.., before, last] => (last.at_s, before.at_s),
            _ => return,
        };
        if last - before < POINT_MIN_S {
            self.series.pop();
        }
    }
}

fn collect(
    recorders: &[Arc<Recorder>],
    interval: &mut Histogram<u64>,
    total: &mut Histogram<u64>,
) -> Option<PointLatency> {
    interval.reset();
    recorders.iter().for_each(|recorder| recorder.take_into(interval));
    // Histograms with the same bounds always add up.
    let _ = total.add(&*interval);
    PointLatency::of(interval)
}
