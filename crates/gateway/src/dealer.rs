//! DEALER: the requests of a queue go to workers, and their replies to where the request says.
//!
//! A worker, a REP or ROUTER peer, gets a frame of eight bytes that names the request, an empty frame, and the content;
//! it sends back the first two with its reply. A request is acknowledged when its reply is published. One that is not
//! answered in time is rejected: the broker drops or dead-letters it.

use crate::frames::{Envelope, to_amqp};
use crate::link::{Link, LinkError, is_unsendable};
use crate::metrics::Metrics;
use crate::socket::has_peer;
use bytes::Bytes;
use courser_client::{Channel, ConsumeOptions, Delivery, Outgoing, OwnedProperties, ShortString};
use omq_tokio::{Message, Socket};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

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
    /// As many as the prefetch at most, oldest first.
    jobs: BTreeMap<u64, Job>,
    /// What no worker has room for yet.
    waiting: VecDeque<Message>,
}

async fn serve(link: &Link, socket: &Socket, last: &mut u64) -> Result<(), LinkError> {
    let (_connection, channel, queue) = link.with_queue().await?;
    channel.qos(link.config.prefetch).await?;
    let options = ConsumeOptions {
        buffer_bytes: Some(link.config.high_water_bytes),
        ..ConsumeOptions::default()
    };
    let mut requests = channel.consume(&queue, options).await?;
    let mut office = Office { link, channel, jobs: BTreeMap::new(), waiting: VecDeque::new() };
    let mut tick = tokio::time::interval(EXPIRY_INTERVAL);
    loop {
        tokio::select! {
            _ = tick.tick() => office.expire()?,
            request = requests.next() => match request? {
                Some(request) => {
                    *last += 1;
                    office.take(*last, &request)?;
                }
                None => return Err(LinkError::QueueGone),
            },
            sent = send_first(socket, &office.waiting), if !office.waiting.is_empty() => {
                link.metrics.note_sent(sent?);
                office.waiting.pop_front();
            }
            reply = socket.recv() => office.reply(&reply?).await?,
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
        self.waiting.push_back(Message::multipart(address.into_iter().chain(content)));
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

    async fn reply(&mut self, message: &Message) -> Result<(), LinkError> {
        let metrics = &self.link.metrics;
        let Some(frames) = self.link.incoming(message) else { return Ok(()) };
        let Envelope { address, content } = Envelope::divide(frames);
        // One that cannot be carried is as good as none: its request expires.
        let Some(mapped) = to_amqp(&content, false) else {
            Metrics::add(&metrics.dropped, 1);
            return Ok(());
        };
        let number = address.first().and_then(|frame| <[u8; 8]>::try_from(&frame[..]).ok());
        let job = number.and_then(|number| self.jobs.remove(&u64::from_be_bytes(number)));
        // A reply that is late, or to nothing that was asked.
        let Some(job) = job else {
            Metrics::add(&metrics.dropped, 1);
            return Ok(());
        };
        let properties = OwnedProperties {
            headers: (!mapped.headers.is_empty()).then_some(mapped.headers),
            correlation_id: job.correlation_id,
            ..OwnedProperties::default()
        };
        let outgoing = Outgoing::new(&mapped.body).properties(properties);
        match self.channel.publish("", &job.reply_to, outgoing).await {
            Ok(_) => {
                Metrics::add(&metrics.published, 1);
                Ok(self.channel.ack(job.delivery_tag, false)?)
            }
            // That costs its request alone, which would be answered like this again.
            Err(error) if is_unsendable(&error) => {
                self.link.drop_refused(&error.to_string());
                Ok(self.channel.nack(job.delivery_tag, false, false)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Rejects what was not answered in time. All have the same time, so the oldest are late first.
    fn expire(&mut self) -> Result<(), LinkError> {
        let now = Instant::now();
        while let Some(oldest) = self.jobs.first_entry()
            && oldest.get().deadline <= now
        {
            let (number, job) = oldest.remove_entry();
            let key = number.to_be_bytes();
            self.waiting.retain(|message| message.get(0) != Some(&key[..]));
            Metrics::add(&self.link.metrics.expired, 1);
            self.channel.nack(job.delivery_tag, false, false)?;
        }
        Ok(())
    }
}
