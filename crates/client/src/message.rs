//! Messages that came from the server and are kept.

use bytes::Bytes;
use courser_codec::{
    CONTENT_HEADER_FIXED_LEN, DecodeError, OwnedProperties, Properties, RawProperties, ShortStr,
    basic,
};
use courser_connection::client::{AssembledDelivery, Delivery as Incoming, DeliveryMethod};

/// A message: where it was published to, its properties, its body.
#[derive(Clone)]
pub struct Message {
    /// Exchange, routing key, the content header's payload; behind them the body, if it has come in one piece.
    bytes: Bytes,
    exchange_len: u8,
    key_len: u8,
    header_len: u32,
    /// The body, if it was put together from several frames.
    assembled: Option<Bytes>,
}

impl Message {
    /// Copies a message out of a read. One allocation.
    fn copy(exchange: ShortStr<'_>, routing_key: ShortStr<'_>, header: &[u8], body: &[u8]) -> Self {
        let parts = [exchange.as_bytes(), routing_key.as_bytes(), header, body];
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.into_iter().for_each(|part| bytes.extend_from_slice(part));
        Self {
            bytes: Bytes::from(bytes),
            // A short string's length fits into a byte, a frame's into 32 bits.
            exchange_len: exchange.len() as u8,
            key_len: routing_key.len() as u8,
            header_len: header.len() as u32,
            assembled: None,
        }
    }

    /// Takes over a message that was put together from frames; its body is not copied.
    fn assembled(delivery: &AssembledDelivery) -> Self {
        let (exchange, routing_key) = address(&delivery.method());
        let mut message = Self::copy(exchange, routing_key, &delivery.header, &[]);
        message.assembled = Some(delivery.body.clone());
        message
    }

    fn key_at(&self) -> usize {
        usize::from(self.exchange_len)
    }

    fn header_at(&self) -> usize {
        self.key_at() + usize::from(self.key_len)
    }

    fn body_at(&self) -> usize {
        self.header_at() + self.header_len as usize
    }

    /// The exchange that it was published to.
    #[must_use]
    pub fn exchange(&self) -> ShortStr<'_> {
        ShortStr::new(&self.bytes[..self.key_at()]).unwrap_or_default()
    }

    /// The routing key that it was published with.
    #[must_use]
    pub fn routing_key(&self) -> ShortStr<'_> {
        ShortStr::new(&self.bytes[self.key_at()..self.header_at()]).unwrap_or_default()
    }

    /// The properties, undecoded; single ones can be asked for.
    #[must_use]
    pub fn raw_properties(&self) -> RawProperties<'_> {
        raw_properties(&self.bytes[self.header_at()..self.body_at()])
    }

    /// The properties.
    ///
    /// # Errors
    /// When the publisher has sent malformed ones and the server has let them through.
    pub fn properties(&self) -> Result<Properties<'_>, DecodeError> {
        self.raw_properties().decode()
    }

    /// The properties, to keep.
    ///
    /// # Errors
    /// As [`Message::properties`], also for malformed headers.
    pub fn owned_properties(&self) -> Result<OwnedProperties, DecodeError> {
        self.properties()?.to_owned()
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        match &self.assembled {
            Some(body) => body,
            None => &self.bytes[self.body_at()..],
        }
    }

    /// The body, to keep. It is not copied, and holds the memory of the message's other parts too.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        let body_at = self.body_at();
        self.assembled.unwrap_or_else(|| self.bytes.slice(body_at..))
    }

    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.assembled.as_ref().map_or(0, Bytes::len)
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("exchange", &self.exchange())
            .field("routing_key", &self.routing_key())
            .field("properties", &self.raw_properties())
            .field("body_bytes", &self.body().len())
            .finish()
    }
}

/// The properties in a content header's payload, which the connection has checked. Flags that no property has read as
/// no properties.
pub(crate) fn raw_properties(header: &[u8]) -> RawProperties<'_> {
    let properties = header.get(CONTENT_HEADER_FIXED_LEN..).unwrap_or_default();
    RawProperties::from_encoded(properties).unwrap_or(RawProperties::EMPTY)
}

/// Exchange and routing key of a message.
fn address<'a>(method: &DeliveryMethod<'a>) -> (ShortStr<'a>, ShortStr<'a>) {
    match *method {
        DeliveryMethod::Deliver(basic::Deliver { exchange, routing_key, .. })
        | DeliveryMethod::GetOk(basic::GetOk { exchange, routing_key, .. })
        | DeliveryMethod::Return(basic::Return { exchange, routing_key, .. }) => {
            (exchange, routing_key)
        }
    }
}

/// A mandatory message that came back because no queue took it.
#[derive(Clone, Debug)]
pub struct Returned {
    /// Why: 312 is `NO_ROUTE`.
    pub reply_code: u16,
    /// The same in words.
    pub reply_text: String,
    /// The message as it was published.
    pub message: Message,
}

/// What a delivery is settled by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryId {
    pub tag: u64,
    /// How many recovers the server had answered on the channel when it came.
    pub recovers: u64,
}

/// A message with what its method said, before it is bound to a channel.
#[derive(Debug)]
pub(crate) struct Received {
    pub id: DeliveryId,
    pub redelivered: bool,
    pub message: Message,
}

/// Something that came with a content, made one's own.
pub(crate) enum Kept {
    Delivery(Received),
    /// With the number of messages that are left in the queue.
    Got(Received, u32),
    Returned(Returned),
}

/// What the method says, with a message that was made one's own.
fn keep(method: &DeliveryMethod<'_>, message: Message, recovers: u64) -> Kept {
    match *method {
        DeliveryMethod::Deliver(basic::Deliver { delivery_tag: tag, redelivered, .. }) => {
            Kept::Delivery(Received { id: DeliveryId { tag, recovers }, redelivered, message })
        }
        DeliveryMethod::GetOk(basic::GetOk {
            delivery_tag: tag,
            redelivered,
            message_count,
            ..
        }) => {
            let id = DeliveryId { tag, recovers };
            Kept::Got(Received { id, redelivered, message }, message_count)
        }
        DeliveryMethod::Return(basic::Return { reply_code, reply_text, .. }) => {
            Kept::Returned(Returned { reply_code, reply_text: reply_text.to_string(), message })
        }
    }
}

/// Copies what lies in a read. The server has answered so many recovers on its channel.
pub(crate) fn keep_incoming(incoming: &Incoming<'_>, recovers: u64) -> Kept {
    let (exchange, routing_key) = address(&incoming.method);
    let message = Message::copy(exchange, routing_key, incoming.header, incoming.body);
    keep(&incoming.method, message, recovers)
}

/// Takes over what was put together.
pub(crate) fn keep_assembled(assembled: &AssembledDelivery, recovers: u64) -> Kept {
    keep(&assembled.method(), Message::assembled(assembled), recovers)
}
