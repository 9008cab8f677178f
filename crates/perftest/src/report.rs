//! What a run has come to: the figures, and whether all went well.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::latency::{PercentilePoint, Summary};
use crate::series::Point;

/// Version of the shape of a report, which grows when a field changes its meaning.
pub const FORMAT: u32 = 2;

/// Everything that a run has to say; also the shape of the JSON file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// What was run, as on the command line, without the password.
    pub settings: Settings,
    /// Seconds that were measured: from the end of the warm-up to the end of publishing (of consuming, if there are no
    /// producers).
    pub duration_s: f64,
    /// Seconds of warm-up before that.
    pub warmup_s: f64,
    /// Seconds that it took for the last message to arrive after publishing had ended.
    pub drain_s: f64,
    /// Messages that were consumed in the measured time, and published in the warm-up.
    pub consumed_from_warmup: u64,
    /// Whether the user broke the run off.
    pub interrupted: bool,
    /// Messages published.
    pub published: Throughput,
    /// Messages consumed, also while draining.
    pub consumed: Throughput,
    /// Messages confirmed, also while draining.
    pub confirmed: Throughput,
    /// What became of the messages.
    pub fate: Fate,
    /// From the intended sending to the consumer; nothing when bodies have no room for a stamp.
    pub consumer_latency: Option<Summary>,
    /// From the intended sending to the confirm.
    pub confirm_latency: Option<Summary>,
    /// The run second by second.
    pub series: Vec<Point>,
    /// Distribution of the consumer latency.
    pub consumer_percentiles: Vec<PercentilePoint>,
    /// Distribution of the confirm latency.
    pub confirm_percentiles: Vec<PercentilePoint>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The broker, without the password.
    pub uri: String,
    /// What the broker calls itself.
    pub broker: String,
    /// Number of producers.
    pub producers: u16,
    /// Number of consumers.
    pub consumers: u16,
    /// Messages a second of each producer, 0 without limit.
    pub rate: u64,
    /// Rates that follow each other, empty for one rate.
    pub variable_rate: String,
    /// Bytes of a body, of the smallest ones if there are several sizes.
    pub size_bytes: usize,
    /// Sizes that follow each other, empty for one size.
    pub variable_size: String,
    /// Whether messages are persistent.
    pub persistent: bool,
    /// Whether queues are durable.
    pub durable: bool,
    /// Arguments that queues were declared with.
    pub queue_arguments: String,
    /// Whether consumers do not acknowledge.
    pub auto_ack: bool,
    /// Unacknowledged messages that a consumer may have.
    pub prefetch: u16,
    /// Messages to an acknowledgement.
    pub multi_ack: u16,
    /// Unconfirmed messages that a producer may have, 0 without confirms.
    pub confirm: u32,
    /// Messages of a transaction, 0 without them.
    pub tx: u64,
    /// Producers, or consumers, that share a connection.
    pub channels: u16,
    /// Longest time to wait for messages in transit at the end.
    pub drain_timeout_ms: u64,
    /// Exchange and its type, empty for the default exchange.
    pub exchange: String,
    /// Number of queues.
    pub queues: u16,
    /// Routing key, empty for the queues' names.
    pub routing_key: String,
    /// Routing keys that follow each other.
    pub routing_keys: u32,
    /// Headers of the messages.
    pub headers: String,
    /// Properties of the messages.
    pub properties: String,
    /// Whether messages that reach no queue come back.
    pub mandatory: bool,
    /// Arguments that the exchange was declared with.
    pub exchange_arguments: String,
    /// Arguments that consumers began with.
    pub consumer_arguments: String,
    /// Where consumers began to read a stream, empty for the default.
    pub stream_offset: String,
    /// Messages a second of each consumer, 0 without limit.
    pub consumer_rate: u64,
    /// Time that a consumer worked on each message.
    pub consumer_latency_us: u64,
    /// Messages to a transaction of acknowledgements, 0 without them.
    pub consumer_tx: u16,
    /// Whether consumers asked for messages, by basic.get.
    pub polling: bool,
    /// One of so many messages was refused, 0 for none.
    pub nack_every: u64,
    /// Whether what was refused went back into its queue.
    pub requeue: bool,
    /// Whether failed connections were opened again.
    pub reconnect: bool,
}

/// A number of messages, and so many a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// How many from the end of the warm-up to the end of the run.
    pub total: u64,
    /// Those of them that came in the measured time, divided by that time.
    pub per_s: f64,
    /// Those of them that came behind the measured time, while the run was draining.
    pub drained: u64,
}

impl Throughput {
    /// `measured` messages in the `duration_s` seconds that were measured, and `drained` behind them.
    #[must_use]
    pub fn new(measured: u64, drained: u64, duration_s: f64) -> Self {
        let per_s = if duration_s > 0.0 { measured as f64 / duration_s } else { 0.0 };
        Self { total: measured + drained, per_s, drained }
    }
}

/// What became of the messages of the whole run, the warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// Messages that should have arrived, did not, and are not in a queue any more either.
    pub lost: u64,
    /// Messages that had not arrived when the time to drain was over, and were in their queues.
    pub undrained: u64,
    /// Messages that are still in the queues.
    pub left: u64,
    /// Messages that had not arrived when the run was broken off, by the user or a failure: where they are is not known.
    pub open: u64,
    /// Messages that arrived more than once.
    pub duplicates: u64,
    /// Messages that the broker refused.
    pub nacked: u64,
    /// Messages that were published and neither confirmed nor refused.
    pub unconfirmed: u64,
    /// Mandatory messages that came back because no queue took them.
    pub returned: u64,
    /// Messages that consumers have refused.
    pub refused: u64,
    /// How often a producer or consumer has connected again.
    pub reconnects: u64,
    /// Messages without an answer when their connection broke: they may have arrived or not, and are not lost.
    pub uncertain: u64,
    /// Messages of other runs that were found in the queues, or came back.
    pub foreign: u64,
    /// Connections that failed, and why.
    pub failures: Vec<String>,
}

impl Fate {
    /// Sentences about what must not be; empty when all went well.
    fn problems(&self, drain_timeout: Duration) -> Vec<String> {
        let undrained = format!("left after {drain_timeout:?} (--drain-timeout)");
        let counted = [
            (self.lost, "lost"),
            (self.undrained, &undrained),
            (self.nacked, "refused by the broker (nack)"),
            (self.unconfirmed, "never confirmed"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let counted = counted.map(|(count, what)| match count {
            1 => format!("1 message was {what}"),
            _ => format!("{count} messages were {what}"),
        });
        counted.chain(self.failures.iter().cloned()).collect()
    }

    /// What is worth a line, though nothing is wrong.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let counted = [
            (self.returned, "came back: no queue took them (mandatory)"),
            (self.duplicates, "arrived more than once"),
            (self.left, "are left in the queues"),
            (self.open, "had not arrived when the run was broken off"),
            (self.foreign, "were from another run"),
            (self.refused, "were refused by consumers (--nack-every)"),
            (
                self.uncertain,
                "had no answer when their connection broke, and need not have arrived",
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let counted = counted.map(|(count, what)| format!("{count} messages {what}"));
        let again = format!("producers and consumers connected again {} times", self.reconnects);
        counted.chain((self.reconnects > 0).then_some(again)).collect()
    }
}

impl Report {
    /// Sentences about what must not be; empty when all went well.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.fate.problems(Duration::from_millis(self.settings.drain_timeout_ms))
    }

    /// Whether all went well; decides the exit code.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.problems().is_empty()
    }
}
