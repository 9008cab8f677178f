//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::duration::parse_duration;
use crate::stamp::PRODUCERS_MAX;

/// Most confirms that a producer can have outstanding.
const CONFIRM_MAX: u32 = 1 << 20;

const EXAMPLES: &str = "\
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

Every option can also be written with a single dash: perftest -producers 10 -size 10240 -duration 60s

Exit code: 0 on success; 1 if a message was lost, left undrained, refused or never confirmed, or a connection failed;
2 if the options are invalid or a report can't be written.";

/// Load-test an AMQP 0-9-1 broker: throughput, latency and loss.
#[derive(Clone, Debug, Parser)]
#[command(name = "perftest", version, after_help = EXAMPLES, max_term_width = 110)]
pub struct Options {
    /// The broker
    #[arg(long, value_name = "URI", default_value = "amqp://guest:guest@localhost:5672/")]
    pub uri: String,
    /// Producers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub producers: u16,
    /// Consumers, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub consumers: u16,
    /// How long to publish and measure [default: 30s; with --messages, until they are done]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Stop after this many messages from all producers together (0: no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub messages: u64,
    /// Messages per second for each producer (0: as many as the broker takes)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rate: u64,
    /// Run this long before measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub warmup: Duration,

    /// Bytes of each body; below 16 there is no room for a time stamp, and latency is not measured
    #[arg(long, value_name = "BYTES", default_value_t = 1024, help_heading = "Messages")]
    pub size: usize,
    /// What is on or off
    #[command(flatten)]
    pub flags: Flags,
    /// Headers of every message, separated by commas; whole numbers become integers, true and false booleans
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', help_heading = "Messages")]
    pub headers: Vec<String>,

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

    /// Publisher confirms outstanding per producer, at most (0: publish without confirms)
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Guarantees")]
    pub confirm: u32,
    /// Unacknowledged messages per consumer (0: any number)
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Guarantees")]
    pub prefetch: u16,
    /// Acknowledge N messages at a time
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Guarantees")]
    pub multi_ack: u16,
    /// At the end, wait at most this long for messages in transit; what is left then is told, and fails the run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration, help_heading = "Guarantees")]
    pub drain_timeout: Duration,

    /// TLS, for amqps://
    #[command(flatten)]
    pub tls: TlsOptions,

    /// Write the report as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the report as a web page, with throughput and latency over time and percentiles
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

/// TLS, which a URI with `amqps://` asks for.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS (amqps://)")]
pub struct TlsOptions {
    /// Trust the CAs in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// PEM file with the client certificate, followed by any intermediate certificates
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// PEM file with its private key
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Accept any certificate from the broker; anybody in between can then read the password
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, conflicts_with = "ca")]
    pub insecure: bool,
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
        let mut command = Self::command();
        let names: Vec<String> =
            command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
        let args = args.into_iter().map(|arg| with_two_dashes(arg.into(), &names));
        let matches = command.try_get_matches_from_mut(args)?;
        let options = Self::from_arg_matches(&matches)?;
        options
            .check()
            .map_err(|text| command.error(clap::error::ErrorKind::ValueValidation, text))?;
        Ok(options)
    }

    /// What each option for itself cannot see.
    fn check(&self) -> Result<(), String> {
        let acks = !self.flags.auto_ack && self.consumers > 0;
        if acks && self.prefetch != 0 && self.multi_ack > self.prefetch {
            return Err(format!(
                "--multi-ack {multi} would wait forever: a consumer gets at most {prefetch} before it acknowledges; \
                 add --prefetch {multi} or more",
                multi = self.multi_ack,
                prefetch = self.prefetch
            ));
        }
        if self.multi_ack == 0 {
            return Err("--multi-ack must be at least 1".to_owned());
        }
        if self.producers == 0 && self.consumers == 0 {
            return Err("without producers and consumers there is nothing to do".to_owned());
        }
        if self.confirm > CONFIRM_MAX {
            return Err(format!("at most {CONFIRM_MAX} confirms can be outstanding"));
        }
        if self.producers > PRODUCERS_MAX {
            return Err(format!("there can be at most {PRODUCERS_MAX} producers"));
        }
        if self.queues == 0 {
            return Err("--queues must be at least 1".to_owned());
        }
        if self.exchange.is_empty() && self.exchange_type != "direct" {
            return Err("--exchange-type has no effect on the default exchange; \
                        name another one with --exchange"
                .to_owned());
        }
        if self.size > 512 << 20 {
            return Err("no broker takes messages of more than 512 MiB".to_owned());
        }
        for header in &self.headers {
            match header.split_once('=') {
                Some((name, _)) if !name.is_empty() && name.len() <= 255 => {}
                _ => return Err(format!("--headers takes name=value, not {header:?}")),
            }
        }
        Ok(())
    }

    /// How long to run after the warm-up, if there is a limit.
    #[must_use]
    pub fn duration_limit(&self) -> Option<Duration> {
        const DEFAULT: Duration = Duration::from_secs(30);
        self.duration.or((self.messages == 0).then_some(DEFAULT))
    }

    /// Whether bodies have room for a stamp.
    #[must_use]
    pub fn has_stamps(&self) -> bool {
        self.size >= crate::stamp::STAMP_LEN
    }
}

/// Turns `-producers` into `--producers`; leaves alone what is no long option's name.
fn with_two_dashes(arg: OsString, names: &[String]) -> OsString {
    let Some(text) = arg.to_str() else { return arg };
    let Some(name) = text.strip_prefix('-').filter(|name| !name.starts_with('-')) else {
        return arg;
    };
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    // Also a misspelt one, so that the error speaks of the whole word and not of its first letter.
    let known = names.iter().any(|known| known == name);
    let meant = name.len() > 1
        && names.iter().any(|known| strsim::damerau_levenshtein(known, name) <= known.len() / 3);
    if known || meant || matches!(name, "help" | "version") {
        OsString::from(format!("-{text}"))
    } else {
        arg
    }
}
