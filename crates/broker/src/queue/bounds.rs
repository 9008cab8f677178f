//! How much a queue may hold, and what becomes of what is too much.

use super::expiry::{UNCONSUMED_BYTES_AT_ONCE, read};
use super::settle::Settling;
use super::{Queue, State};
use crate::dead_letter::Reason;
use crate::kept_reader::KeptReader;
use crate::posting::PublishRun;
use crate::wakes::Wakes;
use crate::work;
use courser_store::{Location, Store, StoreError};
use std::sync::Arc;

/// Messages that one section under the lock drops; the next section follows at once.
const DROPPED_AT_ONCE: usize = 4096;
/// Messages whose sizes one section under the lock counts; the next section follows at once.
const SIZES_AT_ONCE: usize = 4096;
/// The same where some of them have to be read, if these have no more bytes than [`UNCONSUMED_BYTES_AT_ONCE`].
const SIZES_READ_AT_ONCE: usize = 128;

/// The most that may wait in a queue. Only messages that wait count, for a consumer or for another try, and of them only the
/// bodies; in a queue that refuses what is too much, also those that wait for their dead-letter exchange to take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// `x-max-length`.
    pub messages: Option<u64>,
    /// `x-max-length-bytes`.
    pub bytes: Option<u64>,
    /// `x-overflow`.
    pub overflow: Overflow,
}

/// What becomes of what is too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest messages leave.
    #[default]
    DropHead,
    /// New messages are refused, and their publishers told so.
    RejectPublish,
    /// As [`Overflow::RejectPublish`], and what is refused is a dead letter.
    RejectPublishDlx,
}

impl Bounds {
    fn exceeded_by(&self, (messages, bytes): (usize, u64)) -> bool {
        self.messages.is_some_and(|most| messages as u64 > most)
            || self.bytes.is_some_and(|most| bytes > most)
    }
}

impl State {
    /// Messages that wait, for a consumer or for another try, and bytes of their bodies.
    fn waiting(&self) -> (usize, u64) {
        let delayed = self.delayed.amounts().known_bytes();
        (self.ready.len() + self.delayed.len(), self.ready.bytes() + delayed)
    }

    /// The same with messages that only wait for their dead-letter exchange to take them, and one more with so many bytes.
    fn held_with(&self, body_bytes: usize) -> (usize, u64) {
        let (messages, bytes) = self.waiting();
        let bytes = bytes + self.dying.amounts().known_bytes();
        (messages + self.dying.len() + 1, bytes + body_bytes as u64)
    }

    /// Whether letters that are kept leave no room. What is published now is refused then, also where a consumer waits for it: one
    /// that rejects all it gets would have the queue keep more and more of them.
    #[inline]
    pub(super) fn is_full_of_letters(&self) -> bool {
        self.dying.len() > 0 && self.keeps_too_many_letters()
    }

    #[cold]
    fn keeps_too_many_letters(&self) -> bool {
        let dead_letter = self.traits.as_ref().and_then(|traits| traits.dead_letter.as_ref());
        // These are kept beside `RejectPublish` alone.
        dead_letter.is_some_and(|to| to.at_least_once)
            && Queue::bounds(self).is_some_and(|bounds| bounds.exceeded_by(self.held_with(0)))
    }

    /// Whether the queue is over its limit and has to drop its oldest messages.
    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        Queue::bounds(self).is_some_and(|bounds| {
            bounds.overflow == Overflow::DropHead && bounds.exceeded_by(self.waiting())
        })
    }
}

impl Queue {
    fn bounds(state: &State) -> Option<Bounds> {
        state.traits.as_ref()?.bounds
    }

    /// Puts the messages of `run` from `next` on into a queue that is bounded, as far as it has
    /// room for them.
    pub(super) fn enqueue_within(
        self: &Arc<Self>,
        bounds: Bounds,
        state: &mut State,
        next: usize,
        run: &mut PublishRun<'_>,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let refuses = bounds.overflow != Overflow::DropHead && run.is_refusable();
        for index in next..run.len() {
            let Some(message) = run.message(index) else { break };
            if refuses && bounds.exceeded_by(state.held_with(message.body.len())) {
                self.refuse(bounds.overflow, state, (index, run), settling, store, wakes)?;
                continue;
            }
            run.keep_from(index, store)?;
            if let Some(location) = run.location(index, store) {
                let rank = state.ready.rank(Some(message));
                state.ready.push(location, rank, message.body.len());
            }
        }
        Ok(())
    }

    /// Refuses a message of `run`, which becomes a dead letter where that is asked for.
    fn refuse(
        self: &Arc<Self>,
        overflow: Overflow,
        state: &mut State,
        (index, run): (usize, &mut PublishRun<'_>),
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        run.refuse(index);
        if overflow == Overflow::RejectPublishDlx {
            run.keep_from(index, store)?;
            if let Some(location) = run.location(index, store) {
                let dead = (state.ready.rank(run.message(index)), location);
                self.bury(state, dead, Reason::MaxLen, settling, wakes);
            }
        } else if let Some(position) = run.position(index) {
            settling.positions.push(position);
        } else if let Some(location) = run.held(index) {
            state.leave(&location);
        }
        if let (Some(notes), Some(location)) = (&mut state.notes, run.held(index)) {
            // Unless it has left: as a letter, or as the log does not have it.
            notes.refuse(&location);
        }
        Ok(())
    }

    /// Drops the oldest messages until no more wait than may, or as many as one section drops. Returns
    /// whether there are still too many.
    #[inline]
    pub(super) fn drop_excess(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) -> bool {
        let mut dropped = 0;
        while dropped < DROPPED_AT_ONCE
            && state.has_excess()
            && let Some((number, location)) = state.ready.pop().or_else(|| state.delayed.pop())
        {
            let dead = (state.ready.rank_of(number), location);
            self.bury(state, dead, Reason::MaxLen, settling, wakes);
            dropped += 1;
        }
        if dropped > 0 {
            work::count(dropped);
        }
        dropped == DROPPED_AT_ONCE && state.has_excess()
    }

    /// Counts the bytes that wait where they are bounded, and only there.
    pub(super) fn count_bytes(state: &mut State) {
        let are_bounded = Self::bounds(state).is_some_and(|bounds| bounds.bytes.is_some());
        match (are_bounded, state.ready.counts_bytes()) {
            (true, false) => state.ready.count_bytes(),
            (false, true) => state.ready.count_no_bytes(),
            (true, true) | (false, false) => {}
        }
    }

    /// Counts how large messages are that were there before bytes were bounded: some of them. One whose size is not known
    /// is read. Until all are counted, only the bytes of the others are bounded.
    #[cold]
    pub(super) fn read_sizes(state: &mut State, store: &dyn Store) {
        let (mut reader, mut counted, mut is_known) = (KeptReader::default(), 0, true);
        let (mut some, mut read_bytes) = (SIZES_READ_AT_ONCE, 0);
        while counted < SIZES_AT_ONCE && is_known && some == SIZES_READ_AT_ONCE {
            some = state.ready.read_sizes(SIZES_READ_AT_ONCE, &mut |location| {
                if let Some(bytes) = location.body_size().bytes() {
                    return Some(bytes);
                }
                is_known = false;
                if read_bytes >= UNCONSUMED_BYTES_AT_ONCE {
                    return None;
                }
                // One that can't be read is found out when its turn comes.
                let bytes = match read(location, &mut reader, store) {
                    Ok(message) => message.body.len(),
                    Err(_) => 0,
                };
                work::count_read(bytes);
                read_bytes += bytes;
                Some(bytes as u32)
            });
            counted += some;
        }
        work::count(counted);
    }

    /// A message that was taken returns to its place.
    pub(super) fn put_into_place(state: &mut State, sequence: u64, location: Location) {
        let bytes = location.body_size().bytes();
        state.ready.put_back(sequence, location, bytes);
    }

    /// Whether a dead letter that may never arrive is kept. Where the queue need not keep its letters, it keeps no more of those
    /// than messages may wait in it: its consumers could make them more and more.
    pub(crate) fn has_room_to_keep(&self, letter: u64) -> bool {
        let state = self.state.lock();
        let dead_letter = state.traits.as_ref().and_then(|traits| traits.dead_letter.as_ref());
        dead_letter.is_some_and(|to| to.at_least_once)
            || !Self::bounds(&state)
                .is_some_and(|bounds| bounds.exceeded_by(state.dying.stranded_with(letter)))
    }

    /// Whether a message with a body of so many bytes would be refused if it was published now.
    pub(crate) fn is_full(&self, body_bytes: usize) -> bool {
        let state = self.state.lock();
        Self::bounds(&state).is_some_and(|bounds| {
            bounds.overflow != Overflow::DropHead && bounds.exceeded_by(state.held_with(body_bytes))
        })
    }

    /// Whether whatever is published now would be refused, and that is all: no consumer gets it, and nothing becomes a dead letter.
    pub(crate) fn refuses_all(&self) -> bool {
        let state = self.state.lock();
        let is_kept_from_all = !state.ready.is_empty() || state.is_full_of_letters();
        is_kept_from_all
            && !state.deleted
            && !self.takes_specially
            && Self::bounds(&state).is_some_and(|bounds| {
                bounds.overflow == Overflow::RejectPublish && bounds.exceeded_by(state.held_with(0))
            })
    }
}
