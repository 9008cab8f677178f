//! How consumers take messages, and what they do with them.

use std::time::Duration;

use crate::duration::parse_duration;

/// What consumers do.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Consuming")]
pub struct Consuming {
    /// Take messages one by one with basic.get, instead of having them delivered
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true)]
    pub polling: bool,
    /// Wait this long before asking an empty queue again
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_duration, requires = "polling")]
    pub polling_interval: Duration,
    /// Messages per second for each consumer, at most (0: as many as come)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub consumer_rate: u64,
    /// Work this long on each message before it is acknowledged
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub consumer_latency: Duration,
    /// Acknowledge in transactions of N messages (0: without)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub consumer_tx: u16,
    /// Refuse every Nth message with basic.nack (0: none)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub nack_every: u64,
    /// Put refused messages back into their queue; they are taken when they come again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, hide_default_value = true, hide_possible_values = true, requires = "nack_every")]
    pub requeue: bool,
}

impl Consuming {
    /// Whether each message is handled by itself, and not as it lies in a read.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.polling
            || self.consumer_tx > 0
            || self.consumer_rate > 0
            || !self.consumer_latency.is_zero()
    }
}
