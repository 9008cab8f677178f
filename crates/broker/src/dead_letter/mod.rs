//! Dead letters: messages that leave a queue otherwise than by being consumed, and go to the
//! exchange that the queue names for them.
//!
//! A queue notes them under its lock and keeps them in its books until they have arrived. They are
//! published when that lock is not held, of each queue by one thread at a time, so that they arrive
//! in the order in which they left: the new messages and the end of the old ones go into the store
//! in one append, so that a crash neither loses nor doubles one. Whoever publishes holds the
//! shard's gate, and calls [`Shard::post_dead_letters`] before he lets go of it.

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
use courser_store::{Reader, Record, StoreError, Sync};
use letter::Rewritten;
use std::sync::Arc;

/// Letters, and bytes of their bodies, that go into one append.
const LETTERS_PER_APPEND: usize = 256;
const APPEND_BYTES: usize = 1 << 20;
/// Letters that are posted in one go, while others wait; timers of their queues go on with the rest.
const LETTERS_AT_ONCE: usize = 4096;

/// Steps that their routes, and what goes to the queues of these, take in one go, and for one append: some ten milliseconds.
/// One route more may be begun.
const STEPS_AT_ONCE: u64 = 1 << 21;
const STEPS_PER_APPEND: u64 = 1 << 20;

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
        let (mut any, mut left) = (false, (LETTERS_AT_ONCE, Budget::of_steps(STEPS_AT_ONCE)));
        loop {
            while let Some(queues) = wakes.take_lettered() {
                gate::assert_inside("dead letters are posted");
                queues.iter().for_each(|queue| self.post_letters(queue, &mut left, wakes));
                any = true;
            }
            let traced = wakes.take_traced();
            if traced.is_empty() {
                return any;
            }
            traced.iter().for_each(|copy| copy.post(wakes));
        }
    }

    #[cold]
    fn post_letters(&self, queue: &Queue, (left, budget): &mut (usize, Budget), wakes: &mut Wakes) {
        // Another thread may be posting what left before. One of the two posts everything.
        let _order = queue.lock_posting();
        loop {
            let mut letters = queue.take_letters(LETTERS_PER_APPEND.min(*left));
            *left -= letters.len();
            if letters.is_empty() {
                return queue.post_more_soon();
            }
            while !letters.is_empty() {
                if budget.is_spent() {
                    *left = 0;
                    queue.leave_letters(letters);
                    break;
                }
                match self.post_some(queue, &letters, wakes) {
                    Ok(posted) => drop(letters.drain(..posted)),
                    Err(_) => {
                        // No room on the disk, if it is not the end of the broker.
                        let numbers: Vec<u64> = letters.iter().map(|one| one.number).collect();
                        queue.strand_dead(&numbers);
                        break;
                    }
                }
            }
        }
    }

    /// Posts as many of these letters of a queue as go into one append. Returns how many.
    fn post_some(
        &self,
        queue: &Queue,
        letters: &[Letter],
        wakes: &mut Wakes,
    ) -> Result<usize, StoreError> {
        let (Some(vhost), Some(to)) = (queue.namespace(), queue.dead_letter_to()) else {
            // There is nowhere to go any more.
            let numbers: Vec<u64> = letters.iter().map(|letter| letter.number).collect();
            queue.forget_dead(&numbers, false, &*self.store)?;
            return Ok(letters.len());
        };
        let mut reader = self.store.reader();
        let (mut outgoing, mut stranded) = (Vec::new(), Vec::new());
        let (mut bytes, mut taken, mut is_last) = (0, 0, false);
        let budget = Budget::of_steps(STEPS_PER_APPEND);
        for letter in letters {
            taken += 1;
            let rewritten = match self.rewrite(queue, letter, &to, &mut *reader) {
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
            match find_route(&*vhost, &to, &rewritten, letter.reason) {
                None => stranded.push(letter.number),
                Some(route) => {
                    bytes += rewritten.body.len();
                    work::count_copies(route.queues.len());
                    // Whether there is room for the next one is only known when this one is there.
                    is_last = to.at_least_once && route.may_refuse;
                    let (reason, redelivered) = (letter.reason, letter.is_redelivered());
                    let departure = Departure { rewritten, route, reason, redelivered };
                    outgoing.push(Outgoing { number: letter.number, departure: Some(departure) });
                }
            }
            if is_last || bytes >= APPEND_BYTES || budget.is_spent() {
                break;
            }
        }
        if !stranded.is_empty() {
            queue.strand_dead(&stranded);
        }
        if !outgoing.is_empty() {
            self.publish_letters(queue, &*vhost, &to, outgoing, wakes)?;
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
    ) -> Result<Option<Rewritten>, StoreError> {
        let message = match letter.location.in_memory() {
            Some(message) => message,
            None => match reader.read(&letter.location) {
                Err(StoreError::Lost(_)) => return Ok(None),
                read => read?,
            },
        };
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
        let mut screening = Screening::begin(departures().map(|one| &one.route), now_ms);
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
        let logged = Logged::append(&*self.store, &routed, settled, Sync::Later)?;
        queue.forget_dead(&numbers, true, &*self.store)?;
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
) -> Option<Route> {
    let mut route = route_letter(vhost, to, rewritten, &[]).unwrap_or_default();
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
    if reason != Reason::Rejected {
        let circle = death::circle(&rewritten.headers);
        route.retain(|queue| !circle.contains(queue.name.as_bytes()));
    }
}
