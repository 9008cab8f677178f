//! AMQP 0-9-1 connections without I/O: octets in, events and octets out, and the time of the next timeout.
//!
//! [`server::Connection`] and [`client::Connection`] are the two ends of a connection as state machines: handshake and
//! login, channels, messages put together from their frames, confirms and transactions as far as the protocol has
//! rules for them, heartbeats, and the end of a channel or a connection from either side. They own no socket, start no
//! task and read no clock. A driver feeds them what it has read, sends what they have written, and tells the time, so
//! the same machine runs on any runtime, in a test over random splits of the octets, or in a simulated world.
//!
//! Protocol errors are no `Result`s: the machine writes `connection.close` or `channel.close` with the code and text
//! that clients know, moves on, and gives an event.
#![forbid(unsafe_code)]

mod capabilities;
pub mod client;
mod close;
mod content;
mod framer;
mod heartbeat;
mod methods;
mod octets;
mod sasl;
pub mod server;
mod slots;
mod whole;

pub use capabilities::Capabilities;
pub use close::{CloseReason, ClosedBy, reply_text};
pub use sasl::{Credentials, Mechanism, Mechanisms, login_refusal};
