//! Handlers, and how their consumers end.

use std::sync::{Arc, OnceLock};

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

/// A handler, until what it handles ends. No lock is held while it is called or dropped: it may end other handlers meanwhile,
/// which are perhaps called just then and end this one, and itself, by dropping what keeps its connection open.
struct Slot<H> {
    content: Mutex<Content<H>>,
    /// Whether the handler has ended and returned from its last call.
    is_over: watch::Sender<bool>,
}

struct Content<H> {
    /// None while it is called, and once it has ended.
    handler: Option<H>,
    is_called: bool,
    has_ended: bool,
}

impl<H> Slot<H> {
    fn new(handler: H) -> Self {
        let content = Content { handler: Some(handler), is_called: false, has_ended: false };
        Self { content: Mutex::new(content), is_over: watch::Sender::new(false) }
    }

    fn call(&self, call: impl FnOnce(&mut H)) {
        let mut content = self.content.lock();
        let Some(handler) = content.handler.take() else { return };
        content.is_called = true;
        drop(content);
        let mut calling = Calling { slot: self, handler: Some(handler) };
        if let Some(handler) = &mut calling.handler {
            call(handler);
        }
    }

    /// Drops the handler, which is not called any more. A call under way does that when it returns.
    fn end(&self) {
        let mut content = self.content.lock();
        content.has_ended = true;
        let handler = content.handler.take();
        let is_over = !content.is_called;
        drop(content);
        drop(handler);
        if is_over {
            self.is_over.send_replace(true);
        }
    }
}

/// A call of a handler, which goes back to its slot behind it, also when it has panicked.
struct Calling<'a, H> {
    slot: &'a Slot<H>,
    handler: Option<H>,
}

impl<H> Drop for Calling<'_, H> {
    fn drop(&mut self) {
        let mut content = self.slot.content.lock();
        content.is_called = false;
        if !content.has_ended {
            content.handler = self.handler.take();
            return;
        }
        drop(content);
        drop(self.handler.take());
        self.slot.is_over.send_replace(true);
    }
}

/// Calls a handler with deliveries.
pub(crate) struct DeliverySink {
    state: Arc<ChannelState>,
    /// With answers that it has given.
    handler: Slot<(DeliveryHandler, Vec<Answer>)>,
    /// Why, once it has ended.
    ended: OnceLock<Result<(), Error>>,
}

impl DeliverySink {
    pub fn new(state: Arc<ChannelState>, handler: DeliveryHandler) -> Self {
        Self { state, handler: Slot::new((handler, Vec::new())), ended: OnceLock::new() }
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

    /// Nothing more will come; the handler is dropped, by a call under way when that returns.
    pub fn end(&self, error: Option<Error>) {
        // Only the first reason counts.
        let _ = self.ended.set(error.map_or(Ok(()), Err));
        self.handler.end();
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

    /// Nothing more will come; the handler is dropped, by a call under way when that returns.
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
        let mut is_over = self.sink.handler.is_over.subscribe();
        // The sender is in `self`, which is still there.
        let _ = is_over.wait_for(|is_over| *is_over).await;
        self.sink.ended.get().cloned().unwrap_or_else(|| Err(self.channel.state().error()))
    }
}
