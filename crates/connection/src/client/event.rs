//! What a client's connection tells its driver.

use bytes::Bytes;
use courser_codec::{ContentHeader, DecodeError, Method, ShortStr, ShortString, basic};

use crate::close::CloseReason;

/// Something that came in and that the driver has to act on. Borrows from the input alone.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is in use; channels can be opened.
    Opened,
    /// A channel that was asked for is open.
    ChannelOpened {
        /// Its number.
        channel: u16,
    },
    /// A channel is closed, by this side or the server; its number can be used again.
    ChannelClosed {
        /// Its number.
        channel: u16,
        /// Who closed it, and why.
        reason: Box<CloseReason>,
    },
    /// An answer to a request, or a `basic.cancel`; on channel 0 `connection.update-secret-ok`.
    Reply {
        /// Channel that it came on; it is open.
        channel: u16,
        /// The method.
        method: Method<'a>,
    },
    /// The server wants no publishes on a channel (`false`), or wants them again. It was answered.
    Flow {
        /// The channel; it is open.
        channel: u16,
        /// Whether to publish.
        is_active: bool,
    },
    /// Publishes were confirmed or refused. Each of them comes once, whatever the server folds together.
    Confirm {
        /// Channel that they were published on.
        channel: u16,
        /// Number of the first one.
        first: u64,
        /// Number of the last one.
        last: u64,
        /// Whether the server has taken them (`basic.ack`, not `basic.nack`).
        is_ack: bool,
    },
    /// A message that lies in the input as a whole, its body in one frame or empty.
    Delivery(Delivery<'a>),
    /// A message that came in several body frames or several reads.
    LargeDelivery(Box<AssembledDelivery>),
    /// The server does not read publishes until further notice.
    Blocked {
        /// What is short.
        reason: ShortStr<'a>,
    },
    /// The server reads publishes again.
    Unblocked,
    /// The connection is over, and no event follows. The driver sends what is in the output and goes on presenting
    /// input until [`is_closed`](super::Connection::is_closed).
    ///
    /// This is not given for an end that the driver itself has asked for.
    Closed(Box<CloseReason>),
}

/// The method that a message came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMethod<'a> {
    /// For a consumer.
    Deliver(basic::Deliver<'a>),
    /// The answer to `basic.get`.
    GetOk(basic::GetOk<'a>),
    /// A mandatory message that no queue took.
    Return(basic::Return<'a>),
}

/// A message with its method, all borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// Channel that it came on; it is open.
    pub channel: u16,
    /// Why it came, and how it was routed.
    pub method: DeliveryMethod<'a>,
    /// Payload of the content header's frame: class, weight, body size, properties.
    pub header: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Delivery<'a> {
    /// The content header, its properties undecoded.
    ///
    /// # Errors
    /// When flags are set in it that no property has.
    #[inline]
    pub fn content_header(&self) -> Result<ContentHeader<'a>, DecodeError> {
        ContentHeader::parse(self.header)
    }
}

/// A message with its method, copied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembledDelivery {
    /// Channel that it came on; it is open.
    pub channel: u16,
    method: OwnedMethod,
    /// See [`Delivery::header`].
    pub header: Bytes,
    /// The body.
    pub body: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedMethod {
    Deliver {
        consumer_tag: ShortString,
        delivery_tag: u64,
        redelivered: bool,
        exchange: ShortString,
        key: ShortString,
    },
    GetOk {
        delivery_tag: u64,
        redelivered: bool,
        exchange: ShortString,
        key: ShortString,
        message_count: u32,
    },
    Return {
        reply_code: u16,
        reply_text: ShortString,
        exchange: ShortString,
        key: ShortString,
    },
}

impl AssembledDelivery {
    pub(super) fn new(
        channel: u16,
        method: &DeliveryMethod<'_>,
        header: Bytes,
        body: Bytes,
    ) -> Self {
        let method = match *method {
            DeliveryMethod::Deliver(deliver) => OwnedMethod::Deliver {
                consumer_tag: deliver.consumer_tag.into(),
                delivery_tag: deliver.delivery_tag,
                redelivered: deliver.redelivered,
                exchange: deliver.exchange.into(),
                key: deliver.routing_key.into(),
            },
            DeliveryMethod::GetOk(get_ok) => OwnedMethod::GetOk {
                delivery_tag: get_ok.delivery_tag,
                redelivered: get_ok.redelivered,
                exchange: get_ok.exchange.into(),
                key: get_ok.routing_key.into(),
                message_count: get_ok.message_count,
            },
            DeliveryMethod::Return(returned) => OwnedMethod::Return {
                reply_code: returned.reply_code,
                reply_text: returned.reply_text.into(),
                exchange: returned.exchange.into(),
                key: returned.routing_key.into(),
            },
        };
        Self { channel, method, header, body }
    }

    /// Why it came, and how it was routed.
    #[must_use]
    pub fn method(&self) -> DeliveryMethod<'_> {
        match &self.method {
            OwnedMethod::Deliver { consumer_tag, delivery_tag, redelivered, exchange, key } => {
                DeliveryMethod::Deliver(basic::Deliver {
                    consumer_tag: consumer_tag.into(),
                    delivery_tag: *delivery_tag,
                    redelivered: *redelivered,
                    exchange: exchange.into(),
                    routing_key: key.into(),
                })
            }
            OwnedMethod::GetOk { delivery_tag, redelivered, exchange, key, message_count } => {
                DeliveryMethod::GetOk(basic::GetOk {
                    delivery_tag: *delivery_tag,
                    redelivered: *redelivered,
                    exchange: exchange.into(),
                    routing_key: key.into(),
                    message_count: *message_count,
                })
            }
            OwnedMethod::Return { reply_code, reply_text, exchange, key } => {
                DeliveryMethod::Return(basic::Return {
                    reply_code: *reply_code,
                    reply_text: reply_text.into(),
                    exchange: exchange.into(),
                    routing_key: key.into(),
                })
            }
        }
    }

    /// The same as a borrowed delivery.
    #[must_use]
    pub fn as_delivery(&self) -> Delivery<'_> {
        Delivery {
            channel: self.channel,
            method: self.method(),
            header: &self.header,
            body: &self.body,
        }
    }
}
