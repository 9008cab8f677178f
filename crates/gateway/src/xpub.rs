//! XPUB: the messages of an exchange go to peers, as they subscribe.
//!
//! Subscriptions become bindings of a queue that belongs to the endpoint ([`Subscriptions`]). A prefix of bytes is not a
//! pattern of words: what is bound covers at least what is subscribed, and the socket compares exactly. As with every
//! publisher of ZeroMQ, a subscriber that does not keep up loses messages.

use crate::bindings::Bindings;
use crate::held::Held;
use crate::link::{Link, LinkError};
use crate::subscriptions::{Budget, Subscriptions};
use bytes::Bytes;
use courser_client::{ConsumeOptions, Consumer, Delivery, FieldTable, QueueOptions};
use omq_tokio::{Message, Socket};
use std::sync::Arc;

/// Subscriptions that the socket tells of and that are passed over at once.
const NOTICES_MAX: usize = 1000;

/// Carries messages from the broker to the socket until the gateway stops.
pub(crate) async fn run(link: Link, socket: &Socket, budget: &Budget) {
    // What the peers hold outlasts a connection to the broker.
    let held = Held::new(link.config.high_water_bytes);
    loop {
        let served = tokio::select! {
            served = serve(&link, socket, budget, &held) => served,
            () = link.stopped() => return,
        };
        if let Err(error) = served
            && !link.may_retry(&error).await
        {
            return;
        }
    }
}

/// The broker's side of the endpoint.
struct Source<'a> {
    link: &'a Link,
    held: &'a Arc<Held>,
    /// A message was dropped because the peers take nothing; the next one does not wait once more.
    is_full: bool,
}

async fn serve(
    link: &Link,
    socket: &Socket,
    budget: &Budget,
    held: &Arc<Held>,
) -> Result<(), LinkError> {
    let (connection, channel) = link.open().await?;
    let config = &link.config;
    let exchange = config.exchange.clone().unwrap_or_default();
    channel.exchange_check(&exchange).await?;
    let mut options = QueueOptions::exclusive();
    // Who does not keep up loses messages, the oldest first.
    options.arguments = FieldTable::new()
        .with("x-max-length", i64::from(config.high_water_messages))
        .with("x-max-length-bytes", i64::try_from(config.high_water_bytes).unwrap_or(i64::MAX));
    let queue = channel.queue_declare("", options).await?.name;
    channel.qos(config.prefetch).await?;
    // The channel first: when more has come than may wait, nothing is read of the connection until it is taken below.
    let subscriptions = Subscriptions::new(socket, budget);
    let bindings = Bindings::open(link, &connection, &queue, &exchange, subscriptions).await?;
    let consume =
        ConsumeOptions { buffer_bytes: Some(config.high_water_bytes), ..ConsumeOptions::default() };
    let mut consumer = channel.consume(&queue, consume).await?;
    let mut source = Source { link, held, is_full: false };
    source.carry(socket, &mut consumer, bindings).await
}

impl Source<'_> {
    async fn carry(
        &mut self,
        socket: &Socket,
        consumer: &mut Consumer,
        bindings: Bindings<'_>,
    ) -> Result<(), LinkError> {
        let following = bindings.follow();
        tokio::pin!(following);
        loop {
            tokio::select! {
                ended = &mut following => return ended,
                notice = socket.recv() => {
                    // The peers are not read while these wait.
                    notice?;
                    for _ in 0..NOTICES_MAX {
                        if socket.try_recv().is_err() {
                            break;
                        }
                    }
                }
                delivery = consumer.next() => match delivery? {
                    Some(delivery) if self.has_room().await => {
                        self.hand_over(socket, &delivery).await?;
                    }
                    Some(delivery) => {
                        self.link.drop_for_slow_peers();
                        delivery.ack()?;
                    }
                    None => return Err(LinkError::QueueGone),
                },
            }
        }
    }

    async fn hand_over(&self, socket: &Socket, delivery: &Delivery) -> Result<(), LinkError> {
        if let Some((mut frames, told)) = self.link.outgoing(delivery.message()) {
            if !told {
                let key = delivery.message().routing_key();
                frames.insert(0, Bytes::copy_from_slice(key.as_bytes()));
            }
            let frames = frames.into_iter().map(|frame| self.held.count(frame));
            let message = Message::multipart(frames.collect::<Vec<_>>());
            self.link.metrics.note_sent(message.byte_len());
            socket.send(message).await?;
        }
        Ok(delivery.ack()?)
    }

    /// Whether the socket may have another message. Waits a moment for peers that fall behind.
    async fn has_room(&mut self) -> bool {
        let has_room = self.held.has_room() || (!self.is_full && self.held.wait_for_room().await);
        self.is_full = !has_room;
        has_room
    }
}
