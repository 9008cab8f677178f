//! `x-delivery-limit`: how often a message has come back from consumers that may have failed on it, which
//! they are told in `x-delivery-count`, and what comes back too often. Consumers of a quorum queue are told besides
//! in `x-acquired-count` how often it has come back at all.
//!
//! The count lies in the marks of the message's location, and in the log. What does not fit the marks
//! is noted beside them, and so is how often it has come back unharmed, which is not in the log.

use super::backlog::{FAILED, REDELIVERED, SPILLED};
use super::logged::Entry;
use super::message_notes::MessageNotes;
use super::settle::{Outcome, Settling};
use super::{Queue, State};
use crate::dead_letter::Reason;
use crate::headers;
use crate::wakes::Wakes;
use courser_codec::{DecodeError, ShortStr, TableWriter};
use courser_store::{Location, Lsn, MessageRef, Position};
use std::sync::Arc;

/// The marks' bits below it are others'.
const COUNT_SHIFT: u32 = 4;

/// In the marks it says that the count is noted beside them.
const RETURNS_MANY: u16 = u16::MAX >> COUNT_SHIFT;

/// What a redelivered message says of its returns: of those that count for a delivery limit, and of all.
const DELIVERY_COUNT: ShortStr<'static> = ShortStr::from_static("x-delivery-count");
const ACQUIRED_COUNT: ShortStr<'static> = ShortStr::from_static("x-acquired-count");

/// How often the message with these marks has come back, where that is counted.
#[inline]
pub(super) fn returns(marks: u16) -> u16 {
    marks >> COUNT_SHIFT
}

/// The same, however often that is.
pub(super) fn count_of(location: &Location, notes: Option<&MessageNotes>) -> u64 {
    match returns(location.marks()) {
        RETURNS_MANY => notes.and_then(|notes| notes.count(location)),
        few => Some(few.into()),
    }
    .unwrap_or(RETURNS_MANY.into())
}

impl State {
    /// Notes how often the message at `location` has come back.
    pub(super) fn set_count(&mut self, location: &mut Location, count: u64) {
        let few = count.min(RETURNS_MANY.into()) as u16;
        let marks = location.marks_mut();
        *marks = *marks & ((1 << COUNT_SHIFT) - 1) | few << COUNT_SHIFT;
        if few == RETURNS_MANY {
            self.notes_mut().set_count(location, count);
        }
        self.has_returned = true;
    }

    pub(super) fn notes_mut(&mut self) -> &mut MessageNotes {
        self.notes.get_or_insert_with(|| Box::new(MessageNotes::counted_by(self.ready.charge())))
    }
}

/// Writes the header that a message is delivered with into `header`, if it says how often the message has come back: its own, with
/// the counts. Returns whether it does.
#[inline]
pub(super) fn put_counts(
    message: &MessageRef<'_>,
    (location, notes): (&Location, Option<&MessageNotes>),
    is_quorum: bool,
    header: &mut Vec<u8>,
) -> bool {
    if location.marks() & REDELIVERED == 0 {
        return false;
    }
    let failed = count_of(location, notes);
    let unharmed = notes.map_or(0, |notes| notes.unharmed(location));
    let acquired = is_quorum.then(|| failed.saturating_add(unharmed));
    let counts = [(DELIVERY_COUNT, Some(failed)), (ACQUIRED_COUNT, acquired)];
    let counts = counts.map(|(name, count)| (name, count.unwrap_or(0)));
    counts.iter().any(|(_, count)| *count > 0) && put_each(message, counts, header).is_ok()
}

/// Writes the header of a message with those counts that are not 0 into `header`.
fn put_each(
    message: &MessageRef<'_>,
    counts: [(ShortStr<'static>, u64); 2],
    header: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let said = || counts.iter().filter(|(_, count)| *count > 0);
    let keep = |name: &[u8], value| {
        let is_said = said().any(|(said, _)| said.as_bytes() == name);
        (!is_said).then_some(value)
    };
    let put = |headers: &mut TableWriter<'_>| {
        for (name, count) in said() {
            headers.put(*name, i64::try_from(*count).unwrap_or(i64::MAX));
        }
    };
    headers::rewrite(message.header, keep, put, header)
}

impl Queue {
    /// Does with a delivery that is not acknowledged what is to become of it.
    pub(super) fn put_back_as(
        self: &Arc<Self>,
        outcome: Outcome,
        state: &mut State,
        (sequence, mut location): (u64, Location),
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) {
        match outcome {
            Outcome::Acknowledged { .. } | Outcome::Purged => settling.add(location),
            Outcome::Untouched => Self::put_into_place(state, sequence, location),
            Outcome::Requeued { counts: false } => {
                self.put_back_unharmed(state, (sequence, location), settling);
            }
            Outcome::Requeued { counts: true } => {
                self.put_back(state, (sequence, location), settling, wakes);
            }
            Outcome::Rejected { counts } => {
                *location.marks_mut() |= if counts { FAILED } else { 0 };
                let dead = (state.ready.rank_of(sequence), location);
                self.bury(state, dead, Reason::Rejected, settling, wakes);
            }
        }
    }

    /// A message comes back that its client may have failed on: to its place, or, from a queue that counts
    /// that, out of the queue if that was once too often.
    pub(super) fn put_back(
        self: &Arc<Self>,
        state: &mut State,
        (sequence, mut location): (u64, Location),
        settling: &mut Settling,
        wakes: &mut Wakes,
    ) {
        let was_redelivered = location.marks() & REDELIVERED != 0;
        *location.marks_mut() |= FAILED | REDELIVERED;
        if let Some(limit) = state.traits.as_ref().and_then(|traits| traits.delivery_limit) {
            let count = count_of(&location, state.notes.as_deref()).saturating_add(1);
            if count > limit {
                let dead = (state.ready.rank_of(sequence), location);
                return self.bury(state, dead, Reason::DeliveryLimit, settling, wakes);
            }
            state.set_count(&mut location, count);
            if let Some(position) = location.position()
                && location.marks() & SPILLED == 0
            {
                settling.returns.push((position, count));
            }
        } else if !was_redelivered {
            self.note_returned(state, &location, settling);
        }
        self.retry(state, (sequence, location), true);
    }

    /// A message comes back unharmed, to its place.
    pub(super) fn put_back_unharmed(
        &self,
        state: &mut State,
        (sequence, mut location): (u64, Location),
        settling: &mut Settling,
    ) {
        if self.is_quorum {
            state.notes_mut().add_unharmed(&location, 1);
        }
        if location.marks() & REDELIVERED == 0 {
            *location.marks_mut() |= REDELIVERED;
            self.note_returned(state, &location, settling);
        }
        self.retry(state, (sequence, location), false);
    }

    /// The positions below `end` of messages in the log that have come back, and how often; or have been handed out, where
    /// the log is told of that.
    pub(crate) fn returns_below(&self, end: Lsn) -> Vec<(Position, u64)> {
        let (lines, mut pairs) = {
            let state = self.state.lock();
            let handed_out = state.unacked.noted_below(end, state.passed_over_numbers());
            // Also without a limit any more: there may be one again.
            if !state.has_returned {
                return handed_out;
            }
            (self.logged(&state), handed_out)
        };
        let is_told_of = |marks: u16| {
            returns(marks) > 0
                || self.copied.is_some() && marks & (REDELIVERED | SPILLED) == REDELIVERED
        };
        let mut each_run = |run: &[Entry]| {
            let returned =
                run.iter().filter(|(at, marks, _)| at.is_before(end) && is_told_of(*marks));
            pairs.extend(returned.map(|(at, marks, _)| (*at, u64::from(returns(*marks)))));
        };
        lines.complete().for_each(|(_, line)| line.for_each_run(&mut each_run));
        if pairs.iter().any(|(_, count)| *count == u64::from(RETURNS_MANY)) {
            let state = self.state.lock();
            for (at, count) in pairs.iter_mut().filter(|(_, few)| *few == u64::from(RETURNS_MANY)) {
                // One that has been settled since is of no interest any more.
                let noted = state.notes.as_ref().and_then(|notes| notes.count_at(*at));
                *count = noted.unwrap_or(*count);
            }
        }
        pairs
    }
}
