//! What the description of the protocol says, as Rust.
//!
//! Generated from `spec/amqp-0-9-1.toml` by `cargo run -p courser-codegen`; not to be edited.

pub mod basic;
pub mod channel;
pub mod confirm;
pub mod connection;
pub mod constants;
pub mod exchange;
pub mod method;
pub mod properties;
pub mod queue;
pub mod tx;
