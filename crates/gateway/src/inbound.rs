//! PULL and SUB: messages from peers are published, with confirms.
//!
//! A message that the broker has not confirmed is kept, and published again after a refusal or a lost connection. One
//! that costs the channel each time is dropped. As many as the high-water marks allow are under way; while they are, the
//! socket is not read, and ZeroMQ holds the senders back.

use crate::config::SocketKind;
use crate::frames::{Mapped, to_amqp};
use crate::intake::{Intake, Received};
use crate::link::{Link, LinkError, is_unsendable, refuses_topic};
use crate::metrics::Metrics;
use bytes::Bytes;
use courser_client::{
    Channel, CloseReason, Confirm, Confirmation, Connection, Error, Outgoing, OwnedProperties,
    Returns,
};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How long messages wait that the broker has refused, because their queue is full.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a routing key.
const KEY_BYTES_MAX: usize = 255;
/// Class and method of basic.publish.
const PUBLISH: (u16, u16) = (60, 40);
const CONTENT_TOO_LARGE: u16 = 311;
const PRECONDITION_FAILED: u16 = 406;
const RESOURCE_ERROR: u16 = 506;

/// A message as it is published, kept until it is confirmed.
struct Parcel {
    /// In the order in which they came.
    number: u64,
    key: String,
    mapped: Mapped,
}

impl Parcel {
    fn size_bytes(&self) -> usize {
        // The header repeats what came before the last frame; a bound on it is enough here.
        self.mapped.body.len() + 4096
    }
}

struct Inbound<'a> {
    link: &'a Link,
    intake: Intake,
    /// What has to be published again, in the order in which it came.
    again: VecDeque<Parcel>,
    last: u64,
}

/// An open channel, and what is under way on it.
struct Flight {
    connection: Connection,
    channel: Channel,
    exchange: String,
    returns: Returns,
    unconfirmed: VecDeque<(Parcel, Confirm)>,
    unconfirmed_bytes: usize,
    /// When refused messages may be published again.
    retry_at: Instant,
    /// Messages that may be under way. One after a refusal: while a queue is full, more would be refused too, or get in
    /// before those that were sent earlier; and of several it can't be told which has cost the channel. It stays at one
    /// as long as refused ones are left; from then on each that is taken makes room for one more.
    window: usize,
}

/// Carries messages from the socket to the broker until the gateway stops.
pub(crate) async fn run(link: Link, intake: Intake) {
    let mut inbound = Inbound { link: &link, intake, again: VecDeque::new(), last: 0 };
    while let Err(error) = inbound.serve().await {
        if !link.may_retry(&error).await {
            break;
        }
    }
    let left = inbound.again.len();
    if left > 0 {
        tracing::warn!(endpoint = link.config.name(), left, "gateway: messages are lost");
    }
}

impl Flight {
    /// Opens another channel after a refusal has cost the last one.
    async fn reopen(&mut self) -> Result<(), LinkError> {
        self.channel = self.connection.open_channel().await?;
        self.returns = with_confirms(&self.channel).await?;
        self.unconfirmed_bytes = 0;
        Ok(())
    }
}

/// Whether the broker has closed something because the way of a message is too long, or leads to too many queues. A full
/// disk has the same code.
fn refuses_route(reason: &CloseReason) -> bool {
    reason.code == RESOURCE_ERROR && reason.text.contains(" - a message ")
}

/// Has the broker confirm what is published on a channel. What it returns there.
async fn with_confirms(channel: &Channel) -> Result<Returns, Error> {
    channel.confirm_select().await?;
    channel.returns()
}

impl Inbound<'_> {
    /// Publishes until the gateway stops; an error ends the connection, not the endpoint.
    async fn serve(&mut self) -> Result<(), LinkError> {
        let mut flight = self.connect().await?;
        loop {
            let done = self.run(&mut flight).await;
            let refusal = done.as_ref().err().and_then(|error| self.refusal(error)).cloned();
            if let Some(reason) = &refusal
                && flight.unconfirmed.len() == 1
            {
                flight.unconfirmed.clear();
                self.link.drop_refused(&reason.text);
            }
            for (parcel, _) in flight.unconfirmed.drain(..) {
                self.keep(parcel);
            }
            if refusal.is_none() {
                return done;
            }
            if flight.connection.is_open() {
                flight.reopen().await?;
            } else {
                flight = self.connect().await?;
            }
            // Another refusal tells which message it is of.
            flight.window = 1;
        }
    }

    /// Why the broker has closed the channel or the connection, where that was for what one of the messages says. Other
    /// refusals are for the operator to mend, and the messages wait until then.
    fn refusal<'e>(&self, error: &'e LinkError) -> Option<&'e CloseReason> {
        let LinkError::Amqp(error) = error else { return None };
        let (Error::ChannelClosed { reason, .. } | Error::ConnectionClosed(reason)) = error else {
            return None;
        };
        if (reason.class_id, reason.method_id) != PUBLISH {
            return None;
        }
        let is_of_message = match reason.code {
            CONTENT_TOO_LARGE | PRECONDITION_FAILED => true,
            // A sub socket's peers choose the routing keys.
            _ => {
                let is_of_key = refuses_topic(reason) || refuses_route(reason);
                self.link.config.socket == SocketKind::Sub && is_of_key
            }
        };
        is_of_message.then_some(&**reason)
    }

    /// Keeps a message for another attempt.
    fn keep(&mut self, parcel: Parcel) {
        let at = self.again.partition_point(|other| other.number < parcel.number);
        self.again.insert(at, parcel);
    }

    async fn connect(&self) -> Result<Flight, LinkError> {
        let config = &self.link.config;
        let (connection, channel, exchange) = match &config.exchange {
            None => {
                let (connection, channel, _) = self.link.with_queue().await?;
                (connection, channel, String::new())
            }
            Some(exchange) => {
                let (connection, channel) = self.link.open().await?;
                channel.exchange_check(exchange).await?;
                (connection, channel, exchange.clone())
            }
        };
        let returns = with_confirms(&channel).await?;
        Ok(Flight {
            connection,
            channel,
            exchange,
            returns,
            unconfirmed: VecDeque::new(),
            unconfirmed_bytes: 0,
            retry_at: Instant::now(),
            window: self.link.config.high_water_messages as usize,
        })
    }

    async fn run(&mut self, flight: &mut Flight) -> Result<(), LinkError> {
        let most_bytes = self.link.config.high_water_bytes;
        let stopped = self.link.stopped();
        tokio::pin!(stopped);
        let (mut stopping, mut nothing_left) = (false, false);
        loop {
            if nothing_left && flight.unconfirmed.is_empty() && self.again.is_empty() {
                return Ok(());
            }
            let has_room =
                flight.unconfirmed.len() < flight.window && flight.unconfirmed_bytes < most_bytes;
            let may_retry = flight.retry_at <= Instant::now();
            if has_room
                && may_retry
                && let Some(parcel) = self.again.pop_front()
            {
                self.publish(flight, parcel).await?;
                continue;
            }
            if has_room && stopping && !nothing_left && self.again.is_empty() {
                match self.intake.rest().await {
                    Some(received) => self.take(flight, &received).await?,
                    None => nothing_left = true,
                }
                continue;
            }
            tokio::select! {
                returned = flight.returns.next() => {
                    if returned?.is_some() {
                        self.came_back()?;
                    }
                }
                answer = next_answer(&mut flight.unconfirmed), if !flight.unconfirmed.is_empty() => {
                    let answer = answer?;
                    // Its return, if there is any, is there before its confirm.
                    if has_returned(&mut flight.returns).await? {
                        self.came_back()?;
                    }
                    self.settle(flight, answer);
                }
                received = self.intake.recv(), if has_room && !stopping && self.again.is_empty() => {
                    self.take(flight, &received?).await?;
                }
                () = tokio::time::sleep_until(flight.retry_at), if !may_retry && !self.again.is_empty() => {}
                () = &mut stopped, if !stopping => stopping = true,
            }
        }
    }

    async fn take(&mut self, flight: &mut Flight, received: &Received) -> Result<(), LinkError> {
        let frames = self.link.incoming(&received.message);
        match frames.and_then(|frames| self.parcel(&frames)) {
            Some(parcel) => self.publish(flight, parcel).await,
            None => Ok(()),
        }
    }

    /// Notes that the broker had no queue for a message. Where it was the endpoint's own that is missing, this ends the
    /// connection: the next one makes the queue again, and publishes what was under way.
    fn came_back(&self) -> Result<(), LinkError> {
        if self.link.config.queue.is_some() {
            return Err(LinkError::QueueGone);
        }
        if self.link.metrics.unroutable.fetch_add(1, Ordering::Relaxed) == 0 {
            let endpoint = self.link.config.name();
            tracing::warn!(endpoint, "gateway: no queue takes a message; more of them are counted");
        }
        Ok(())
    }

    /// Addresses a message. `None` if it cannot be carried.
    fn parcel(&mut self, frames: &[Bytes]) -> Option<Parcel> {
        let config = &self.link.config;
        let is_sub = config.socket == SocketKind::Sub;
        let key = match (&config.queue, is_sub) {
            (Some(queue), _) => queue.clone(),
            (None, true) => routing_key(frames.first()?),
            (None, false) => config.routing_key.clone(),
        };
        self.last += 1;
        Some(Parcel { number: self.last, key, mapped: to_amqp(frames, is_sub)? })
    }

    /// Publishes a message, and keeps it until it is confirmed.
    async fn publish(&mut self, flight: &mut Flight, parcel: Parcel) -> Result<(), LinkError> {
        let headers = &parcel.mapped.headers;
        let properties = OwnedProperties {
            delivery_mode: self.link.config.delivery_mode(),
            headers: (!headers.is_empty()).then(|| headers.clone()),
            ..OwnedProperties::default()
        };
        let outgoing = Outgoing::new(&parcel.mapped.body).properties(properties).mandatory();
        match flight.channel.publish(&flight.exchange, &parcel.key, outgoing).await {
            Ok(confirm) => {
                flight.unconfirmed_bytes += parcel.size_bytes();
                flight.unconfirmed.push_back((parcel, confirm));
                Ok(())
            }
            Err(error) if is_unsendable(&error) => {
                self.link.drop_refused(&error.to_string());
                Ok(())
            }
            Err(error) => {
                self.keep(parcel);
                Err(error.into())
            }
        }
    }

    /// Takes the oldest message out, as the broker has answered it.
    fn settle(&mut self, flight: &mut Flight, answer: Confirmation) {
        let Some((parcel, _)) = flight.unconfirmed.pop_front() else { return };
        flight.unconfirmed_bytes -= parcel.size_bytes();
        if answer.is_ack() {
            Metrics::add(&self.link.metrics.published, 1);
            let most = self.link.config.high_water_messages as usize;
            flight.window = match self.again.is_empty() {
                true => (flight.window + 1).min(most),
                false => 1,
            };
            return;
        }
        Metrics::add(&self.link.metrics.refused, 1);
        self.keep(parcel);
        (flight.retry_at, flight.window) = (Instant::now() + REFUSED_PAUSE, 1);
    }
}

/// Takes a return, if there is one.
async fn has_returned(returns: &mut Returns) -> Result<bool, LinkError> {
    tokio::select! {
        biased;
        returned = returns.next() => Ok(returned?.is_some()),
        () = std::future::ready(()) => Ok(false),
    }
}

/// The broker's answer to the oldest message.
async fn next_answer(
    unconfirmed: &mut VecDeque<(Parcel, Confirm)>,
) -> Result<Confirmation, LinkError> {
    match unconfirmed.front_mut() {
        Some((_, confirm)) => Ok(confirm.await?),
        None => std::future::pending().await,
    }
}

/// A first frame as a routing key: as much of it as is text and fits. The frame itself travels in the headers.
fn routing_key(frame: &[u8]) -> String {
    let frame = &frame[..frame.len().min(KEY_BYTES_MAX)];
    match std::str::from_utf8(frame) {
        Ok(text) => text.to_owned(),
        Err(error) => String::from_utf8_lossy(&frame[..error.valid_up_to()]).into_owned(),
    }
}
