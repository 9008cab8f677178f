//! What clients see of the broker, by subject: sessions are driven directly, without sockets.
#![allow(clippy::disallowed_methods, reason = "somebody has to tell the time")]

mod support;

mod acknowledge;
mod arguments;
mod auto_delete;
mod bind;
mod confirms;
mod consume;
mod consumer_turns;
mod declare;
mod delete;
mod exchanges;
mod exclusive;
mod expires;
mod get;
mod headers;
mod memory_alarm;
mod model;
mod outbox;
mod prefetch;
mod publish;
mod requeue;
mod topic;
mod transactions;
mod vhosts;
