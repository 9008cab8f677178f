//! What each option for itself cannot see.

use super::Options;
use crate::arguments;
use crate::stamp::PRODUCERS_MAX;

/// Most confirms that a producer can have outstanding.
const CONFIRM_MAX: u32 = 1 << 20;
/// Most routing keys; each takes some hundred bytes in every producer.
const ROUTING_KEYS_MAX: u32 = 1_000_000;

impl Options {
    /// What each option for itself cannot see.
    pub(super) fn check(&self) -> Result<(), String> {
        let acks = !self.flags.auto_ack && self.consumers > 0 && !self.consuming.polling;
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
            return Err("--producers 0 --consumers 0: there is nothing to do".to_owned());
        }
        if self.confirm > CONFIRM_MAX {
            return Err(format!("--confirm can be at most {CONFIRM_MAX}"));
        }
        if self.producers > PRODUCERS_MAX {
            return Err(format!("--producers can be at most {PRODUCERS_MAX}"));
        }
        if self.queues == 0 {
            return Err("--queues must be at least 1".to_owned());
        }
        if self.exchange.is_empty() && self.exchange_type != "direct" {
            return Err("--exchange-type has no effect on the default exchange; \
                        name another one with --exchange"
                .to_owned());
        }
        if self.largest_size() > 512 << 20 {
            return Err(
                "--size and --variable-size can be at most 512 MiB, which no broker exceeds"
                    .to_owned(),
            );
        }
        self.check_consuming()?;
        self.check_topology()?;
        self.check_pairs()
    }

    fn check_consuming(&self) -> Result<(), String> {
        if self.channels == 0 {
            return Err("--channels must be at least 1".to_owned());
        }
        if self.consuming.nack_every > 0 && self.flags.auto_ack {
            return Err("--nack-every has no effect with --auto-ack".to_owned());
        }
        let tx = self.consuming.consumer_tx;
        if tx > 0 && self.flags.auto_ack {
            return Err("--consumer-tx has no effect with --auto-ack".to_owned());
        }
        // What is acknowledged counts as unacknowledged until it is committed.
        let least = u32::from(tx) + u32::from(self.multi_ack) - 1;
        // The prefetch is not for what is asked for.
        let is_limited = self.prefetch != 0 && !self.consuming.polling;
        if tx > 0 && is_limited && least > u32::from(self.prefetch) {
            return Err(format!(
                "--consumer-tx {tx} would wait forever: add --prefetch {least} or more"
            ));
        }
        if self.consuming.requeue && !self.has_stamps() {
            return Err(
                "--requeue needs bodies of at least 16 bytes, to tell messages apart".to_owned()
            );
        }
        if self.consuming.polling && self.kind.stream {
            return Err("a stream can't be read by --polling".to_owned());
        }
        Ok(())
    }

    fn check_topology(&self) -> Result<(), String> {
        let rates = &self.variable_rate;
        if !rates.is_empty() && rates.iter().all(|step| step.value == 0) {
            return Err("--variable-rate publishes nothing at all".to_owned());
        }
        if self.routing_keys == 0 || self.routing_keys > ROUTING_KEYS_MAX {
            return Err(format!("--routing-keys must be between 1 and {ROUTING_KEYS_MAX}"));
        }
        if self.routing_keys > 1 && self.exchange.is_empty() {
            return Err("--routing-keys has no effect on the default exchange; \
                        name another one with --exchange"
                .to_owned());
        }
        if self.kind.stream && (self.flags.auto_ack || self.prefetch == 0) && self.consumers > 0 {
            return Err("a stream is read with acknowledgements and a --prefetch".to_owned());
        }
        Ok(())
    }

    fn check_pairs(&self) -> Result<(), String> {
        for (option, pairs) in [
            ("--headers", &self.headers),
            ("--queue-args", &self.kind.queue_args),
            ("--exchange-args", &self.kind.exchange_args),
            ("--consumer-args", &self.kind.consumer_args),
        ] {
            arguments::check(option, pairs)?;
        }
        arguments::properties(&self.properties).map(drop)
    }
}
