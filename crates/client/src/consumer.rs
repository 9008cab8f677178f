//! Messages as streams: consumers and returns.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser_codec::{Method, basic};
use futures_core::Stream;

use crate::channel::Channel;
use crate::error::Error;
use crate::mailbox::Mailbox;
use crate::message::{Message, Received, Returned};
use crate::route::ConsumerKey;

/// A consumer: the messages of a queue as a [`Stream`], or one by one by [`Consumer::next`].
///
/// It ends with an error when channel or connection are closed by the server or break, or when the server cancels it;
/// and without one when this side has cancelled it, or has closed channel or connection.
///
/// What had come before can still be taken when this side cancels it, and always from one that does not acknowledge. When
/// the server cancels it, or the channel ends, what was not taken is not handed out any more, and is back in its queue. A
/// server that cancels may have taken back all that the consumer had (a message was unacknowledged for too long, the queue
/// is gone): acknowledging what was taken has no effect then, and [`Delivery::ack`] gives no error.
///
/// Dropping a consumer cancels it, and gives back to the queue what was not taken. On a
/// [transactional](Channel::tx_select) channel that is a part of the transaction.
#[derive(Debug)]
pub struct Consumer {
    channel: Channel,
    mailbox: Arc<Mailbox<Received>>,
    key: ConsumerKey,
    consumer_tag: String,
    auto_ack: bool,
}

impl Consumer {
    pub(crate) fn new(
        channel: Channel,
        mailbox: Arc<Mailbox<Received>>,
        key: ConsumerKey,
        auto_ack: bool,
    ) -> Self {
        let consumer_tag = key.tag.to_string();
        Self { channel, mailbox, key, consumer_tag, auto_ack }
    }

    /// Its tag.
    #[must_use]
    pub fn consumer_tag(&self) -> &str {
        &self.consumer_tag
    }

    /// The next message; `None` when the consumer has ended.
    ///
    /// # Errors
    /// Why the consumer has ended; told once.
    pub async fn next(&mut self) -> Result<Option<Delivery>, Error> {
        poll_fn(|cx| self.poll(cx)).await.transpose()
    }

    /// Waits until the consumer has ended, by whatever cause; [`Consumer::next`] says why. A program that works on a
    /// message for long learns by this that the server has taken the message back. While the connection is
    /// [not read](crate::Connection::stalled), nothing is heard of that.
    pub async fn ended(&mut self) {
        poll_fn(|cx| self.mailbox.poll_ended(cx)).await;
    }

    /// Ends the consumer. What has come so far can still be taken.
    ///
    /// # Errors
    /// When the channel is closed before the server has answered.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.channel.cancel(&self.key).await
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Delivery, Error>>> {
        loop {
            let next = ready!(self.mailbox.poll_next(cx));
            if let Some(Ok(received)) = &next
                && !self.auto_ack
                && self.channel.state().recovers.has_taken_back(received.id)
            {
                continue;
            }
            let delivery = |received| Delivery::new(self.channel.clone(), received, None);
            return Poll::Ready(next.map(|item| item.map(delivery)));
        }
    }
}

impl Stream for Consumer {
    type Item = Result<Delivery, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.channel.forget_consumer(&self.key, || {
            let left = self.mailbox.abandon();
            (!self.auto_ack).then(|| left.map(|received| received.id).collect())
        });
    }
}

/// A message from a queue, to be acknowledged unless it was asked for without.
///
/// Dropping it does not acknowledge it: it stays with this channel until that is closed.
pub struct Delivery {
    channel: Channel,
    received: Received,
    left: Option<u32>,
}

impl Delivery {
    pub(crate) fn new(channel: Channel, received: Received, left: Option<u32>) -> Self {
        Self { channel, received, left }
    }

    /// The number to acknowledge it by, if not by the functions here.
    #[must_use]
    pub fn delivery_tag(&self) -> u64 {
        self.received.id.tag
    }

    /// Whether it was delivered before, to this client or another.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.received.redelivered
    }

    /// How many messages were left in the queue, if it came by [`Channel::get`].
    #[must_use]
    pub fn message_count(&self) -> Option<u32> {
        self.left
    }

    /// The message itself.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.received.message
    }

    /// The message itself, to keep.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.received.message
    }

    /// Acknowledges it: the server forgets it.
    ///
    /// # Errors
    /// When the channel is closed; then the message is back in its queue.
    pub fn ack(&self) -> Result<(), Error> {
        let ack = basic::Ack { delivery_tag: self.delivery_tag(), multiple: false };
        self.channel.settle(self.received.id, &Method::BasicAck(ack))
    }

    /// Refuses it: back to its place in the queue, or dropped or dead-lettered.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub fn nack(&self, requeue: bool) -> Result<(), Error> {
        let nack = basic::Nack { delivery_tag: self.delivery_tag(), multiple: false, requeue };
        self.channel.settle(self.received.id, &Method::BasicNack(nack))
    }
}

impl std::ops::Deref for Delivery {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.received.message
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("delivery_tag", &self.received.id.tag)
            .field("redelivered", &self.received.redelivered)
            .field("message", &self.received.message)
            .finish_non_exhaustive()
    }
}

/// Mandatory messages that came back, as a [`Stream`] or one by one by [`Returns::next`].
///
/// The return of a message comes before its confirm: once a confirm has resolved, the message's return can be taken.
#[derive(Debug)]
pub struct Returns {
    channel: Channel,
    mailbox: Arc<Mailbox<Returned>>,
}

impl Returns {
    pub(crate) fn new(channel: Channel, mailbox: Arc<Mailbox<Returned>>) -> Self {
        Self { channel, mailbox }
    }

    /// The next message that came back; `None` when the channel is closed.
    ///
    /// # Errors
    /// Why the channel was closed; told once.
    pub async fn next(&mut self) -> Result<Option<Returned>, Error> {
        poll_fn(|cx| self.mailbox.poll_next(cx)).await.transpose()
    }

    /// The channel whose messages these are.
    #[must_use]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl Stream for Returns {
    type Item = Result<Returned, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.mailbox.poll_next(cx)
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        drop(self.mailbox.abandon());
    }
}
