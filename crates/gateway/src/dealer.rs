//! DEALER: the requests of a queue go to workers, and their replies to where the request says.
//!
//! A worker, a REP or ROUTER peer, gets a frame of eight bytes that names the request, an empty frame, and the content;
//! it sends back the first two with its reply. A request is acknowledged when the broker has taken its reply, or holds
//! publishers back. One that is not answered in time is rejected: the broker drops or dead-letters it.

use crate::frames::{Envelope, to_amqp};
use crate::link::{Link, LinkError, is_unsendable};
use crate::metrics::Metrics;
use crate::publisher::{Parcel, Publisher};
use crate::socket::has_peer;
use bytes::Bytes;
use courser_client::{
    Channel, Confirm, Confirmation, ConsumeOptions, Delivery, Error, OwnedProperties, ShortString,
};
use omq_tokio::{Message, Socket};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often late requests are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(100);

/// Carries requests and replies until the gateway stops.
pub(crate) async fn run(link: Link, socket: &Socket) {
    // Numbers go on after a lost connection, so that a reply from before it is not taken for another.
    let mut last = 0;
    loop {
        let served = tokio::select! {
            served = serve(&link, socket, &mut last) => served,
            () = link.stopped() => return,
        };
        if let Err(error) = served
            && !link.may_retry(&error).await
        {
            return;
        }
    }
}

/// A request that a worker has, or will get.
struct Job {
    delivery_tag: u64,
    reply_to: String,
    correlation_id: Option<ShortString>,
    deadline: Instant,
}

struct Office<'a> {
    link: &'a Link,
    channel: Channel,
    publisher: Publisher,
    /// Why the broker does not take replies, while it does not.
    blocked: watch::Receiver<Option<Arc<str>>>,
    /// Delivery tags of requests whose replies the broker has not answered, oldest first.
    unconfirmed: VecDeque<(u64, Confirm)>,
    /// As many as the prefetch at most, oldest first.
    jobs: BTreeMap<u64, Job>,
    /// What no worker has room for yet.
    waiting: VecDeque<Message>,
    waiting_bytes: usize,
}

async fn serve(link: &Link, socket: &Socket, last: &mut u64) -> Result<(), LinkError> {
    let (_connection, channel, queue) = link.with_queue().await?;
    channel.qos(link.config.prefetch).await?;
    let options = ConsumeOptions {
        buffer_bytes: Some(link.config.high_water_bytes),
        ..ConsumeOptions::default()
    };
    let publisher = Publisher::open(link).await?;
    publisher.channel.confirm_select().await?;
    // Behind that: requests are not taken where there is no way for their replies.
    let mut requests = channel.consume(&queue, options).await?;
    let mut office = Office {
        link,
        channel,
        blocked: publisher.connection.blocked(),
        publisher,
        unconfirmed: VecDeque::new(),
        jobs: BTreeMap::new(),
        waiting: VecDeque::new(),
        waiting_bytes: 0,
    };
    let most_bytes = link.config.high_water_bytes;
    let mut tick = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        tokio::select! {
            _ = tick.tick() => office.expire()?,
            request = requests.next(), if office.waiting_bytes < most_bytes => match request? {
                Some(request) => {
                    *last += 1;
                    office.take(*last, &request)?;
                }
                None => return Err(LinkError::QueueGone),
            },
            sent = send_first(socket, &office.waiting), if !office.waiting.is_empty() => {
                let size_bytes = sent?;
                link.metrics.note_sent(size_bytes);
                office.waiting.pop_front();
                office.waiting_bytes -= size_bytes;
            }
            reply = socket.recv(), if !office.publisher.is_busy() => office.reply(&reply?),
            (delivery_tag, sent) = office.publisher.done() => office.published(delivery_tag, sent)?,
            answer = next_answer(&mut office.unconfirmed, &mut office.blocked) => office.settle(answer?)?,
        }
    }
}

/// Sends the oldest message that waits; gives its bytes.
async fn send_first(
    socket: &Socket,
    waiting: &VecDeque<Message>,
) -> Result<usize, omq_tokio::Error> {
    match waiting.front() {
        Some(message) => {
            has_peer(socket).await?;
            socket.send(message.clone()).await?;
            Ok(message.byte_len())
        }
        None => std::future::pending().await,
    }
}

/// What the broker says to the oldest reply. While it holds publishers back it may say nothing: what the alarm waits for
/// may be the acknowledgements of these requests.
async fn next_answer(
    unconfirmed: &mut VecDeque<(u64, Confirm)>,
    blocked: &mut watch::Receiver<Option<Arc<str>>>,
) -> Result<Confirmation, Error> {
    let Some((_, confirm)) = unconfirmed.front_mut() else { return std::future::pending().await };
    tokio::select! {
        biased;
        answer = confirm => answer,
        Ok(_) = blocked.wait_for(Option::is_some) => Ok(Confirmation::Ack),
    }
}

impl Office<'_> {
    fn take(&mut self, number: u64, request: &Delivery) -> Result<(), LinkError> {
        let metrics = &self.link.metrics;
        let properties = request.message().owned_properties().unwrap_or_default();
        // A name that is not text can't be published to.
        let reply_to = properties.reply_to.as_ref().and_then(|queue| queue.to_str().ok());
        let Some(reply_to) = reply_to.map(str::to_owned) else {
            Metrics::add(&metrics.dropped, 1);
            return Ok(request.nack(false)?);
        };
        let Some((content, _)) = self.link.outgoing(request.message()) else {
            return Ok(request.nack(false)?);
        };
        let address = [Bytes::copy_from_slice(&number.to_be_bytes()), Bytes::new()];
        let message = Message::multipart(address.into_iter().chain(content));
        self.waiting_bytes += message.byte_len();
        self.waiting.push_back(message);
        let timeout = Duration::from_millis(self.link.config.timeout_ms.into());
        self.jobs.insert(
            number,
            Job {
                delivery_tag: request.delivery_tag(),
                reply_to,
                correlation_id: properties.correlation_id,
                deadline: Instant::now() + timeout,
            },
        );
        Ok(())
    }

    fn reply(&mut self, message: &Message) {
        let metrics = &self.link.metrics;
        let Some(frames) = self.link.incoming(message) else { return };
        let Envelope { address, content } = Envelope::divide(frames);
        // One that cannot be carried is as good as none: its request expires.
        let Some(mapped) = to_amqp(&content, false) else {
            Metrics::add(&metrics.dropped, 1);
            return;
        };
        let number = address.first().and_then(|frame| <[u8; 8]>::try_from(&frame[..]).ok());
        let job = number.and_then(|number| self.jobs.remove(&u64::from_be_bytes(number)));
        // A reply that is late, or to nothing that was asked.
        let Some(job) = job else {
            Metrics::add(&metrics.dropped, 1);
            return;
        };
        let properties = OwnedProperties {
            delivery_mode: self.link.config.delivery_mode(),
            headers: (!mapped.headers.is_empty()).then_some(mapped.headers),
            correlation_id: job.correlation_id,
            ..OwnedProperties::default()
        };
        self.publisher.begin(Parcel {
            number: job.delivery_tag,
            queue: job.reply_to,
            body: mapped.body,
            properties,
            is_mandatory: false,
        });
    }

    fn published(
        &mut self,
        delivery_tag: u64,
        sent: Result<Confirm, Error>,
    ) -> Result<(), LinkError> {
        match sent {
            Ok(confirm) => self.unconfirmed.push_back((delivery_tag, confirm)),
            Err(error) if is_unsendable(&error) => self.refuse(delivery_tag, &error.to_string())?,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Is done with the oldest request whose reply was published.
    fn settle(&mut self, answer: Confirmation) -> Result<(), LinkError> {
        let Some((delivery_tag, _)) = self.unconfirmed.pop_front() else { return Ok(()) };
        if !answer.is_ack() {
            return self.refuse(delivery_tag, "the queue of replies takes no more");
        }
        Metrics::add(&self.link.metrics.published, 1);
        Ok(self.channel.ack(delivery_tag, false)?)
    }

    /// A reply that can't be published costs its request alone, which would be answered like this again.
    fn refuse(&self, delivery_tag: u64, reason: &str) -> Result<(), LinkError> {
        self.link.drop_refused(reason);
        Ok(self.channel.nack(delivery_tag, false, false)?)
    }

    /// Rejects what was not answered in time. All have the same time, so the oldest are late first.
    fn expire(&mut self) -> Result<(), LinkError> {
        let now = Instant::now();
        while let Some(oldest) = self.jobs.first_entry()
            && oldest.get().deadline <= now
        {
            let (number, job) = oldest.remove_entry();
            self.waiting_bytes -= forget(&mut self.waiting, number);
            Metrics::add(&self.link.metrics.expired, 1);
            self.channel.nack(job.delivery_tag, false, false)?;
        }
        Ok(())
    }
}

/// Lets go of what waits for a worker of a request that has ended, and of those before it: they have ended too. Gives the
/// bytes of it.
fn forget(waiting: &mut VecDeque<Message>, number: u64) -> usize {
    let key = number.to_be_bytes();
    let mut bytes = 0;
    while let Some(message) =
        waiting.pop_front_if(|message| message.get(0).is_none_or(|own| own <= &key[..]))
    {
        bytes += message.byte_len();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> Message {
        Message::multipart([Bytes::copy_from_slice(&number.to_be_bytes()), Bytes::new()])
    }

    #[test]
    fn requests_that_expire_leave_those_behind_them() {
        let mut waiting: VecDeque<Message> = [254, 255, 256, 300].map(request).into();
        let size = request(0).byte_len();
        assert_eq!(forget(&mut waiting, 253), 0);
        // That of 254 has been answered before a worker had it.
        assert_eq!(forget(&mut waiting, 255), 2 * size);
        assert_eq!(forget(&mut waiting, 299), size);
        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn as_many_as_a_prefetch_can_be_expire_in_a_moment() {
        let mut waiting: VecDeque<Message> = (0..u64::from(u16::MAX)).map(request).collect();
        let started = Instant::now();
        for number in 0..u64::from(u16::MAX) {
            forget(&mut waiting, number);
        }
        assert!(waiting.is_empty());
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
