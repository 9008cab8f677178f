//! Handlers, and how their consumers end.

use std::cell::Cell;
use std::sync::Arc;

use courser_codec::Method;
use courser_connection::client::Delivery as Incoming;
use parking_lot::ReentrantMutex;
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

/// A handler, until what it handles ends. Another thread that ends it waits for the end of a call. A call may end it too: by
/// dropping what keeps its connection open.
struct Slot<H>(ReentrantMutex<Content<H>>);

struct Content<H> {
    /// None while it is called.
    handler: Cell<Option<H>>,
    has_ended: Cell<bool>,
}

impl<H> Slot<H> {
    fn new(handler: H) -> Self {
        let content = Content { handler: Cell::new(Some(handler)), has_ended: Cell::new(false) };
        Self(ReentrantMutex::new(content))
    }

    fn call(&self, call: impl FnOnce(&mut H)) {
        let content = self.0.lock();
        let Some(mut handler) = content.handler.take() else { return };
        call(&mut handler);
        if !content.has_ended.get() {
            content.handler.set(Some(handler));
        }
    }

    /// Drops the handler, which is not called any more.
    fn end(&self) {
        let content = self.0.lock();
        content.has_ended.set(true);
        let handler = content.handler.take();
        drop(content);
        drop(handler);
    }
}

/// Calls a handler with deliveries.
pub(crate) struct DeliverySink {
    state: Arc<ChannelState>,
    /// With answers that it has given.
    handler: Slot<(DeliveryHandler, Vec<Answer>)>,
    ended: watch::Sender<Option<Result<(), Error>>>,
}

impl DeliverySink {
    pub fn new(state: Arc<ChannelState>, handler: DeliveryHandler) -> Self {
        Self { state, handler: Slot::new((handler, Vec::new())), ended: watch::Sender::new(None) }
    }

    pub fn call(&self, incoming: &[Incoming<'_>], shared: &Shared) {
        self.handler.call(|(handler, answers)| {
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
        });
    }

    /// Nothing more will come; the handler is dropped.
    pub fn end(&self, error: Option<Error>) {
        self.handler.end();
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(error.map_or(Ok(()), Err));
            is_first
        });
    }
}

/// Calls a handler with confirms.
pub(crate) struct ConfirmSink(Slot<ConfirmHandler>);

impl ConfirmSink {
    pub fn new(handler: ConfirmHandler) -> Self {
        Self(Slot::new(handler))
    }

    pub fn call(&self, confirmed: Confirmed) {
        self.0.call(|handler| handler(confirmed));
    }

    /// Nothing more will come; the handler is dropped.
    pub fn end(&self) {
        self.0.end();
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
