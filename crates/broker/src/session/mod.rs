//! The broker's side of one connection: its channels, and every method that comes in on them.
//!
//! A session belongs to its connection's task and is never shared; what others put into the
//! connection goes through its [`Outbox`]. Replies are encoded into the same outbox, so they keep
//! their order with the deliveries around them.

mod acknowledge;
mod answer;
mod apart;
mod confirm;
mod consume;
mod count;
mod direct_reply;
mod ending;
mod open;
mod pace;
mod permission;
mod properties;
mod publish;
mod request;
mod routes;
mod slow_requests;
mod streams;
mod transaction;

pub use pace::{NextAppend, Pace};
pub use publish::{Batch, Inbound};

use crate::broker::{Broker, Identity};
use crate::channels::Channels;
use crate::direct_reply::is_reply_name;
use crate::fault::Fault;
use crate::memory::{Charge, Use};
use crate::monitor::ConnectionState;
use crate::outbox::{Outbox, Stalled, Turn};
use crate::queue::{ConnectionId, Departure, Handle, Queue};
use crate::routing::cache::{LastRoute, RouteCache};
use crate::shard::Shard;
use crate::stream::StreamReader;
use crate::vhost::{Admission, Vhost};
use crate::wakes::Wakes;
use crate::work::Budget;
use acknowledge::{Returned, Runs};
use confirm::{Confirm, Confirms};
use courser_codec::ShortString;
use courser_store::Lsn;
use pace::Pacing;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use transaction::Transaction;

/// Queues, readers and channels that have their turns in one go.
const RESUMED_AT_ONCE: usize = 256;

/// One connection's dealings with the broker.
pub struct Session {
    broker: Arc<Broker>,
    /// The one that the vhost is on.
    shard: Arc<Shard>,
    vhost: Arc<Vhost>,
    client: Client,
    outbox: Arc<Outbox>,
    channels: Channels<Channel>,
    /// One for each consumer of a stream, by their numbers.
    stream_readers: BTreeMap<u64, StreamReader>,
    /// The client has done something that may let one of them go on.
    readers_due: bool,
    /// How many of them are still to be looked at since, and the number from which on.
    readers_left: usize,
    next_reader: u64,
    /// When the next look at what they keep is due.
    readers_looked_at_ms: u64,
    /// How many consumers there are at most: some may have gone unnoticed since they were counted.
    consumers_at_most: usize,
    /// Bytes that its open transactions hold.
    pending_bytes: usize,
    routes: RouteCache,
    /// Deliveries that the batch has acknowledged, in runs of the same queue.
    acknowledged: Runs,
    confirms: Confirms,
    pacing: Pacing,
    wakes: Wakes,
    /// What its connection keeps of messages that have come in part.
    incomplete: Charge,
    /// What it keeps of messages that are taken in when the disk has caught up.
    unread: Charge,
}

/// Who is at the other end.
struct Client {
    /// What it may do; the vhost and the user count their connections by it.
    admission: Admission,
    identity: Identity,
    connection: ConnectionId,
}

/// What the session remembers of a channel.
#[derive(Default)]
struct Channel {
    /// The queue that an empty name stands for.
    last_queue: Option<ShortString>,
    /// `basic.qos` with global=false: for consumers made from now on.
    prefetch: u32,
    /// The queue behind its consumer of direct replies, which may be deleted with that.
    reply_queue: Option<Handle>,
    /// The last publish routed, because the next one mostly goes the same way. The cache has this route
    /// too, and counts it.
    last_route: Option<LastRoute>,
    /// The highest confirm sequence number taken in with this batch, and how many there were.
    unconfirmed_through: u64,
    unconfirmed_count: u64,
    /// Some of these are in no durable queue ([`Session::hold_unlogged`]).
    has_unlogged: bool,
    /// Publishes to be confirmed that have not been counted yet.
    to_confirm: u64,
    /// Earlier batches that are not durable yet, oldest first.
    confirms: VecDeque<Confirm>,
    /// The room of these.
    confirms_charge: Charge,
    /// It is among those to which something is said once that is durable.
    awaits_confirms: bool,
    /// It is about to be closed, as a queue has refused some of a commit.
    has_failed_commit: bool,
    /// What has been done since the last commit, on a transactional channel.
    transaction: Option<Box<Transaction>>,
}

impl Session {
    pub(crate) fn new(
        broker: Arc<Broker>,
        admission: Admission,
        identity: Identity,
        connection: ConnectionId,
        outbox: Arc<Outbox>,
    ) -> Self {
        let charge = broker.memory.charge(Use::Sessions, 0);
        let incomplete = broker.memory.charge(Use::Incomplete, 0);
        let unread = broker.memory.charge(Use::Unread, 0);
        Session {
            incomplete,
            unread,
            broker,
            shard: Arc::clone(admission.vhost().shard()),
            vhost: Arc::clone(admission.vhost()),
            client: Client { admission, identity, connection },
            outbox,
            channels: Channels::default(),
            stream_readers: BTreeMap::new(),
            readers_due: false,
            readers_looked_at_ms: 0,
            readers_left: 0,
            next_reader: 0,
            consumers_at_most: 0,
            pending_bytes: 0,
            routes: RouteCache::new(charge),
            acknowledged: Runs::default(),
            confirms: Confirms::default(),
            pacing: Pacing::default(),
            wakes: Wakes::default(),
        }
    }

    /// What this connection has to send.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Takes note of what the connection is doing, for monitoring.
    pub fn set_state(&self, state: ConnectionState) {
        self.outbox.connection.set_state(state);
    }

    /// Takes note of bytes that came from the client.
    #[inline]
    pub fn note_received(&self, bytes: usize) {
        self.outbox.connection.traffic.received(bytes);
    }

    /// Takes note of bytes that went to the client.
    #[inline]
    pub fn note_sent(&self, bytes: usize) {
        self.outbox.connection.traffic.sent(bytes);
    }

    /// Takes note of how many bytes the connection keeps of messages and frames that have come in part.
    ///
    /// # Errors
    /// When that is more than all connections together leave free; ends the connection.
    #[inline]
    pub fn hold_incomplete(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes == self.incomplete.bytes() {
            return Ok(());
        }
        self.broker.memory.hold_incomplete(&mut self.incomplete, bytes)?;
        self.broker.check_alarms();
        Ok(())
    }

    /// Counts what its connection has read of messages that are taken in when the disk has caught up.
    #[inline]
    pub fn hold_unread(&mut self, bytes: usize) {
        if bytes != self.unread.bytes() {
            self.unread.set(bytes);
            self.broker.check_alarms();
        }
    }

    /// `channel.open` has been answered.
    pub fn open_channel(&mut self, number: u16) {
        let memory = &self.broker.memory;
        let confirms_charge = memory.charge(Use::Sessions, 0);
        self.channels.insert(number, Channel { confirms_charge, ..Channel::default() });
        let unacked_max = self.broker.limits.unacked_per_channel_max;
        self.outbox.lock().open_channel(number, unacked_max, memory);
        self.broker.monitor.channel_opened(&self.outbox, number, self.broker.now_ms());
    }

    /// The channel is closed, by either side: its consumers end and what it has not acknowledged
    /// returns to the queues.
    pub fn close_channel(&mut self, number: u16) {
        self.close_channels(&[number]);
    }

    /// Closes channels together, so that what they have not acknowledged is all back in its place
    /// before any of it is handed out again. `numbers` are in order.
    fn close_channels(&mut self, numbers: &[u16]) {
        self.settle_acknowledged();
        let mut departures = Vec::new();
        let mut returned = Returned::default();
        for &number in numbers {
            self.abandon_transaction(number);
            if self.channels.remove(number).is_none() {
                continue;
            }
            self.client.admission.close_channel();
            self.broker.monitor.channel_closed(&self.outbox, number, self.broker.now_ms());
            self.remove_consumers(number, &mut departures);
            self.give_up(number, &mut returned);
        }
        self.confirms.forget_channels(numbers);
        // Nothing is left of the channels that an error could be reported to.
        drop(self.return_closed(returned));
        for (queue, departure) in departures {
            // As above, no channel is left to report an error to.
            let _ = self.after_departure(&queue, departure);
        }
        self.wakes.wake_all();
    }

    /// Takes the consumers of a channel out of their queues. Adds to `departures` where something is
    /// to be done without them.
    fn remove_consumers(&mut self, number: u16, departures: &mut Vec<(Arc<Queue>, Departure)>) {
        let consumers: Vec<(Arc<Queue>, u32, _)> = match self.outbox.lock().channel(number) {
            Some(channel) => channel
                .consumers()
                .map(|slot| (Arc::clone(&slot.queue), slot.consumer_key, slot.stream_reader))
                .collect(),
            None => Vec::new(),
        };
        self.consumers_at_most = self.consumers_at_most.saturating_sub(consumers.len());
        for (queue, key, reader) in consumers {
            reader.and_then(|reader| self.stream_readers.remove(&reader));
            let departure = queue.remove_consumer(key, (&self.outbox, number));
            if departure != Departure::Unnoticed {
                departures.push((queue, departure));
            }
        }
    }

    /// What [`Outbox::take`] named gets the chance to send more, in its order until there is no room or a
    /// budget is spent: the next turn begins where this one ends.
    pub fn resume(&mut self, mut stalled: Stalled) {
        let shard = Arc::clone(&self.shard);
        let budget = Budget::begin();
        let mut gate = None;
        for _ in 0..RESUMED_AT_ONCE {
            if self.outbox.is_full() || budget.is_spent() {
                break;
            }
            let Some(next) = stalled.pop() else { break };
            if let Turn::Reader(id) = next {
                // What reads for long has no checkpoint wait.
                shard.post_dead_letters(&mut self.wakes);
                gate = None;
                self.pump_stream(id, &budget);
                continue;
            }
            gate.get_or_insert_with(|| shard.gate.read());
            match next {
                // What fails is an append: the store is of no use any more, and its owner ends the broker.
                Turn::Queue(queue) => {
                    if let Some(queue) = queue.upgrade() {
                        drop(queue.resume(&self.outbox, &*shard.store, &mut self.wakes));
                    }
                }
                Turn::Channel(number) => self.resume_starved(number),
                Turn::Reader(_) => {}
            }
        }
        shard.post_dead_letters(&mut self.wakes);
        drop(gate);
        if !stalled.is_empty() {
            self.resume_later(stalled);
        }
        self.readers_due = true;
        self.pump_streams(&budget);
        self.wakes.wake_all();
    }

    /// As [`Session::resume`], when others have had their turn.
    pub fn resume_later(&self, stalled: Stalled) {
        self.outbox.lock().stall_first(stalled);
        self.outbox.wake_to_go_on();
    }

    fn delete_queue(&mut self, queue: &Arc<Queue>) {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        // Without a condition, deleting can't be refused; a store that takes nothing more ends the broker.
        let deleted = self.vhost.delete_queue(queue, |_| Ok(()), |_, _| {}, &mut self.wakes);
        drop(deleted);
    }

    /// Does for a queue what has to be done without a consumer that has gone. Returns the LSN at which
    /// that survives, if it is to.
    fn after_departure(&mut self, queue: &Arc<Queue>, departure: Departure) -> Lsn {
        match departure {
            Departure::Unnoticed => {}
            Departure::QueueIsUseless { leaves_place } => {
                let deleted = self.delete_unused(queue);
                if leaves_place {
                    self.activate_next(queue, true);
                }
                return deleted;
            }
            Departure::OthersMayGoOn { leaves_place } => self.activate_next(queue, leaves_place),
        }
        Lsn::default()
    }

    fn activate_next(&mut self, queue: &Arc<Queue>, leaves_place: bool) {
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        // As in `resume`.
        drop(queue.activate_next(leaves_place, &*shard.store, &mut self.wakes));
        shard.post_dead_letters(&mut self.wakes);
    }

    /// Deletes an auto-delete queue that has lost its last consumer, unless it has got another one
    /// in the meantime.
    fn delete_unused(&mut self, queue: &Arc<Queue>) -> Lsn {
        let mut deleted = Lsn::default();
        if is_reply_name(queue.name.as_bytes()) {
            self.vhost.end_reply_queue(queue);
            return deleted;
        }
        let shard = Arc::clone(&self.shard);
        let _gate = shard.gate.read();
        let note = |_, lsn| deleted = lsn;
        // It stays where another consumer has come in the meantime.
        drop(self.vhost.delete_queue_if(queue, true, false, note, &mut self.wakes));
        deleted
    }

    fn channel(&mut self, number: u16) -> Result<&mut Channel, Fault> {
        self.channels.get_mut(number).ok_or_else(|| channel_error("expected 'channel.open'"))
    }
}

fn channel_error(explanation: &str) -> Fault {
    Fault::new(504, explanation)
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}
