//! The AMQP 0-9-1 broker: vhosts, exchanges, bindings, queues, consumers and what happens between
//! them.
//!
//! It knows no sockets, no tasks and no clock: the time is told to it ([`Broker::set_time`]), and
//! its owner has to call [`Broker::tick`] when it says so. A [`Broker`] is shared by all connections; each has a
//! [`Session`], through which its methods come in, and an [`Outbox`], into which everything that it
//! has to be sent is encoded, by the thread that causes it.
//!
//! How a message travels: a connection hands every publish of one read to [`Session::publish`] and
//! ends the batch with [`Session::flush`]. Runs of publishes with the same route lock each queue of
//! the route once. Under that lock a message either goes straight into the outbox of a consumer that
//! has credit, or is copied into the store and waits. Touched connections are woken at the end.
#![forbid(unsafe_code)]

mod accounts;
pub mod admin;
mod arguments;
mod broker;
mod channels;
mod counts;
mod dead_letter;
mod direct_reply;
mod exchange;
mod fault;
mod gate;
mod headers;
mod kept_reader;
mod keyed;
mod limits;
mod log_end;
mod members;
mod memory;
mod monitor;
mod outbox;
mod persistence;
mod policy;
mod posting;
mod queue;
mod removals;
mod routing;
mod session;
mod shard;
mod shrink;
mod stream;
mod timers;
mod trace;
mod transfer;
mod vhost;
mod wakes;
mod work;

pub use accounts::AccountsError;
pub use broker::{Broker, Identity, ShardFault, spill_bytes};
pub use exchange::{Exchange, ExchangeKind, ExchangeSettings, Overdue};
pub use fault::{Fault, LEADER_CHANGED};
pub use limits::Limits;
pub use outbox::{Outbox, OutboxState, Stalled, Taken, wire};
pub use persistence::StateOfShard;
pub use persistence::{NOTING, RestoreError, Restored, names_in_log, shards_in_log};
pub use policy::{ApplyTo, Policy, PolicyError, PolicyKind};
pub use queue::{
    Bounds, ConnectionId, DeadLetterTo, EffectiveSettings, Overflow, Queue, QueueSettings,
    QueueStatus, Unread,
};
pub use session::{Batch, Inbound, NextAppend, Pace, Session};
pub use timers::Due;
pub use vhost::{Admission, Vhost, VhostLimits, VhostSettings};
pub use work::Budget;
#[doc(hidden)]
pub use work::steps;
