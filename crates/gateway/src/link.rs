//! The AMQP side of an endpoint: a connection of its own, made again when it is lost.

use crate::accounts::Login;
use crate::config::EndpointConfig;
use crate::frames::{FRAMES_MAX, frames_of, frames_of_amqp};
use crate::log_throttle::{LogThrottle, Once};
use crate::metrics::Metrics;
use bytes::Bytes;
use courser_client::{
    Channel, CloseReason, Connection, Credentials, Error, Message, Options, QueueOptions,
    ShortString,
};
use omq_tokio::Message as PeerMessage;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// How long an endpoint waits before it tries again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;

/// A way to and from the broker.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes streams to the broker; `None` when it takes no more connections.
pub type Connector = Arc<dyn Fn() -> Option<Box<dyn Stream>> + Send + Sync>;

/// What an endpoint needs to reach the broker.
pub(crate) struct Link {
    pub config: EndpointConfig,
    pub metrics: Arc<Metrics>,
    login: Login,
    connector: Connector,
    stopping: watch::Receiver<bool>,
    troubles: Once,
    left_out: Once,
    refusals: LogThrottle,
}

/// Why an endpoint's connection has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Amqp(#[from] Error),
    #[error("the broker takes no more connections")]
    NoRoom,
    #[error("the queue was deleted")]
    QueueGone,
    #[error("the socket is closed: {0}")]
    Socket(#[from] omq_tokio::Error),
}

/// Whether a publish has failed for what the message says: nothing was sent, and the channel is open.
pub(crate) fn is_unsendable(error: &Error) -> bool {
    matches!(error, Error::PropertiesTooLarge { .. } | Error::TooLong { .. })
}

/// Whether the broker has closed something because the topic permissions of the user refuse a routing key.
pub(crate) fn refuses_topic(reason: &CloseReason) -> bool {
    reason.code == ACCESS_REFUSED && reason.text.contains("access to topic '")
}

impl Link {
    pub fn new(
        config: &EndpointConfig,
        login: &Login,
        connector: &Connector,
        metrics: &Arc<Metrics>,
        stopping: &watch::Receiver<bool>,
    ) -> Self {
        Link {
            config: config.clone(),
            metrics: Arc::clone(metrics),
            login: login.clone(),
            connector: Arc::clone(connector),
            stopping: stopping.clone(),
            troubles: Once::default(),
            left_out: Once::default(),
            refusals: LogThrottle::default(),
        }
    }

    /// Logs in and opens a channel.
    pub async fn open(&self) -> Result<(Connection, Channel), LinkError> {
        let opened = self.connect().await?;
        Metrics::add(&self.metrics.links, 1);
        Ok(opened)
    }

    /// The same for a connection beside the one that is counted.
    pub async fn connect(&self) -> Result<(Connection, Channel), LinkError> {
        let Login { user, password, vhost } = &self.login;
        let vhost = ShortString::try_from(vhost.as_str())
            .map_err(|error| Error::TooLong { what: "a virtual host's name", len: error.len })?;
        let options = Options {
            credentials: Credentials::Plain {
                user: user.clone().into(),
                password: password.clone().into(),
            },
            virtual_host: vhost,
            // The pipe to the broker cannot break unnoticed, and is not read while messages wait for a peer.
            heartbeat_s: 0,
            ..Options::default()
        }
        .with_name(format!("gateway: {}", self.config.name()));
        let stream = (self.connector)().ok_or(LinkError::NoRoom)?;
        let connection = Connection::open_on(stream, options).await?;
        let channel = connection.open_channel().await?;
        Ok((connection, channel))
    }

    /// The endpoint's queue, declared as a durable one if there is none. Opens another channel where the question has
    /// cost the first.
    pub async fn with_queue(&self) -> Result<(Connection, Channel, String), LinkError> {
        let (connection, channel) = self.open().await?;
        let queue = self.config.queue.clone().unwrap_or_default();
        match channel.queue_info(&queue).await {
            Ok(_) => return Ok((connection, channel, queue)),
            Err(error) if error.reply_code() == Some(NOT_FOUND) => {}
            Err(error) => return Err(error.into()),
        }
        let channel = connection.open_channel().await?;
        channel.queue_declare(&queue, QueueOptions::durable()).await?;
        Ok((connection, channel, queue))
    }

    /// The frames of a message of a peer, which is counted. `None`, and counted as dropped, if it is too large or has too
    /// many of them.
    pub fn incoming(&self, message: &PeerMessage) -> Option<Vec<Bytes>> {
        let (size_bytes, frames) = (message.byte_len(), message.len());
        self.metrics.note_received(size_bytes);
        if size_bytes <= self.config.max_message_bytes && frames <= FRAMES_MAX {
            return Some(frames_of(message));
        }
        if let Some(suppressed) = self.refusals.may_say() {
            let endpoint = self.config.name();
            let text = "gateway: a message of a peer is too large";
            tracing::warn!(endpoint, size_bytes, frames, suppressed, "{text}");
        }
        Metrics::add(&self.metrics.dropped, 1);
        None
    }

    /// The frames of a message that goes to peers, and whether its headers told of them. `None`, and counted, if they
    /// contradict the body, or it is larger than the endpoint's messages may be.
    pub fn outgoing(&self, message: &Message) -> Option<(Vec<Bytes>, bool)> {
        let size_bytes = message.body().len();
        let frames = if size_bytes <= self.config.max_message_bytes {
            frames_of_amqp(message.clone())
        } else {
            None
        };
        if frames.is_none() {
            if let Some(suppressed) = self.refusals.may_say() {
                let endpoint = self.config.name();
                let text = "gateway: a message of a queue can't be carried";
                tracing::warn!(endpoint, size_bytes, suppressed, "{text}");
            }
            Metrics::add(&self.metrics.dropped, 1);
        }
        frames
    }

    /// A message of a peer is dropped, as the broker refuses it for what it says.
    pub fn drop_refused(&self, reason: &str) {
        if let Some(suppressed) = self.refusals.may_say() {
            let endpoint = self.config.name();
            let text = "gateway: a message of a peer is dropped, as the broker refuses it";
            tracing::warn!(endpoint, reason, suppressed, "{text}");
        }
        Metrics::add(&self.metrics.dropped, 1);
    }

    /// A message is dropped, as the peers together hold as many bytes as the endpoint may.
    pub fn drop_for_slow_peers(&self) {
        if let Some(suppressed) = self.refusals.may_say() {
            let endpoint = self.config.name();
            let text =
                "gateway: a message is dropped, as peers hold high_water_bytes and take nothing";
            tracing::warn!(endpoint, suppressed, "{text}");
        }
        Metrics::add(&self.metrics.dropped, 1);
    }

    /// A subscription has no binding, as the broker refuses it.
    pub fn leave_out(&self, reason: &str) {
        if self.left_out.may_say(reason)
            && let Some(suppressed) = self.refusals.may_say()
        {
            let endpoint = self.config.name();
            let text = "gateway: a subscription is left out, as the broker refuses its binding";
            tracing::warn!(endpoint, reason, suppressed, "{text}");
        }
    }

    /// Says why a connection has ended, and waits some time before the next. False when the gateway stops.
    pub async fn may_retry(&self, error: &LinkError) -> bool {
        if self.is_stopping() || matches!(error, LinkError::Socket(_)) {
            return false;
        }
        if self.troubles.may_say(&error.to_string()) {
            let (endpoint, vhost) = (self.config.name(), &self.login.vhost);
            tracing::warn!(endpoint, vhost, %error, "gateway: trying again every second");
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_INTERVAL) => true,
            () = self.stopped() => false,
        }
    }

    /// Whether the gateway stops.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow() || self.stopping.has_changed().is_err()
    }

    /// Waits until the gateway stops.
    pub async fn stopped(&self) {
        // An error means that the gateway is gone.
        let _ = self.stopping.clone().wait_for(|stop| *stop).await;
    }
}
