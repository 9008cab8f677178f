//! The bindings of an xpub endpoint's queue, which follow what its peers subscribe to.
//!
//! They are made on a channel of their own: a binding that the broker refuses ends that channel, and neither the consumer
//! nor what the queue holds for other peers.

use crate::link::{Link, LinkError, refuses_topic};
use crate::subscriptions::{EVERYTHING, Subscriptions};
use courser_client::{Channel, Connection, Error, FieldTable};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often bindings are made once more, and refused ones tried again.
const REBIND_INTERVAL: Duration = Duration::from_secs(10);
/// For how many times as long as it has taken the subscriptions are not read again: peers may come with thousands.
const REST: u32 = 4;

/// The bindings of a queue to an exchange.
pub(crate) struct Bindings<'a> {
    link: &'a Link,
    connection: &'a Connection,
    channel: Channel,
    queue: &'a str,
    exchange: &'a str,
    subscriptions: Subscriptions<'a>,
    bound: HashSet<String>,
    /// Patterns that the topic permissions refuse. Besides [`EVERYTHING`], peers subscribe to each.
    refused: HashSet<String>,
}

impl<'a> Bindings<'a> {
    /// None yet, and a channel to make them on.
    pub async fn open(
        link: &'a Link,
        connection: &'a Connection,
        queue: &'a str,
        exchange: &'a str,
        subscriptions: Subscriptions<'a>,
    ) -> Result<Self, LinkError> {
        let channel = connection.open_channel().await?;
        let (bound, refused) = (HashSet::new(), HashSet::new());
        Ok(Bindings { link, connection, channel, queue, exchange, subscriptions, bound, refused })
    }

    /// Makes the bindings what the subscriptions ask for, again and again. Ends with an error alone.
    pub async fn follow(mut self) -> Result<(), LinkError> {
        let mut again = tokio::time::interval(REBIND_INTERVAL);
        let (mut is_stale, mut look_at) = (true, Instant::now());
        loop {
            tokio::select! {
                _ = again.tick() => {
                    self.bind_again().await?;
                    is_stale |= !self.refused.is_empty();
                    self.refused.clear();
                }
                changed = self.subscriptions.changed(), if !is_stale => {
                    changed?;
                    is_stale = true;
                }
                () = tokio::time::sleep_until(look_at), if is_stale => {
                    let started = Instant::now();
                    is_stale = !self.bind().await?;
                    look_at = Instant::now() + started.elapsed() * REST;
                }
            }
        }
    }

    /// Makes all bindings once more: they have gone if the exchange was deleted and made again, which nothing tells. Where one
    /// is not permitted any more, the queue has to go, as the broker keeps the binding.
    async fn bind_again(&self) -> Result<(), LinkError> {
        for pattern in &self.bound {
            self.ask_to_bind(pattern).await?;
        }
        Ok(())
    }

    /// Makes the bindings what the subscriptions ask for, as far as they are permitted. New ones come first, so that nothing is
    /// missed. False if others are needed, as everything can't be bound in their place.
    async fn bind(&mut self) -> Result<bool, LinkError> {
        let wanted = self.subscriptions.read(!self.refused.contains(EVERYTHING)).await?;
        self.refused.retain(|pattern| pattern == EVERYTHING || wanted.contains(pattern));
        for pattern in &wanted {
            if self.bound.contains(pattern) || self.refused.contains(pattern) {
                continue;
            }
            match self.ask_to_bind(pattern).await {
                Ok(()) => self.bound.insert(pattern.clone()),
                Err(Error::ChannelClosed { reason, .. }) if refuses_topic(&reason) => {
                    self.link.leave_out(&reason.text);
                    self.channel = self.connection.open_channel().await?;
                    self.refused.insert(pattern.clone())
                }
                Err(error) => return Err(error.into()),
            };
        }
        if wanted.contains(EVERYTHING) && self.refused.contains(EVERYTHING) {
            return Ok(false);
        }
        let unwanted: Vec<String> = self.bound.difference(&wanted).cloned().collect();
        for pattern in unwanted {
            let empty = FieldTable::new();
            self.channel.queue_unbind(self.queue, self.exchange, &pattern, empty).await?;
            self.bound.remove(&pattern);
        }
        Ok(true)
    }

    async fn ask_to_bind(&self, pattern: &str) -> Result<(), Error> {
        self.channel.queue_bind(self.queue, self.exchange, pattern, FieldTable::new()).await
    }
}
