//! A portion of a move: which messages it takes, where each of them goes, and how they get there.

use super::{MayWrite, MoveTo, Relocated, Relocation, Selection};
use crate::admin::MESSAGES_MAX;
use crate::admin::messages::publish_taken;
use crate::admin::shown::Shown;
use crate::dead_letter::died_in;
use crate::exchange::Envelope;
use crate::fault::{Fault, store_fault};
use crate::posting::InternalPublish;
use crate::queue::{Cursor, Peeked, Seen};
use crate::routing::{Route, cc};
use crate::vhost::WriteTarget;
use crate::work::Budget;
use courser_codec::{ContentHeader, ShortString};
use courser_store::MessageRef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Messages, and bytes of bodies that a filter gets to see, that one move looks at.
const LOOKED_AT_MAX: usize = 100_000;
const LOOKED_AT_BYTES_MAX: usize = 1 << 30;
/// Bytes of bodies that a filter gets to see in one portion, unless the first message alone is larger.
const PORTION_BYTES_MAX: usize = 4 << 20;
/// Messages, and bytes of their bodies, that go into one append.
const AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 1 << 20;
/// Steps that their routes take, and what goes to the queues of these; one route more may be begun.
const STEPS_AT_ONCE: u64 = 1 << 20;

/// A portion of a move.
pub(super) struct Moving<'a> {
    pub relocation: &'a mut Relocation,
    pub selection: &'a Selection<'a>,
    /// The numbers that the selection names.
    pub numbers: Option<FxHashSet<u64>>,
    pub may_write: &'a MayWrite<'a>,
}

/// What goes into one append.
#[derive(Default)]
struct Batch {
    /// The messages' numbers, in the queue's order.
    chosen: Vec<u64>,
    publishes: FxHashMap<u64, InternalPublish>,
    bytes: usize,
    /// How many are chosen, or would be.
    count: usize,
    /// Whether the next one would be taken is only known when this one is there.
    is_full: bool,
    /// The move ends before the next message: there is no room for it, or it can't be asked whether it may go there.
    is_cut_short: bool,
}

impl Moving<'_> {
    /// Moves some more messages. Returns whether there is more to do.
    pub fn go_on(&mut self) -> Result<bool, Fault> {
        let ready = self.relocation.source.status().ready;
        let Relocation { there, cursor, done, seen_bytes, is_trial, .. } = &mut *self.relocation;
        let (is_trial, seen_bytes) = (*is_trial, *seen_bytes);
        let there = *there.get_or_insert_with(|| {
            done.next = self.selection.skip;
            *cursor = Cursor::skipping(self.selection.skip);
            ready.saturating_sub(self.selection.skip)
        });
        let most = self.selection.count.unwrap_or(usize::MAX);
        let most = self.selection.numbers.map_or(most, |numbers| most.min(numbers.len()));
        if done.moved >= most || done.looked_at >= there {
            return Ok(false);
        }
        if done.looked_at >= LOOKED_AT_MAX || seen_bytes >= LOOKED_AT_BYTES_MAX {
            done.is_partial = true;
            return Ok(false);
        }
        let (room, left) = (most - done.moved, there - done.looked_at);
        let batch = self.choose(room.min(AT_ONCE), left)?;
        let is_cut_short = batch.is_cut_short;
        if !is_trial && !batch.chosen.is_empty() {
            self.publish(batch)?;
        }
        let done = &mut self.relocation.done;
        done.is_partial |= is_cut_short;
        // Without a message, others have taken everything.
        Ok(!is_cut_short && done.looked_at > 0)
    }

    /// Looks at messages until there are enough for one append.
    fn choose(&mut self, room: usize, left: usize) -> Result<Batch, Fault> {
        let (vhost, source) =
            (Arc::clone(&self.relocation.vhost), Arc::clone(&self.relocation.source));
        let mut batch = Batch::default();
        let budget = Budget::of_steps(STEPS_AT_ONCE);
        let (mut failed, mut seen) = (None, 0);
        let store = &*vhost.shard().store;
        let (cursor, seen_before) = (self.relocation.cursor, self.relocation.seen_bytes);
        let peeked = source.peek(cursor, left.min(MESSAGES_MAX), store, &mut |one| {
            seen += 1;
            let (number, added) = match one {
                Seen::Message(peeked) => (peeked.number, self.add(peeked, &mut batch)),
                Seen::Lost(number) => (number, Ok(false)),
            };
            if batch.is_cut_short {
                // Another move begins with this message.
                return false;
            }
            self.relocation.cursor = Cursor::behind(number);
            self.relocation.done.looked_at += 1;
            match added {
                Ok(true) => {}
                Ok(false) => self.relocation.done.next += 1,
                Err(fault) => failed = Some(fault),
            }
            let is_enough = batch.count >= room
                || batch.bytes >= BYTES_AT_ONCE
                || budget.is_spent()
                || self.relocation.seen_bytes - seen_before >= PORTION_BYTES_MAX;
            failed.is_none() && !is_enough && !batch.is_full
        });
        peeked.map_err(|error| source.fault(error))?;
        if seen == 0 {
            // There are fewer than there were.
            self.relocation.done.looked_at += left;
        }
        failed.map_or(Ok(batch), Err)
    }

    /// Adds a message if it is meant and has somewhere to go. Returns whether it leaves the queue.
    fn add(&mut self, peeked: Peeked<'_>, batch: &mut Batch) -> Result<bool, Fault> {
        let (number, message) = (peeked.number, peeked.message);
        if self.numbers.as_ref().is_some_and(|numbers| !numbers.contains(&number)) {
            return Ok(false);
        }
        if let Some(filter) = self.selection.filter {
            self.relocation.seen_bytes += message.body.len();
            let mut shown = Shown::new(usize::MAX);
            shown.add(peeked);
            if !shown.messages.first().is_some_and(filter) {
                return Ok(false);
            }
        }
        let mut address = message.address.to_vec();
        let Some(route) = self.route(&message, &mut address, batch)? else { return Ok(false) };
        if route.queues.iter().any(|queue| Arc::ptr_eq(queue, &self.relocation.source)) {
            // It would come back to where it is.
            self.relocation.done.without_place += 1;
            return Ok(false);
        }
        let shard = self.relocation.vhost.shard();
        if route.holds_same(&message, shard).map_err(store_fault)? {
            // It would be dropped there.
            self.relocation.done.without_place += 1;
            return Ok(false);
        }
        let body_bytes = message.body.len();
        if route.may_refuse && route.queues.iter().any(|queue| queue.is_full(body_bytes)) {
            batch.is_cut_short = true;
            return Ok(false);
        }
        batch.count += 1;
        let is_picky = route.may_refuse || route.holds_no_two;
        batch.is_full = is_picky && !self.relocation.is_trial;
        batch.bytes += body_bytes;
        if self.relocation.is_trial {
            self.relocation.done.moved += 1;
            return Ok(false);
        }
        batch.chosen.push(number);
        let message = MessageRef { address: &address, ..message };
        let now_ms = self.relocation.admin.broker.now_ms();
        let publish = InternalPublish::to(&message, Arc::new(route), now_ms);
        batch.publishes.insert(number, publish);
        Ok(true)
    }

    /// Where a message goes, which is noted in its address if that changes. None if it stays.
    fn route(
        &mut self,
        message: &MessageRef<'_>,
        address: &mut Vec<u8>,
        batch: &mut Batch,
    ) -> Result<Option<Route>, Fault> {
        let properties = ContentHeader::parse(message.header).map(|header| header.properties);
        let properties = properties.unwrap_or_default();
        let queue = match &self.relocation.to {
            MoveTo::Queue(name) => Some(name.clone()),
            MoveTo::Origin if !message.recorded_deaths => None,
            MoveTo::Origin => properties.headers().ok().flatten().and_then(|all| died_in(&all)),
            MoveTo::Exchange(exchange, key) => {
                let key = key.as_ref().map_or(message.routing_key(), ShortString::as_bytes);
                let keys = match message.one_key {
                    true => vec![key],
                    false => cc::keys(key, properties)?,
                };
                let targets = self.relocation.vhost.publish_targets(exchange.as_bytes(), &keys);
                if !is_permitted(targets, self.may_write, &mut self.relocation.done, batch) {
                    return Ok(None);
                }
                let envelope = Envelope { keys: &keys, properties };
                // One that takes too long to route stays as well, and holds up no other.
                let route = match self.relocation.vhost.route(exchange.as_bytes(), &envelope, &[]) {
                    Err(fault) if fault.code != 506 => return Err(fault),
                    route => route.ok().filter(|route| !route.is_nowhere()),
                };
                let Some(route) = route else {
                    self.relocation.done.without_place += 1;
                    return Ok(None);
                };
                address.clear();
                for part in [exchange.as_bytes(), key] {
                    // A short string has 255 bytes at most.
                    address.push(part.len() as u8);
                    address.extend_from_slice(part);
                }
                return Ok(Some(route));
            }
        };
        let queue = queue.and_then(|name| self.relocation.vhost.queue_for(name.as_bytes(), 0).ok());
        let Some(queue) = queue else {
            self.relocation.done.without_place += 1;
            return Ok(None);
        };
        let target = std::iter::once(WriteTarget::Queue(queue.name.as_bytes()));
        let is_permitted = is_permitted(target, self.may_write, &mut self.relocation.done, batch);
        Ok(is_permitted.then(|| Route::to(&queue)))
    }

    /// Takes the messages out of the queue, and publishes them.
    fn publish(&mut self, batch: Batch) -> Result<(), Fault> {
        let Batch { chosen, mut publishes, .. } = batch;
        let holder = self.relocation.admin.holder(&self.relocation.vhost);
        let taken = self.relocation.source.take_chosen(&chosen, &holder);
        let count = taken.len();
        let publishes = taken.iter().filter_map(|one| publishes.remove(&one.sequence)).collect();
        let moved =
            publish_taken(&self.relocation.vhost, &self.relocation.source, taken, Ok(publishes));
        let moved = moved.map_err(store_fault)?;
        self.relocation.done.moved += moved;
        // Others return when a queue that they would go to is deleted.
        self.relocation.done.is_partial |= moved < count;
        Ok(())
    }
}

/// Whether a message may go to all of these. Notes it if not.
fn is_permitted<'t>(
    targets: impl Iterator<Item = WriteTarget<'t>>,
    may_write: &MayWrite<'_>,
    done: &mut Relocated,
    batch: &mut Batch,
) -> bool {
    let mut answers = targets.map(may_write);
    match answers.find(|answer| *answer != Some(true)) {
        None => return true,
        Some(Some(_)) => done.forbidden += 1,
        Some(None) => batch.is_cut_short = true,
    }
    false
}
