//! Deciding which exchanges and queues on a message's way have had it before.
//!
//! From the look at what they remember until they remember the message themselves, nothing else comes to
//! any of them: a repetition is a repetition of something that is in the log and in its queues. They
//! remember messages that have arrived, and none that a queue has refused or that had no queue.

use super::Route;
use super::deduplication::{Deduplication, HeaderKeys, Lifetime};
use crate::work;
use courser_codec::{DecodeError, RawProperties, ShortString};
use courser_store::Key;
use courser_store::{Store, StoreError};
use parking_lot::MutexGuard;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// An exchange or a queue on a route that drops what it has had.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    /// Its number, unlike that of any other exchange or queue.
    pub place: u64,
    /// Its name.
    pub name: ShortString,
    /// Whether it is a queue.
    pub is_queue: bool,
    pub by: Arc<Deduplication>,
}

/// A message that is new to an exchange or a queue on its way.
struct New<'r> {
    /// Its number among those that are published together.
    index: usize,
    place: u64,
    by: &'r Deduplication,
    key: Key,
    lifetime: Lifetime,
}

/// What was left of a route.
struct Left<'r> {
    of: &'r Route,
    had: FxHashSet<u64>,
    route: Arc<Route>,
}

/// The screens of some routes, while messages on these routes are published.
pub(crate) struct Screening<'r> {
    now_ms: u64,
    new: Vec<New<'r>>,
    known: FxHashSet<(u64, Key)>,
    /// Of the last message that had been somewhere. Repetitions come in crowds, and a way may be long.
    last: Option<Left<'r>>,
    _order: Vec<MutexGuard<'r, ()>>,
}

impl<'r> Screening<'r> {
    /// Keeps everything else away from the screens of these routes. Called with the shard's gate held,
    /// before any other lock of a queue or an exchange.
    ///
    /// # Errors
    /// If the log has no room to be told what one of their queues has no more.
    pub fn begin(
        routes: impl Iterator<Item = &'r Route>,
        store: &dyn Store,
        now_ms: u64,
    ) -> Result<Self, StoreError> {
        let mut screens: Vec<&Screen> = Vec::new();
        for route in routes {
            route.tell_untold(store)?;
            screens.extend(&route.screens);
        }
        screens.sort_unstable_by_key(|screen| screen.place);
        screens.dedup_by_key(|screen| screen.place);
        let order = screens.into_iter().map(|screen| screen.by.lock_order()).collect();
        let (new, known) = Default::default();
        Ok(Screening { now_ms, new, known, last: None, _order: order })
    }

    /// What is left of the route of the message with this number without those that have had it; none if
    /// all is left. `reroute` makes its route without the exchanges of these numbers.
    pub fn narrow(
        &mut self,
        index: usize,
        route: &'r Route,
        properties: RawProperties<'_>,
        reroute: impl FnOnce(&[u64]) -> Option<Route>,
    ) -> Result<Option<Arc<Route>>, DecodeError> {
        if !route.holds_no_two && route.screens.is_empty() {
            return Ok(None);
        }
        let mut keys = HeaderKeys::of(properties)?;
        let (mut had, mut new) = (FxHashSet::default(), Vec::new());
        let mut only_queues = true;
        work::count(route.queues.len() + route.screens.len());
        if route.holds_no_two {
            // Not to be in the log of a queue that drops it: after a crash in between, the queue would have both.
            let held = route.queues.iter().filter(|queue| queue.holds_one_with(&mut keys));
            had.extend(held.map(|queue| queue.id));
        }
        for Screen { place, is_queue, by, .. } in &route.screens {
            let Some(sighting) = by.look(&mut keys, self.now_ms) else { continue };
            let (key, lifetime) = (sighting.key, sighting.lifetime);
            if sighting.is_repeated || self.known.contains(&(*place, key)) {
                had.insert(*place);
                only_queues &= is_queue;
            } else {
                new.push(New { index, place: *place, by, key, lifetime });
            }
        }
        let left = (!had.is_empty()).then(|| {
            let same = |last: &&Left<'_>| std::ptr::eq(last.of, route) && last.had == had;
            if route.by_key_alone
                && let Some(last) = self.last.as_ref().filter(same)
            {
                return Arc::clone(&last.route);
            }
            let mut left = match only_queues {
                // The way stays as it is: one that chooses by chance would choose anew.
                true => route.clone(),
                false => reroute(&Vec::from_iter(had.iter().copied())).unwrap_or_default(),
            };
            left.retain(|queue| !had.contains(&queue.id));
            // No other queue gets it, and yet it was not lost.
            left.answers = true;
            let left = Arc::new(left);
            self.last = Some(Left { of: route, had, route: Arc::clone(&left) });
            left
        });
        if let Some(left) = &left {
            // Behind those that have had it there may be others that it does not come to any more.
            let places: FxHashSet<u64> = left.screens.iter().map(|screen| screen.place).collect();
            new.retain(|one| places.contains(&one.place));
        }
        if left.as_deref().unwrap_or(route).is_lost() {
            // It arrives nowhere, and one like it beside it may.
            new.clear();
        }
        self.known.extend(new.iter().map(|one| (one.place, one.key)));
        self.new.append(&mut new);
        Ok(left)
    }

    /// Has each remember what is new to it, but for the messages for whose numbers `is_refused` holds.
    pub fn settle(self, is_refused: impl Fn(usize) -> bool) {
        for New { by, key, lifetime, .. } in self.new.iter().filter(|one| !is_refused(one.index)) {
            by.remember(*key, *lifetime);
        }
    }
}
