//! Opening and closing over and over: connections, channels, queues, bindings, consumers.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_client::{
    Channel, Connection, ConsumeOptions, DeleteQueueOptions, Error, FieldTable, QueueOptions,
};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::now_ns;
use crate::duration::parse_duration;
use crate::endpoints::Endpoints;
use crate::latency::{Recorder, Summary, new_histogram};
use crate::options::BrokerOptions;
use crate::outcome::ENDING_TIMEOUT;
use crate::run::RunError;
use crate::text::write_latency;

/// What to open and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Connections, each with its login.
    Connections,
    /// Channels of a connection.
    Channels,
    /// Queues, declared and deleted.
    Queues,
    /// Bindings of a queue to amq.direct.
    Bindings,
    /// Consumers of a queue.
    Consumers,
}

/// How to churn.
#[derive(Clone, Debug, clap::Args)]
pub struct ChurnOptions {
    /// What to open and close
    #[arg(value_enum)]
    pub kind: Kind,
    /// Where to connect
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// How many do so side by side, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: u16,
    /// How long to go on
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Stop after so many altogether (0: no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub count: u64,
    /// Declare durable queues, instead of exclusive ones
    #[arg(long)]
    pub durable: bool,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What has come of it.
#[derive(Clone, Debug, Serialize)]
pub struct ChurnReport {
    /// What was opened and closed.
    pub kind: Kind,
    /// How many did so side by side.
    pub workers: u16,
    /// Seconds from the first to the last.
    pub duration_s: f64,
    /// How many were opened and closed.
    pub total: u64,
    /// The total, divided by the duration.
    pub per_s: f64,
    /// Time to open and close one.
    pub latency: Option<Summary>,
    /// Why workers have stopped before they should.
    pub failures: Vec<String>,
}

impl ChurnReport {
    /// The report, as it is printed at the end.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { kind, duration_s, total, per_s, .. } = self;
        writeln!(out, "\n=== Performance Test Results ===\n\nDuration: {duration_s:.2} s\n")?;
        writeln!(out, "{kind:?} opened and closed: {total} ({per_s:.0}/s)\n\nLatency:")?;
        write_latency(self.latency, out)?;
        self.failures.iter().try_for_each(|failure| writeln!(out, "\nFAILED: {failure}"))
    }
}

/// What the workers share.
struct Shared {
    options: ChurnOptions,
    endpoints: Endpoints,
    /// How many may still be opened.
    left: AtomicU64,
    total: AtomicU64,
    is_over: AtomicBool,
    /// When it began, in monotonic nanoseconds.
    begun_ns: u64,
}

/// Opens and closes until the time or the count is over, or something comes from `interrupts`.
///
/// # Errors
/// When the options are to blame. What fails later is in the report.
pub async fn run(
    options: ChurnOptions,
    mut interrupts: mpsc::Receiver<()>,
) -> Result<ChurnReport, RunError> {
    let shared = Arc::new(Shared {
        endpoints: Endpoints::new(&options.broker)?,
        left: AtomicU64::new(if options.count == 0 { u64::MAX } else { options.count }),
        total: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        begun_ns: now_ns(),
        options,
    });
    let recorder = Arc::new(Recorder::default());
    let mut working = JoinSet::new();
    for index in 0..usize::from(shared.options.workers) {
        let (shared, recorder) = (shared.clone(), recorder.clone());
        working.spawn(async move { work(&shared, index, &recorder).await });
    }
    let failures = wait_for(&mut working, &shared, &mut interrupts).await;
    working.shutdown().await;
    let duration_s = (now_ns() - shared.begun_ns) as f64 / 1e9;
    let total = shared.total.load(Relaxed);
    let mut histogram = new_histogram();
    recorder.take_into(&mut histogram);
    Ok(ChurnReport {
        kind: shared.options.kind,
        workers: shared.options.workers,
        duration_s,
        total,
        per_s: total as f64 / duration_s.max(1e-9),
        latency: Summary::of(&histogram),
        failures,
    })
}

/// Waits for the workers, and stops them when their time is over: gives their failures. A broker that does not answer
/// is waited for until [`ENDING_TIMEOUT`], or a second interrupt.
async fn wait_for(
    working: &mut JoinSet<Result<(), Error>>,
    shared: &Shared,
    interrupts: &mut mpsc::Receiver<()>,
) -> Vec<String> {
    let over = tokio::time::sleep(shared.options.duration);
    tokio::pin!(over);
    let (mut failures, mut signals) = (Vec::new(), 0);
    loop {
        tokio::select! {
            ended = working.join_next() => match ended {
                None => return failures,
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => failures.push(format!("a worker failed: {error}")),
                Some(Err(error)) => failures.push(format!("a worker failed: {error}")),
            },
            () = &mut over => {
                if shared.is_over.swap(true, Relaxed) {
                    let count = working.len();
                    failures.push(format!("{count} workers had no answer for {ENDING_TIMEOUT:?}"));
                    return failures;
                }
                over.as_mut().reset(Instant::now() + ENDING_TIMEOUT);
            }
            Some(()) = interrupts.recv() => {
                signals += 1;
                if signals > 1 {
                    return failures;
                }
                if !shared.is_over.load(Relaxed) {
                    over.as_mut().reset(Instant::now());
                }
            }
        }
    }
}

/// What a worker needs besides what it opens: a connection, a channel, and a queue.
struct Bench {
    connection: Connection,
    channel: Channel,
    queue: String,
}

async fn work(shared: &Shared, index: usize, recorder: &Recorder) -> Result<(), Error> {
    let Shared { options, endpoints, .. } = shared;
    let connection = endpoints.connect(index, &format!("churn {}", index + 1)).await?;
    let channel = connection.open_channel().await?;
    // Processes in containers have the same number.
    let (process, begun_ns) = (std::process::id(), shared.begun_ns);
    let queue = format!("perftest-churn-{process}-{begun_ns}-{}", index + 1);
    let bench = Bench { connection, channel, queue };
    let needs_queue = matches!(options.kind, Kind::Bindings | Kind::Consumers);
    if needs_queue {
        bench.channel.queue_declare(&bench.queue, queue_options(options)).await?;
    }
    while !shared.is_over.load(Relaxed) && shared.take_one() {
        let begun_ns = now_ns();
        open_and_close(shared, index, &bench).await?;
        recorder.lock().add(now_ns() - begun_ns);
        shared.total.fetch_add(1, Relaxed);
    }
    if needs_queue {
        bench.channel.queue_delete(&bench.queue, DeleteQueueOptions::default()).await?;
    }
    bench.connection.close().await
}

impl Shared {
    fn take_one(&self) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

fn queue_options(options: &ChurnOptions) -> QueueOptions {
    let durable = options.durable;
    QueueOptions { durable, exclusive: !durable, ..QueueOptions::default() }
}

async fn open_and_close(shared: &Shared, index: usize, bench: &Bench) -> Result<(), Error> {
    let Bench { connection, channel, queue } = bench;
    match shared.options.kind {
        Kind::Connections => {
            let name = format!("churning {}", index + 1);
            shared.endpoints.connect(index, &name).await?.close().await
        }
        Kind::Channels => connection.open_channel().await?.close().await,
        Kind::Queues => {
            channel.queue_declare(queue, queue_options(&shared.options)).await?;
            channel.queue_delete(queue, DeleteQueueOptions::default()).await.map(drop)
        }
        Kind::Bindings => {
            let (exchange, key) = ("amq.direct", queue.as_str());
            channel.queue_bind(queue, exchange, key, FieldTable::new()).await?;
            channel.queue_unbind(queue, exchange, key, FieldTable::new()).await
        }
        Kind::Consumers => {
            let consumer =
                channel.consume_batches(queue, ConsumeOptions::default(), |_| ()).await?;
            consumer.cancel().await
        }
    }
}
