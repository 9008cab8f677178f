//! Handlers, and how their consumers end.

use std::sync::Arc;

use courser_codec::Method;
use courser_connection::client::Delivery as Incoming;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::deliveries::{Answer, Deliveries};
use crate::channel::Channel;
use crate::error::Error;
use crate::route::{ChannelState, ConsumerKey};
use crate::shared::Shared;

/// Publishes that the server has confirmed or refused. Each publish of a channel is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Number of the first one.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
    /// Whether the server has taken them.
    pub is_ack: bool,
}

type DeliveryHandler = Box<dyn FnMut(&mut Deliveries<'_>) + Send>;
type ConfirmHandler = Box<dyn FnMut(Confirmed) + Send>;

/// Calls a handler with deliveries.
pub(crate) struct DeliverySink {
    state: Arc<ChannelState>,
    /// The handler, until its consumer ends, and answers that it has given.
    handler: Mutex<(Option<DeliveryHandler>, Vec<Answer>)>,
    ended: watch::Sender<Option<Result<(), Error>>>,
}

impl DeliverySink {
    pub fn new(state: Arc<ChannelState>, handler: DeliveryHandler) -> Self {
        Self {
            state,
            handler: Mutex::new((Some(handler), Vec::new())),
            ended: watch::Sender::new(None),
        }
    }

    pub fn call(&self, incoming: &[Incoming<'_>], shared: &Shared) {
        let mut guard = self.handler.lock();
        let (Some(handler), answers) = &mut *guard else { return };
        handler(&mut Deliveries::new(incoming, answers));
        if answers.is_empty() {
            return;
        }
        shared.inspect(|core| {
            for answer in answers.drain(..) {
                let method = match answer {
                    Answer::Ack(ack) => Method::BasicAck(ack),
                    Answer::Nack(nack) => Method::BasicNack(nack),
                };
                // On a closed channel nothing is left to acknowledge.
                let _ = core.send(&self.state, &method);
            }
        });
    }

    /// Nothing more will come; the handler is dropped.
    pub fn end(&self, error: Option<Error>) {
        let handler = self.handler.lock().0.take();
        drop(handler);
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(error.map_or(Ok(()), Err));
            is_first
        });
    }
}

/// Calls a handler with confirms.
pub(crate) struct ConfirmSink(Mutex<Option<ConfirmHandler>>);

impl ConfirmSink {
    pub fn new(handler: ConfirmHandler) -> Self {
        Self(Mutex::new(Some(handler)))
    }

    pub fn call(&self, confirmed: Confirmed) {
        if let Some(handler) = &mut *self.0.lock() {
            handler(confirmed);
        }
    }

    /// Nothing more will come; the handler is dropped.
    pub fn end(&self) {
        let handler = self.0.lock().take();
        drop(handler);
    }
}

/// A consumer whose deliveries go to a handler. Dropping this does not end it.
pub struct BatchConsumer {
    channel: Channel,
    key: ConsumerKey,
    consumer_tag: String,
    sink: Arc<DeliverySink>,
}

impl BatchConsumer {
    pub(crate) fn new(channel: Channel, key: ConsumerKey, sink: Arc<DeliverySink>) -> Self {
        let consumer_tag = key.tag.to_string();
        Self { channel, key, consumer_tag, sink }
    }

    /// Its tag.
    #[must_use]
    pub fn consumer_tag(&self) -> &str {
        &self.consumer_tag
    }

    /// Ends the consumer; when this returns, the handler has got its last deliveries.
    ///
    /// # Errors
    /// When the channel is closed before the server has answered.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.channel.cancel(&self.key).await
    }

    /// Waits until the consumer has ended, by whatever cause.
    ///
    /// # Errors
    /// Why it has ended, unless this side has cancelled it, or closed channel or connection on purpose.
    pub async fn ended(&self) -> Result<(), Error> {
        let mut ended = self.sink.ended.subscribe();
        let result = ended.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        result.unwrap_or_else(|| Err(self.channel.state().error()))
    }
}
