//! Dead letters: messages that leave a queue otherwise than by being consumed, and go to the
//! exchange that the queue names for them.
//!
//! A queue notes them under its lock and keeps them in its books until they have arrived. They are
//! published when that lock is not held, of each queue by one thread at a time, so that they arrive
//! in the order in which they left: the new messages and the end of the old ones go into the store
//! in one append, so that a crash neither loses nor doubles one. The thread that publishes holds the
//! shard's gate, and calls [`Shard::post_dead_letters`] before it lets go of it.

mod death;
mod letter;

pub(crate) use death::{Reason, began_at, died_in};

use crate::exchange::Envelope;
use crate::gate;
use crate::posting::{Logged, Routed};
use crate::queue::{DeadLetterTo, Letter, Queue};
use crate::routing::cc;
use crate::routing::{Namespace, Route, Screening};
use crate::shard::Shard;
use crate::wakes::Wakes;
use crate::work::{self, Budget};
use courser_codec::ContentHeader;
use courser_store::{Reader, Record, StoreError};
use letter::Rewritten;
use std::sync::Arc;

/// Letters, and bytes of their bodies, that go into one append.
const LETTERS_PER_APPEND: usize = 256;
const APPEND_BYTES: usize = 1 << 20;
/// Letters and copies of what is traced that are posted in one go, while others wait; timers go on with the rest.
pub(crate) const LETTERS_AT_ONCE: usize = 4096;
/// Bytes of their bodies, as of one of the largest messages; one append more may be begun.
const BYTES_AT_ONCE: usize = 16 * APPEND_BYTES;

/// Steps that their routes, and what goes to the queues of these, take in one go, and for one append: some ten milliseconds.
/// One route more may be begun.
const STEPS_AT_ONCE: u64 = 1 << 21;
const STEPS_PER_APPEND: u64 = 1 << 20;

/// How far one go has come.
pub(crate) struct Go {
    /// Letters and copies that may still be posted.
    pub left: usize,
    /// Bytes of bodies that have been read.
    pub read_bytes: usize,
    budget: Budget,
}

impl Go {
    fn begin() -> Self {
        Go { left: LETTERS_AT_ONCE, read_bytes: 0, budget: Budget::of_steps(STEPS_AT_ONCE) }
    }

    /// Whether the rest is for the next one.
    pub fn is_over(&self) -> bool {
        self.left == 0 || self.read_bytes >= BYTES_AT_ONCE || self.budget.is_spent()
    }
}

/// A letter that leaves its queue.
struct Outgoing {
    number: u64,
    /// None if it can't be read any more.
    departure: Option<Departure>,
}

/// What a letter has become, and where that goes.
struct Departure {
    rewritten: Rewritten,
    route: Route,
    /// Exchanges on the way keep copies of it.
    with_copies: bool,
    reason: Reason,
    /// It had been delivered before it was delivered last, if it was.
    redelivered: bool,
}

impl Departure {
    /// The route without the exchanges and queues that have had the message; `None` if none of them has.
    fn narrow<'r>(
        &'r self,
        index: usize,
        screening: &mut Screening<'r>,
        vhost: &dyn Namespace,
        to: &DeadLetterTo,
    ) -> Option<Arc<Route>> {
        let properties = ContentHeader::parse(&self.rewritten.header).ok()?.properties;
        let reroute = |had: &[u64]| {
            let mut route = route_letter(vhost, to, &self.rewritten, had)?;
            avoid_circles(&mut route, &self.rewritten, self.reason);
            if !self.with_copies {
                route.leave_out_copies();
            }
            Some(route)
        };
        screening.narrow(index, &self.route, properties, reroute).ok().flatten()
    }
}

impl Shard {
    /// Publishes what has left queues, and what leaves others by that, and copies of what is traced: a
    /// bounded number of them. Called with the gate held and without any lock. Returns whether there was
    /// anything to publish.
    #[inline]
    pub(crate) fn post_dead_letters(&self, wakes: &mut Wakes) -> bool {
        let (mut any, mut go) = (false, Go::begin());
        loop {
            while let Some(queues) = wakes.take_lettered() {
                gate::assert_inside("dead letters are posted");
                queues.iter().for_each(|queue| self.post_letters(queue, &mut go, wakes));
                any = true;
            }
            let traced = wakes.take_traced();
            if traced.is_empty() {
                return any;
            }
            traced.iter().for_each(|copies| copies.post_some(&mut go, wakes));
            any = true;
        }
    }

    #[cold]
    fn post_letters(&self, queue: &Queue, go: &mut Go, wakes: &mut Wakes) {
        // Another thread may be posting what left before. One of the two posts everything.
        let _order = queue.lock_posting();
        loop {
            let most = if go.is_over() { 0 } else { go.left.min(LETTERS_PER_APPEND) };
            let mut letters = queue.take_letters(most);
            if letters.is_empty() {
                return queue.post_more_soon();
            }
            let (mut at_once, mut with_copies) = (letters.len(), true);
            while !letters.is_empty() {
                let some = &letters[..at_once.min(letters.len())];
                let done = match self.post_some(queue, some, with_copies, go, wakes) {
                    Ok(posted) => posted,
                    // One that is too large holds up no other. Another go would begin as this one has: it goes on with less.
                    Err(StoreError::TooLarge(_)) if at_once > 1 => {
                        at_once = 1;
                        continue;
                    }
                    Err(StoreError::TooLarge(_)) if with_copies => {
                        with_copies = false;
                        continue;
                    }
                    Err(StoreError::TooLarge(_)) => {
                        let number = letters[0].number;
                        match queue.has_room_to_keep(number) {
                            true => queue.keep_too_large(number),
                            // If the log can't be told, its owner ends the broker.
                            false => drop(queue.forget_dead(&[number], false, &*self.store)),
                        }
                        1
                    }
                    Err(_) => {
                        // No room on the disk, if it is not the end of the broker.
                        let numbers: Vec<u64> = letters.iter().map(|one| one.number).collect();
                        queue.strand_dead(&numbers);
                        numbers.len()
                    }
                };
                with_copies = true;
                drop(letters.drain(..done));
                go.left -= done;
                if go.is_over() {
                    queue.leave_letters(letters);
                    break;
                }
            }
        }
    }

    /// Posts as many of these letters of a queue as go into one append, with copies for the exchanges on their way that keep
    /// some. Returns how many.
    fn post_some(
        &self,
        queue: &Queue,
        letters: &[Letter],
        with_copies: bool,
        go: &mut Go,
        wakes: &mut Wakes,
    ) -> Result<usize, StoreError> {
        let (Some(vhost), Some(to)) = (queue.namespace(), queue.dead_letter_to()) else {
            // There is nowhere to go any more.
            let numbers: Vec<u64> = letters.iter().map(|letter| letter.number).collect();
            queue.forget_dead(&numbers, false, &*self.store)?;
            queue.retry_dead_soon();
            return Ok(letters.len());
        };
        let mut reader = self.store.reader();
        let (mut outgoing, mut stranded) = (Vec::new(), Vec::new());
        let (read_before, mut taken, mut is_last) = (go.read_bytes, 0, false);
        let budget = Budget::of_steps(STEPS_PER_APPEND);
        for letter in letters {
            taken += 1;
            let rewritten = match self.rewrite(queue, letter, &to, &mut *reader, go) {
                Ok(Some(rewritten)) => rewritten,
                Ok(None) => {
                    outgoing.push(Outgoing { number: letter.number, departure: None });
                    continue;
                }
                Err(_) => {
                    // Another try may read it; it holds up no other.
                    stranded.push(letter.number);
                    continue;
                }
            };
            match find_route(&*vhost, &to, &rewritten, letter.reason, with_copies) {
                None => stranded.push(letter.number),
                Some(route) => {
                    work::count_copies(route.queues.len());
                    // Whether there is room for the next one is only known when this one is there.
                    is_last = to.at_least_once && route.may_refuse;
                    let (reason, redelivered) = (letter.reason, letter.is_redelivered());
                    let departure =
                        Departure { rewritten, route, with_copies, reason, redelivered };
                    outgoing.push(Outgoing { number: letter.number, departure: Some(departure) });
                }
            }
            if is_last || go.read_bytes - read_before >= APPEND_BYTES || budget.is_spent() {
                break;
            }
        }
        if !outgoing.is_empty() {
            self.publish_letters(queue, &*vhost, &to, outgoing, wakes)?;
        }
        if !stranded.is_empty() {
            queue.strand_dead(&stranded);
        }
        Ok(taken)
    }

    /// What becomes of a letter; none if it can't be read any more.
    fn rewrite(
        &self,
        queue: &Queue,
        letter: &Letter,
        to: &DeadLetterTo,
        reader: &mut dyn Reader,
        go: &mut Go,
    ) -> Result<Option<Rewritten>, StoreError> {
        let message = match letter.location.in_memory() {
            Some(message) => message,
            None => match reader.read(&letter.location) {
                Err(StoreError::Lost(_)) => return Ok(None),
                read => read?,
            },
        };
        go.read_bytes += message.body.len();
        let bounds = (self.timers.now_ms(), self.header_max_bytes);
        Ok(Rewritten::of(&message, queue, to, letter.reason, bounds).ok())
    }

    /// Puts letters into the queues of their routes, and ends them in the queue they come from.
    fn publish_letters(
        &self,
        queue: &Queue,
        vhost: &dyn Namespace,
        to: &DeadLetterTo,
        outgoing: Vec<Outgoing>,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let now_ms = self.timers.now_ms();
        let departures = || outgoing.iter().filter_map(|one| one.departure.as_ref());
        let routes = departures().map(|one| &one.route);
        let mut screening = Screening::begin(routes, &*self.store, now_ms)?;
        let narrowed: Vec<Option<Arc<Route>>> = departures()
            .enumerate()
            .map(|(index, one)| one.narrow(index, &mut screening, vhost, to))
            .collect();
        let routed: Vec<Routed<'_>> = departures()
            .zip(&narrowed)
            .map(|(Departure { rewritten, route, redelivered, .. }, narrowed)| {
                let route = narrowed.as_deref().unwrap_or(route);
                let message = rewritten.message(route.stamp(&rewritten.header, || now_ms));
                let refusable = route.may_refuse && !to.at_least_once;
                let (kept, persistent) = (rewritten.message(0), rewritten.persistent);
                let redelivered = *redelivered;
                Routed { message, kept, route, persistent, refusable, redelivered }
            })
            .collect();
        let numbers: Vec<u64> = outgoing.iter().map(|one| one.number).collect();
        let positions = queue.dead_positions(&numbers);
        let is_logged = queue.settings.survives() && !positions.is_empty();
        let settled = Record::Settled { queue: queue.id, positions: &positions };
        let settled = is_logged.then_some(settled);
        let logged = Logged::append_own(&*self.store, &routed, settled)?;
        queue.forget_dead(&numbers, true, &*self.store)?;
        queue.retry_dead_soon();
        let refused = logged.distribute(&routed, &*self.store, wakes);
        screening.settle(|index| refused[index]);
        Ok(())
    }
}

/// Where a letter goes: not to a queue from which it would only come back. None if it has to wait
/// until there is a queue that takes it.
fn find_route(
    vhost: &dyn Namespace,
    to: &DeadLetterTo,
    rewritten: &Rewritten,
    reason: Reason,
    with_copies: bool,
) -> Option<Route> {
    let mut route = route_letter(vhost, to, rewritten, &[]).unwrap_or_default();
    if !with_copies {
        route.leave_out_copies();
    }
    // One that is larger than the room that is left is taken: it might wait forever.
    let is_stuck = route.is_nowhere() || route.queues.iter().any(|queue| queue.is_full(0));
    if to.at_least_once && is_stuck {
        return None;
    }
    avoid_circles(&mut route, rewritten, reason);
    if !route.screens.is_empty() {
        // Where it comes back to, it is no repetition.
        let queues = death::queues(&rewritten.headers);
        let exchanges = death::exchanges(&rewritten.headers);
        let goes_the_same_way = exchanges.contains(to.exchange.as_bytes());
        route.screens.retain(|screen| match screen.is_queue {
            true => !queues.contains(screen.name.as_bytes()),
            false => !goes_the_same_way && !exchanges.contains(screen.name.as_bytes()),
        });
    }
    Some(route)
}

/// The route of a letter without the exchanges of the numbers in `without`.
fn route_letter(
    vhost: &dyn Namespace,
    to: &DeadLetterTo,
    rewritten: &Rewritten,
    without: &[u64],
) -> Option<Route> {
    let message = rewritten.message(0);
    let properties = ContentHeader::parse(&rewritten.header).ok()?.properties;
    let keys = cc::keys_of(&message, properties).ok()?;
    let envelope = Envelope { keys: &keys, properties };
    vhost.route_internally(to.exchange.as_bytes(), &envelope, without)
}

fn avoid_circles(route: &mut Route, rewritten: &Rewritten, reason: Reason) {
    if rewritten.may_circle {
        // Exchanges that keep messages don't get it either: its header is longer than any that may be kept.
        *route = Route::default();
    } else if reason != Reason::Rejected {
        let circle = death::circle(&rewritten.headers);
        route.retain(|queue| !circle.contains(queue.name.as_bytes()));
    }
}
