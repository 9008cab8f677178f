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
//! - [`Channel`] has the protocol's methods as functions, which wait where the server answers.
//! - [`Confirm`] is the server's answer to a publish, as a future. It need not be awaited before the next publish.
//! - [`Consumer`] is a [`Stream`](futures_core::Stream) of [`Delivery`]s.
//! - [`batch`] moves millions of small messages a second, without an allocation for each.
//! - [`Error`] tells whether a channel or the connection is gone, by whom, with which code and text.
//!
//! # Back-pressure
//! Publishing waits when the server does not keep up: the buffer to the socket is small, and TCP does the rest.
//!
//! A consumer that acknowledges has at most its prefetch of messages: [`DEFAULT_PREFETCH`], or what [`Channel::qos`] says.
//! Without acknowledgements, or with a prefetch of 0, nothing but the connection itself holds the server back: while more
//! than [`ConsumeOptions::buffer_bytes`] wait for the program, the connection is not read. Everything on it waits then, also
//! answers, confirms and heartbeats, and a server ends a connection that takes nothing for long (RabbitMQ and Courser
//! after some 30 s). [`Connection::stalled`] tells. Such a consumer has a connection of its own, and a program that keeps up.
//!
//! # Dropping futures
//! A request is sent when its future is first polled; dropping the future afterwards takes nothing back, and the answer is
//! ignored. [`Channel::consume`] ends the consumer then, [`Channel::get`] gives the message back. [`Channel::publish`]
//! and [`Channel::send`] have sent nothing as long as they wait. Whatever waits for confirms, flushes or closes can be
//! dropped and called again.
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
    Channel, ConsumeOptions, DEFAULT_PREFETCH, DeleteQueueOptions, ExchangeKind, ExchangeOptions,
    QueueInfo, QueueOptions,
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
