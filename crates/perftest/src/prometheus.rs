//! The figures of a run under way, for Prometheus.

use std::convert::Infallible;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::run::RunError;

/// How long no connection is accepted after one could not be.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Latencies so far, in the form that Prometheus calls a summary.
#[derive(Clone, Default)]
pub struct Latencies {
    /// Quantiles and their seconds.
    quantiles: Vec<(&'static str, f64)>,
    count: u64,
    sum_s: f64,
}

impl Latencies {
    /// Those of a histogram of nanoseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let all = [("0.5", 50.0), ("0.75", 75.0), ("0.95", 95.0), ("0.99", 99.0), ("0.999", 99.9)];
        let seconds = |percentile| histogram.value_at_percentile(percentile) as f64 / 1e9;
        Self {
            quantiles: all.map(|(name, percentile)| (name, seconds(percentile))).into(),
            count: histogram.len(),
            sum_s: histogram.mean() * histogram.len() as f64 / 1e9,
        }
    }
}

/// Answers at this address for as long as the returned set lives; also tells the address.
///
/// # Errors
/// When the address can't be listened at.
pub async fn serve(
    context: Arc<Context>,
    address: SocketAddr,
) -> Result<(JoinSet<()>, SocketAddr), RunError> {
    let error = |source| RunError::Metrics { address, source };
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let bound = listener.local_addr().map_err(error)?;
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = patiently(|| listener.accept()).await;
            while connections.try_join_next().is_some() {}
            let context = context.clone();
            connections.spawn(async move {
                let answer = service_fn(move |request| {
                    let answer = answer(&context, &request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                // A client that goes away is no concern of the run.
                let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    Ok((serving, bound))
}

fn answer(context: &Context, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let is_metrics = request.uri().path() == "/metrics";
    let text =
        if is_metrics { render(context) } else { "the figures are at /metrics\n".to_owned() };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    if !is_metrics {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Waits until something does not fail. As long as there are no descriptors left, accepting fails at once.
async fn patiently<T, F: Future<Output = io::Result<T>>>(mut attempt: impl FnMut() -> F) -> T {
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(_) => tokio::time::sleep(FAILED_PAUSE).await,
        }
    }
}

/// All figures in Prometheus' text format.
#[must_use]
pub fn render(context: &Context) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(context, &mut out);
    out
}

fn write(context: &Context, out: &mut String) -> std::fmt::Result {
    let counters = &context.counters;
    for (name, total, help) in [
        ("published", counters.published.total(), "Messages handed to a connection"),
        ("consumed", counters.consumed.total(), "Messages of this run that arrived"),
        ("confirmed", counters.confirmed.total(), "Messages that the broker has confirmed"),
        ("nacked", counters.nacked.total(), "Messages that the broker has refused"),
        ("returned", counters.returned.total(), "Mandatory messages that came back"),
        ("refused", counters.refused.total(), "Messages that consumers have refused"),
        ("foreign", counters.foreign.total(), "Messages of other runs"),
        ("reconnects", context.recovery.recovered(), "Times that a connection was opened again"),
    ] {
        writeln!(out, "# HELP perftest_{name}_total {help}")?;
        writeln!(out, "# TYPE perftest_{name}_total counter\nperftest_{name}_total {total}")?;
    }
    let (consumer, confirm) = context.latencies.lock().clone();
    write_summary(out, "consumer", &consumer)?;
    write_summary(out, "confirm", &confirm)
}

fn write_summary(out: &mut String, name: &str, latencies: &Latencies) -> std::fmt::Result {
    let name = format!("perftest_{name}_latency_seconds");
    writeln!(out, "# HELP {name} Time from the intended sending, since the warm-up")?;
    writeln!(out, "# TYPE {name} summary")?;
    for (quantile, seconds) in &latencies.quantiles {
        writeln!(out, "{name}{{quantile=\"{quantile}\"}} {seconds}")?;
    }
    writeln!(out, "{name}_sum {}\n{name}_count {}", latencies.sum_s, latencies.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn what_fails_is_not_tried_again_at_once() {
        let (started, mut failures) = (Instant::now(), 0);
        let attempt = || {
            failures += 1;
            let done = if failures > 3 { Ok(()) } else { Err(io::Error::other("no descriptors")) };
            std::future::ready(done)
        };
        patiently(attempt).await;
        assert!(started.elapsed() >= 3 * FAILED_PAUSE, "{:?}", started.elapsed());
    }
}
