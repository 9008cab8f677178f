//! Routing: from a message's exchange, keys and headers to the queues that get it.

pub(crate) mod cache;
pub(crate) mod cc;
pub(crate) mod deduplication;
mod route;

pub(crate) use route::{Route, lock_streams};
