//! Times to live: a message that is not consumed in time leaves the queue when it has come to its
//! head.
//!
//! How long a message may live is the least of what the queue says (`x-message-ttl`) and what the
//! message says (`expiration`), from the stamp in its record on. Nothing is kept in memory for it: a
//! queue in which something may expire looks at its head whenever that changes, and once more when
//! the head's time is over.

use super::settle::Settling;
use super::{Queue, State};
use crate::dead_letter::Reason;
use crate::kept_reader::KeptReader;
use crate::timers::{Timer, TimerKind};
use crate::wakes::Wakes;
use crate::work;
use courser_codec::{CONTENT_HEADER_FIXED_LEN, ContentHeader, Properties};
use courser_store::{Location, MessageRef, Store, StoreError};
use std::sync::Arc;

/// Messages that one section under the lock lets expire; the next section follows at once.
pub(super) const EXPIRED_AT_ONCE: usize = 256;
/// Bytes that it reads of messages that no client gets; one message more may be begun.
pub(super) const UNCONSUMED_BYTES_AT_ONCE: usize = 1 << 20;

/// What a queue knows of the times to live of its messages.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// Some of them may expire: the head has to be looked at.
    pub watching: bool,
    /// When those count as published that do not say so: they were there before there was a time
    /// to live.
    pub since_ms: u64,
    /// Armed for the time at which the head expires, or earlier.
    timer: Timer,
    /// The head that has been looked at.
    seen: Option<u64>,
}

/// A moment at which messages are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub now_ms: u64,
    ttl_ms: Option<u64>,
    since_ms: u64,
}

impl Moment {
    /// When a message expires, if it does.
    fn deadline_ms(&self, message: &MessageRef<'_>) -> Option<u64> {
        let own_ms = if has_expiration(message.header) { expiration_ms(message) } else { None };
        let ttl_ms = self.ttl_ms.into_iter().chain(own_ms).min()?;
        let published_ms = match message.published_ms {
            0 => self.since_ms,
            stamp_ms => stamp_ms,
        };
        Some(published_ms.saturating_add(ttl_ms))
    }

    pub fn is_over_for(&self, message: &MessageRef<'_>) -> bool {
        self.deadline_ms(message).is_some_and(|deadline_ms| deadline_ms <= self.now_ms)
    }
}

/// Whether the property flags of a content header say that there is an `expiration`.
#[inline]
pub(crate) fn has_expiration(header: &[u8]) -> bool {
    let [high, low] = Properties::EXPIRATION_FLAG.to_be_bytes();
    match header.get(CONTENT_HEADER_FIXED_LEN..CONTENT_HEADER_FIXED_LEN + 2) {
        Some(flags) => flags[0] & high != 0 || flags[1] & low != 0,
        None => false,
    }
}

/// The `expiration` of a message, which has been found good when it was published.
fn expiration_ms(message: &MessageRef<'_>) -> Option<u64> {
    let properties = ContentHeader::parse(message.header).ok()?.properties;
    let text = properties.expiration().ok()??;
    str::from_utf8(text.as_bytes()).ok()?.trim_start_matches(['+', '-']).parse().ok()
}

/// The message at a place, wherever that is.
pub(super) fn read<'a>(
    location: &'a Location,
    reader: &'a mut KeptReader,
    store: &dyn Store,
) -> Result<MessageRef<'a>, StoreError> {
    match location.in_memory() {
        Some(message) => Ok(message),
        None => reader.open(store).read(location),
    }
}

impl Queue {
    /// The present moment, if there is something that may expire.
    pub(super) fn moment(&self, state: &State) -> Option<Moment> {
        state.expiry.watching.then(|| Moment {
            now_ms: self.timers.now_ms(),
            ttl_ms: state.traits.as_ref().and_then(|traits| traits.message_ttl_ms),
            since_ms: state.expiry.since_ms,
        })
    }

    /// Lets what has expired at the head leave, a bounded number of messages, and sees to it that
    /// the next one is looked at in time. Returns whether the new head may have expired as well.
    #[inline]
    pub(super) fn expire(
        self: &Arc<Self>,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<bool, StoreError> {
        let Some(moment) = self.moment(state) else { return Ok(false) };
        self.expire_at(moment, state, settling, store, wakes)
    }

    /// Whether the head has expired and more than `many` wait, or portions are on the way to their places: a poll sees to that
    /// before it finds something.
    pub(crate) fn has_much_in_front(&self, many: usize) -> bool {
        let state = self.state.lock();
        let is_due = |deadline_ms| deadline_ms <= self.timers.now_ms();
        state.is_returning()
            || state.expiry.watching
                && state.ready.len() > many
                && state.expiry.timer.deadline_ms().is_some_and(is_due)
    }

    fn expire_at(
        self: &Arc<Self>,
        moment: Moment,
        state: &mut State,
        settling: &mut Settling,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<bool, StoreError> {
        let had_reader = state.reader.is_open();
        let leaving_max = if wakes.is_posting() { 0 } else { EXPIRED_AT_ONCE };
        let mut read_bytes = 0;
        for left in 0..=leaving_max {
            let State { ready, reader, expiry, notes, .. } = state;
            let Some((sequence, location)) = ready.front() else {
                self.rest(state);
                return Ok(false);
            };
            let armed_ms = expiry.timer.deadline_ms();
            if expiry.seen == Some(sequence) && armed_ms.is_none_or(|at| at > moment.now_ms) {
                return Ok(false);
            }
            if read_bytes >= UNCONSUMED_BYTES_AT_ONCE {
                break;
            }
            let message = read(location, reader, store);
            if let Err(StoreError::Lost(_)) = message {
                // It must not stop those behind it.
                let lost = ready.pop();
                if let (Some((_, lost)), Some(notes)) = (&lost, notes) {
                    notes.leave(lost);
                }
                settling.positions.extend(lost.and_then(|(_, lost)| lost.position()));
                continue;
            }
            let message = message?;
            let bytes = message.header.len() + message.body.len();
            work::count_read(bytes);
            read_bytes += bytes;
            let deadline_ms = moment.deadline_ms(&message);
            if deadline_ms.is_none_or(|deadline_ms| deadline_ms > moment.now_ms) {
                expiry.seen = Some(sequence);
                if let Some(deadline_ms) = deadline_ms {
                    self.watch_until(state, deadline_ms);
                }
                if !had_reader {
                    state.reader.close();
                }
                return Ok(false);
            }
            if left == leaving_max {
                break;
            }
            if let Some((number, location)) = ready.pop() {
                let dead = (ready.rank_of(number), location);
                self.bury(state, dead, Reason::Expired, settling, wakes);
            }
        }
        self.watch_until(state, moment.now_ms);
        Ok(true)
    }

    /// The queue is empty: nothing has to be watched for now.
    fn rest(&self, state: &mut State) {
        state.reader.close();
        state.expiry.seen = None;
        let has_ttl = state.traits.as_ref().is_some_and(|traits| traits.message_ttl_ms.is_some());
        let may_return = !state.unacked.is_empty() || !state.delayed.is_empty();
        state.expiry.watching = has_ttl || may_return;
    }

    /// Has the head looked at again at this time, or before.
    fn watch_until(&self, state: &mut State, deadline_ms: u64) {
        let timer = &mut state.expiry.timer;
        if timer.deadline_ms().is_none_or(|at| deadline_ms < at) {
            self.timers.arm(timer, deadline_ms, (self.id, TimerKind::Expiry), self.timed());
        }
    }

    /// Messages are there whose times to live are not known yet.
    pub(super) fn watch_head(&self, state: &mut State) {
        state.expiry.watching = true;
        state.expiry.seen = None;
        if !state.ready.is_empty() {
            self.watch_until(state, self.timers.now_ms());
        }
    }

    /// The head's time may be over.
    pub(super) fn look_at_head(
        self: &Arc<Self>,
        fired_ms: u64,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.section(store, wakes, |state| {
            state.expiry.timer.fired(fired_ms);
            state.expiry.seen = None;
        })
    }

    pub(super) fn end_expiry(&self, state: &mut State) {
        self.timers.disarm(&mut state.expiry.timer, (self.id, TimerKind::Expiry));
    }
}
