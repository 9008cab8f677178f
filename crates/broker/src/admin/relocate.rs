//! Moving messages that are chosen one by one, and moving them back to where they died.

use super::messages::{Shown, publish_taken, refuse_streams};
use super::{Admin, MESSAGES_MAX, MessageView};
use crate::dead_letter::died_in;
use crate::exchange::Envelope;
use crate::fault::{Fault, store_fault};
use crate::posting::InternalPublish;
use crate::queue::{Peeked, Queue};
use crate::routing::{Route, cc};
use crate::vhost::Vhost;
use courser_codec::{ContentHeader, ShortString};
use courser_store::MessageRef;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Messages that one call looks at; who wants more calls again.
const LOOKED_AT_MAX: usize = 100_000;
/// Messages, and bytes of their bodies, that go into one append.
const AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Which messages are meant: those that all of this lets through, the first ones first.
#[derive(Default)]
pub struct Selection<'a> {
    /// Those with these numbers (see [`MessageView::number`]).
    pub numbers: Option<&'a [u64]>,
    /// So many at most.
    pub count: Option<usize>,
    /// Those that it returns true for.
    pub filter: Option<&'a dyn Fn(&MessageView) -> bool>,
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveTo {
    /// To the end of a queue.
    Queue(ShortString),
    /// To an exchange, with another routing key or each with its own.
    Exchange(ShortString, Option<ShortString>),
    /// Each to the queue that it was in before it became a dead letter.
    Origin,
}

/// Where one message goes: whoever moves it has to be allowed to write there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveTarget<'a> {
    /// A queue.
    Queue(&'a [u8]),
    /// An exchange, and the routing key.
    Exchange(&'a [u8], &'a [u8]),
}

/// What came of moving messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// They are in their new places.
    pub moved: usize,
    /// They stay, as there is no place that they could go to.
    pub without_place: usize,
    /// They stay, as they may not go there.
    pub forbidden: usize,
    /// How many were looked at.
    pub looked_at: usize,
    /// There are more that were not looked at, or the place that they go to has no more room.
    pub is_partial: bool,
}

/// A move that is going on.
struct Moving<'a> {
    admin: &'a Admin,
    vhost: Arc<Vhost>,
    source: Arc<Queue>,
    selection: &'a Selection<'a>,
    to: &'a MoveTo,
    may_write: &'a dyn Fn(MoveTarget<'_>) -> bool,
    is_trial: bool,
    done: Relocated,
    /// Messages at the front of the queue that stay.
    passed: usize,
}

/// What goes into one append.
#[derive(Default)]
struct Batch {
    /// The sizes of the bodies, by the messages' numbers.
    chosen: FxHashMap<u64, u64>,
    publishes: FxHashMap<u64, InternalPublish>,
    bytes: usize,
    /// How many are chosen, or would be.
    count: usize,
    /// Whether there is room for the next one is only known when this one is there.
    is_full: bool,
    has_no_room: bool,
}

impl Admin {
    /// Moves messages from a queue to another place in the same vhost, where `may_write` lets them go.
    /// Each is in one of the two places, whatever crashes. With `is_trial` nothing is moved, and it is
    /// said what would be.
    ///
    /// # Errors
    /// When the queue or the place is not there or is another connection's own, both are the same, the
    /// queue is a stream, or the store fails.
    pub fn relocate(
        &self,
        vhost: &str,
        from: &[u8],
        selection: &Selection<'_>,
        to: &MoveTo,
        may_write: &dyn Fn(MoveTarget<'_>) -> bool,
        is_trial: bool,
    ) -> Result<Relocated, Fault> {
        let (vhost, source) = self.own_queue(vhost, from)?;
        let _change = vhost.begin_change()?;
        refuse_streams("move", &vhost, &source)?;
        match to {
            MoveTo::Queue(name) if Arc::ptr_eq(&source, &vhost.queue_for(name.as_bytes(), 0)?) => {
                let same = "a queue's messages can't be moved to itself";
                return Err(Fault::precondition_failed(same));
            }
            MoveTo::Exchange(name, _) if !name.is_empty() => {
                drop(vhost.published_to(name.as_bytes())?)
            }
            _ => {}
        }
        let (done, passed) = (Relocated::default(), 0);
        let mut moving =
            Moving { admin: self, vhost, source, selection, to, may_write, is_trial, done, passed };
        moving.run()?;
        self.broker.check_alarms();
        Ok(moving.done)
    }
}

impl Moving<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        // What comes in the meantime is not meant.
        let there = self.source.status().ready;
        let most = self.selection.count.unwrap_or(usize::MAX);
        let most = self.selection.numbers.map_or(most, |numbers| most.min(numbers.len()));
        while self.done.moved < most && self.done.looked_at < there {
            if self.done.looked_at >= LOOKED_AT_MAX {
                self.done.is_partial = true;
                return Ok(());
            }
            let room = most - self.done.moved;
            let left = there - self.done.looked_at;
            let batch = self.choose(room.min(AT_ONCE), left)?;
            let has_no_room = batch.has_no_room;
            let looked = self.done.looked_at;
            if !self.is_trial && !batch.chosen.is_empty() {
                self.publish(batch)?;
            }
            if has_no_room {
                self.done.is_partial = true;
                return Ok(());
            }
            if looked == 0 {
                // Somebody else has taken everything.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks at messages until there are enough for one append.
    fn choose(&mut self, room: usize, left: usize) -> Result<Batch, Fault> {
        let (vhost, source) = (Arc::clone(&self.vhost), Arc::clone(&self.source));
        let mut batch = Batch::default();
        let (mut failed, mut seen) = (None, 0);
        let store = &*vhost.shard().store;
        let peeked = source.peek(self.passed, left.min(MESSAGES_MAX), store, &mut |peeked| {
            seen += 1;
            self.done.looked_at += 1;
            match self.add(peeked, &mut batch) {
                Ok(true) => {}
                Ok(false) => self.passed += 1,
                Err(fault) => failed = Some(fault),
            }
            let is_enough = batch.count >= room || batch.bytes >= BYTES_AT_ONCE;
            failed.is_none() && !is_enough && !batch.is_full && !batch.has_no_room
        });
        peeked.map_err(|error| source.fault(error))?;
        if seen == 0 {
            // There are fewer than there were.
            self.done.looked_at += left;
        }
        failed.map_or(Ok(batch), Err)
    }

    /// Adds a message if it is meant and has somewhere to go. Returns whether it leaves the queue.
    fn add(&mut self, peeked: Peeked<'_>, batch: &mut Batch) -> Result<bool, Fault> {
        let (number, message) = (peeked.number, peeked.message);
        if self.selection.numbers.is_some_and(|numbers| !numbers.contains(&number)) {
            return Ok(false);
        }
        if let Some(filter) = self.selection.filter {
            let mut shown = Shown { messages: Vec::new(), bytes: 0, body_bytes_max: usize::MAX };
            shown.add(peeked);
            if !shown.messages.first().is_some_and(filter) {
                return Ok(false);
            }
        }
        let mut address = message.address.to_vec();
        let Some(route) = self.route(&message, &mut address)? else { return Ok(false) };
        if route.queues.iter().any(|queue| Arc::ptr_eq(queue, &self.source)) {
            // It would come back to where it is.
            self.done.without_place += 1;
            return Ok(false);
        }
        if route.may_refuse && route.queues.iter().any(|queue| queue.is_full()) {
            batch.has_no_room = true;
            self.done.looked_at -= 1;
            return Ok(false);
        }
        batch.count += 1;
        batch.is_full = route.may_refuse && !self.is_trial;
        batch.bytes += message.body.len();
        if self.is_trial {
            self.done.moved += 1;
            return Ok(false);
        }
        batch.chosen.insert(number, message.body.len() as u64);
        let message = MessageRef { address: &address, ..message };
        let now_ms = self.admin.broker.now_ms();
        let publish = InternalPublish::to(&message, Arc::new(route), now_ms);
        batch.publishes.insert(number, publish);
        Ok(true)
    }

    /// Where a message goes, which is noted in its address if that changes. None if it stays.
    fn route(
        &mut self,
        message: &MessageRef<'_>,
        address: &mut Vec<u8>,
    ) -> Result<Option<Route>, Fault> {
        let properties = ContentHeader::parse(message.header).map(|header| header.properties);
        let properties = properties.unwrap_or_default();
        let queue = match self.to {
            MoveTo::Queue(name) => Some(name.clone()),
            MoveTo::Origin if !message.recorded_deaths => None,
            MoveTo::Origin => properties.headers().ok().flatten().and_then(|all| died_in(&all)),
            MoveTo::Exchange(exchange, key) => {
                let key = key.as_ref().map_or(message.routing_key(), ShortString::as_bytes);
                if !(self.may_write)(MoveTarget::Exchange(exchange.as_bytes(), key)) {
                    self.done.forbidden += 1;
                    return Ok(None);
                }
                let keys = cc::keys(key, properties)?;
                let envelope = Envelope { keys: &keys, properties };
                let route = self.vhost.route(exchange.as_bytes(), &envelope)?;
                if route.is_nowhere() {
                    self.done.without_place += 1;
                    return Ok(None);
                }
                address.clear();
                for part in [exchange.as_bytes(), key] {
                    // A short string has 255 bytes at most.
                    address.push(part.len() as u8);
                    address.extend_from_slice(part);
                }
                return Ok(Some(route));
            }
        };
        let queue = queue.and_then(|name| self.vhost.queue_for(name.as_bytes(), 0).ok());
        let Some(queue) = queue else {
            self.done.without_place += 1;
            return Ok(None);
        };
        if !(self.may_write)(MoveTarget::Queue(queue.name.as_bytes())) {
            self.done.forbidden += 1;
            return Ok(None);
        }
        Ok(Some(Route::to(&queue)))
    }

    /// Takes the messages out of the queue, and publishes them.
    fn publish(&mut self, batch: Batch) -> Result<(), Fault> {
        let Batch { chosen, mut publishes, .. } = batch;
        let holder = self.admin.holder(&self.vhost);
        let within = self.passed + chosen.len();
        let taken = self.source.take_chosen(&chosen, within, &holder);
        let publishes = taken.iter().filter_map(|one| publishes.remove(&one.sequence)).collect();
        let moved = publish_taken(&self.vhost, &self.source, taken, Ok(publishes));
        self.done.moved += moved.map_err(store_fault)?;
        Ok(())
    }
}
