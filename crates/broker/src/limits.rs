//! The bounds on everything that a client can make grow.

use courser_codec::Frame;
use std::time::Duration;

/// Bytes of a value that an operator sets: that of a parameter, or the definition of a policy.
pub(crate) const OPERATOR_VALUE_BYTES_MAX: usize = 64 << 10;

/// How much clients may ask of the broker. A client that asks for more is refused with a reason.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of waiting messages from which on publishers are no longer read, until
    /// [`Broker::set_memory_high_bytes`](crate::Broker::set_memory_high_bytes) says otherwise.
    pub memory_high_bytes: u64,
    /// Bytes that a connection's outbox may hold before its consumers have to wait.
    pub outbox_high_bytes: usize,
    /// Queues in one vhost.
    pub queues_max: usize,
    /// Exchanges in one vhost.
    pub exchanges_max: usize,
    /// Bindings in one vhost.
    pub bindings_max: usize,
    /// Consumers on one channel.
    pub consumers_per_channel_max: usize,
    /// Consumers on all channels of one connection.
    pub consumers_per_connection_max: usize,
    /// Consumers of one queue.
    pub consumers_per_queue_max: usize,
    /// Deliveries that the consumers of one channel may leave unacknowledged, whatever their prefetch.
    pub unacked_per_channel_max: u32,
    /// Bytes of publishes that the open transactions of one connection may hold until their commits.
    pub transaction_max_bytes: usize,
    /// Publishes that the transaction of one channel may hold until its commit: they have effect in one go.
    pub transaction_publishes_max: usize,
    /// Publishers into a queue with this many messages waiting are slowed down to the pace of its
    /// consumers, but not below 10,000 messages a second, nor for consumers that take hardly any. Several
    /// queues whose publishers are slowed share them.
    pub pace_backlog: usize,
    /// Bytes of the longest content header that a message may have when it is delivered: what fits the
    /// largest frame that clients may agree to. Publishes have to leave room in it for what the broker
    /// adds.
    pub header_max_bytes: usize,
    /// Bytes of the largest body that clients may publish.
    pub message_max_bytes: u64,
    /// What it may take to match all durable queues and exchanges of a vhost with its policies, as each start has to, in time of a
    /// processor.
    pub policy_matching_max: Duration,
    /// What the current thread has had of a processor so far, to measure that with.
    pub thread_time: fn() -> Duration,
}

/// What the broker adds to a content header with each delivery, at most: `x-delivery-count` and
/// `x-acquired-count`, or `x-stream-offset`.
const ADDED_TO_DELIVERY_BYTES: usize = 64;
/// What it adds to one that becomes a dead letter for the first time, at most, as long as there is a
/// fourth of all room for it.
const ADDED_TO_LETTER_BYTES: usize = 4096;

impl Limits {
    /// Bytes of the longest content header that the broker keeps a message with.
    pub(crate) fn kept_header_max_bytes(&self) -> usize {
        self.header_max_bytes.saturating_sub(ADDED_TO_DELIVERY_BYTES)
    }

    /// Bytes of the longest content header that a client may publish.
    pub(crate) fn published_header_max_bytes(&self) -> usize {
        self.header_max_bytes - ADDED_TO_LETTER_BYTES.min(self.header_max_bytes / 4)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_high_bytes: 1 << 30,
            outbox_high_bytes: 512 * 1024,
            queues_max: 1_000_000,
            exchanges_max: 100_000,
            bindings_max: 10_000_000,
            consumers_per_channel_max: 10_000,
            consumers_per_connection_max: 50_000,
            consumers_per_queue_max: 100_000,
            unacked_per_channel_max: 1_000_000,
            transaction_max_bytes: 128 * 1024 * 1024,
            transaction_publishes_max: 65_536,
            pace_backlog: 4096,
            header_max_bytes: 131_072 - Frame::OVERHEAD,
            message_max_bytes: 16 * 1024 * 1024,
            policy_matching_max: Duration::from_secs(10),
            thread_time: || Duration::ZERO,
        }
    }
}
