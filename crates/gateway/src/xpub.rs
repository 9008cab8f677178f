//! XPUB: the messages of an exchange go to peers, as they subscribe.
//!
//! Subscriptions become bindings of a queue that belongs to the endpoint. A prefix of octets is not a pattern of words:
//! what is bound covers at least what is subscribed, and the socket compares exactly. As with every publisher of
//! ZeroMQ, a subscriber that does not keep up loses messages.

use crate::link::{Link, LinkError};
use bytes::Bytes;
use courser_client::{Channel, ConsumeOptions, Consumer, Delivery, FieldTable, QueueOptions};
use omq_tokio::{Message, Socket};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// How often bindings are made once more.
const REBIND_INTERVAL: Duration = Duration::from_secs(10);
/// Different bindings of an endpoint; when there would be more, everything is bound instead.
const BINDINGS_MAX: usize = 1024;
/// Different subscriptions that are remembered; beyond, everything is bound for good.
const SUBSCRIPTIONS_MAX: usize = 65_536;
/// Subscriptions that are taken at once, before there are bindings for them.
const NOTICES_MAX: usize = 10_000;
/// Words of a routing key that go into a binding.
const WORDS_MAX: usize = 16;
const EVERYTHING: &str = "#";

/// Carries messages from the broker to the socket until the gateway stops.
pub(crate) async fn run(link: Link, socket: &Socket) {
    let mut subscribed = Subscribed::default();
    loop {
        let served = tokio::select! {
            served = serve(&link, socket, &mut subscribed) => served,
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
    channel: Channel,
    queue: String,
    exchange: String,
    bound: HashSet<String>,
}

async fn serve(link: &Link, socket: &Socket, subscribed: &mut Subscribed) -> Result<(), LinkError> {
    let (_connection, channel) = link.open().await?;
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
    // Bindings wait for the broker's answers, so the connection must always be read: the prefetch bounds what comes.
    let consume = ConsumeOptions {
        buffer_bytes: usize::from(config.prefetch).saturating_mul(config.high_water_bytes),
        ..ConsumeOptions::default()
    };
    let mut consumer = channel.consume(&queue, consume).await?;
    let mut source = Source { link, channel, queue, exchange, bound: HashSet::new() };
    source.bind(subscribed).await?;
    source.carry(socket, &mut consumer, subscribed).await
}

impl Source<'_> {
    async fn carry(
        &mut self,
        socket: &Socket,
        consumer: &mut Consumer,
        subscribed: &mut Subscribed,
    ) -> Result<(), LinkError> {
        let mut again = tokio::time::interval(REBIND_INTERVAL);
        loop {
            tokio::select! {
                _ = again.tick() => self.bind_again().await?,
                notice = socket.recv() => {
                    let mut is_other = subscribed.note(&notice?);
                    // A peer may come with thousands of them.
                    for _ in 0..NOTICES_MAX {
                        let Ok(notice) = socket.try_recv() else { break };
                        is_other |= subscribed.note(&notice);
                    }
                    if is_other {
                        self.bind(subscribed).await?;
                    }
                }
                delivery = consumer.next() => match delivery? {
                    Some(delivery) => self.hand_over(socket, &delivery).await?,
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
            let message = Message::multipart(frames);
            self.link.metrics.note_sent(message.byte_len());
            socket.send(message).await?;
        }
        Ok(delivery.ack()?)
    }

    /// Makes all bindings once more: they have gone if the exchange was deleted and made again, which nothing tells.
    async fn bind_again(&self) -> Result<(), LinkError> {
        for pattern in &self.bound {
            let empty = FieldTable::new();
            self.channel.queue_bind(&self.queue, &self.exchange, pattern, empty).await?;
        }
        Ok(())
    }

    /// Makes the bindings what the subscriptions ask for. New ones come first, so that nothing is missed.
    async fn bind(&mut self, subscribed: &Subscribed) -> Result<(), LinkError> {
        let wanted = subscribed.patterns();
        let empty = FieldTable::new;
        for pattern in wanted.difference(&self.bound) {
            self.channel.queue_bind(&self.queue, &self.exchange, pattern, empty()).await?;
        }
        for pattern in self.bound.difference(&wanted) {
            self.channel.queue_unbind(&self.queue, &self.exchange, pattern, empty()).await?;
        }
        self.bound = wanted;
        Ok(())
    }
}

/// What peers have subscribed to.
#[derive(Debug, Default)]
struct Subscribed {
    /// How many subscriptions there are behind each pattern; the socket tells of the first subscriber of a prefix, and
    /// of the last that leaves it.
    prefixes: HashSet<Bytes>,
    counts: HashMap<String, usize>,
    overflowed: bool,
}

impl Subscribed {
    /// Notes what the socket tells: 1 and a prefix that somebody wants, or 0 and one that nobody wants any more. Says
    /// whether bindings may have to change.
    fn note(&mut self, notice: &Message) -> bool {
        let notice = notice.part_bytes(0).unwrap_or_default();
        let Some(&first) = notice.first() else { return false };
        let prefix = notice.slice(1..);
        let pattern = pattern_of(&prefix);
        match first {
            1 if self.prefixes.len() >= SUBSCRIPTIONS_MAX => {
                !std::mem::replace(&mut self.overflowed, true)
            }
            1 if self.prefixes.insert(prefix.clone()) => {
                let count = self.counts.entry(pattern).or_default();
                *count += 1;
                *count == 1
            }
            0 if self.prefixes.remove(&prefix) => match self.counts.get_mut(&pattern) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                _ => self.counts.remove(&pattern).is_some(),
            },
            _ => false,
        }
    }

    fn patterns(&self) -> HashSet<String> {
        let all = self.counts.contains_key(EVERYTHING);
        if all || self.overflowed || self.counts.len() > BINDINGS_MAX {
            return HashSet::from([EVERYTHING.to_owned()]);
        }
        self.counts.keys().cloned().collect()
    }
}

/// A pattern of a topic exchange that matches every key that begins with the prefix: its whole words, and what may come
/// behind them. The last word may go on, so it is left out.
fn pattern_of(prefix: &[u8]) -> String {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut pattern = String::new();
    let words: Vec<&str> = text.split('.').collect();
    for word in &words[..words.len() - 1] {
        if pattern.matches('.').count() >= WORDS_MAX || pattern.len() + word.len() > 250 {
            break;
        }
        pattern.push_str(word);
        pattern.push('.');
    }
    pattern.push_str(EVERYTHING);
    pattern
}
