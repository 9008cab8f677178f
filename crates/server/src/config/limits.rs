//! Settings of what clients can make grow.

use super::memory::machine_memory_bytes;
use super::{Config, ConfigError};
use courser_broker::Limits;
use courser_codec::Frame;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bounds on what clients can make grow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections at the same time, as far as the limit of open files allows that many. When there are more, the
    /// oldest that has not logged in makes room; if all have, the newcomer is closed.
    pub connections_max: usize,
    /// Bytes of waiting messages, and of all else that clients make the broker hold, from which on publishers are held
    /// back; 0 stands for 40 % of the memory of the machine, or of the control group of the process if that has less.
    pub memory_high_bytes: u64,
    /// Bytes that wait for one connection's socket before its consumers get no more.
    pub outbox_high_bytes: usize,
    /// Queues in a vhost.
    pub queues_max: usize,
    /// Exchanges in a vhost.
    pub exchanges_max: usize,
    /// Bindings in a vhost.
    pub bindings_max: usize,
    /// Consumers on a channel.
    pub consumers_per_channel_max: usize,
    /// Consumers on all channels of a connection.
    pub consumers_per_connection_max: usize,
    /// Consumers of a queue.
    pub consumers_per_queue_max: usize,
    /// Deliveries that the consumers of a channel may leave unacknowledged.
    pub unacked_per_channel_max: u32,
    /// Bytes of publishes in the open transactions of a connection.
    pub transaction_max_bytes: usize,
    /// Publishes in the transaction of a channel.
    pub transaction_publishes_max: usize,
    /// Waiting messages from which on a queue's publishers are slowed to the pace of its consumers.
    pub pace_backlog: usize,
}

impl LimitSettings {
    /// Refuses limits that let no client do anything: 0 may be meant as no limit.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let needed = [
            ("connections_max", self.connections_max),
            ("queues_max", self.queues_max),
            ("consumers_per_channel_max", self.consumers_per_channel_max),
            ("consumers_per_connection_max", self.consumers_per_connection_max),
            ("consumers_per_queue_max", self.consumers_per_queue_max),
            ("outbox_high_bytes", self.outbox_high_bytes),
            ("unacked_per_channel_max", self.unacked_per_channel_max as usize),
            ("pace_backlog", self.pace_backlog),
        ];
        match needed.iter().find(|(_, most)| *most == 0) {
            Some((key, _)) => {
                let why = "must be at least 1: 0 does not mean that there is no limit";
                Err(ConfigError::invalid(&format!("limits.{key}"), why))
            }
            None => Ok(()),
        }
    }

    /// Says so if publishers would be held back only when the machine has no memory left.
    pub(crate) fn warn_of_memory(&self) {
        warn_of_memory(self.memory_high_bytes);
    }
}

/// As [`LimitSettings::warn_of_memory`], of a limit that need not be the configured one.
pub(crate) fn warn_of_memory(set: u64) {
    if let Some(there) = machine_memory_bytes().filter(|there| set > *there) {
        tracing::warn!(
            memory_high_bytes = set,
            machine_bytes = there,
            "limits.memory_high_bytes is more than the memory of the machine, or of the control group: the \
             system may end the broker before publishers are held back"
        );
    }
}

/// The bytes that `limits.memory_high_bytes` stands for.
pub(crate) fn memory_high_bytes(set: u64) -> u64 {
    match set {
        0 => machine_memory_bytes().map_or(1 << 30, |bytes| bytes / 10 * 4),
        bytes => bytes,
    }
}

/// The bytes that are this fraction of the memory of the machine, or of the control group.
pub(crate) fn memory_fraction_bytes(fraction: f64) -> Result<u64, String> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(format!(
            "the fraction is {fraction} and has to be more than 0 and at most 1, such as 0.4: it is of the memory of the machine, \
             or of the control group"
        ));
    }
    let there = machine_memory_bytes()
        .ok_or("the system does not say how much memory there is: give a number of bytes")?;
    match (there as f64 * fraction) as u64 {
        0 => Err(format!(
            "the fraction is {fraction}: of the {there} bytes of memory that is less than one, with which nothing could be published"
        )),
        bytes => Ok(bytes),
    }
}

impl Config {
    pub(crate) fn broker_limits(&self) -> Limits {
        let limits = &self.limits;
        Limits {
            memory_high_bytes: memory_high_bytes(limits.memory_high_bytes),
            outbox_high_bytes: limits.outbox_high_bytes,
            queues_max: limits.queues_max,
            exchanges_max: limits.exchanges_max,
            bindings_max: limits.bindings_max,
            consumers_per_channel_max: limits.consumers_per_channel_max,
            consumers_per_connection_max: limits.consumers_per_connection_max,
            consumers_per_queue_max: limits.consumers_per_queue_max,
            unacked_per_channel_max: limits.unacked_per_channel_max,
            transaction_max_bytes: limits.transaction_max_bytes,
            transaction_publishes_max: limits.transaction_publishes_max,
            pace_backlog: limits.pace_backlog,
            message_max_bytes: self.amqp.max_message_bytes,
            header_max_bytes: self.amqp.frame_max as usize - Frame::OVERHEAD,
            thread_time,
            ..Limits::default()
        }
    }
}

/// What the current thread has had of a processor so far.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matching_policies_takes_is_measured_by_a_clock_of_the_thread() {
        let limits = Config::default().broker_limits();
        let of_this = (limits.thread_time)();
        assert!(of_this > Duration::ZERO && limits.policy_matching_max == Duration::from_secs(10));
        // Another one that has just begun has had less, however long the machine has been up.
        while (limits.thread_time)() < of_this + Duration::from_millis(50) {}
        let of_another = std::thread::spawn(limits.thread_time).join().expect("no panic");
        assert!(of_another < of_this + Duration::from_millis(50), "{of_another:?}");
    }
}
