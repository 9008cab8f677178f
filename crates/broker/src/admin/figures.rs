//! Numbers for monitoring: of each queue, connection and channel without what they are besides, and
//! of the broker as a whole.

use super::channels::{self, ChannelView};
use super::page::{Listing, View};
use super::{Admin, QueueCounts};
use crate::arguments::QueueType;
use crate::fault::Fault;
use crate::memory::{Charge, Use};
use crate::monitor::TrafficCounts;
use crate::outbox::Outbox;
use crate::queue::{Look, Queue, QueueContents, QueueStatus};
use courser_codec::ShortString;
use courser_store::Figures;
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueFigures {
    /// The vhost it is in.
    pub vhost: Arc<str>,
    /// Its name.
    pub name: ShortString,
    /// `classic`, `quorum` or `stream`.
    pub queue_type: &'static str,
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages delivered and not acknowledged.
    pub unacked: usize,
    /// Messages that have come back and wait for their next try.
    pub delayed: usize,
    /// Consumers, blocked ones included.
    pub consumers: usize,
    /// A thread waits for the disk, as it seems, and has the queue to itself meanwhile. What is above is as it was before; what is
    /// below is not known, and as of a queue without messages.
    pub is_held: bool,
    /// How many messages have come and gone.
    pub counts: QueueCounts,
    /// What its messages amount to; none for a stream.
    pub contents: Option<QueueContents>,
    /// Bytes of memory that it uses, without what its messages in memory need besides their bodies.
    pub memory_bytes: u64,
    /// The `timestamp` of the message whose turn it is, if it has one and is in memory.
    pub head_timestamp: Option<u64>,
}

/// The numbers of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionFigures {
    /// Its own among those that are open.
    pub name: String,
    /// Channels that are open.
    pub channels: usize,
    /// What has gone through its socket.
    pub traffic: TrafficCounts,
    /// Bytes that wait to be sent.
    pub pending_bytes: usize,
}

/// The channels of a connection, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelsView(pub Vec<ChannelView>);

/// Bytes of memory that clients make the broker hold, by what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUses {
    /// Messages that wait, and large bodies on their way to clients.
    pub messages: u64,
    /// Queues, exchanges and bindings, with their names and arguments.
    pub definitions: u64,
    /// What open transactions hold.
    pub transactions: u64,
    /// Channels, consumers, routes, and the books of what is unacknowledged.
    pub sessions: u64,
    /// The places of messages in their queues.
    pub places: u64,
    /// What is remembered of messages to drop their repetitions.
    pub deduplication: u64,
    /// What operators ask for, on its way to them: answers, and copies of what is traced.
    pub answers: u64,
    /// Messages and frames that have come in part.
    pub incomplete: u64,
    /// Messages that are taken in when the disk has caught up.
    pub unread: u64,
    /// What has been read ahead of the messages that are handed out next.
    pub readers: u64,
    /// What clients have sent that have not opened a vhost yet.
    pub newcomers: u64,
    /// What clients are sent that have not read it yet.
    pub outboxes: u64,
}

/// Memory that counts as used until this goes.
#[derive(Debug)]
pub struct Held(Charge);

impl Held {
    /// Counts so many bytes from now on.
    pub fn set(&mut self, bytes: usize) {
        self.0.set(bytes);
    }
}

impl Admin {
    /// The numbers of the queues of a vhost, or of all.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn queue_figures(&self, vhost: Option<&str>) -> Result<Listing<QueueFigures>, Fault> {
        let vhosts = self.chosen_vhosts(vhost)?.into_iter();
        Ok(Listing::new(vhosts.map(|vhost| {
            let queues = vhost.ordered_queues();
            (vhost.name.clone(), Arc::from(vhost.name.as_str()), queues)
        })))
    }

    /// The numbers of all connections.
    pub fn connection_figures(&self) -> Listing<ConnectionFigures> {
        let connections = self.broker.monitor.registry.snapshot();
        Listing::new([(String::new(), (), connections)])
    }

    /// The channels of all connections.
    pub fn channel_figures(&self) -> Listing<ChannelsView> {
        let connections = self.broker.monitor.registry.snapshot();
        Listing::new([(String::new(), (), connections)])
    }

    /// What has gone through the sockets of all connections that there ever were.
    pub fn traffic(&self) -> TrafficCounts {
        self.broker.monitor.traffic()
    }

    /// The same by vhost, since each was made.
    pub fn traffic_of_vhosts(&self) -> HashMap<String, TrafficCounts> {
        let vhosts = self.broker.vhosts();
        let traffic = self.broker.monitor.traffic_of(&vhosts);
        vhosts.iter().map(|vhost| vhost.name.clone()).zip(traffic).collect()
    }

    /// What the logs of all shards have done since they were opened, and what they take.
    pub fn log_figures(&self) -> Figures {
        let stores = self.broker.stores();
        let mut stores = stores.iter().map(|store| store.figures());
        let mut all = stores.next().unwrap_or_default();
        stores.for_each(|figures| all += &figures);
        all
    }

    /// What memory is used for.
    pub fn memory_uses(&self) -> MemoryUses {
        let used = |by| self.broker.memory.used(by);
        MemoryUses {
            messages: self.broker.messages_bytes(),
            definitions: used(Use::Definitions),
            transactions: used(Use::Transactions),
            sessions: used(Use::Sessions) + used(Use::Channels),
            places: used(Use::Places) + used(Use::Retries) + used(Use::Histories),
            deduplication: used(Use::Deduplication),
            answers: used(Use::Answers) + used(Use::Copies),
            incomplete: used(Use::Incomplete),
            unread: used(Use::Unread),
            readers: used(Use::Readers),
            newcomers: used(Use::Newcomers),
            outboxes: used(Use::Outboxes),
        }
    }

    /// Counts memory that an answer to an operator takes, for as long as it does.
    pub fn hold(&self, bytes: usize) -> Held {
        Held(self.broker.memory.charge(Use::Answers, bytes))
    }

    /// Counts what is kept for a client until its session begins, from nothing on: it need not be a user.
    pub fn hold_for_newcomer(&self) -> Held {
        Held(self.broker.memory.charge(Use::Newcomers, 0))
    }

    /// The most bytes that may be kept for all clients together whose sessions have not begun.
    pub fn newcomers_max_bytes(&self) -> usize {
        self.broker.memory.newcomers_max().try_into().unwrap_or(usize::MAX)
    }

    /// Counts what the stream of a connection keeps of what its client is sent, from nothing on.
    pub fn hold_unsent(&self) -> Held {
        Held(self.broker.memory.charge(Use::Outboxes, 0))
    }
}

impl View for QueueFigures {
    type Item = Queue;
    type Group = Arc<str>;

    fn view(vhost: &Arc<str>, queue: &Arc<Queue>) -> Self {
        let look = queue.look();
        let status = look.as_ref().map_or_else(|| queue.last_status(), Look::status);
        let QueueStatus { ready, unacked, delayed, consumers } = status;
        QueueFigures {
            vhost: Arc::clone(vhost),
            name: queue.name.clone(),
            queue_type: QueueType::of(&queue.settings.arguments).name(),
            ready,
            unacked,
            delayed: delayed.messages,
            consumers,
            is_held: look.is_none(),
            counts: look.as_ref().map(Look::counts).unwrap_or_default(),
            contents: look.as_ref().and_then(Look::contents),
            memory_bytes: look.as_ref().map(Look::memory_bytes).unwrap_or_default(),
            head_timestamp: look.as_ref().and_then(Look::head_timestamp),
        }
    }
}

impl View for ConnectionFigures {
    type Item = Outbox;
    type Group = ();

    fn view((): &(), outbox: &Arc<Outbox>) -> Self {
        let state = outbox.lock();
        ConnectionFigures {
            name: outbox.connection.name().to_owned(),
            channels: state.channel_numbers().len(),
            pending_bytes: state.bytes(),
            traffic: outbox.connection.traffic.read(),
        }
    }
}

impl View for ChannelsView {
    type Item = Outbox;
    type Group = ();

    fn view((): &(), outbox: &Arc<Outbox>) -> Self {
        ChannelsView(channels::of_connection(outbox))
    }
}
