//! An asynchronous AMQP 0-9-1 client for tokio.
//!
//! ```no_run
//! use courser_client::{Connection, ConsumeOptions, Error, QueueOptions};
//!
//! # async fn example() -> Result<(), Error> {
//! let connection = Connection::open("amqp://guest:guest@localhost:5672/").await?;
//! let channel = connection.open_channel().await?;
//! channel.queue_declare("greetings", QueueOptions::default()).await?;
//!
//! channel.confirm_select().await?;
//! let confirm = channel.publish("", "greetings", "hello").await?;
//! assert!(confirm.await?.is_ack());
//!
//! let mut consumer = channel.consume("greetings", ConsumeOptions::default()).await?;
//! while let Some(delivery) = consumer.next().await? {
//!     println!("{}", String::from_utf8_lossy(delivery.body()));
//!     delivery.ack()?;
//! }
//! connection.close().await
//! # }
//! ```
//!
//! - [`Connection`] opens by URI, or over any stream: bring the TLS library of your choice.
//! - [`Channel`] has every method of the protocol as a function that waits for the answer.
//! - [`Confirm`] is the server's answer to a publish, as a future. It need not be awaited before the next publish.
//! - [`Consumer`] is a [`Stream`](futures_core::Stream) of [`Delivery`]s.
//! - [`batch`] moves millions of small messages a second, without an allocation for each.
//! - [`Error`] tells whether a channel or the connection is gone, by whom, with which code and text.
//!
//! # Back-pressure
//! Publishing waits when the server does not keep up: the buffer to the socket is small, and TCP does the rest. Consumers
//! have a buffer of a bounded number of bytes ([`ConsumeOptions::buffer_bytes`]); while it is full, the connection is
//! not read. Everything on the connection waits then, also answers and confirms. So whoever consumes and waits for other
//! things of the server in the same task sets a prefetch ([`Channel::qos`]) that fits into the buffer, or uses two
//! connections.
//!
//! # What it does not do
//! It does not connect again: when a connection is lost, everything on it fails with the reason, and the program decides.
#![forbid(unsafe_code)]

pub mod batch;
mod channel;
mod confirm;
mod connection;
mod consumer;
mod dispatch;
mod driver;
mod error;
mod mailbox;
mod message;
mod names;
mod options;
mod outgoing;
mod route;
mod shared;
mod uri;

pub use channel::{
    Channel, ConsumeOptions, DeleteQueueOptions, ExchangeKind, ExchangeOptions, QueueInfo,
    QueueOptions,
};
pub use confirm::{Confirm, Confirmation};
pub use connection::Connection;
pub use consumer::{Consumer, Delivery, Returns};
pub use error::Error;
pub use message::{Message, Returned};
pub use options::Options;
pub use outgoing::Outgoing;
pub use uri::{Uri, UriError};

pub use courser_codec::{
    FieldTable, FieldValue, OwnedProperties, Properties, RawProperties, ShortStr, ShortString,
};
pub use courser_connection::{CloseReason, ClosedBy, Credentials};
