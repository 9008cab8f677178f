//! The consumers of a queue, and whose turn it is.
//!
//! A queue may have a hundred thousand of them, and all may go at once: whatever happens to one takes
//! the same time however many there are. Those of one kind are linked in a ring by their keys.

use super::consumer_table::ConsumerTable;
use super::handed_out::Receiver;
use super::single_active::SingleActive;
use super::{NewConsumer, Queue, State};
use crate::memory::Charge;
use crate::outbox::wire::WireBuffer;
use crate::outbox::{Outbox, Until};
use crate::wakes::Wakes;
use crate::work;
use courser_codec::basic;
use courser_store::Lsn;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A consumer as its queue sees it.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub outbox: Arc<Outbox>,
    pub channel: u16,
    /// The channel's slot that holds its tag and credit.
    pub slot: u32,
    pub no_ack: bool,
    /// The higher, the earlier (`x-priority`).
    pub priority: i64,
    /// How long it may take to acknowledge a message, if not as long as all others.
    pub timeout_ms: Option<u64>,
    place: Place,
    /// Its neighbours in the ring of those in the same place.
    previous: u32,
    next: u32,
}

/// A consumer, as lists show it.
pub(crate) struct ConsumerStanding {
    pub outbox: Arc<Outbox>,
    pub channel: u16,
    pub slot: u32,
    pub no_ack: bool,
    pub priority: i64,
    /// As in [`Consumer`].
    pub own_timeout_ms: Option<u64>,
    /// How long it may take to acknowledge a message.
    pub timeout_ms: Option<u64>,
    pub exclusive: bool,
    /// It is not waiting for a single active consumer to go.
    pub active: bool,
}

impl ConsumerStanding {
    /// Those of a queue.
    pub(super) fn all_of(state: &State) -> Vec<Self> {
        let keys = state.consumers.all.iter().map(|(key, _)| key);
        keys.filter_map(|key| ConsumerStanding::of(state, key)).collect()
    }

    /// That of the consumer with this key.
    pub(super) fn of(state: &State, key: u32) -> Option<Self> {
        work::count(1);
        let consumers = &state.consumers;
        let consumer = consumers.get(key)?;
        let timeout_ms = state.traits.as_ref().and_then(|traits| traits.consumer_timeout_ms);
        Some(ConsumerStanding {
            outbox: Arc::clone(&consumer.outbox),
            channel: consumer.channel,
            slot: consumer.slot,
            no_ack: consumer.no_ack,
            priority: consumer.priority,
            own_timeout_ms: consumer.timeout_ms,
            timeout_ms: consumer.timeout_ms.or(timeout_ms),
            exclusive: consumers.exclusive == Some(key),
            active: consumer.place != Place::Waiting,
        })
    }
}

/// What a channel is known by here: its connection and its number.
pub(super) type ChannelKey = (usize, u16);

/// Where a consumer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It can take a message: in the ring of its priority.
    Ring,
    /// It has no credit, or its connection has enough to send: in the ring of its connection.
    Blocked,
    /// The limit for all consumers of its channel is used up: in the ring of its channel.
    Starved,
    /// Another one is the single active consumer.
    Waiting,
}

impl Consumer {
    /// What one uses in its queue.
    pub const NEW_BYTES: usize = size_of::<Option<Self>>() + PLACE_BYTES + BLOCKED_BYTES;

    pub fn new(new: &NewConsumer<'_>, slot: u32) -> Self {
        let NewConsumer { channel, no_ack, priority, timeout_ms, .. } = *new;
        let (outbox, place) = (Arc::clone(new.outbox), Place::Waiting);
        let (previous, next) = (0, 0);
        Consumer { outbox, channel, slot, no_ack, priority, timeout_ms, place, previous, next }
    }

    /// It, as who gets a message.
    #[inline]
    pub(super) fn receiver(&self) -> Receiver<'_> {
        let Consumer { ref outbox, channel, slot, timeout_ms, .. } = *self;
        Receiver { outbox, channel, slot, timeout_ms }
    }

    pub(super) fn channel_key(&self) -> ChannelKey {
        (address(&self.outbox), self.channel)
    }

    /// Ends it, as `queue` gives it nothing any more, and tells its client if it wants to know, when the log is durable up to
    /// `told_at`.
    pub(crate) fn cancel(&self, queue: &Arc<Queue>, told_at: Lsn, wakes: &mut Wakes) {
        let mut outbox = self.outbox.lock();
        let Some(channel) = outbox.channel(self.channel) else { return };
        // Its client may have cancelled it at the same moment and put the slot to another use.
        let Some(slot) = channel.slot(self.slot).filter(|slot| Arc::ptr_eq(&slot.queue, queue))
        else {
            return;
        };
        let tag = slot.consumer_tag.clone();
        if slot.stream_reader.is_some() {
            // What reads for it goes when the connection is woken.
            wakes.push(&self.outbox);
        }
        channel.end_consumer(self.slot);
        let Some(tag) = tag.filter(|_| self.outbox.cancel_notify) else { return };
        let ended = basic::Cancel { consumer_tag: tag.as_short_str(), nowait: true };
        let write = |wire: &mut WireBuffer| ended.write_frame(self.channel, wire.bytes_mut());
        match told_at == Lsn::default() {
            true => outbox.put(self.channel, write),
            false => {
                outbox.put_answer(self.channel, Until::durable(told_at), write);
                self.outbox.note_holding_back(true);
            }
        }
        if outbox.claim_wake() {
            wakes.push(&self.outbox);
        }
    }
}

/// What a consumer uses besides its entry: it may be the only one of its priority and channel, in the ring that uses most.
const PLACE_BYTES: usize = 224;
/// What a connection uses whose consumers are blocked: an entry of a map that is half full.
const BLOCKED_BYTES: usize = (size_of::<(usize, u32)>() + 1) * 16 / 7;

/// Consumers by key, and for each priority those that can take a message, in the order of turns.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    all: ConsumerTable,
    /// The most that there were since what they need in rings was last given back.
    most: usize,
    charge: Charge,
    /// The one whose turn it is, for each priority that has any; the highest is the last.
    turns: BTreeMap<i64, u32>,
    /// The one that has been blocked longest, for each connection that has any.
    blocked: FxHashMap<usize, u32>,
    /// For each channel whose limit was used up, and for each priority, the one that has waited longest.
    pub(super) starved: BTreeMap<ChannelKey, BTreeMap<i64, u32>>,
    /// The key of the exclusive consumer, if there is one.
    pub exclusive: Option<u32>,
    /// There if only one consumer at a time is to get messages.
    pub(super) single: Option<Box<SingleActive>>,
}

impl Consumers {
    /// No consumers yet, of which only one at a time will be active if `single` is there. What they use is counted by `charge`.
    pub fn new(single: Option<SingleActive>, charge: Charge) -> Self {
        Consumers { single: single.map(Box::new), charge, ..Consumers::default() }
    }

    /// Counts what they use, after one has come or gone.
    fn count_memory(&mut self) {
        self.charge
            .set(self.all.used_bytes() + self.len() * PLACE_BYTES + self.most * BLOCKED_BYTES);
    }

    /// Whether only one consumer at a time gets messages.
    pub fn has_single_active(&self) -> bool {
        self.single.is_some()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Calls `each` with the connection of every consumer.
    pub fn for_each_outbox(&self, each: &mut dyn FnMut(&Arc<Outbox>)) {
        self.all.iter().for_each(|(_, consumer)| each(&consumer.outbox));
    }

    /// Whether the consumer with this key is one of this connection and channel.
    pub fn is_of(&self, key: u32, outbox: &Arc<Outbox>, channel: u16) -> bool {
        self.get(key).is_some_and(|one| Arc::ptr_eq(&one.outbox, outbox) && one.channel == channel)
    }

    #[inline]
    pub fn get(&self, key: u32) -> Option<&Consumer> {
        self.all.get(key)
    }

    #[inline]
    fn get_mut(&mut self, key: u32) -> Option<&mut Consumer> {
        self.all.get_mut(key)
    }

    /// Adds a consumer, ready to take messages when it is to get any. Returns its key.
    pub fn add(&mut self, consumer: Consumer) -> u32 {
        let priority = consumer.priority;
        let key = self.all.add(consumer);
        self.most = self.most.max(self.len());
        self.count_memory();
        match &mut self.single {
            None => self.put_into_ring(key),
            Some(single) => {
                single.add(key, priority);
                self.activate_next();
            }
        }
        key
    }

    /// Removes a consumer. The place of the single active one stays vacant until
    /// [`Consumers::fill_place`], so that what it leaves can return first.
    pub fn remove(&mut self, key: u32) -> Option<Consumer> {
        self.unlink(key);
        let consumer = self.all.remove(key)?;
        // It may have had its turn for others.
        self.promote(consumer.channel_key());
        if self.exclusive == Some(key) {
            self.exclusive = None;
        }
        if let Some(single) = &mut self.single {
            single.remove(key, consumer.priority);
        }
        if self.len() * 4 <= self.most {
            self.blocked.shrink_to(2 * self.len());
            self.most = 2 * self.len();
        }
        self.count_memory();
        Some(consumer)
    }

    /// Removes all consumers.
    pub fn take_all(&mut self) -> Vec<Consumer> {
        let single = self.single.as_deref().map(|single| SingleActive::new(single.by_priority()));
        let none = Consumers::new(single, self.charge.another());
        std::mem::replace(self, none).all.into_consumers().collect()
    }

    /// The key of the consumer whose turn it is, and whether it is the only one to choose from.
    #[inline]
    pub fn next(&self) -> Option<(u32, bool)> {
        let (_, key) = self.turns.last_key_value()?;
        let consumer = self.get(*key)?;
        Some((*key, consumer.next == *key && !self.is_followed(consumer)))
    }

    /// Ends the turn of a consumer: the next one of its ring follows.
    #[inline]
    pub fn rotate(&mut self, key: u32) {
        let Some(consumer) = self.get(key) else { return };
        let (priority, next) = (consumer.priority, consumer.next);
        if next != key {
            advance(self.turns.get_mut(&priority), key, next);
        }
    }

    /// Makes it the turn of a consumer in the rings that `takes` it, of those with the highest priority the
    /// next one. Returns which one that is, if there is one, and how many have been asked.
    #[cold]
    pub fn pass_turn(&mut self, takes: impl Fn(&Consumer) -> bool) -> (Option<u32>, u64) {
        let mut asked = 0;
        for (_, first) in self.turns.iter_mut().rev() {
            let mut key = *first;
            while let Some(consumer) = self.all.get(key) {
                asked += 1;
                if takes(consumer) {
                    *first = key;
                    return (Some(key), asked);
                }
                key = consumer.next;
                if key == *first {
                    break;
                }
            }
        }
        (None, asked)
    }

    /// Whether a consumer has a place.
    pub(super) fn is_at(&self, key: u32, place: Place) -> bool {
        self.get(key).is_some_and(|consumer| consumer.place == place)
    }

    /// Puts a blocked consumer back into the ring, at the end.
    pub fn unblock(&mut self, key: u32) {
        work::count(1);
        if self.is_at(key, Place::Blocked) {
            self.unlink(key);
            self.link(key, Place::Ring);
        }
    }

    /// Puts the blocked consumers of one connection back into the ring, first who was blocked first.
    pub fn unblock_outbox(&mut self, outbox: &Arc<Outbox>) {
        while let Some(first) = self.blocked.get(&address(outbox)) {
            self.unblock(*first);
        }
    }

    /// Lets a consumer take its turns, as the last one.
    pub(super) fn put_into_ring(&mut self, key: u32) {
        self.unlink(key);
        self.link(key, Place::Ring);
    }

    /// Ends a consumer's turns.
    pub(super) fn leave_ring(&mut self, key: u32, place: Place) {
        self.unlink(key);
        self.link(key, place);
    }

    /// Puts a consumer that is in no ring at the end of that of its new place.
    pub(super) fn link(&mut self, key: u32, place: Place) {
        let Some(consumer) = self.get_mut(key) else { return };
        consumer.place = place;
        let (priority, channel) = (consumer.priority, consumer.channel_key());
        let first = match place {
            Place::Ring => *self.turns.entry(priority).or_insert(key),
            Place::Blocked => *self.blocked.entry(channel.0).or_insert(key),
            Place::Starved => {
                *self.starved.entry(channel).or_default().entry(priority).or_insert(key)
            }
            Place::Waiting => return,
        };
        let last = match self.get(first) {
            Some(first_one) if first != key => first_one.previous,
            _ => key,
        };
        self.join(last, key);
        self.join(key, first);
    }

    /// Takes a consumer out of the ring that it is in, if any.
    pub(super) fn unlink(&mut self, key: u32) {
        let Some(consumer) = self.get_mut(key) else { return };
        let place = std::mem::replace(&mut consumer.place, Place::Waiting);
        let (previous, next) = (consumer.previous, consumer.next);
        let (priority, channel) = (consumer.priority, consumer.channel_key());
        let is_alone = next == key;
        match place {
            Place::Waiting => return,
            Place::Ring if is_alone => drop(self.turns.remove(&priority)),
            Place::Blocked if is_alone => drop(self.blocked.remove(&channel.0)),
            Place::Starved if is_alone => self.starve_none(channel, priority),
            Place::Ring => advance(self.turns.get_mut(&priority), key, next),
            Place::Blocked => advance(self.blocked.get_mut(&channel.0), key, next),
            Place::Starved => {
                let rings = self.starved.get_mut(&channel);
                advance(rings.and_then(|rings| rings.get_mut(&priority)), key, next);
            }
        }
        self.join(previous, next);
    }

    fn join(&mut self, one: u32, next: u32) {
        if let Some(consumer) = self.get_mut(one) {
            consumer.next = next;
        }
        if let Some(consumer) = self.get_mut(next) {
            consumer.previous = one;
        }
    }
}

/// A ring that begins at `key` begins at `next` from now on.
fn advance(first: Option<&mut u32>, key: u32, next: u32) {
    if let Some(first) = first.filter(|first| **first == key) {
        *first = next;
    }
}

/// What a connection is known by here.
pub(super) fn address(outbox: &Arc<Outbox>) -> usize {
    Arc::as_ptr(outbox).addr()
}
