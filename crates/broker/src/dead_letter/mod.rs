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

pub(crate) use death::{Reason, died_in};

use crate::exchange::Envelope;
use crate::posting::{Logged, Routed};
use crate::queue::{DeadLetterTo, Letter, Queue};
use crate::routing::{Namespace, Route};
use crate::shard::Shard;
use crate::wakes::Wakes;
use courser_codec::{ContentHeader, FieldValue};
use courser_store::{Reader, Record, StoreError, Sync};
use letter::Rewritten;

/// Letters, and bytes of their bodies, that go into one append.
const LETTERS_PER_APPEND: usize = 256;
const APPEND_BYTES: usize = 1 << 20;

/// A letter on its way: what it has become, and where that goes.
struct Outgoing {
    number: u64,
    rewritten: Option<(Rewritten, Route)>,
}

impl Shard {
    /// Publishes what has left queues, and what leaves others by that, and copies of what is traced. Called with the gate held
    /// and without any lock.
    /// Returns whether there was anything to publish.
    #[inline]
    pub(crate) fn post_dead_letters(&self, wakes: &mut Wakes) -> bool {
        let mut any = false;
        loop {
            while let Some(queues) = wakes.take_lettered() {
                queues.iter().for_each(|queue| self.post_all(queue, wakes));
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
    fn post_all(&self, queue: &Queue, wakes: &mut Wakes) {
        // Another thread may be posting what left before. One of the two posts everything.
        let _order = queue.lock_posting();
        loop {
            let letters = queue.take_letters(LETTERS_PER_APPEND);
            let mut rest = &letters[..];
            if rest.is_empty() {
                return;
            }
            while !rest.is_empty() {
                match self.post_some(queue, rest, wakes) {
                    Ok(posted) => rest = &rest[posted..],
                    Err(_) => {
                        // No room on the disk, if it is not the end of the broker.
                        let numbers: Vec<u64> = rest.iter().map(|letter| letter.number).collect();
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
        for letter in letters {
            taken += 1;
            let Some(rewritten) = self.rewrite(queue, letter, &to, &mut *reader)? else {
                outgoing.push(Outgoing { number: letter.number, rewritten: None });
                continue;
            };
            match find_route(&*vhost, &to, &rewritten, letter.reason) {
                None => stranded.push(letter.number),
                Some(route) => {
                    bytes += rewritten.body.len();
                    // Whether there is room for the next one is only known when this one is there.
                    is_last = to.at_least_once && route.may_refuse;
                    let rewritten = Some((rewritten, route));
                    outgoing.push(Outgoing { number: letter.number, rewritten });
                }
            }
            if is_last || bytes >= APPEND_BYTES {
                break;
            }
        }
        if !stranded.is_empty() {
            queue.strand_dead(&stranded);
        }
        if !outgoing.is_empty() {
            self.publish_letters(queue, &to, outgoing, wakes)?;
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
        Ok(Rewritten::of(&message, queue, to, letter.reason, self.timers.now_ms()).ok())
    }

    /// Puts letters into the queues of their routes, and ends them in the queue they come from.
    fn publish_letters(
        &self,
        queue: &Queue,
        to: &DeadLetterTo,
        outgoing: Vec<Outgoing>,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let now_ms = self.timers.now_ms();
        let rewritten = outgoing.iter().filter_map(|one| one.rewritten.as_ref());
        let routed: Vec<Routed<'_>> = rewritten
            .map(|(rewritten, route)| {
                let message = rewritten.message(route.stamp(&rewritten.header, || now_ms));
                let refusable = route.may_refuse && !to.at_least_once;
                let (kept, persistent) = (rewritten.message(0), rewritten.persistent);
                Routed { message, kept, route, persistent, refusable }
            })
            .collect();
        let numbers: Vec<u64> = outgoing.iter().map(|one| one.number).collect();
        let positions = queue.dead_positions(&numbers);
        let is_logged = queue.settings.survives() && !positions.is_empty();
        let settled = Record::Settled { queue: queue.id, positions: &positions };
        let settled = is_logged.then_some(settled);
        let logged = Logged::append(&*self.store, &routed, settled, Sync::Later)?;
        queue.forget_dead(&numbers, true, &*self.store)?;
        logged.distribute(&routed, &*self.store, wakes);
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
    let message = rewritten.message(0);
    let mut keys = vec![message.routing_key()];
    if let Some(FieldValue::Array(more)) = rewritten.headers.get("CC") {
        keys.extend(more.iter().filter_map(FieldValue::as_long_str));
    }
    let properties = ContentHeader::parse(&rewritten.header).map(|header| header.properties);
    let envelope = Envelope { keys: &keys, properties: properties.unwrap_or_default() };
    let found = vhost.route_internally(to.exchange.as_bytes(), &envelope);
    let mut route = found.unwrap_or_default();
    let is_stuck = route.is_nowhere() || route.queues.iter().any(|queue| queue.is_full());
    if to.at_least_once && is_stuck {
        return None;
    }
    if reason != Reason::Rejected {
        route.retain(|queue| !death::goes_in_circles(&rewritten.headers, &queue.name));
    }
    Some(route)
}
