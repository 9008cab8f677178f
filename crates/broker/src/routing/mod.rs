//! Routing: from a message's exchange, keys and headers to the queues that get it.

pub(crate) mod cache;
pub(crate) mod cc;
pub(crate) mod deduplication;
mod namespace;
mod route;
mod screening;

pub(crate) use namespace::Namespace;
pub(crate) use route::{Route, lock_streams};
pub(crate) use screening::{Screen, Screening};
