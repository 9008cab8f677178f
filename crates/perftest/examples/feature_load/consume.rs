//! Consumers, one or a thousand, until they have got what they wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use courser_client::batch::Deliveries;
use courser_client::{Channel, Connection, ConsumeOptions, Error};
use courser_perftest::clock::now_ns;
use courser_perftest::latency::{Recorder, Summary, new_histogram};
use courser_perftest::stamp::Stamp;
use tokio::sync::Notify;

use crate::Answer;
use crate::command::{Consume, ConsumerSpec, table};

/// Brokers count whole milliseconds: so much earlier is in time.
const EARLY_NS: u64 = 1_000_000;

/// What all consumers of a command write down.
struct Tally {
    wanted: u64,
    total: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    early: AtomicU64,
    misplaced: AtomicU64,
    latency: Option<Recorder>,
    priorities: bool,
    ack_every: u64,
    is_done: Notify,
}

/// What one consumer writes down.
#[derive(Default)]
struct Own {
    count: Arc<AtomicU64>,
    unacked: u64,
    priority: Option<u8>,
}

/// Consumes until enough has come, or nothing more comes. `ready` is called when all consumers are there.
pub async fn consume(uri: &str, command: Consume, ready: impl Fn()) -> Result<Answer, Error> {
    let tally = Arc::new(Tally::new(&command));
    let mut connections = Vec::new();
    let mut counts = Vec::new();
    for specs in command.consumers.chunks(command.per_connection.max(1)) {
        let connection = Connection::open(uri).await?;
        let channel = connection.open_channel().await?;
        channel.qos(command.prefetch).await?;
        for spec in specs {
            counts.push(add_consumer(&channel, spec, &command, &tally).await?);
        }
        connections.push((connection, channel));
    }
    ready();
    while !tally.is_complete() {
        let wait = Duration::from_millis(if command.idle_ms > 0 { command.idle_ms } else { 100 });
        let before = tally.total.load(Ordering::Relaxed);
        let timed_out = tokio::time::timeout(wait, tally.is_done.notified()).await.is_err();
        let is_idle = timed_out && tally.total.load(Ordering::Relaxed) == before;
        if is_idle && command.idle_ms > 0 {
            break;
        }
        if let Some((connection, _)) = connections.iter().find(|(one, _)| !one.is_open()) {
            return Err(connection.closed().await);
        }
    }
    let answer = tally.answer(&counts);
    for (connection, _) in connections {
        connection.close().await?;
    }
    Ok(answer)
}

async fn add_consumer(
    channel: &Channel,
    spec: &ConsumerSpec,
    command: &Consume,
    tally: &Arc<Tally>,
) -> Result<Arc<AtomicU64>, Error> {
    let options = ConsumeOptions {
        auto_ack: command.prefetch == 0,
        arguments: table(&spec.arguments)?,
        ..Default::default()
    };
    let mut own = Own::default();
    let (count, tally) = (own.count.clone(), tally.clone());
    let handler = move |deliveries: &mut Deliveries<'_>| tally.take(&mut own, deliveries);
    // It goes on without this handle, and ends with its connection.
    channel.consume_batches(&spec.queue, options, handler).await?;
    Ok(count)
}

impl Tally {
    fn new(command: &Consume) -> Self {
        Self {
            wanted: command.count,
            total: AtomicU64::new(0),
            first_ns: AtomicU64::new(u64::MAX),
            last_ns: AtomicU64::new(0),
            early: AtomicU64::new(0),
            misplaced: AtomicU64::new(0),
            latency: command.latency.then(Recorder::default),
            priorities: command.priorities,
            ack_every: if command.prefetch == 0 { 0 } else { command.ack_every.max(1) },
            is_done: Notify::new(),
        }
    }

    fn is_complete(&self) -> bool {
        self.total.load(Ordering::Relaxed) >= self.wanted
    }

    fn take(&self, own: &mut Own, deliveries: &mut Deliveries<'_>) {
        let now_ns = now_ns();
        let len = deliveries.len() as u64;
        self.look_at(own, deliveries, now_ns);
        own.count.fetch_add(len, Ordering::Relaxed);
        own.unacked += len;
        self.first_ns.fetch_min(now_ns, Ordering::Relaxed);
        self.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        let total = self.total.fetch_add(len, Ordering::Relaxed) + len;
        if self.ack_every > 0 && (own.unacked >= self.ack_every || total >= self.wanted) {
            deliveries.ack_all();
            own.unacked = 0;
        }
        if total >= self.wanted {
            self.is_done.notify_one();
        }
    }

    fn look_at(&self, own: &mut Own, deliveries: &Deliveries<'_>, now_ns: u64) {
        if let Some(recorder) = &self.latency {
            let mut recording = recorder.lock();
            for stamp in deliveries.iter().filter_map(|delivery| Stamp::read(delivery.body())) {
                recording.add(now_ns.saturating_sub(stamp.time_ns));
                if now_ns + EARLY_NS < stamp.time_ns {
                    self.early.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        for delivery in deliveries.iter().filter(|_| self.priorities) {
            let priority = delivery.properties().decode().ok().and_then(|found| found.priority);
            if own.priority.is_some() && priority > own.priority {
                self.misplaced.fetch_add(1, Ordering::Relaxed);
            }
            own.priority = priority;
        }
    }

    fn answer(&self, counts: &[Arc<AtomicU64>]) -> Answer {
        let first_ns = self.first_ns.load(Ordering::Relaxed);
        let elapsed_ns = self.last_ns.load(Ordering::Relaxed).saturating_sub(first_ns);
        let counts = || counts.iter().map(|count| count.load(Ordering::Relaxed));
        let latency = self.latency.as_ref().and_then(|recorder| {
            let mut all = new_histogram();
            recorder.take_into(&mut all);
            Summary::of(&all)
        });
        Answer {
            count: self.total.load(Ordering::Relaxed),
            seconds: elapsed_ns as f64 / 1e9,
            share: counts().min().zip(counts().max()),
            early: self.early.load(Ordering::Relaxed),
            misplaced: self.misplaced.load(Ordering::Relaxed),
            latency,
        }
    }
}
