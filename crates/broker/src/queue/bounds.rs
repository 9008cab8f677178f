//! How much a queue may hold, and what becomes of what is too much.

use super::backlog::REDELIVERED;
use super::expiry::read;
use super::settle::Settling;
use super::{Queue, State};
use crate::dead_letter::Reason;
use crate::posting::PublishRun;
use crate::timers::TimerKind;
use crate::wakes::Wakes;
use courser_store::{Location, Store, StoreError, Sync};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Messages that one section under the lock drops; the next section follows at once.
const DROPPED_AT_ONCE: usize = 1024;

/// The most that may wait in a queue. Only messages that wait count, and of them only the bodies.
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
    fn exceeded_by(&self, messages: usize, bytes: u64) -> bool {
        self.messages.is_some_and(|most| messages as u64 > most)
            || self.bytes.is_some_and(|most| bytes > most)
    }
}

impl State {
    /// Messages that wait, also those that only wait for their dead-letter exchange to take them.
    fn held(&self) -> usize {
        self.ready.len() + self.dying.len()
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
            let bytes = state.ready_bytes + message.body.len() as u64;
            if refuses && bounds.exceeded_by(state.held() + 1, bytes) {
                run.refuse(index);
                if bounds.overflow == Overflow::RejectPublishDlx {
                    run.keep_from(index, store)?;
                    if let Some(location) = run.location(index, store) {
                        self.bury(state, location, Reason::MaxLen, settling, wakes);
                    }
                } else {
                    run.held(index).into_iter().for_each(|location| state.leave(&location));
                    settling.positions.extend(run.position(index));
                }
                continue;
            }
            run.keep_from(index, store)?;
            if let Some(location) = run.location(index, store) {
                let rank = state.ready.rank(Some(message));
                state.ready.push(location, rank);
                state.ready_bytes = bytes;
            }
        }
        self.drop_excess(state, settling, store, wakes)
    }

    /// Drops the oldest messages until no more wait than may, or has it done at once after this.
    pub(super) fn drop_excess(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let bounds = Self::bounds(state).filter(|bounds| bounds.overflow == Overflow::DropHead);
        let Some(bounds) = bounds else { return Ok(()) };
        let mut dropped = 0;
        while bounds.exceeded_by(state.ready.len(), state.ready_bytes) && dropped < DROPPED_AT_ONCE
        {
            if bounds.bytes.is_some() {
                state.ready_bytes -= self.head_bytes(state, store)?.min(state.ready_bytes);
            }
            let Some((_, location)) = state.ready.pop() else { break };
            self.bury(state, location, Reason::MaxLen, settling, wakes);
            dropped += 1;
        }
        if dropped == DROPPED_AT_ONCE {
            let key = (self.id, TimerKind::Excess);
            self.timers.arm(&mut state.excess, self.timers.now_ms(), key, self.timed());
        }
        self.backlog.store(state.ready.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the oldest message's body; none if it is lost.
    fn head_bytes(&self, state: &mut State, store: &dyn Store) -> Result<u64, StoreError> {
        let Some((_, location)) = state.ready.front() else { return Ok(0) };
        match read(location, &mut state.reader, store) {
            Err(StoreError::Lost(_)) => Ok(0),
            message => Ok(message?.body.len() as u64),
        }
    }

    /// Counts the bytes that wait, where they are bounded: reads every message.
    pub(super) fn count_bytes(&self, state: &mut State, store: &dyn Store) {
        state.ready_bytes = 0;
        if Self::bounds(state).is_none_or(|bounds| bounds.bytes.is_none()) {
            return;
        }
        let mut reader = None;
        let mut bytes = 0;
        state.ready.for_each(&mut |location| {
            // One that can't be read is found out when its turn comes.
            bytes += read(location, &mut reader, store).map_or(0, |message| message.body.len());
        });
        state.ready_bytes = bytes as u64;
    }

    /// A message that was delivered returns to its place.
    pub(super) fn put_back(
        &self,
        state: &mut State,
        sequence: u64,
        mut location: Location,
        store: &dyn Store,
    ) {
        *location.marks_mut() |= REDELIVERED;
        if Self::bounds(state).is_some_and(|bounds| bounds.bytes.is_some())
            && let Ok(message) = read(&location, &mut state.reader, store)
        {
            state.ready_bytes += message.body.len() as u64;
        }
        state.ready.put_back(sequence, location);
    }

    /// Whether what is published now would be refused.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.state.lock();
        Self::bounds(&state).is_some_and(|bounds| {
            bounds.overflow != Overflow::DropHead
                && bounds.exceeded_by(state.held() + 1, state.ready_bytes)
        })
    }

    /// Whether whatever is published now would be refused, and that is all: no consumer waits for it,
    /// and nothing becomes a dead letter.
    pub(crate) fn refuses_all(&self) -> bool {
        let state = self.state.lock();
        let has_backlog = !state.deleted && !state.ready.is_empty();
        has_backlog
            && !self.takes_specially
            && Self::bounds(&state).is_some_and(|bounds| {
                bounds.overflow == Overflow::RejectPublish
                    && bounds.exceeded_by(state.held() + 1, state.ready_bytes)
            })
    }

    /// There was more to drop than one section may.
    pub(super) fn go_on_dropping(
        self: &Arc<Self>,
        fired_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut settling = Settling::default();
        let mut state = self.state.lock();
        state.excess.fired(fired_ms);
        self.drop_excess(&mut state, &mut settling, store, wakes)?;
        drop(state);
        self.settle(settling, Sync::Later, store)
    }
}
