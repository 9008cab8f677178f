//! What a server's connection tells its driver.

use bytes::Bytes;
use courser_codec::{ContentHeader, DecodeError, Method, ShortStr, Table, basic};

use crate::close::CloseReason;
use crate::sasl::Credentials;

/// Something that came in and that the driver has to act on. Borrows from the input alone.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client wants to log in. Answer with [`login_accepted`] or [`login_refused`]; until then nothing more is read.
    ///
    /// [`login_accepted`]: super::Connection::login_accepted
    /// [`login_refused`]: super::Connection::login_refused
    Login {
        /// Who it is said to be, and the proof.
        credentials: Credentials,
        /// What the client says of itself, found well-formed.
        client_properties: Table<'a>,
    },
    /// A client wants to enter a virtual host. Answer with [`open_accepted`] or [`open_refused`]; until then nothing
    /// more is read.
    ///
    /// [`open_accepted`]: super::Connection::open_accepted
    /// [`open_refused`]: super::Connection::open_refused
    Open {
        /// Name of the virtual host.
        virtual_host: ShortStr<'a>,
    },
    /// A channel was opened. `channel.open-ok` follows, unless the connection is ended first, as the client may have
    /// no more channels.
    ChannelOpened {
        /// Its number.
        channel: u16,
    },
    /// A channel is closed; its number can be opened again at once. `channel.close-ok` (the client closed it) or
    /// `channel.close` (it broke a rule that the machine holds) is in the output.
    ///
    /// This is not given for [`channel_error`](super::Connection::channel_error), which the driver knows of.
    ChannelClosed {
        /// Its number.
        channel: u16,
        /// Who closed it, and why.
        reason: Box<CloseReason>,
    },
    /// A method for the broker: of the classes exchange, queue, basic (but `publish`), tx, confirm, `channel.flow`,
    /// and on channel 0 `connection.update-secret`. The mode that `tx` and `confirm` need has been checked.
    Request {
        /// Channel that it came on; it is open.
        channel: u16,
        /// The method.
        method: Method<'a>,
    },
    /// A message that lies in the input as a whole, its body in one frame or empty.
    Publish(Publish<'a>),
    /// A message has begun to come that will be a [`LargePublish`](Event::LargePublish). Nothing of its body is kept yet:
    /// a driver that would not take it can say so now.
    PublishBegun {
        /// Channel that it comes on; it is open.
        channel: u16,
        /// The method.
        publish: basic::Publish<'a>,
    },
    /// A message that came in several body frames or several reads.
    LargePublish(Box<AssembledPublish>),
    /// The connection is over, and no event follows. The driver drops what belongs to it, sends what is in the output
    /// (`connection.close-ok` or `connection.close`), and goes on presenting input until
    /// [`is_closed`](super::Connection::is_closed).
    ///
    /// This is not given for [`connection_error`](super::Connection::connection_error) and other ends that the driver
    /// itself has caused.
    Closed(Box<CloseReason>),
}

/// A `basic.publish` with its content, all borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Channel that it came on; it is open.
    pub channel: u16,
    /// The method.
    pub publish: basic::Publish<'a>,
    /// Exchange and routing key as they lie on the wire: length and bytes, twice. A key for routing caches.
    pub exchange_and_key: &'a [u8],
    /// Payload of the content header's frame: class, weight, body size, properties.
    pub header: &'a [u8],
    /// The body.
    pub body: &'a [u8],
    /// Its number on a channel that is in confirm mode, from 1; 0 when the channel is not.
    pub confirm_seq: u64,
}

impl<'a> Publish<'a> {
    /// The content header, its properties undecoded.
    ///
    /// # Errors
    /// When flags are set in it that no property has.
    #[inline]
    pub fn content_header(&self) -> Result<ContentHeader<'a>, DecodeError> {
        ContentHeader::parse(self.header)
    }
}

/// A `basic.publish` with its content, copied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembledPublish {
    /// Channel that it came on; it is open.
    pub channel: u16,
    /// Whether it has to be returned when no queue takes it.
    pub mandatory: bool,
    /// See [`Publish::exchange_and_key`].
    pub exchange_and_key: Bytes,
    /// See [`Publish::header`].
    pub header: Bytes,
    /// The body.
    pub body: Bytes,
    /// See [`Publish::confirm_seq`].
    pub confirm_seq: u64,
}

impl AssembledPublish {
    /// The same as a borrowed publish.
    #[must_use]
    pub fn as_publish(&self) -> Publish<'_> {
        let (exchange, routing_key) = split_exchange_and_key(&self.exchange_and_key);
        Publish {
            channel: self.channel,
            publish: basic::Publish {
                exchange,
                routing_key,
                mandatory: self.mandatory,
                immediate: false,
            },
            exchange_and_key: &self.exchange_and_key,
            header: &self.header,
            body: &self.body,
            confirm_seq: self.confirm_seq,
        }
    }
}

/// Takes exchange and routing key apart, as [`Publish::exchange_and_key`] has them. What is cut short reads as empty.
#[must_use]
pub fn split_exchange_and_key(encoded: &[u8]) -> (ShortStr<'_>, ShortStr<'_>) {
    fn take(encoded: &[u8]) -> (ShortStr<'_>, &[u8]) {
        let parts =
            encoded.split_first().and_then(|(&len, rest)| rest.split_at_checked(len.into()));
        let (text, rest) = parts.unwrap_or_default();
        (ShortStr::new(text).unwrap_or_default(), rest)
    }
    let (exchange, rest) = take(encoded);
    (exchange, take(rest).0)
}
