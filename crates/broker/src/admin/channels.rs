//! Channels and consumers as an operator sees them.

use crate::counts::ChannelCounts;
use crate::direct_reply::is_reply_name;
use crate::outbox::{ChannelOut, Outbox, Slot};
use crate::queue::{ConsumerStanding, Queue};
use courser_codec::ShortString;
use std::sync::Arc;

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelView {
    /// The name of its connection.
    pub connection: String,
    /// Its number.
    pub number: u16,
    /// The user of its connection.
    pub user: ShortString,
    /// The vhost of its connection.
    pub vhost: String,
    /// Consumers on it.
    pub consumers: usize,
    /// Publishes on it are confirmed.
    pub confirms: bool,
    /// It collects what it does in transactions.
    pub transactional: bool,
    /// Deliveries that may wait for each consumer made from now on, 0 for any number.
    pub prefetch: u16,
    /// Deliveries that may wait for all its consumers together, 0 for any number.
    pub global_prefetch: u32,
    /// Deliveries that wait for an acknowledgement.
    pub unacked: usize,
    /// Publishes that wait for their confirmation.
    pub unconfirmed: u64,
    /// What has happened on it.
    pub counts: ChannelCounts,
    /// Whether the client takes deliveries (`channel.flow`).
    pub flow_active: bool,
}

/// A consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerView {
    /// The vhost it is in.
    pub vhost: String,
    /// The queue that it consumes from.
    pub queue: ShortString,
    /// Its tag, which is its own on its channel.
    pub tag: ShortString,
    /// The name of its connection.
    pub connection: String,
    /// The number of its channel.
    pub channel: u16,
    /// The user of its connection.
    pub user: ShortString,
    /// Whether it acknowledges what it gets.
    pub ack_required: bool,
    /// No other consumer may consume from the queue.
    pub exclusive: bool,
    /// Whether it gets messages; a single active consumer may be another one.
    pub active: bool,
    /// Deliveries that may wait for it, 0 for any number.
    pub prefetch: u32,
    /// The higher, the earlier.
    pub priority: i64,
    /// How long it may take to acknowledge a message, if there is a limit.
    pub timeout_ms: Option<u64>,
    /// The same, if its own arguments say so.
    pub own_timeout_ms: Option<u64>,
    /// Deliveries that wait for its acknowledgement.
    pub unacked: u32,
    /// How far it has read, if the queue is a stream.
    pub stream: Option<StreamPlace>,
}

/// How far a consumer has read a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlace {
    /// The offset that it gets next.
    pub offset: u64,
    /// Messages from there to the end.
    pub lag: u64,
}

/// The channels of a connection, by number.
pub(super) fn of_connection(outbox: &Outbox) -> Vec<ChannelView> {
    let mut state = outbox.lock();
    let numbers = state.channel_numbers();
    let views = numbers.into_iter().filter_map(|number| {
        state.channel(number).map(|channel| ChannelView::of(outbox, number, channel))
    });
    views.collect()
}

impl ChannelView {
    fn of(outbox: &Outbox, number: u16, channel: &ChannelOut) -> Self {
        let connection = &outbox.connection;
        let counts = channel.counted();
        let answered = counts.publishes.confirmed + counts.publishes.refused;
        ChannelView {
            connection: connection.name().to_owned(),
            number,
            user: connection.user().clone(),
            vhost: connection.vhost.name.clone(),
            consumers: channel.consumers().count(),
            confirms: channel.confirms,
            transactional: channel.transactional,
            prefetch: channel.prefetch_each,
            global_prefetch: channel.prefetch,
            unacked: channel.unacked.len(),
            unconfirmed: counts.publishes.to_confirm.saturating_sub(answered),
            counts,
            flow_active: channel.flow_active,
        }
    }
}

/// The consumers of a queue; none while that is held for long. The queue says which there are; each one's channel is asked
/// afterwards, when its turn comes.
pub(super) fn of_queue(queue: &Arc<Queue>) -> impl Iterator<Item = ConsumerView> {
    let standings = queue.look().map(|look| look.consumers()).unwrap_or_default();
    standings.into_iter().filter_map(move |standing| seen(&standing, queue))
}

/// The consumers on a channel, whatever others their queues have; without those of queues that are held for long, and without that
/// of direct replies, as the name of its queue is told to those only who may answer. The channel says which there are; each one's
/// queue is asked afterwards, when its turn comes.
pub(super) fn of_channel(outbox: &Arc<Outbox>, number: u16) -> impl Iterator<Item = ConsumerView> {
    let mut consumers = Vec::new();
    if let Some(channel) = outbox.lock().channel(number) {
        let listed = channel.consumers().filter(|slot| !is_reply_name(slot.queue.name.as_bytes()));
        consumers.extend(listed.filter_map(|slot| {
            let index = channel.find_consumer(slot.consumer_tag.as_ref()?.as_bytes())?;
            Some((Arc::clone(&slot.queue), slot.consumer_key, index))
        }));
    }
    consumers.into_iter().filter_map(move |(queue, key, slot)| {
        let standing = queue.look()?.consumer(key)?;
        // One that has only just come to its channel is not in its queue yet, and has no key.
        let is_it = Arc::ptr_eq(&standing.outbox, outbox)
            && (standing.channel, standing.slot) == (number, slot);
        is_it.then(|| seen(&standing, &queue)).flatten()
    })
}

/// A consumer, unless it has gone.
fn seen(standing: &ConsumerStanding, queue: &Arc<Queue>) -> Option<ConsumerView> {
    let mut state = standing.outbox.lock();
    let channel = state.channel(standing.channel)?;
    // It may have gone in between, and another one be in its place.
    let slot = channel.slot(standing.slot).filter(|slot| Arc::ptr_eq(&slot.queue, queue))?;
    ConsumerView::of(standing, slot)
}

impl ConsumerView {
    fn of(standing: &ConsumerStanding, slot: &Slot) -> Option<Self> {
        let connection = &standing.outbox.connection;
        Some(ConsumerView {
            vhost: connection.vhost.name.clone(),
            queue: slot.queue.name.clone(),
            tag: slot.consumer_tag.clone()?,
            connection: connection.name().to_owned(),
            channel: standing.channel,
            user: connection.user().clone(),
            ack_required: !standing.no_ack,
            exclusive: standing.exclusive,
            active: standing.active,
            prefetch: slot.prefetch(),
            priority: standing.priority,
            timeout_ms: standing.timeout_ms,
            own_timeout_ms: standing.own_timeout_ms,
            unacked: slot.in_flight(),
            stream: slot.queue.stream().map(|stream| {
                // What is not there any more is passed over.
                let offset = slot.stream_offset.max(stream.first_offset());
                StreamPlace { offset, lag: stream.next_offset().saturating_sub(offset) }
            }),
        })
    }
}
