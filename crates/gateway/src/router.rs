//! ROUTER: requests of peers go to a queue, and the replies back to who asked.
//!
//! Everything up to the first empty frame is the envelope of ZeroMQ; it stays here, with the peer's identity, until
//! the reply comes. A request carries `reply-to`, `correlation-id` and an expiration; one that is not answered in time
//! is forgotten, and its reply dropped should it still come.

use crate::frames::{Envelope, to_amqp};
use crate::holders::Addressee;
use crate::intake::{Intake, Received};
use crate::link::{Link, LinkError, is_unsendable};
use crate::metrics::Metrics;
use crate::publisher::{Parcel, Publisher};
use crate::replies::{ROOM_TIMEOUT, Replies};
use bytes::Bytes;
use courser_client::{
    Confirm, ConsumeOptions, Delivery, Error, Message as AmqpMessage, OwnedProperties,
    QueueOptions, ShortString,
};
use omq_tokio::{Message, Socket};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often late requests are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

/// Carries requests and replies until the gateway stops.
pub(crate) async fn run(link: Link, mut intake: Intake, socket: &Socket) {
    loop {
        let served = tokio::select! {
            served = serve(&link, &mut intake, socket) => served,
            () = link.stopped() => return,
        };
        if let Err(error) = served
            && !link.may_retry(&error).await
        {
            return;
        }
    }
}

/// Who waits for a reply.
struct Asker {
    peer: Addressee,
    address: Vec<Bytes>,
    /// What it is held with.
    size_bytes: usize,
    deadline: Instant,
}

struct Desk<'a> {
    link: &'a Link,
    replies: Replies,
    publisher: Publisher,
    queue: String,
    reply_queue: ShortString,
    /// By number of the request, so the oldest comes first.
    askers: BTreeMap<u64, Asker>,
    askers_bytes: usize,
    last: u64,
}

async fn serve(link: &Link, intake: &mut Intake, socket: &Socket) -> Result<(), LinkError> {
    let (_connection, channel, queue) = link.with_queue().await?;
    let reply_queue = channel.queue_declare("", QueueOptions::exclusive()).await?.name;
    channel.qos(link.config.prefetch).await?;
    let options = ConsumeOptions {
        buffer_bytes: Some(link.config.high_water_bytes),
        ..ConsumeOptions::default()
    };
    let mut replies = channel.consume(&reply_queue, options).await?;
    let publisher = Publisher::open(link).await?;
    let mut returns = publisher.channel.returns()?;
    let reply_queue = ShortString::try_from(reply_queue.as_str())
        .map_err(|error| Error::TooLong { what: "a reply queue's name", len: error.len })?;
    let (askers, askers_bytes, last) = (BTreeMap::new(), 0, 0);
    let on_their_way = Replies::new(socket, &link.metrics, ROOM_TIMEOUT);
    let mut desk = Desk {
        link,
        replies: on_their_way,
        publisher,
        queue,
        reply_queue,
        askers,
        askers_bytes,
        last,
    };
    let most = link.config.high_water_messages as usize;
    let most_bytes = link.config.high_water_bytes;
    let mut tick = tokio::time::interval(EXPIRY_INTERVAL);
    let done: Result<(), LinkError> = loop {
        let has_room = desk.open() < most && desk.open_bytes() < most_bytes;
        let step = tokio::select! {
            _ = tick.tick() => { desk.expire(); Ok(()) }
            () = desk.replies.next_settled() => Ok(()),
            reply = replies.next(), if desk.replies.waiting_bytes() < most_bytes => match reply {
                Ok(Some(reply)) => desk.answer(&reply).await,
                Ok(None) => Err(LinkError::QueueGone),
                Err(error) => Err(error.into()),
            },
            returned = returns.next() => match returned {
                // The next connection makes the queue again.
                Ok(Some(_)) => Err(LinkError::QueueGone),
                Ok(None) => Ok(()),
                Err(error) => Err(error.into()),
            },
            (number, sent) = desk.publisher.done() => desk.published(number, sent),
            request = intake.recv(), if has_room && !desk.publisher.is_busy() => match request {
                Ok(Received { sender, message }) => {
                    desk.ask(sender, &message);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
        };
        if let Err(error) = step {
            break Err(error);
        }
    };
    // The reply queue has gone with the connection.
    Metrics::add(&link.metrics.expired, desk.askers.len() as u64);
    desk.replies.give_up();
    done
}

impl Desk<'_> {
    /// Requests that are not answered, or whose replies have not left.
    fn open(&self) -> usize {
        self.askers.len() + self.replies.waiting()
    }

    /// Bytes of the envelopes of these, and of the replies.
    fn open_bytes(&self) -> usize {
        self.askers_bytes + self.replies.waiting_bytes()
    }

    /// Takes a request out that waits no longer.
    fn take(&mut self, number: u64) -> Option<Asker> {
        let asker = self.askers.remove(&number)?;
        self.askers_bytes -= asker.size_bytes;
        Some(asker)
    }

    fn ask(&mut self, peer: Addressee, message: &Message) {
        let metrics = &self.link.metrics;
        let Some(frames) = self.link.incoming(message) else { return };
        let envelope = Envelope::divide(frames);
        let Some(mapped) = to_amqp(&envelope.content, false) else {
            Metrics::add(&metrics.dropped, 1);
            return;
        };
        self.last += 1;
        let timeout_ms = self.link.config.timeout_ms;
        let properties = OwnedProperties {
            delivery_mode: self.link.config.delivery_mode(),
            headers: (!mapped.headers.is_empty()).then_some(mapped.headers),
            correlation_id: short(&self.last.to_string()),
            reply_to: Some(self.reply_queue.clone()),
            expiration: short(&timeout_ms.to_string()),
            ..OwnedProperties::default()
        };
        self.publisher.begin(Parcel {
            number: self.last,
            queue: self.queue.clone(),
            body: mapped.body,
            properties,
            is_mandatory: true,
        });
        let deadline = Instant::now() + Duration::from_millis(timeout_ms.into());
        let address = envelope.address;
        let size_bytes = address.iter().map(|frame| size_of::<Bytes>() + frame.len()).sum();
        self.askers_bytes += size_bytes;
        self.askers.insert(self.last, Asker { peer, address, size_bytes, deadline });
    }

    fn published(&mut self, number: u64, sent: Result<Confirm, Error>) -> Result<(), LinkError> {
        match sent {
            Ok(_) => Metrics::add(&self.link.metrics.published, 1),
            Err(error) if is_unsendable(&error) => {
                self.take(number);
                self.link.drop_refused(&error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Hands a reply to who asked for it. A peer that is gone, or does not read, costs only its own replies.
    async fn answer(&mut self, reply: &Delivery) -> Result<(), LinkError> {
        let asker = number_of(reply.message()).and_then(|number| self.take(number));
        if let Some((content, _)) = self.link.outgoing(reply.message()) {
            match asker {
                Some(Asker { peer, address, .. }) => {
                    let message = Message::multipart(address.into_iter().chain(content));
                    self.replies.send(peer, message).await;
                }
                None => Metrics::add(&self.link.metrics.dropped, 1),
            }
        }
        Ok(reply.ack()?)
    }

    /// Forgets what was not answered in time. All have the same time, so the oldest are late first.
    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((&oldest, asker)) = self.askers.first_key_value()
            && asker.deadline <= now
        {
            self.take(oldest);
            Metrics::add(&self.link.metrics.expired, 1);
        }
    }
}

fn number_of(message: &AmqpMessage) -> Option<u64> {
    let properties = message.properties().ok()?;
    std::str::from_utf8(properties.correlation_id?.as_bytes()).ok()?.parse().ok()
}

fn short(text: &str) -> Option<ShortString> {
    ShortString::try_from(text).ok()
}
