//! Messages as an operator sees them.

use crate::queue::{Peeked, Seen};
use bytes::Bytes;
use courser_codec::ShortString;

/// Bytes of headers and bodies that one call that looks at messages copies, unless the first one alone is larger. A client
/// that looks at more calls again.
const LOOKED_AT_BYTES_MAX: usize = 4 << 20;

/// A message as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// The exchange that it was published to.
    pub exchange: ShortString,
    /// Its routing key.
    pub routing_key: ShortString,
    /// It has been delivered before.
    pub redelivered: bool,
    /// Its number in the queue, which stays the same as long as the broker runs.
    pub number: u64,
    /// When it was published, in milliseconds since 1970, where the queue has to know that.
    pub published_ms: Option<u64>,
    /// The payload of its content header frame: its properties.
    pub header: Vec<u8>,
    /// Its body, or the beginning of it.
    pub body: Bytes,
    /// How long the whole body is.
    pub body_bytes: usize,
}

/// Copies of messages, as far as they have room.
pub(super) struct Shown {
    pub messages: Vec<MessageView>,
    bytes: usize,
    bytes_max: usize,
    body_bytes_max: usize,
}

impl Shown {
    /// No copies yet; `body_bytes_max` bytes at most will be of each body.
    pub(super) fn new(body_bytes_max: usize) -> Self {
        Shown { messages: Vec::new(), bytes: 0, bytes_max: LOOKED_AT_BYTES_MAX, body_bytes_max }
    }

    /// The same, with room for so many bytes of headers and bodies, unless the first message alone has more.
    pub(super) fn with_room(self, bytes_max: usize) -> Self {
        Shown { bytes_max, ..self }
    }

    /// Adds a message, unless it is lost. Returns whether there is room for another one.
    pub(super) fn see(&mut self, seen: Seen<'_>) -> bool {
        match seen {
            Seen::Message(peeked) => self.add(peeked),
            Seen::Lost(_) => true,
        }
    }

    /// Adds a message. Returns whether there is room for another one.
    pub(super) fn add(&mut self, peeked: Peeked<'_>) -> bool {
        let Peeked { number, message, redelivered, .. } = peeked;
        let shown_bytes = message.body.len().min(self.body_bytes_max);
        let (exchange, routing_key) = courser_store::record::split_address(message.address);
        let short = |bytes| ShortString::new(bytes).unwrap_or_default();
        self.messages.push(MessageView {
            exchange: short(exchange),
            routing_key: short(routing_key),
            redelivered,
            number,
            published_ms: Some(message.published_ms).filter(|at| *at != 0),
            header: message.header.to_vec(),
            body: Bytes::copy_from_slice(&message.body[..shown_bytes]),
            body_bytes: message.body.len(),
        });
        self.bytes += shown_bytes + message.header.len();
        self.bytes < self.bytes_max
    }
}
