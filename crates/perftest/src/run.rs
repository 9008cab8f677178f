//! A run from its beginning to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_client::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::now_ns;
use crate::consumer::Consumer;
use crate::context::Context;
use crate::counters::Totals;
use crate::options::Options;
use crate::outcome::ENDING_TIMEOUT;
use crate::producer::{Producer, Stopped};
use crate::prometheus;
use crate::report::Report;
use crate::sampler::Sampler;
use crate::setup::Setup;
use crate::tls::TlsError;

/// Why a run did not come about.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The URI is none.
    #[error("--uri: {0}")]
    Uri(Error),
    /// The options of TLS do not fit, or name files that are none of theirs.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no listening at the address for Prometheus.
    #[error("--metrics: cannot listen at {address}: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The broker cannot be reached, or refuses what the run needs.
    #[error("{doing}: {source}")]
    Broker {
        /// What was being done.
        doing: String,
        /// What went wrong.
        source: Error,
    },
}

impl RunError {
    /// Whether the options are to blame, and not the broker.
    #[must_use]
    pub fn is_of_options(&self) -> bool {
        matches!(self, RunError::Uri(_) | RunError::Tls(_) | RunError::Metrics { .. })
    }
}

/// How often the course of the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Runs what the options say; `line` gets a line every second unless they are to be quiet, `interrupts` something for each time that the user wants
/// it to end.
///
/// # Errors
/// When the run does not come about. What fails later is in the report.
pub async fn run(
    options: Options,
    mut line: impl FnMut(&str),
    interrupts: mpsc::Receiver<()>,
) -> Result<Report, RunError> {
    let start_ns = now_ns();
    let context = Arc::new(Context::new(options, start_ns)?);
    let mut serving = JoinSet::new();
    if let Some(address) = context.options.metrics {
        let (started, bound) = prometheus::serve(context.clone(), address).await?;
        serving = started;
        line(&format!("metrics: http://{bound}/metrics"));
    }
    let setup = Setup::prepare(&context).await.map_err(doing("setting up"))?;
    let mut run = Run {
        sampler: Sampler::new(context.clone(), start_ns),
        context,
        consumers: Vec::new(),
        producers: JoinSet::new(),
        stopped: Vec::new(),
        failing: JoinSet::new(),
        failures: Vec::new(),
        interrupts: Interrupts { signals: interrupts, count: 0 },
        ended_ns: 0,
        ended: Totals::default(),
    };
    if let Err(error) = run.start().await {
        let _ = tokio::time::timeout(ENDING_TIMEOUT, setup.clean_up(&run.context)).await;
        return Err(error);
    }
    run.measure(&mut line).await;
    run.drain(&mut line).await;
    let report = run.finish(setup).await;
    serving.shutdown().await;
    Ok(report)
}

fn doing(doing: impl Into<String>) -> impl FnOnce(Error) -> RunError {
    |source| RunError::Broker { doing: doing.into(), source }
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) context: Arc<Context>,
    pub(crate) sampler: Sampler,
    pub(crate) consumers: Vec<Arc<Consumer>>,
    producers: JoinSet<Stopped>,
    pub(crate) stopped: Vec<Stopped>,
    /// Ends for each consumer that fails, with what to say about it.
    pub(crate) failing: JoinSet<String>,
    pub(crate) failures: Vec<String>,
    pub(crate) interrupts: Interrupts,
    /// When publishing ended, in monotonic nanoseconds.
    pub(crate) ended_ns: u64,
    /// What had come by then.
    pub(crate) ended: Totals,
}

/// What the user wants to end.
pub(crate) struct Interrupts {
    signals: mpsc::Receiver<()>,
    pub(crate) count: u32,
}

impl Interrupts {
    /// Waits for the next one. The first is for the run, the second also for the wait for what is under way.
    async fn next(&mut self, context: &Context) {
        if self.signals.recv().await.is_none() {
            return std::future::pending().await;
        }
        self.count += 1;
        if self.count > 1 {
            context.stop_draining();
        }
    }
}

impl Run {
    /// Consumers first, so that nothing piles up before them.
    async fn start(&mut self) -> Result<(), RunError> {
        let is_measured_at_once = self.context.options.warmup.is_zero();
        if is_measured_at_once && self.context.options.producers == 0 {
            self.sampler.measure_from(now_ns());
        }
        for index in 0..usize::from(self.context.options.consumers) {
            let latency = self.sampler.consumer_recorder(index);
            let consumer = Consumer::start(self.context.clone(), index, latency)
                .await
                .map_err(doing(format!("consumer {}", index + 1)))?;
            let consumer = Arc::new(consumer);
            self.consumers.push(consumer.clone());
            self.failing.spawn(async move {
                let error = consumer.work().await;
                format!("consumer {} failed: {error}", index + 1)
            });
        }
        let mut producers = Vec::new();
        for index in 0..usize::from(self.context.options.producers) {
            let latency = self.sampler.confirm_recorder(index);
            let producer = Producer::connect(self.context.clone(), index, latency)
                .await
                .map_err(doing(format!("producer {}", index + 1)))?;
            producers.push(producer);
        }
        let now = now_ns();
        self.sampler.start(now);
        if is_measured_at_once && self.context.options.producers > 0 {
            self.sampler.measure_from(now);
        }
        for producer in producers {
            self.producers.spawn(producer.run());
        }
        Ok(())
    }

    /// Lets producers and consumers work until the time or the messages are over.
    async fn measure(&mut self, line: &mut impl FnMut(&str)) {
        let options = &self.context.options;
        let publishes = options.producers > 0;
        let warm_ns = now_ns() + options.warmup.as_nanos() as u64;
        let end_ns = options.duration_limit().map(|limit| warm_ns + limit.as_nanos() as u64);
        let messages = options.messages;
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some(stopped) = self.producers.join_next() => self.producer_ended(stopped),
                Some(Ok(failure)) = self.failing.join_next() => self.failures.push(failure),
                () = self.interrupts.next(&self.context) => {}
            }
            let now = now_ns();
            if self.sampler.measured_from_ns.is_none() && now >= warm_ns {
                self.sample(now, line);
                self.sampler.measure_from(now);
            }
            if now >= self.sampler.next_ns() {
                self.sample(now, line);
            }
            let all_published = publishes && self.producers.is_empty();
            let all_consumed =
                !publishes && messages > 0 && self.context.counters.consumed.total() >= messages;
            let is_over = end_ns.is_some_and(|end_ns| now >= end_ns);
            let is_broken = !self.failures.is_empty() || self.interrupts.count > 0;
            if all_published || all_consumed || is_over || is_broken {
                break;
            }
        }
        self.context.stop();
        self.ended_ns = now_ns();
        self.ended = self.context.counters.totals();
        while !self.producers.is_empty() {
            tokio::select! {
                Some(stopped) = self.producers.join_next() => self.producer_ended(stopped),
                () = self.interrupts.next(&self.context) => {}
            }
        }
    }

    fn producer_ended(&mut self, stopped: Result<Stopped, tokio::task::JoinError>) {
        match stopped {
            Ok(stopped) => {
                if let Some(error) = &stopped.error {
                    self.failures.push(format!("a producer failed: {error}"));
                }
                self.stopped.push(stopped);
            }
            Err(error) => self.failures.push(format!("a producer failed: {error}")),
        }
    }

    fn sample(&mut self, now_ns: u64, line: &mut impl FnMut(&str)) {
        let point = self.sampler.sample(now_ns);
        if !self.context.options.flags.quiet {
            line(&point.line());
        }
    }

    /// Waits for messages and confirms under way until all are there, as long as there is time to drain.
    async fn drain(&mut self, line: &mut impl FnMut(&str)) {
        let context = self.context.clone();
        self.flush().await;
        let mut look = tokio::time::interval(LOOK_EVERY);
        while !self.is_drained() && self.failures.is_empty() && self.interrupts.count < 2 {
            tokio::select! {
                _ = look.tick() => {}
                () = context.draining_over() => break,
                Some(Ok(failure)) = self.failing.join_next() => self.failures.push(failure),
                () = self.interrupts.next(&context) => {}
            }
            let now = now_ns();
            if now >= self.sampler.next_ns() {
                self.sample(now, line);
            }
        }
        self.sampler.finish(now_ns());
    }

    /// Waits until all that was published is with the operating system, as long as there is time to drain.
    async fn flush(&mut self) {
        let flushing = async {
            for producer in &self.stopped {
                // A connection that has failed was told of.
                let _ = producer.flush().await;
            }
        };
        tokio::pin!(flushing);
        loop {
            tokio::select! {
                () = &mut flushing => break,
                () = self.context.draining_over() => break,
                () = self.interrupts.next(&self.context) => {}
            }
        }
    }

    fn is_drained(&self) -> bool {
        let context = &self.context;
        self.stopped.iter().all(|producer| producer.outstanding() == 0)
            && context.counters.consumed.total() >= context.ledger.expected()
            && self.missing() == 0
    }
}
