//! Messages that a queue can't read, though they are not lost: another try may succeed.
//!
//! One at the head holds up the queue for a while, as most such troubles end and the order is kept then.
//! After that the queue goes on behind it: it stays in the queue, counted among those that wait, and
//! returns to its place when it can be read. Readers of a stream go on behind it as well, and do not come
//! back.

use super::expiry::read;
use super::{Queue, State};
use crate::fault::{Fault, store_fault};
use crate::stream::Stream;
use courser_store::{Location, Store, StoreError};
use std::collections::VecDeque;

/// How long a queue waits before it reads again what it could not read.
pub(super) const READ_AGAIN_MS: u64 = 1000;
/// How long a queue waits for its head before it goes on behind it.
const HELD_UP_MAX_MS: u64 = 10_000;
/// Messages that a queue has passed over at most; with more, hardly any can be read.
const PASSED_OVER_MAX: usize = 256;
/// Messages that are tried again in one go, and heads that are passed over.
const TRIED_AT_ONCE: usize = 8;

/// Whether it is too early for a try at `next_try_ms`. If that is further ahead than a try ever is, the clock was set back.
pub(crate) fn is_too_early(next_try_ms: u64, now_ms: u64) -> bool {
    (1..=READ_AGAIN_MS).contains(&next_try_ms.saturating_sub(now_ms))
}

/// What a queue can't read, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// What the store said.
    pub why: String,
    /// Messages behind which the queue has gone on.
    pub passed_over: usize,
}

/// What a queue knows of messages that it can't read.
#[derive(Debug)]
pub(super) struct Unreadable {
    since_ms: u64,
    why: String,
    /// Since when the head holds up the queue, if it does.
    held_up_since_ms: Option<u64>,
    /// The numbers of messages that have been passed over, among those that are handed out; the next to be
    /// tried first.
    passed_over: VecDeque<u64>,
    /// The offsets that readers of the stream have passed over.
    offsets: VecDeque<u64>,
    next_try_ms: u64,
}

impl Unreadable {
    /// What an operator is shown of it.
    pub fn shown(&self) -> Unread {
        let passed_over = self.passed_over.len() + self.offsets.len();
        Unread { since_ms: self.since_ms, why: self.why.clone(), passed_over }
    }

    /// Whether a reader of the stream goes on behind an offset that it has waited for long enough, or another
    /// one has.
    fn goes_on_behind(&mut self, offset: u64, has_waited: bool) -> bool {
        let is_known = self.offsets.contains(&offset);
        let goes_on = is_known || has_waited && self.offsets.len() < PASSED_OVER_MAX;
        if goes_on && !is_known {
            self.offsets.push_back(offset);
        }
        goes_on
    }
}

impl State {
    /// Whether the head can't be read, and nothing comes out of the queue meanwhile.
    #[inline]
    pub(super) fn is_held_up(&self) -> bool {
        self.unread.as_ref().is_some_and(|unread| unread.held_up_since_ms.is_some())
    }

    /// How many messages wait that have been passed over.
    pub(super) fn passed_over(&self) -> usize {
        self.unread.as_ref().map_or(0, |unread| unread.passed_over.len())
    }

    /// The numbers of these messages.
    pub(super) fn passed_over_numbers(&self) -> impl Iterator<Item = u64> {
        self.unread.iter().flat_map(|unread| unread.passed_over.iter().copied())
    }

    /// Puts messages that have been passed over back into their places.
    pub(super) fn return_passed_over(&mut self) {
        let Some(unread) = self.unread.take() else { return };
        for sequence in unread.passed_over {
            if let Some(location) = self.unacked.remove(sequence) {
                self.ready.put_back(sequence, location, None);
            }
        }
    }

    /// Whether a section may have to read a message from the disk.
    pub(super) fn may_read(&self) -> bool {
        let amounts = [self.ready.amounts(), self.unacked.amounts(), self.delayed.amounts()];
        self.unread.is_some()
            || amounts.iter().any(|amounts| amounts.has_logged())
            || self.dying.are_some_logged()
    }

    /// Whether a message can be read, or is known to be lost.
    fn can_read(&mut self, location: &Location, store: &dyn Store) -> bool {
        let found = read(location, &mut self.reader, store);
        let is_read = matches!(found, Ok(_) | Err(StoreError::Lost(_)));
        if !is_read {
            // The next try opens the file anew.
            self.reader.close();
        }
        is_read
    }
}

impl Queue {
    /// What a client hears when the store can't do what the queue needs.
    pub(crate) fn fault(&self, error: StoreError) -> Fault {
        let mut fault = store_fault(error);
        if fault.code != 506 {
            fault.explanation = format!("queue '{}': {}", self.name, fault.explanation);
        }
        fault
    }

    /// Notes that the head, or what a reader of the stream comes to, can't be read.
    #[cold]
    pub(super) fn note_unread(&self, state: &mut State, error: &StoreError) {
        state.reader.close();
        let now_ms = self.timers.now_ms();
        let unread = state.unread.get_or_insert_with(|| {
            Box::new(Unreadable {
                since_ms: now_ms,
                why: error.to_string(),
                held_up_since_ms: None,
                passed_over: VecDeque::new(),
                offsets: VecDeque::new(),
                next_try_ms: now_ms,
            })
        });
        unread.held_up_since_ms.get_or_insert(now_ms);
    }

    /// A reader of the stream that it is has not been able to read since `since_ms`, and can't read what is
    /// at `offset`. Returns when it is to try again, as its connection is woken then, and whether it goes on
    /// behind this offset.
    pub(crate) fn read_again(&self, offset: u64, since_ms: u64, error: &StoreError) -> (u64, bool) {
        let now_ms = self.timers.now_ms();
        let may_be_passed_over = matches!(error, StoreError::Unread(_));
        let has_waited = may_be_passed_over && now_ms >= since_ms.saturating_add(HELD_UP_MAX_MS);
        let mut state = self.state.lock();
        self.note_unread(&mut state, error);
        let unread = state.unread.as_mut();
        let goes_on = unread.is_some_and(|unread| unread.goes_on_behind(offset, has_waited));
        self.serve_in(&mut state, READ_AGAIN_MS);
        (now_ms.saturating_add(READ_AGAIN_MS), goes_on)
    }

    /// Tries again to read what could not be read, and goes on behind what has held up the queue for too
    /// long.
    #[cold]
    pub(super) fn try_to_read(&self, state: &mut State, store: &dyn Store) {
        let now_ms = self.timers.now_ms();
        let Some(mut unread) =
            state.unread.take_if(|unread| !is_too_early(unread.next_try_ms, now_ms))
        else {
            return;
        };
        unread.next_try_ms = now_ms.saturating_add(READ_AGAIN_MS);
        if let Some(stream) = self.stream() {
            state.unread = Self::try_offsets(stream, unread, state, store);
            return;
        }
        for _ in 0..unread.passed_over.len().min(TRIED_AT_ONCE) {
            let Some(sequence) = unread.passed_over.pop_front() else { break };
            let Some(location) = state.unacked.get(sequence).cloned() else { continue };
            if state.can_read(&location, store) {
                state.unacked.remove(sequence);
                state.ready.put_back(sequence, location, None);
            } else {
                unread.passed_over.push_back(sequence);
            }
        }
        for _ in 0..TRIED_AT_ONCE {
            let head = state.ready.front().map(|(_, location)| location.clone());
            if head.is_none_or(|head| state.can_read(&head, store)) {
                unread.held_up_since_ms = None;
                break;
            }
            let since_ms = *unread.held_up_since_ms.get_or_insert(now_ms);
            if now_ms < since_ms.saturating_add(HELD_UP_MAX_MS)
                || unread.passed_over.len() >= PASSED_OVER_MAX
            {
                break;
            }
            if let Some((sequence, location)) = state.ready.pop() {
                state.unacked.hold(sequence, location);
                unread.passed_over.push_back(sequence);
            }
        }
        if unread.held_up_since_ms.is_some() || !unread.passed_over.is_empty() {
            state.unread = Some(unread);
        }
    }

    /// The same for a stream. Its readers say themselves whether they are held up: they try right after this.
    fn try_offsets(
        stream: &Stream,
        mut unread: Box<Unreadable>,
        state: &mut State,
        store: &dyn Store,
    ) -> Option<Box<Unreadable>> {
        let mut places = VecDeque::new();
        for _ in 0..unread.offsets.len().min(TRIED_AT_ONCE) {
            let Some(offset) = unread.offsets.pop_front() else { break };
            places.clear();
            // What has left the stream is not missed.
            if stream.look_up(offset, &mut places) == offset
                && places.front().is_some_and(|place| !state.can_read(place, store))
            {
                unread.offsets.push_back(offset);
            }
        }
        state.reader.close();
        let was_held_up = unread.held_up_since_ms.take().is_some();
        (was_held_up || !unread.offsets.is_empty()).then_some(unread)
    }
}
