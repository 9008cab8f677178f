//! Consuming, getting, acknowledging.

use std::sync::Arc;

use courser_codec::{Method, ShortString, Table, basic};

use super::{Channel, ConsumeOptions, encode};
use crate::batch::{BatchConsumer, Deliveries, DeliverySink};
use crate::consumer::{Consumer, Delivery};
use crate::error::Error;
use crate::mailbox::Mailbox;
use crate::names::{queue_name, short};
use crate::route::{Receiver, Reply};
use crate::shared::Core;

impl Channel {
    /// Limits how many messages each consumer that is made afterwards may have unacknowledged; 0 is no limit.
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
        let expects = (basic::CLASS_ID, basic::QosOk::METHOD_ID);
        self.ask(&Method::BasicQos(qos), expects).await.map(drop)
    }

    /// Consumes a queue: its messages come as a stream.
    ///
    /// # Errors
    /// 404 when the queue is missing, 403 when another consumer has it to itself.
    pub async fn consume(&self, queue: &str, options: ConsumeOptions) -> Result<Consumer, Error> {
        let stall = self.shared().stall.clone();
        let mailbox = Arc::new(Mailbox::new(stall, options.buffer_bytes));
        let auto_ack = options.auto_ack;
        let receiver = Receiver::Stream(mailbox.clone());
        let consumer_tag = self.start_consumer(queue, options, receiver).await?;
        Ok(Consumer::new(self.clone(), mailbox, consumer_tag, auto_ack))
    }

    /// Consumes a queue: its messages go to `handler` as they lie in the connection's reads; see
    /// [`batch`](crate::batch).
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
        let consumer_tag = self.start_consumer(queue, options, receiver).await?;
        Ok(BatchConsumer::new(self.clone(), consumer_tag, sink))
    }

    /// Registers who gets the deliveries, as they may come right behind the answer, and asks for them. Gives the tag.
    async fn start_consumer(
        &self,
        queue: &str,
        options: ConsumeOptions,
        receiver: Receiver,
    ) -> Result<String, Error> {
        let arguments = encode(&options.arguments);
        let queue = queue_name(queue)?;
        let wanted = short("a consumer tag", &options.consumer_tag)?;
        let expects = (basic::CLASS_ID, basic::ConsumeOk::METHOD_ID);
        let (tag, answer) = self.shared().change(|core| {
            let tag = self.register(core, wanted.into(), receiver)?;
            let consume = basic::Consume {
                queue,
                consumer_tag: tag.as_short_str(),
                no_ack: options.auto_ack,
                exclusive: options.exclusive,
                arguments: Table::from_entries(&arguments),
                ..Default::default()
            };
            let answer = core.ask(self.state(), &Method::BasicConsume(consume), expects)?;
            Ok::<_, Error>((tag, answer))
        })?;
        answer.await.map_err(|_| self.gone())?;
        Ok(tag.to_string())
    }

    /// Remembers a consumer under its tag, or under a tag that is free.
    fn register(
        &self,
        core: &mut Core,
        wanted: ShortString,
        receiver: Receiver,
    ) -> Result<ShortString, Error> {
        self.state().check_open()?;
        let error = core.channel_error(self.state());
        let route = core.route(self.number()).ok_or(error)?;
        let mut tag = wanted;
        if tag.is_empty() {
            let mut made = (route.consumers.len()..).map(|number| format!("c{}", number + 1));
            let free = made.find(|tag| !route.consumers.contains_key(tag.as_bytes()));
            tag = short("a consumer tag", &free.unwrap_or_default())?.into();
        } else if route.consumers.contains_key(tag.as_bytes()) {
            return Err(Error::ConsumerTagInUse { consumer_tag: tag.to_string() });
        }
        route.consumers.insert(tag.clone(), receiver);
        Ok(tag)
    }

    /// Ends the consumer with this tag.
    pub(crate) async fn cancel(&self, consumer_tag: &str) -> Result<(), Error> {
        let consumer_tag = short("a consumer tag", consumer_tag)?;
        let cancel = basic::Cancel { consumer_tag, nowait: false };
        let expects = (basic::CLASS_ID, basic::CancelOk::METHOD_ID);
        self.ask(&Method::BasicCancel(cancel), expects).await.map(drop)
    }

    /// A consumer was dropped: ends it without waiting, and gives back what it has not taken.
    pub(crate) fn forget_consumer(&self, consumer_tag: &str, gives_back: bool, left: &[u64]) {
        self.shared().change(|core| {
            if !self.is_open() {
                return;
            }
            for &delivery_tag in left.iter().filter(|_| gives_back) {
                let nack = basic::Nack { delivery_tag, multiple: false, requeue: true };
                // Should the channel be closed by now, the messages are back in their queue.
                let _ = core.send(self.state(), &Method::BasicNack(nack));
            }
            let Ok(consumer_tag) = short("a consumer tag", consumer_tag) else { return };
            let Some(route) = core.route(self.number()) else { return };
            let Some(receiver) = route.consumers.get_mut(consumer_tag.as_bytes()) else { return };
            *receiver = Receiver::Gone { gives_back };
            let cancel = Method::BasicCancel(basic::Cancel { consumer_tag, nowait: false });
            let expects = (basic::CLASS_ID, basic::CancelOk::METHOD_ID);
            // Nobody waits for the answer; the connection takes it to forget the consumer.
            let _ = core.ask(self.state(), &cancel, expects);
        });
    }

    /// Takes one message from a queue, if there is any.
    ///
    /// # Errors
    /// 404 when the queue is missing.
    pub async fn get(&self, queue: &str, auto_ack: bool) -> Result<Option<Delivery>, Error> {
        let get = basic::Get { queue: queue_name(queue)?, no_ack: auto_ack };
        let expects = (basic::CLASS_ID, basic::GetOk::METHOD_ID);
        match self.ask(&Method::BasicGet(get), expects).await? {
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

    /// Puts all unacknowledged messages of the channel back into their queues.
    ///
    /// # Errors
    /// As for every request.
    pub async fn recover(&self) -> Result<(), Error> {
        let expects = (basic::CLASS_ID, basic::RecoverOk::METHOD_ID);
        self.ask(&Method::BasicRecover(basic::Recover { requeue: true }), expects).await.map(drop)
    }
}
