//! What clients see of the broker, by subject: sessions are driven directly, without sockets.
#![allow(clippy::disallowed_methods, reason = "somebody has to tell the time")]

mod support;

mod acknowledge;
mod alternate_exchange;
mod arguments;
mod auto_delete;
mod bind;
mod confirms;
mod consistent_hash;
mod consume;
mod consumer_timeout;
mod consumer_turns;
mod copies;
mod dead_letters;
mod declare;
mod deduplication;
mod delayed;
mod delete;
mod delivery_limit;
mod direct_reply;
mod exchanges;
mod exclusive;
mod expires;
mod get;
mod headers;
mod memory_alarm;
mod model;
mod outbox;
mod overflow;
mod prefetch;
mod priority;
mod publish;
mod quorum;
mod recent_history;
mod requeue;
mod single_active;
mod spread;
mod stranded_letters;
mod stream_restarts;
mod streams;
mod time_to_live;
mod topic;
mod traits;
mod transactions;
mod vhosts;
