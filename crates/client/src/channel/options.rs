//! What queues, exchanges and consumers should be like.

use courser_codec::FieldTable;

/// How to declare a queue. By default it is transient, shared, and stays until it is deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueOptions {
    /// Survives a restart of the server.
    pub durable: bool,
    /// Belongs to this connection and goes with it.
    pub exclusive: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// `x-` arguments: length limits, time to live, where dead messages go.
    pub arguments: FieldTable,
}

impl QueueOptions {
    /// A queue that survives a restart of the server.
    #[must_use]
    pub fn durable() -> Self {
        Self { durable: true, ..Self::default() }
    }

    /// A queue for this connection alone.
    #[must_use]
    pub fn exclusive() -> Self {
        Self { exclusive: true, ..Self::default() }
    }

    /// The same with one more argument.
    ///
    /// # Panics
    /// When the name has more than 255 bytes.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<courser_codec::FieldValue>) -> Self {
        self.arguments = self.arguments.with(name, value);
        self
    }
}

/// A queue, as the server describes it when it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its name; the server's, if none was given.
    pub name: String,
    /// Messages that are ready for delivery.
    pub message_count: u32,
    /// Consumers that it has.
    pub consumer_count: u32,
}

/// When not to delete a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteQueueOptions {
    /// Only if it has no consumers.
    pub if_unused: bool,
    /// Only if it has no messages.
    pub if_empty: bool,
}

/// How an exchange routes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeKind {
    /// To queues that are bound with the message's routing key.
    Direct,
    /// To all queues that are bound.
    Fanout,
    /// To queues that are bound with a pattern that the routing key matches.
    Topic,
    /// To queues that are bound with headers that the message has.
    Headers,
    /// Another one that the server knows.
    Other(String),
}

impl ExchangeKind {
    /// Its name in the protocol.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for ExchangeKind {
    fn from(name: &str) -> Self {
        match name {
            "direct" => Self::Direct,
            "fanout" => Self::Fanout,
            "topic" => Self::Topic,
            "headers" => Self::Headers,
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// How to declare an exchange. By default it is transient and stays until it is deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeOptions {
    /// Survives a restart of the server.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Cannot be published to, only bound to other exchanges.
    pub internal: bool,
    /// Further arguments, such as an alternate exchange.
    pub arguments: FieldTable,
}

/// How to consume. By default messages have to be acknowledged.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumeOptions {
    /// A tag of one's own; one is made up if this is empty.
    pub consumer_tag: String,
    /// Messages count as acknowledged when they are sent. What has not reached the program when a connection breaks is
    /// lost.
    pub auto_ack: bool,
    /// Fails if the queue has another consumer, and keeps others away.
    pub exclusive: bool,
    /// Further arguments, such as a priority.
    pub arguments: FieldTable,
    /// Bytes that may wait for the program to take them. When there are more, the connection is not read until half of
    /// them is taken, so the server stops sending. That holds up everything else on the connection too.
    ///
    /// `None` is no limit where a prefetch is one, and 16 MiB where none is: without acknowledgements, or after
    /// [`Channel::qos`](crate::Channel::qos) with 0.
    pub buffer_bytes: Option<usize>,
}

impl Default for ConsumeOptions {
    fn default() -> Self {
        Self {
            consumer_tag: String::new(),
            auto_ack: false,
            exclusive: false,
            arguments: FieldTable::new(),
            buffer_bytes: None,
        }
    }
}

impl ConsumeOptions {
    /// Consuming without acknowledgements.
    #[must_use]
    pub fn auto_ack() -> Self {
        Self { auto_ack: true, ..Self::default() }
    }
}
