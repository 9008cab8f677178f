//! Consuming, getting, acknowledging.

use std::sync::Arc;

use courser_codec::{Method, Table, basic};
use tokio::sync::oneshot;

use super::{Channel, ConsumeOptions, encode};
use crate::batch::{BatchConsumer, Deliveries, DeliverySink};
use crate::consumer::{Consumer, Delivery};
use crate::error::Error;
use crate::mailbox::Mailbox;
use crate::message::DeliveryId;
use crate::names::{queue_name, short};
use crate::route::{ConsumerKey, Prefetch, Purpose, Receiver, Reply};
use crate::shared::Core;

/// Messages that a [`Consumer`] may have unacknowledged if [`Channel::qos`] has not been called.
pub const DEFAULT_PREFETCH: u16 = 100;

/// Bytes that may wait for the program where no prefetch bounds it, unless it says otherwise.
const BUFFER_BYTES: usize = 16 * 1024 * 1024;
const QOS_OK: (u16, u16) = (basic::CLASS_ID, basic::QosOk::METHOD_ID);

/// A consumer with a handler that the server has not answered for yet; dropped before, it ends.
struct Starting<'a> {
    channel: &'a Channel,
    key: Option<ConsumerKey>,
    gives_back: bool,
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.channel.forget_consumer(&key, || self.gives_back.then(Vec::new));
        }
    }
}

/// A get that is under way. The message may be in `answer` when the program gives up.
struct Getting<'a> {
    channel: &'a Channel,
    answer: oneshot::Receiver<Reply>,
    gives_back: bool,
}

impl Drop for Getting<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Reply::Message(Some(got))) = self.answer.try_recv()
            && self.gives_back
        {
            let state = self.channel.state();
            self.channel.shared().change(|core| core.give_back(state, &[got.0.id]));
        }
    }
}

impl Channel {
    /// Limits how many messages each consumer that is made afterwards may have unacknowledged; 0 is no limit. Without
    /// this, it is [`DEFAULT_PREFETCH`] for each [`Consumer`] that acknowledges.
    ///
    /// # Errors
    /// As for every request.
    pub async fn qos(&self, prefetch: u16) -> Result<(), Error> {
        self.set_qos(prefetch, false).await
    }

    /// Limits how many messages all consumers of the channel together may have unacknowledged; 0 is no limit. Newer
    /// versions of RabbitMQ take this as a limit for each consumer.
    ///
    /// # Errors
    /// As for every request.
    pub async fn qos_shared(&self, prefetch: u16) -> Result<(), Error> {
        self.set_qos(prefetch, true).await
    }

    async fn set_qos(&self, prefetch_count: u16, global: bool) -> Result<(), Error> {
        let qos = basic::Qos { prefetch_size: 0, prefetch_count, global };
        *self.state().prefetch.lock() = Prefetch::Own(prefetch_count);
        self.ask(&Method::BasicQos(qos), QOS_OK).await.map(drop)
    }

    /// Consumes a queue: its messages come as a stream.
    ///
    /// Dropping the future before it is ready ends the consumer, as dropping the [`Consumer`] does.
    ///
    /// # Errors
    /// 404 when the queue is missing, 403 when another consumer has it to itself.
    pub async fn consume(&self, queue: &str, options: ConsumeOptions) -> Result<Consumer, Error> {
        let stall = self.shared().stall.clone();
        let auto_ack = options.auto_ack;
        let has_prefetch = !auto_ack && *self.state().prefetch.lock() != Prefetch::Own(0);
        let default_bytes = if has_prefetch { usize::MAX } else { BUFFER_BYTES };
        let limit_bytes = options.buffer_bytes.unwrap_or(default_bytes);
        let mailbox = Arc::new(Mailbox::new(stall, limit_bytes));
        let receiver = Receiver::Stream { mailbox: mailbox.clone(), auto_ack };
        let (key, answer) = self.start_consumer(queue, options, receiver)?;
        let consumer = Consumer::new(self.clone(), mailbox, key, auto_ack);
        answer.await.map_err(|_| self.gone())?;
        Ok(consumer)
    }

    /// Consumes a queue: its messages go to `handler` as they lie in the connection's reads; see
    /// [`batch`](crate::batch). The prefetch is the one that [`Channel::qos`] has set, or none.
    ///
    /// Dropping the future before it is ready ends the consumer; what was not acknowledged stays with the channel.
    ///
    /// # Errors
    /// As [`Channel::consume`].
    pub async fn consume_batches(
        &self,
        queue: &str,
        options: ConsumeOptions,
        handler: impl FnMut(&mut Deliveries<'_>) + Send + 'static,
    ) -> Result<BatchConsumer, Error> {
        let sink = Arc::new(DeliverySink::new(self.state().clone(), Box::new(handler)));
        let receiver = Receiver::Batches(sink.clone());
        let gives_back = !options.auto_ack;
        let (key, answer) = self.start_consumer(queue, options, receiver)?;
        let mut starting = Starting { channel: self, key: Some(key), gives_back };
        answer.await.map_err(|_| self.gone())?;
        let key = starting.key.take().ok_or_else(|| self.gone())?;
        Ok(BatchConsumer::new(self.clone(), key, sink))
    }

    /// Registers who gets the deliveries, as they may come right behind the answer, and asks for them.
    fn start_consumer(
        &self,
        queue: &str,
        options: ConsumeOptions,
        receiver: Receiver,
    ) -> Result<(ConsumerKey, oneshot::Receiver<Reply>), Error> {
        let arguments = encode(&options.arguments);
        let queue = queue_name(queue)?;
        let wanted = short("a consumer tag", &options.consumer_tag)?;
        let expects = (basic::CLASS_ID, basic::ConsumeOk::METHOD_ID);
        self.shared().change(|core| {
            self.state().check_open()?;
            let error = core.channel_error(self.state());
            let is_buffered = matches!(receiver, Receiver::Stream { auto_ack: false, .. });
            let route = core.route(self.number()).ok_or(error)?;
            let key = route.add_consumer(wanted.into(), receiver)?;
            self.set_default_prefetch(core, is_buffered)?;
            let consume = basic::Consume {
                queue,
                consumer_tag: key.tag.as_short_str(),
                no_ack: options.auto_ack,
                exclusive: options.exclusive,
                arguments: Table::from_entries(&arguments),
                ..Default::default()
            };
            let answer = core.ask(self.state(), &Method::BasicConsume(consume), expects)?;
            Ok((key, answer))
        })
    }

    /// A consumer with a buffer gets a prefetch, if the program has said nothing of one; a handler gets none.
    fn set_default_prefetch(&self, core: &mut Core, is_buffered: bool) -> Result<(), Error> {
        let mut prefetch = self.state().prefetch.lock();
        let (next, prefetch_count) = match (*prefetch, is_buffered) {
            (Prefetch::Unset, true) => (Prefetch::Default, DEFAULT_PREFETCH),
            (Prefetch::Default, false) => (Prefetch::Unset, 0),
            _ => return Ok(()),
        };
        *prefetch = next;
        let qos = basic::Qos { prefetch_size: 0, prefetch_count, global: false };
        core.ask(self.state(), &Method::BasicQos(qos), QOS_OK).map(drop)
    }

    /// Ends this consumer, if it has not ended already.
    pub(crate) async fn cancel(&self, key: &ConsumerKey) -> Result<(), Error> {
        let answer = self.shared().change(|core| {
            self.state().check_open()?;
            let is_there = core.route(self.number()).is_some_and(|r| r.receiver_of(key).is_some());
            if is_there { self.send_cancel(core, key).map(Some) } else { Ok(None) }
        })?;
        match answer {
            Some(answer) => answer.await.map(drop).map_err(|_| self.gone()),
            None => Ok(()),
        }
    }

    fn send_cancel(
        &self,
        core: &mut Core,
        key: &ConsumerKey,
    ) -> Result<oneshot::Receiver<Reply>, Error> {
        let cancel = basic::Cancel { consumer_tag: key.tag.as_short_str(), nowait: false };
        let expects = (basic::CLASS_ID, basic::CancelOk::METHOD_ID);
        let purpose = Purpose::Cancel(key.clone());
        core.ask_for(self.state(), &Method::BasicCancel(cancel), expects, purpose)
    }

    /// A consumer is not wanted any more: ends it without waiting. What it has not taken goes back to the queue once the
    /// server sends nothing more: before that, the server would send it again to this consumer. `take_left` is called
    /// while nothing can come, and gives these messages, or none if they count as acknowledged.
    pub(crate) fn forget_consumer(
        &self,
        key: &ConsumerKey,
        take_left: impl FnOnce() -> Option<Vec<DeliveryId>>,
    ) {
        let replaced = self.shared().change(|core| {
            let left = take_left();
            if !self.is_open() {
                return None;
            }
            match core.route(self.number()).and_then(|route| route.receiver_of(key)) {
                Some(receiver) => {
                    let replaced = std::mem::replace(receiver, Receiver::Gone { left });
                    // The answer is for the connection, which forgets the consumer then. On a channel that is closed
                    // meanwhile there is nothing to end.
                    drop(self.send_cancel(core, key));
                    Some(replaced)
                }
                None => {
                    core.give_back(self.state(), &left.unwrap_or_default());
                    None
                }
            }
        });
        // A handler is the program's, and not dropped under the lock.
        drop(replaced);
    }

    /// Takes one message from a queue, if there is any.
    ///
    /// Dropping the future before it is ready gives the message back to its queue, on a [transactional](Channel::tx_select)
    /// channel as a part of the transaction; with `auto_ack` the server has forgotten it by then, and it is lost.
    ///
    /// # Errors
    /// 404 when the queue is missing.
    pub async fn get(&self, queue: &str, auto_ack: bool) -> Result<Option<Delivery>, Error> {
        let get = basic::Get { queue: queue_name(queue)?, no_ack: auto_ack };
        let expects = (basic::CLASS_ID, basic::GetOk::METHOD_ID);
        let gives_back = !auto_ack;
        let answer = self.shared().change(|core| {
            let purpose = Purpose::Get { gives_back };
            core.ask_for(self.state(), &Method::BasicGet(get), expects, purpose)
        })?;
        let mut getting = Getting { channel: self, answer, gives_back };
        match (&mut getting.answer).await.map_err(|_| self.gone())? {
            Reply::Message(Some(got)) => {
                let (received, left) = *got;
                Ok(Some(Delivery::new(self.clone(), received, Some(left))))
            }
            _ => Ok(None),
        }
    }

    /// Acknowledges the message with this tag; with `multiple` also all before it on this channel.
    ///
    /// Returns at once; should the tag be wrong, the server closes the channel (406).
    ///
    /// # Errors
    /// When the channel is closed.
    pub fn ack(&self, delivery_tag: u64, multiple: bool) -> Result<(), Error> {
        self.tell(&Method::BasicAck(basic::Ack { delivery_tag, multiple }))
    }

    /// Refuses the message with this tag, with `multiple` also all before it on this channel: `requeue` puts them back
    /// to their place in the queue, otherwise they are dropped or dead-lettered.
    ///
    /// # Errors
    /// As [`Channel::ack`].
    pub fn nack(&self, delivery_tag: u64, multiple: bool, requeue: bool) -> Result<(), Error> {
        self.tell(&Method::BasicNack(basic::Nack { delivery_tag, multiple, requeue }))
    }

    /// Refuses the message with this tag; every AMQP 0-9-1 server knows this form.
    ///
    /// # Errors
    /// As [`Channel::ack`].
    pub fn reject(&self, delivery_tag: u64, requeue: bool) -> Result<(), Error> {
        self.tell(&Method::BasicReject(basic::Reject { delivery_tag, requeue }))
    }

    /// Settles a delivery, unless it is back in its queue by a [`Channel::recover`].
    pub(crate) fn settle(&self, id: DeliveryId, method: &Method<'_>) -> Result<(), Error> {
        self.shared().change(|core| core.settle(self.state(), id, method))
    }

    /// Puts all unacknowledged messages of the channel back into their queues.
    ///
    /// What a [`Consumer`] has by then is not handed out any more, and to acknowledge or refuse a [`Delivery`] of before
    /// has no effect. A program that does so by tags, or in a handler of [`Channel::consume_batches`], has to forget
    /// those that it has got before this returns: the server does not know them any more, and closes the channel (406).
    ///
    /// # Errors
    /// As for every request.
    pub async fn recover(&self) -> Result<(), Error> {
        let recover = Method::BasicRecover(basic::Recover { requeue: true });
        let expects = (basic::CLASS_ID, basic::RecoverOk::METHOD_ID);
        let answer = self.shared().change(|core| {
            let answer = core.ask_for(self.state(), &recover, expects, Purpose::Recover)?;
            self.state().recovers.ask();
            Ok::<_, Error>(answer)
        })?;
        answer.await.map(drop).map_err(|_| self.gone())
    }
}
