//! What kind of queues a run declares, and with which arguments.

use std::time::Duration;

use crate::duration::parse_duration;

/// Kinds of queues, and arguments of all that is declared.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Kinds of queues")]
pub struct QueueKind {
    /// Declare quorum queues
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true)]
    pub quorum: bool,
    /// Declare streams; each consumer reads all of its stream
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, conflicts_with = "quorum")]
    pub stream: bool,
    /// Where to begin to read a stream: first, last, next, an offset, or 7D and the like [default: next]
    #[arg(long, value_name = "WHERE", requires = "stream")]
    pub stream_offset: Option<String>,
    /// Messages live this long in the queues; one that expires counts as lost
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// Declare queues with priorities 0 to N, and publish with each of them in turn
    #[arg(long, value_name = "N", conflicts_with_all = ["quorum", "stream"])]
    pub max_priority: Option<u8>,
    /// Arguments of the queues, separated by commas: x-max-length=1000,x-overflow=reject-publish
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub queue_args: Vec<String>,
    /// Arguments of the exchange
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub exchange_args: Vec<String>,
    /// Arguments of the consumers, such as x-priority=5
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub consumer_args: Vec<String>,
}
