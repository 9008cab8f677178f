//! A queue: the messages that wait in it, its consumers, and how the two meet.
//!
//! Everything that changes a queue happens in one short section under its lock. At the end of each
//! section either nothing is waiting, or nobody can take it: consumers that can take no more leave
//! the ring, and whoever gives them credit or room again puts them back and feeds them.

mod consumers;
mod packed;
mod ready;
mod source;

pub(crate) use consumers::Consumer;
pub(crate) use ready::SPILLED;

use crate::exchange::Sources;
use crate::fault::Fault;
use crate::outbox::{Blocked, Outbox};
use crate::stash::Stash;
use crate::wakes::Wakes;
use consumers::Consumers;
use courser_codec::FieldTable;
use courser_codec::ShortString;
use courser_store::{Location, MessageRef, Reader, Record, Store, StoreError, Sync};
use parking_lot::{Mutex, MutexGuard};
use ready::{REDELIVERED, Ready, logged};
use rustc_hash::FxHashMap;
use source::{Publishing, Source, Waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Identifies a connection, to know whose exclusive queue this is.
pub type ConnectionId = u64;

/// The books of unacknowledged messages keep at most this many places once they are empty.
const KEPT_UNACKED: usize = 1024;

/// What a queue was declared with.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Survives a restart of the broker.
    pub durable: bool,
    /// The connection that alone may use it, and with which it goes.
    pub exclusive_owner: Option<ConnectionId>,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// The arguments as declared, known and unknown.
    pub arguments: FieldTable,
}

/// A queue of a vhost.
#[derive(Debug)]
pub struct Queue {
    /// Unique among all queues and exchanges of the broker.
    pub(crate) id: u64,
    /// Its name in its vhost.
    pub name: ShortString,
    /// What it was declared with.
    pub settings: QueueSettings,
    /// The exchanges that it is bound to.
    pub(crate) sources: Sources,
    state: Mutex<State>,
    backlog: AtomicUsize,
    consumed: AtomicU64,
    active_consumers: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    ready: Ready,
    /// Reads what waits in the store; there only while something waits.
    reader: Option<Box<dyn Reader>>,
    consumers: Consumers,
    unacked: FxHashMap<u64, Location>,
    had_consumer: bool,
    deleted: bool,
}

/// What a queue holds, as `queue.declare-ok` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages delivered and not acknowledged.
    pub unacked: usize,
    /// Consumers, blocked ones included.
    pub consumers: usize,
}

/// What is left of a deleted queue.
pub(crate) struct Remains {
    /// How many messages waited in it.
    pub messages: usize,
    /// The consumers that have to be told.
    pub consumers: Vec<Consumer>,
    /// The positions in the log of its messages, to be released once the log knows that it is gone.
    pub positions: Vec<u64>,
}

/// What came of a consumer's turn.
struct Turn {
    handed: u64,
    /// It can take no more for now.
    blocked: bool,
}

/// A delivery that comes back from its consumer.
#[derive(Debug)]
pub(crate) struct Settled {
    pub sequence: u64,
    pub consumer: Option<u32>,
}

/// The oldest message, and what `basic.get-ok` says of it.
pub(crate) struct Polled<'a> {
    pub message: MessageRef<'a>,
    pub redelivered: bool,
    /// Messages behind it.
    pub left: usize,
}

/// What becomes of a message offered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taking {
    ForGood,
    UntilAcked,
    Nothing,
}

/// Who wants to consume, as [`Queue::add_consumer`] needs it.
pub(crate) struct NewConsumer<'a> {
    pub outbox: &'a Arc<Outbox>,
    pub channel: u16,
    pub tag: ShortString,
    pub no_ack: bool,
    pub exclusive: bool,
    pub prefetch: u32,
    pub priority: i32,
    /// Puts consume-ok into the outbox, in front of the first delivery.
    pub reply: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// What a section under the queue's lock leaves to be done after it.
#[derive(Debug, Default)]
struct Settling {
    /// Positions in the log of messages that the queue is done with.
    positions: Vec<u64>,
    /// Places whose memory is freed.
    locations: Vec<Location>,
}

impl Settling {
    fn add(&mut self, location: Location) {
        match location.position() {
            Some(position) => self.positions.push(position),
            None => self.locations.push(location),
        }
    }
}

impl QueueSettings {
    /// Whether the queue and its persistent messages survive a restart.
    pub fn survives(&self) -> bool {
        self.durable && self.exclusive_owner.is_none()
    }
}

impl Queue {
    pub(crate) fn new(id: u64, name: ShortString, settings: QueueSettings) -> Arc<Self> {
        Arc::new(Queue {
            id,
            name,
            settings,
            sources: Sources::default(),
            state: Mutex::default(),
            backlog: AtomicUsize::new(0),
            consumed: AtomicU64::new(0),
            active_consumers: AtomicUsize::new(0),
        })
    }

    /// What it holds right now.
    pub fn status(&self) -> QueueStatus {
        let state = self.state.lock();
        QueueStatus {
            ready: state.ready.len(),
            unacked: state.unacked.len(),
            consumers: state.consumers.len(),
        }
    }

    /// Messages waiting, read without the lock: a hint for pacing publishers.
    pub fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Messages ever handed to consumers, read without the lock.
    pub fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Consumers, read without the lock.
    pub fn consumer_count(&self) -> usize {
        self.active_consumers.load(Ordering::Relaxed)
    }

    /// Adds the messages of `stash`: handed to consumers at once where possible.
    pub(crate) fn publish(
        self: &Arc<Self>,
        stash: &mut Stash<'_>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        if state.deleted {
            settling.positions.extend((0..stash.len()).filter_map(|index| stash.position(index)));
            drop(state);
            return self.settle(settling, Sync::Later, store);
        }
        let State { ready, consumers, unacked, .. } = &mut *state;
        let mut next = 0;
        if ready.is_empty() {
            let mut source = Publishing { stash, next, store, ready };
            self.feed(consumers, &mut source, unacked, &mut settling, wakes)?;
            next = source.next;
        }
        if next < stash.len() {
            stash.keep_from(next, store)?;
            for index in next..stash.len() {
                if let Some(location) = stash.location(index, store) {
                    ready.push(location);
                }
            }
            self.backlog.store(ready.len(), Ordering::Relaxed);
        }
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Notes in the log that the queue is done with some messages, and lets go of them. Called
    /// without the queue's lock.
    fn settle(
        &self,
        mut settling: Settling,
        sync: Sync,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        if settling.positions.is_empty() {
            return Ok(());
        }
        if self.settings.survives() {
            settling.positions.sort_unstable();
            let record = Record::Settled { queue: self.id, positions: &settling.positions };
            store.append(&[record], sync, &mut Vec::new())?;
        }
        settling.positions.iter().for_each(|position| store.release(*position));
        Ok(())
    }

    /// Hands messages from `source` to consumers until either runs out.
    fn feed(
        self: &Arc<Self>,
        consumers: &mut Consumers,
        source: &mut impl Source,
        unacked: &mut FxHashMap<u64, Location>,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut handed = 0;
        while !source.is_empty() {
            let Some((key, alone)) = consumers.next() else { break };
            let Some(consumer) = consumers.get(key) else { break };
            let turn = self.feed_one(consumer, alone, source, unacked, settling, wakes)?;
            handed += turn.handed;
            if turn.blocked {
                consumers.block_next();
            } else {
                consumers.rotate();
            }
        }
        self.consumed.fetch_add(handed, Ordering::Relaxed);
        Ok(())
    }

    /// One consumer's turn: one message, or as many as it can take if nobody else wants any.
    #[inline]
    fn feed_one(
        self: &Arc<Self>,
        consumer: &Consumer,
        alone: bool,
        source: &mut impl Source,
        unacked: &mut FxHashMap<u64, Location>,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> Result<Turn, StoreError> {
        let mut turn = Turn { handed: 0, blocked: false };
        let high_bytes = consumer.outbox.high_bytes();
        let mut outbox = consumer.outbox.lock();
        while !source.is_empty() {
            if let Err(blocked) = outbox.check(consumer.channel, consumer.slot, high_bytes) {
                if blocked == Blocked::OutboxFull {
                    outbox.stall(self);
                }
                turn.blocked = true;
                break;
            }
            if !consumer.no_ack {
                source.prepare_keep()?;
            }
            let Some((message, redelivered)) = source.peek()? else { break };
            if !outbox.deliver(consumer.channel, consumer.slot, &message, redelivered) {
                turn.blocked = true;
                break;
            }
            turn.handed += 1;
            if consumer.no_ack {
                settling.positions.extend(source.pass());
            } else if let Some((sequence, location)) = source.take()
                && let Some(channel) = outbox.channel(consumer.channel)
            {
                channel.await_ack(consumer.slot, sequence);
                unacked.insert(sequence, location);
            }
            if !alone {
                break;
            }
        }
        if outbox.has_news() && outbox.claim_wake() {
            wakes.push(&consumer.outbox);
        }
        Ok(turn)
    }

    /// Hands waiting messages to whoever can take them.
    fn feed_waiting(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        if state.ready.is_empty() {
            return Ok(());
        }
        let State { ready, reader, consumers, unacked, .. } = state;
        let open = reader.get_or_insert_with(|| store.reader());
        self.feed(
            consumers,
            &mut Waiting { ready, reader: &mut **open },
            unacked,
            settling,
            wakes,
        )?;
        if ready.is_empty() {
            *reader = None;
        }
        self.backlog.store(ready.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Acknowledges (or drops) deliveries: their consumers may have more. `in_log` says that the log
    /// knows of it already.
    pub(crate) fn acknowledge(
        self: &Arc<Self>,
        settled: &[Settled],
        in_log: bool,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut acknowledged = Settling::default();
        let mut fed = Settling::default();
        let mut state = self.state.lock();
        for one in settled {
            if let Some(location) = state.unacked.remove(&one.sequence) {
                acknowledged.add(location);
            }
            if let Some(consumer) = one.consumer {
                state.consumers.unblock(consumer);
            }
        }
        if state.unacked.is_empty() {
            state.unacked.shrink_to(KEPT_UNACKED);
        }
        self.feed_waiting(&mut state, &mut fed, store, wakes)?;
        drop(state);
        if in_log {
            acknowledged.positions.iter().for_each(|position| store.release(*position));
        } else {
            fed.positions.append(&mut acknowledged.positions);
        }
        self.settle(fed, Sync::Later, store)
    }

    /// Puts deliveries back to their original places.
    pub(crate) fn requeue(
        self: &Arc<Self>,
        returned: impl Iterator<Item = Settled>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        for one in returned {
            if let Some(location) = state.unacked.remove(&one.sequence) {
                state.ready.put_back(one.sequence, location);
            }
            if let Some(consumer) = one.consumer {
                state.consumers.unblock(consumer);
            }
        }
        self.backlog.store(state.ready.len(), Ordering::Relaxed);
        self.feed_and_settle(state, store, wakes)
    }

    /// The connection of some consumers can send again, or the flow of its channels was resumed.
    pub(crate) fn resume(
        self: &Arc<Self>,
        outbox: &Arc<Outbox>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.consumers.unblock_outbox(outbox);
        self.feed_and_settle(state, store, wakes)
    }

    fn feed_and_settle(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        self.feed_waiting(&mut state, &mut settling, store, wakes)?;
        drop(state);
        self.settle(settling, Sync::Later, store)
    }

    /// Adds a consumer and feeds it.
    pub(crate) fn add_consumer(
        self: &Arc<Self>,
        new: NewConsumer<'_>,
        vhost: &str,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), Fault> {
        let mut state = self.state.lock();
        if state.deleted {
            let name = self.name.as_short_str();
            return Err(Fault::not_found(format_args!("no queue '{name}' in vhost '{vhost}'")));
        }
        if state.consumers.exclusive.is_some() || new.exclusive && state.consumers.len() > 0 {
            return Err(Fault::access_refused(format_args!(
                "queue '{}' in vhost '{vhost}' in exclusive use",
                self.name.as_short_str()
            )));
        }
        let mut outbox = new.outbox.lock();
        let Some(channel) = outbox.channel(new.channel) else { return Ok(()) };
        let slot = channel.add_consumer(self, new.tag, new.no_ack, new.prefetch);
        let consumer =
            Consumer::new(Arc::clone(new.outbox), new.channel, slot, new.no_ack, new.priority);
        let key = state.consumers.add(consumer);
        if let Some(slot) = channel.slot_mut(slot) {
            slot.consumer_key = key;
        }
        (new.reply)(outbox.wire_mut().bytes_mut());
        drop(outbox);
        if new.exclusive {
            state.consumers.exclusive = Some(key);
        }
        state.had_consumer = true;
        self.active_consumers.store(state.consumers.len(), Ordering::Relaxed);
        self.feed_and_settle(state, store, wakes)
            .map_err(|error| Fault::internal_error(format_args!("queue '{}': {error}", self.name)))
    }

    /// Removes a consumer. Returns whether the queue, being auto-delete, has to go with it.
    pub(crate) fn remove_consumer(&self, key: u32) -> bool {
        let mut state = self.state.lock();
        state.consumers.remove(key);
        self.active_consumers.store(state.consumers.len(), Ordering::Relaxed);
        self.settings.auto_delete && state.had_consumer && state.consumers.len() == 0
    }

    /// Offers the oldest message for `basic.get` to `with`, which says what becomes of it. Returns
    /// whether there was one.
    pub(crate) fn poll(
        &self,
        store: &dyn Store,
        with: impl FnOnce(u64, Polled<'_>) -> Taking,
    ) -> Result<bool, StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        let State { ready, reader, unacked, .. } = &mut *state;
        let left = ready.len().saturating_sub(1);
        let Some((sequence, location)) = ready.front() else { return Ok(false) };
        let redelivered = location.marks() & REDELIVERED != 0;
        let reader = reader.get_or_insert_with(|| store.reader());
        let message = match location.in_memory() {
            Some(message) => message,
            None => reader.read(location)?,
        };
        let taking = with(sequence, Polled { message, redelivered, left });
        if taking == Taking::Nothing {
            return Ok(true);
        }
        if let Some((sequence, location)) = ready.pop() {
            match taking {
                Taking::UntilAcked => drop(unacked.insert(sequence, location)),
                _ => settling.add(location),
            }
        }
        if left == 0 {
            state.reader = None;
        }
        self.backlog.store(left, Ordering::Relaxed);
        self.consumed.fetch_add(1, Ordering::Relaxed);
        drop(state);
        self.settle(settling, Sync::Later, store)?;
        Ok(true)
    }

    /// Drops everything that waits. Returns how much that was.
    pub(crate) fn purge(&self, store: &dyn Store) -> Result<usize, StoreError> {
        let mut state = self.state.lock();
        let purged = state.ready.take_all();
        state.reader = None;
        self.backlog.store(0, Ordering::Relaxed);
        drop(state);
        let mut settling = Settling::default();
        purged.for_each_logged(&mut |position, _| settling.positions.push(position));
        self.settle(settling, Sync::Wanted, store)?;
        Ok(purged.len())
    }

    /// Takes back the messages that it had before a restart.
    pub(crate) fn restore(&self, positions: Vec<u64>) {
        let mut state = self.state.lock();
        for position in positions {
            state.ready.push(Location::Log { position, marks: 0 });
        }
        self.backlog.store(state.ready.len(), Ordering::Relaxed);
    }

    /// The positions below `end` of its messages that are in the log, ascending: of all, or only of
    /// those that survive a restart.
    pub(crate) fn positions_below(&self, end: u64, only_surviving: bool) -> Vec<u64> {
        let mut positions = Vec::new();
        let mut add = |position, marks| {
            if position < end && !(only_surviving && marks & SPILLED != 0) {
                positions.push(position);
            }
        };
        let state = self.state.lock();
        state.ready.for_each_logged(&mut add);
        let unacked = state.unacked.values().filter_map(logged);
        unacked.for_each(|(position, marks)| add(position, marks));
        drop(state);
        positions.sort_unstable();
        positions
    }

    /// The position of a message that waits for an acknowledgement, if it is in the log.
    pub(crate) fn unacked_position(&self, sequence: u64) -> Option<u64> {
        self.state.lock().unacked.get(&sequence)?.position()
    }

    /// Marks the queue as gone if `condition` agrees. What it leaves behind is the caller's.
    pub(crate) fn delete(
        &self,
        condition: impl FnOnce(QueueStatus) -> Result<(), Fault>,
    ) -> Result<Remains, Fault> {
        let mut state = self.state.lock();
        condition(QueueStatus {
            ready: state.ready.len(),
            unacked: state.unacked.len(),
            consumers: state.consumers.len(),
        })?;
        state.deleted = true;
        state.reader = None;
        let messages = state.ready.take_all();
        let unacked = std::mem::take(&mut state.unacked);
        let consumers = state.consumers.take_all();
        self.backlog.store(0, Ordering::Relaxed);
        self.active_consumers.store(0, Ordering::Relaxed);
        drop(state);
        let mut positions = Vec::new();
        messages.for_each_logged(&mut |position, _| positions.push(position));
        positions.extend(unacked.values().filter_map(Location::position));
        Ok(Remains { messages: messages.len(), consumers, positions })
    }
}
