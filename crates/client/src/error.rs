//! What can go wrong, and whose end it is.

use std::io;
use std::sync::Arc;

use courser_connection::CloseReason;
use courser_connection::client::{OpenChannelError, PublishError, RequestError};

use crate::uri::UriError;

/// Why an operation of this crate has failed.
///
/// A clone is cheap: when a connection ends, everybody who waits on it gets the same error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no AMQP URI.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The URI asks for TLS, and this crate brings none.
    #[error(
        "amqps:// needs a TLS stream, which this crate does not make: connect with the TLS library of your choice \
         and give its handshake to Connection::open_through"
    )]
    TlsStreamNeeded,
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the operating system says.
        source: Arc<io::Error>,
    },
    /// The stream to the server broke, without a word of the server's why.
    #[error("the connection is lost: {0}")]
    Lost(Arc<io::Error>),
    /// The connection was closed, by this side or by the server: [`CloseReason`] tells, with code and text.
    #[error("connection {0}")]
    ConnectionClosed(Arc<CloseReason>),
    /// The channel was closed, by this side or by the server, for a reason of its own; the connection goes on.
    #[error("channel {channel} {reason}")]
    ChannelClosed {
        /// Number of the channel.
        channel: u16,
        /// By whom, with code and text.
        reason: Arc<CloseReason>,
    },
    /// The server has ended the consumer, mostly because its queue was deleted.
    #[error("the server has cancelled the consumer {consumer_tag:?}")]
    ConsumerCancelled {
        /// Tag of the consumer.
        consumer_tag: String,
    },
    /// The channel has a consumer with this tag already.
    #[error("the channel has a consumer {consumer_tag:?} already")]
    ConsumerTagInUse {
        /// Tag of the consumer.
        consumer_tag: String,
    },
    /// A name does not fit into a short string of the protocol, which holds 255 bytes.
    #[error("{what} of {len} bytes; at most 255 are possible")]
    TooLong {
        /// What was too long.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// The properties do not fit into a frame of the connection.
    #[error("properties of {size_bytes} bytes do not fit into a frame of {frame_max}")]
    PropertiesTooLarge {
        /// Size of the encoded properties in bytes.
        size_bytes: usize,
        /// Largest frame of the connection in bytes.
        frame_max: u32,
    },
    /// The channel or connection is closed now, and the server has neither confirmed nor refused some of the publishes.
    #[error("closed before the server had answered {count} publishes")]
    NotConfirmed {
        /// How many.
        count: u64,
    },
    /// The connection is closed now, but the server has not answered the close: what was published last may not have
    /// reached it.
    #[error(
        "the server has not answered the close of the connection; what was sent last may be lost"
    )]
    CloseUnanswered,
    /// All channel numbers of the connection are taken.
    #[error("all {channel_max} channels of the connection are in use")]
    NoChannelFree {
        /// How many there can be.
        channel_max: u16,
    },
}

impl Error {
    /// The reply code of the protocol, when the server or this side has closed something with one: 404 for a queue that
    /// is missing, 403 for a login that was refused.
    #[must_use]
    pub fn reply_code(&self) -> Option<u16> {
        self.close_reason().map(|reason| reason.code).filter(|&code| code != 0)
    }

    /// Who has closed the connection or channel, and why.
    #[must_use]
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match self {
            Self::ConnectionClosed(reason) | Self::ChannelClosed { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether the whole connection is gone, and not only a channel or an operation.
    #[must_use]
    pub fn is_connection_gone(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::ConnectionClosed(_))
    }

    pub(crate) fn lost(error: io::Error) -> Self {
        Self::Lost(Arc::new(error))
    }

    /// For operations on a channel, whose state says more than the machine's answer.
    pub(crate) fn from_request(error: &RequestError, closed: Self) -> Self {
        match error {
            RequestError::NotOpen { .. } => closed,
            RequestError::NotARequest { name } => {
                Self::lost(io::Error::other(format!("{name} cannot be sent")))
            }
        }
    }

    pub(crate) fn from_publish(error: PublishError, closed: Self) -> Self {
        match error {
            PublishError::NotOpen { .. } => closed,
            PublishError::PropertiesTooLarge { size_bytes, frame_max } => {
                Self::PropertiesTooLarge { size_bytes, frame_max }
            }
        }
    }

    pub(crate) fn from_open(error: OpenChannelError, closed: Self) -> Self {
        match error {
            OpenChannelError::NotConnected => closed,
            OpenChannelError::NoneFree { channel_max } => Self::NoChannelFree { channel_max },
        }
    }
}
