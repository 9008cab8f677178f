//! The batch interface, for programs that move so many messages that a future and an allocation a message are dear.
//!
//! Publishes are encoded into a [`PublishBatch`] and handed over by [`Channel::send`](crate::Channel::send), hundreds at
//! a time. Deliveries come to a handler as borrowed views of the read that they lie in, and confirms as ranges of
//! numbers. Handlers run on the connection's own task: while one runs, nothing is read and nothing written. They must
//! not block; they may use the channel's functions that do not wait.
//!
//! ```no_run
//! # async fn example() -> Result<(), courser_client::Error> {
//! use courser_client::batch::{Envelope, PublishBatch};
//! use courser_client::{Connection, ConsumeOptions};
//!
//! let connection = Connection::open("amqp://localhost").await?;
//! let channel = connection.open_channel().await?;
//! let envelope = Envelope::new("", "numbers")?;
//! let mut batch = PublishBatch::new(&channel);
//! for number in 0..1000_u64 {
//!     batch.push(&envelope, &number.to_be_bytes())?;
//! }
//! channel.send(&mut batch).await?;
//!
//! let mut count = 0;
//! let consumer = channel
//!     .consume_batches("numbers", ConsumeOptions::default(), move |deliveries| {
//!         count += deliveries.len();
//!         deliveries.ack_all();
//!     })
//!     .await?;
//! consumer.ended().await
//! # }
//! ```

mod deliveries;
mod publish;
mod sink;

pub use deliveries::{Deliveries, DeliveryView};
pub use publish::{Envelope, PublishBatch, Sent};
pub use sink::{BatchConsumer, Confirmed};

pub(crate) use sink::{ConfirmSink, DeliverySink};

/// Most deliveries that a handler gets at once.
pub(crate) const RUN_MAX: usize = 256;
