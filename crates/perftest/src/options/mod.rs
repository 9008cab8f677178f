//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::duration::parse_duration;

mod broker;
mod check;
mod consuming;
mod kind;
pub mod steps;

pub use broker::{BrokerOptions, TlsOptions};
pub use consuming::Consuming;
pub use kind::QueueKind;
use steps::Step;

pub(crate) const EXAMPLES: &str = "\
Examples:
  perftest
      one producer and one consumer with bodies of 1 KiB, for 30 seconds
  perftest --producers 10 --consumers 10 --size 16 --auto-ack --confirm 0
      how many small messages the broker moves
  perftest --durable --persistent --confirm 100 --prefetch 100 --multi-ack 10
      what it costs to lose nothing
  perftest --rate 2000 --confirm 1000 --prefetch 200 --html latency.html
      latency at a rate that the broker sustains: the figure to compare brokers by
  perftest --exchange logs --exchange-type fanout --queues 10 --consumers 10 --size 256
      every message to ten queues
  perftest --consumers 0 --messages 1000000 --durable --persistent
      leave a backlog; then `perftest --producers 0 --durable --messages 1000000` drains it
  perftest --quorum --persistent --rate 500 --duration 10m --reconnect
      what a broker's restart loses and doubles
  perftest churn connections --workers 4
      how many connections the broker opens and closes

Every option can also be written with a single dash: perftest -producers 10 -size 10240 -duration 60s

Exit code: 0 on success; 1 if a message was lost, left undrained, refused or never confirmed, or a connection failed;
2 if the options are invalid or a report can't be written.";

/// Load-test an AMQP 0-9-1 broker: throughput, latency and loss.
#[derive(Clone, Debug, Parser)]
#[command(name = "perftest", version, after_help = EXAMPLES, max_term_width = 110)]
pub struct Options {
    /// Where to connect
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Producers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub producers: u16,
    /// Consumers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub consumers: u16,
    /// Producers, or consumers, that share a connection, each on a channel of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub channels: u16,
    /// How long to publish and measure [default: 30s; with --messages, until they are done]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Stop after this many messages from all producers together (0: no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub messages: u64,
    /// Messages per second for each producer (0: as many as the broker takes)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rate: u64,
    /// Rates that follow each other, and begin again: 100:60s,1000:10s; 0 pauses
    #[arg(long, value_name = "N:TIME", value_delimiter = ',', conflicts_with = "rate")]
    pub variable_rate: Vec<Step>,
    /// Run this long before measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub warmup: Duration,

    /// Bytes of each body; below 16 there is no room for a time stamp, and latency is not measured
    #[arg(long, value_name = "BYTES", default_value_t = 1024, help_heading = "Messages")]
    pub size: usize,
    /// Sizes that follow each other, and begin again: 16:10s,4096:10s
    #[arg(
        long,
        value_name = "BYTES:TIME",
        value_delimiter = ',',
        conflicts_with = "size",
        help_heading = "Messages"
    )]
    pub variable_size: Vec<Step>,
    /// What is on or off
    #[command(flatten)]
    pub flags: Flags,
    /// Headers of every message, separated by commas; whole numbers become integers, true and false booleans
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', help_heading = "Messages")]
    pub headers: Vec<String>,
    /// Properties of every message: content_type, content_encoding, priority, correlation_id, reply_to, expiration
    /// (milliseconds), message_id, timestamp (seconds), type, user_id, app_id
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', help_heading = "Messages")]
    pub properties: Vec<String>,

    /// Name of the queue; with --queues, the beginning of their names
    #[arg(long, value_name = "NAME", default_value = "perftest", help_heading = "Topology")]
    pub queue: String,
    /// Use this many queues: NAME-1, NAME-2, ...; producers and consumers are spread over them
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Topology")]
    pub queues: u16,
    /// Exchange to publish to, which is declared and bound to the queues [default: the default exchange]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        help_heading = "Topology"
    )]
    pub exchange: String,
    /// Type of the exchange: direct, fanout, topic, headers, or another that the broker has
    #[arg(long, value_name = "TYPE", default_value = "direct", help_heading = "Topology")]
    pub exchange_type: String,
    /// Routing key to publish and bind with [default: the queue's name]
    #[arg(long, value_name = "KEY", help_heading = "Topology")]
    pub routing_key: Option<String>,
    /// Publish with this many routing keys in turn, KEY.1, KEY.2, ..., to which queues of a direct or topic exchange are bound
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Topology")]
    pub routing_keys: u32,
    /// What kind of queues
    #[command(flatten)]
    pub kind: QueueKind,

    /// Publisher confirms outstanding per producer, at most (0: publish without confirms)
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Guarantees")]
    pub confirm: u32,
    /// Publish in transactions of N messages, instead of with confirms; what is committed counts as confirmed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        conflicts_with = "confirm",
        help_heading = "Guarantees"
    )]
    pub tx: u64,
    /// When a connection fails, connect again and go on; what was lost and what came twice is told
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Guarantees")]
    pub reconnect: bool,
    /// Unacknowledged messages per consumer (0: any number)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Guarantees")]
    pub prefetch: u16,
    /// Acknowledge N messages at a time
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Guarantees")]
    pub multi_ack: u16,
    /// What consumers do
    #[command(flatten)]
    pub consuming: Consuming,
    /// At the end, wait at most this long for messages in transit; what is left then is told, and fails the run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration, help_heading = "Guarantees")]
    pub drain_timeout: Duration,

    /// Write the report as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the report as a web page, with throughput and latency over time and percentiles
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Serve the figures of the run under way for Prometheus, at http://ADDR:PORT/metrics
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Output")]
    pub metrics: Option<SocketAddr>,
}

/// What is on or off: `--persistent`, or `--persistent=false`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Publish persistent messages (delivery mode 2)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Messages")]
    pub persistent: bool,
    /// Publish with the mandatory flag; messages that reach no queue are returned and counted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Messages")]
    pub mandatory: bool,
    /// Declare durable queues and a durable exchange
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Topology")]
    pub durable: bool,
    /// Keep the queues and the exchange that this run declares, instead of deleting them at the end
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Topology")]
    pub keep: bool,
    /// Consume without acknowledgements
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Guarantees")]
    pub auto_ack: bool,
    /// Print only the report, not a line every second
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, help_heading = "Output")]
    pub quiet: bool,
}

impl Options {
    /// Reads a command line, whose first argument is the name of the program.
    ///
    /// # Errors
    /// When it is none; also for `--help` and `--version`, which are no errors to the user: [`clap::Error::exit`]
    /// tells them apart.
    pub fn parse_from_args<I, A>(args: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        let options: Self = crate::cli::parse(args)?;
        options.checked(Self::command())?;
        Ok(options)
    }

    /// Whether the options fit together; the error is one of this command.
    pub(crate) fn checked(&self, mut command: clap::Command) -> Result<(), clap::Error> {
        self.check().map_err(|text| command.error(clap::error::ErrorKind::ValueValidation, text))
    }

    /// How long to run after the warm-up, if there is a limit.
    #[must_use]
    pub fn duration_limit(&self) -> Option<Duration> {
        const DEFAULT: Duration = Duration::from_secs(30);
        self.duration.or((self.messages == 0).then_some(DEFAULT))
    }

    /// Confirms that may be outstanding; transactions need none.
    #[must_use]
    pub fn confirms(&self) -> u32 {
        if self.tx > 0 { 0 } else { self.confirm }
    }

    /// Whether all bodies have room for a stamp.
    #[must_use]
    pub fn has_stamps(&self) -> bool {
        self.smallest_size() >= crate::stamp::STAMP_LEN
    }

    /// Bytes of the smallest bodies.
    #[must_use]
    pub fn smallest_size(&self) -> usize {
        self.sizes().min().unwrap_or(self.size)
    }

    /// Bytes of the largest bodies.
    #[must_use]
    pub fn largest_size(&self) -> usize {
        self.sizes().max().unwrap_or(self.size)
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.variable_size.iter().map(|step| step.value as usize)
    }

    /// Whether queues are declared durable; quorum queues and streams are nothing else.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.flags.durable || self.kind.quorum || self.kind.stream
    }
}
