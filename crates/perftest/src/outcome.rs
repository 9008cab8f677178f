//! What a run has come to: everything is closed, counted and summed up.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::arguments;
use crate::context::Context;
use crate::latency::{Summary, percentile_curve};
use crate::options::steps::Step;
use crate::report::{FORMAT, Fate, Report, Settings, Throughput};
use crate::run::Run;
use crate::setup::Setup;

impl Run {
    /// Messages that should have arrived and have not, all queues together.
    pub(crate) fn missing(&self) -> u64 {
        if !self.context.options.has_stamps() {
            let expected = self.context.ledger.expected();
            return expected.saturating_sub(self.context.counters.consumed.total());
        }
        self.consumers.iter().for_each(|consumer| consumer.enter());
        self.context.ledger.balance().missing
    }

    /// Closes everything and sums up.
    pub(crate) async fn finish(mut self, mut setup: Setup) -> Report {
        let ending = Ending::within(ENDING_TIMEOUT);
        let unconfirmed = self.stopped.iter().map(|producer| producer.give_up_waiting()).sum();
        let is_settled = self.stopped.iter().all(|producer| producer.outstanding() == 0);
        self.close_all(&ending, is_settled).await;
        ending.wait(setup.renew(&self.context)).await;
        let missing = self.missing();
        let queues = || self.context.topology.queues.iter().enumerate();
        let topology = &self.context.topology;
        // What an exchange gave to a queue without consumers is there, and not lost.
        let counts = |queue| topology.is_consumed(queue) || topology.reaches_one();
        let consumed = queues().filter(|&(queue, _)| counts(queue));
        let ready =
            ending.wait(setup.ready(consumed.map(|(_, name)| name.as_str()))).await.flatten();
        // A broker that has not answered once is not asked again.
        let left = match ready {
            Some(_) => {
                ending.wait(setup.ready(queues().map(|(_, name)| name.as_str()))).await.flatten()
            }
            None => None,
        };
        self.failures.extend(self.context.recovery.failures());
        let totals = self.context.counters.totals();
        let uncertain = self.context.counters.uncertain.total();
        let has_answers = self.context.options.confirms() > 0 || self.context.options.tx > 0;
        if has_answers && uncertain > 0 && totals.confirmed == 0 {
            self.failures.push("nothing of what was published was confirmed".to_owned());
        }
        if ready.is_none() && self.failures.is_empty() && self.interrupts.count < 2 {
            self.failures.push("the broker gave no answer at the end".to_owned());
        }
        // A run that was cut off cannot tell what is lost from what is under way.
        let is_open = self.interrupts.count > 1 || ready.is_none() || !self.failures.is_empty();
        // A stream keeps what was consumed.
        let waiting = if topology.keeps_messages() { 0 } else { ready.unwrap_or(0) };
        let gone = missing.saturating_sub(waiting);
        let fate = Fate {
            lost: if is_open { 0 } else { gone },
            undrained: if is_open { 0 } else { missing - gone },
            left: if topology.keeps_messages() { 0 } else { left.unwrap_or(0) },
            open: if is_open { gone } else { 0 },
            duplicates: self.context.ledger.balance().duplicates,
            nacked: totals.nacked,
            unconfirmed,
            returned: totals.returned,
            foreign: totals.foreign,
            refused: self.context.counters.refused.total(),
            reconnects: self.context.recovery.recovered(),
            uncertain,
            failures: std::mem::take(&mut self.failures),
        };
        let broker = setup.broker.clone();
        if ready.is_some() {
            ending.wait(setup.clean_up(&self.context)).await;
        }
        self.report(fate, broker)
    }

    /// Closes producers and consumers, all at once, then their connections: those of producers unless the broker owes
    /// them an answer, for which closing would wait.
    async fn close_all(&mut self, ending: &Ending, is_settled: bool) {
        // They hold on to the consumers.
        self.failing.shutdown().await;
        let mut closing = JoinSet::new();
        for producer in std::mem::take(&mut self.stopped) {
            closing.spawn(producer.close());
        }
        for consumer in std::mem::take(&mut self.consumers) {
            consumer.enter();
            if let Ok(consumer) = Arc::try_unwrap(consumer) {
                closing.spawn(consumer.close());
            }
        }
        ending.wait(closing.join_all()).await;
        ending.wait(self.context.consumer_links.close()).await;
        if is_settled {
            ending.wait(self.context.producer_links.close()).await;
        }
    }

    fn report(self, fate: Fate, broker: String) -> Report {
        let (context, sampler) = (&self.context, &self.sampler);
        let counters = &context.counters;
        let from_ns = sampler.measured_from_ns.unwrap_or(self.ended_ns);
        let seconds = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e9;
        let duration_s = seconds(from_ns, self.ended_ns);
        // A run that has ended in its warm-up has measured nothing.
        let base = sampler.measured_from_ns.map_or(self.ended, |_| sampler.base);
        let (measured, totals) = (self.ended.since(base), counters.totals());
        let drained = totals.since(self.ended);
        let throughput = |measured, drained| Throughput::new(measured, drained, duration_s);
        Report {
            format: FORMAT,
            settings: settings(context, broker),
            duration_s,
            warmup_s: context.options.warmup.as_secs_f64(),
            drain_s: seconds(self.ended_ns, counters.consumed.last_ns()),
            consumed_from_warmup: counters.from_warmup.total(),
            interrupted: self.interrupts.count > 0,
            // What a producer was handing over when it was told to stop is of the measured time.
            published: throughput(measured.published + drained.published, 0),
            consumed: throughput(measured.consumed, drained.consumed),
            confirmed: throughput(measured.confirmed, drained.confirmed),
            fate,
            consumer_latency: Summary::of(&sampler.consumer_latency),
            confirm_latency: Summary::of(&sampler.confirm_latency),
            consumer_percentiles: percentile_curve(&sampler.consumer_latency),
            confirm_percentiles: percentile_curve(&sampler.confirm_latency),
            series: self.sampler.series,
        }
    }
}

/// The time for everything behind the drain together: closing, looking into the queues, deleting them.
pub const ENDING_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits for a broker that may not answer any more.
struct Ending(Instant);

impl Ending {
    fn within(timeout: Duration) -> Self {
        Self(Instant::now() + timeout)
    }

    async fn wait<R>(&self, future: impl Future<Output = R>) -> Option<R> {
        tokio::time::timeout_at(self.0, future).await.ok()
    }
}

fn steps(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(",")
}

fn settings(context: &Context, broker: String) -> Settings {
    let options = &context.options;
    let (kind, consuming) = (&options.kind, &options.consuming);
    let exchange = match options.exchange.as_str() {
        "" => String::new(),
        name => format!("{name} ({})", options.exchange_type),
    };
    Settings {
        uri: context.endpoints.uris(),
        broker,
        producers: options.producers,
        consumers: options.consumers,
        rate: options.rate,
        variable_rate: steps(&options.variable_rate),
        size_bytes: options.smallest_size(),
        variable_size: steps(&options.variable_size),
        persistent: options.flags.persistent,
        durable: options.is_durable(),
        queue_arguments: arguments::of_queues(options).join(","),
        auto_ack: options.flags.auto_ack,
        prefetch: options.prefetch,
        multi_ack: options.multi_ack,
        confirm: options.confirms(),
        tx: options.tx,
        channels: options.channels,
        drain_timeout_ms: options.drain_timeout.as_millis() as u64,
        exchange,
        queues: options.queues,
        routing_key: options.routing_key.clone().unwrap_or_default(),
        routing_keys: options.routing_keys,
        headers: options.headers.join(","),
        properties: options.properties.join(","),
        mandatory: options.flags.mandatory,
        exchange_arguments: kind.exchange_args.join(","),
        consumer_arguments: kind.consumer_args.join(","),
        stream_offset: kind.stream_offset.clone().unwrap_or_default(),
        consumer_rate: consuming.consumer_rate,
        consumer_latency_us: consuming.consumer_latency.as_micros() as u64,
        consumer_tx: consuming.consumer_tx,
        polling: consuming.polling,
        nack_every: consuming.nack_every,
        requeue: consuming.requeue,
        reconnect: options.reconnect,
    }
}
