//! Looking at what waits, or has been handed out, without a change to it; and taking messages out of
//! the middle.

use super::backlog::REDELIVERED;
use super::{Freed, Queue, Settled};
use crate::outbox::Outbox;
use courser_store::{Location, MessageRef, Store, StoreError};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A message that is looked at.
pub(crate) struct Peeked<'a> {
    /// Its number, which stays the same as long as the broker runs.
    pub number: u64,
    pub message: MessageRef<'a>,
    /// It has been delivered before.
    pub redelivered: bool,
}

impl Queue {
    /// Calls `each` with the messages that wait behind `skip` others, `count` at most, until it has
    /// enough. Their places are taken under the lock; they are read without it, held in the meantime so
    /// that the store keeps them.
    pub(crate) fn peek(
        &self,
        skip: usize,
        count: usize,
        store: &dyn Store,
        each: &mut dyn FnMut(Peeked<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let places = {
            let state = self.state.lock();
            held(state.ready.first(skip, count), store)
        };
        read_all(places, store, each)
    }

    /// Calls `each` with those messages of these numbers that have been handed out and not
    /// acknowledged, until it has enough.
    pub(crate) fn peek_unacked(
        &self,
        numbers: impl Iterator<Item = u64>,
        store: &dyn Store,
        each: &mut dyn FnMut(Peeked<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let places = {
            let state = self.state.lock();
            let known = numbers.filter_map(|at| Some((at, state.unacked.get(at)?.clone())));
            held(known.collect(), store)
        };
        read_all(places, store, each)
    }

    /// Hands those messages to `holder` that wait and are among `chosen`. They are the first `within` that are looked at; those in between stay where they
    /// are. What is taken has to be settled.
    pub(crate) fn take_chosen(
        &self,
        chosen: &FxHashSet<u64>,
        within: usize,
        holder: &Arc<Outbox>,
    ) -> Vec<Settled> {
        let (mut taken, mut passed) = (Vec::new(), Vec::new());
        let mut state = self.state.lock();
        for _ in 0..within {
            if taken.len() == chosen.len() {
                break;
            }
            let bytes = state.ready.front_bytes();
            let Some((sequence, location)) = state.ready.pop() else { break };
            match chosen.contains(&sequence) {
                true => {
                    state.unacked.insert(sequence, location, (holder, 0));
                    taken.push(Settled { sequence, freed: Freed::Nothing });
                }
                false => passed.push((sequence, location, bytes)),
            }
        }
        for (sequence, location, bytes) in passed {
            state.ready.put_back(sequence, location, bytes);
        }
        if state.ready.is_empty() {
            state.reader = None;
        }
        self.backlog.store(state.ready.len(), Ordering::Relaxed);
        taken
    }
}

/// Places that the store keeps until they are released.
fn held(places: Vec<(u64, Location)>, store: &dyn Store) -> Vec<(u64, Location)> {
    places.iter().filter_map(|(_, at)| at.position()).for_each(|at| store.hold(at));
    places
}

/// Reads messages until `each` has enough, and releases all of them.
fn read_all(
    places: Vec<(u64, Location)>,
    store: &dyn Store,
    each: &mut dyn FnMut(Peeked<'_>) -> bool,
) -> Result<(), StoreError> {
    let mut reader = store.reader();
    let (mut wants_more, mut read) = (true, Ok(()));
    for (number, location) in places {
        if wants_more && read.is_ok() {
            let redelivered = location.marks() & REDELIVERED != 0;
            let message = match location.in_memory() {
                Some(message) => Ok(message),
                None => reader.read(&location),
            };
            match message {
                Ok(message) => wants_more = each(Peeked { number, message, redelivered }),
                // Whoever gets to it finds that out as well.
                Err(StoreError::Lost(_)) => {}
                Err(error) => read = Err(error),
            }
        }
        store.release(location.position().as_slice());
    }
    read
}
