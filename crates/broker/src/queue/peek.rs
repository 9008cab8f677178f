//! Looking at what waits, or has been handed out, without a change to it; and taking messages out of
//! the middle.

use super::backlog::REDELIVERED;
use super::commits::Commits;
use super::handed_out::Receiver;
use super::{Cursor, Freed, Queue, Settled, State};
use crate::outbox::Outbox;
use courser_store::{Location, MessageRef, Store, StoreError};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// What is looked at.
pub(crate) enum Seen<'a> {
    Message(Peeked<'a>),
    /// The message with this number, which is lost: the queue leaves it out when its turn comes.
    Lost(u64),
}

impl Seen<'_> {
    /// Whether no client may see it yet.
    pub fn is_held_back(&self) -> bool {
        matches!(self, Seen::Message(Peeked { held_back: true, .. }))
    }
}

/// A message that is looked at.
pub(crate) struct Peeked<'a> {
    /// Its number, which stays the same as long as the broker runs.
    pub number: u64,
    pub message: MessageRef<'a>,
    /// It has been delivered before.
    pub redelivered: bool,
    /// It is not committed, and no client may see it yet.
    pub held_back: bool,
}

impl Queue {
    /// Calls `each` with the messages that wait from `cursor` on, `count` at most, until it has
    /// enough. Their places are taken under the lock, which others get in between on a long way; they are
    /// read without it, held in the meantime so that the store keeps them.
    pub(crate) fn peek(
        &self,
        mut cursor: Cursor,
        count: usize,
        store: &dyn Store,
        each: &mut dyn FnMut(Seen<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let mut places = Vec::new();
        let mut state = self.state.lock();
        loop {
            let known = places.len();
            let is_interrupted = state.ready.walk(&mut cursor, count, &mut places);
            hold(&places[known..], store);
            if !is_interrupted {
                break;
            }
            MutexGuard::bump(&mut state);
        }
        drop(state);
        read_all(places, store, self.commits(store), each)
    }

    /// Calls `each` with those messages of these numbers that have been handed out and not
    /// acknowledged, until it has enough.
    pub(crate) fn peek_unacked(
        &self,
        numbers: impl Iterator<Item = u64>,
        store: &dyn Store,
        each: &mut dyn FnMut(Seen<'_>) -> bool,
    ) -> Result<(), StoreError> {
        let places = {
            let state = self.state.lock();
            let known = numbers.filter_map(|at| Some((at, state.unacked.get(at)?.clone())));
            let places: Vec<_> = known.collect();
            hold(&places, store);
            places
        };
        read_all(places, store, self.commits(store), each)
    }

    /// Hands the messages with these numbers that wait to `holder`; those around them stay where they are, and
    /// others get the lock in between. The numbers are in the queue's order. What is taken has to be settled.
    pub(crate) fn take_chosen(&self, chosen: &[u64], holder: &Arc<Outbox>) -> Vec<Settled> {
        let (mut taken, mut left) = (Vec::with_capacity(chosen.len()), chosen);
        let mut state = self.state.lock();
        loop {
            let State { ready, unacked, .. } = &mut *state;
            let done = ready.take(left, &mut |sequence, location| {
                unacked.insert(sequence, location, &Receiver::polling((holder, 0)));
                taken.push(Settled { sequence, freed: Freed::Nothing });
            });
            if state.ready.is_empty() {
                state.reader.close();
            }
            self.note_counts(&state);
            left = &left[done..];
            if left.is_empty() {
                return taken;
            }
            MutexGuard::bump(&mut state);
        }
    }
}

/// Has the store keep these until they are released.
fn hold(places: &[(u64, Location)], store: &dyn Store) {
    places.iter().filter_map(|(_, at)| at.position()).for_each(|at| store.hold(at));
}

/// Reads messages until `each` has enough, and releases all of them.
fn read_all(
    places: Vec<(u64, Location)>,
    store: &dyn Store,
    commits: Option<Commits<'_>>,
    each: &mut dyn FnMut(Seen<'_>) -> bool,
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
            let held_back = commits.as_ref().is_some_and(|at| at.holds_back(location.position()));
            match message {
                Ok(message) => {
                    let peeked = Peeked { number, message, redelivered, held_back };
                    wants_more = each(Seen::Message(peeked));
                }
                Err(StoreError::Lost(_)) => wants_more = each(Seen::Lost(number)),
                Err(error) => read = Err(error),
            }
        }
        store.release(location.position().as_slice());
    }
    read
}
