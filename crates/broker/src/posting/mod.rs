//! From messages and their routes to the log and the queues.

mod internal;
mod routed;
mod run;

pub(crate) use internal::{InternalPublish, post, post_in_parts};
pub(crate) use routed::{Logged, Routed};
pub(crate) use run::PublishRun;
