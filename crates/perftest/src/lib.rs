//! Puts load on an AMQP 0-9-1 broker and measures what becomes of it: throughput, latency, loss.
//!
//! The `perftest` command is a thin shell around this. Producers and consumers have a connection each, on a runtime with
//! as many threads as the machine has cores, and use the client's batch interface, so that measuring costs less than
//! what is measured. Every message carries a stamp: the time at which it should have been sent, and who it is. From the
//! first come latencies that do not hide a stall, from the second the certainty that nothing was lost.
#![deny(unsafe_code)]

pub mod alarm;
pub mod arguments;
pub mod churn;
pub mod cli;
pub mod clock;
pub mod compare;
mod consumer;
pub mod context;
pub mod counters;
mod declare;
pub mod duration;
pub mod endpoints;
pub mod html;
mod intake;
pub mod latency;
pub mod ledger;
mod links;
pub mod options;
mod outcome;
pub mod pace;
mod producer;
pub mod prometheus;
pub mod ranges;
mod recovery;
pub mod report;
mod run;
mod sampler;
pub mod series;
mod session;
mod setup;
pub mod stamp;
pub mod text;
pub mod tls;
pub mod topology;
mod transaction;
pub mod window;

pub use options::Options;
pub use run::{RunError, run};
