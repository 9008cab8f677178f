//! A seeded world: a broker on a journal on a disk that crashes.
//!
//! [`World`] runs random operations of clients against a real [`Broker`](courser_broker::Broker),
//! stops it in one of three ways (in order, killed, power lost at any write), starts it again and
//! compares what is there with a model. Nothing runs by itself: no threads, no clock. The same seed
//! gives the same history.
//!
//! What is checked after every restart is the strongest thing that can be said: the broker holds
//! exactly what it held at *some* moment that is not before the last one that was durable, and after
//! a stop in order exactly what it held at the end.
#![forbid(unsafe_code)]

mod client;
mod full;
mod history;
mod start;
mod world;

pub use client::{Client, PLAIN, QUESTIONS, Received, TOPOLOGY, TX, short};
pub use full::use_up_all_room;
pub use history::{History, Op, State};
pub use start::{Start, checkpoint, state};
pub use world::World;
