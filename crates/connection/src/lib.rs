//! AMQP 0-9-1 connections without I/O: bytes in, events and bytes out, and the time of the next timeout.
//!
//! [`server::Connection`] and [`client::Connection`] are the two ends of a connection as state machines: handshake and
//! login, channels, messages put together from their frames, confirms and transactions as far as the protocol has
//! rules for them, heartbeats, and the end of a channel or a connection from either side. They own no socket, start no
//! task and read no clock. A driver feeds them what it has read, sends what they have written, and tells the time, so
//! the same machine runs on any runtime, in a test over random splits of the bytes, or in a simulated world.
//!
//! Protocol errors are no `Result`s: the machine writes `connection.close` or `channel.close` with the code and text
//! that clients know, moves on, and gives an event.
//!
//! Both ends in one thread, their output carried by hand:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use courser_connection::{client, server};
//!
//! let now = Instant::now();
//! let mut client = client::Connection::new(Arc::new(client::Config::default()), now);
//! let mut server = server::Connection::new(Arc::new(server::Config::default()), now);
//! while !client.is_open() {
//!     let bytes = std::mem::take(client.output());
//!     let mut input = &bytes[..];
//!     while let Some(event) = server.next(&mut input, now) {
//!         match event {
//!             server::Event::Login { .. } => server.login_accepted(now),
//!             server::Event::Open { .. } => server.open_accepted(now),
//!             other => panic!("{other:?}"),
//!         }
//!     }
//!     let bytes = std::mem::take(server.output());
//!     let mut input = &bytes[..];
//!     while let Some(event) = client.next(&mut input, now) {
//!         assert!(matches!(event, client::Event::Opened));
//!     }
//! }
//! assert_eq!(client.open_channel(), Ok(1));
//! ```
#![forbid(unsafe_code)]

mod binary;
mod capabilities;
pub mod client;
mod close;
mod content;
mod framer;
mod methods;
mod proxy_header;
mod sasl;
pub mod server;
mod slots;
mod timers;
mod whole;

pub use capabilities::Capabilities;
pub use close::{CloseReason, ClosedBy, reply_text};
pub use proxy_header::{PROXY_HEADER_BYTES_MAX, ProxiedClient, ProxyHeader, ProxyHeaderError};
pub use sasl::{Credentials, Mechanism, Mechanisms, login_refusal};
