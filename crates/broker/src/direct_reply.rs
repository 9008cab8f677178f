//! Direct reply-to: answers that go straight to the consumer of the client that asked, without a
//! declared queue (RabbitMQ's `amq.rabbitmq.reply-to`).
//!
//! A client that consumes from the pseudo-queue gets a queue of its own, which lives as long as that
//! consumer and has no place among the vhost's queues. Its name is random, so that only those can
//! answer who have seen a request: a request that names the pseudo-queue as its `reply-to` leaves
//! with that name instead.

/// The name that clients consume from and put into `reply-to`.
pub(crate) const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// What the names of the queues behind it begin with.
pub(crate) const REPLY_TO_PREFIX: &str = "amq.rabbitmq.reply-to.";

/// Whether this is the name of a queue for direct replies, there or not.
pub(crate) fn is_reply_name(name: &[u8]) -> bool {
    name.starts_with(REPLY_TO_PREFIX.as_bytes())
}
