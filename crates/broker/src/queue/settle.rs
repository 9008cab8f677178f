//! What becomes of messages that a queue has handed out, and how the log hears of it.

use super::backlog::SPILLED;
use super::logged::{Entry, Logged, Placed, logged};
use super::priority::level_of;
use super::retry::{Waiting, logged_of};
use super::returning::SETTLED_AT_ONCE;
use super::{Queue, State};
use crate::gate;
use crate::wakes::Wakes;
use crate::work;
use courser_store::{Key, Location, Lsn, Position, Priority, Record, Store, StoreError, Sync};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many messages are looked up for a checkpoint under one hold of the queue's lock.
const KEYS_AT_ONCE: usize = 1024;

/// A delivery that comes back from its consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub sequence: u64,
    pub freed: Freed,
}

/// What the end of a delivery means for its consumer, by its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Freed {
    /// It has gone, or was not kept from having more.
    Nothing,
    MayHaveMore(u32),
    /// The same, after others that share the limit of its channel.
    MayHaveTurn(u32),
}

/// What becomes of deliveries that come back. One that is untouched no client has had: it is in its place again as if it had
/// never been handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Acknowledged { in_log: bool },
    Purged,
    Untouched,
    Requeued { counts: bool },
    Rejected { counts: bool },
}

/// What a section under the queue's lock leaves to be done after it.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// Positions in the log of messages that the queue is done with.
    pub positions: Vec<Position>,
    /// Positions in the log of messages that have come back, and how often.
    pub returns: Vec<(Position, u64)>,
    /// Places whose memory is freed.
    pub locations: Vec<Location>,
}

impl Settling {
    pub fn add(&mut self, location: Location) {
        match location.position() {
            Some(position) => self.positions.push(position),
            None => self.locations.push(location),
        }
    }

    /// The same for the first of `left` that are likely to be of one kind: room is made for all.
    fn add_first_of(&mut self, left: usize, location: Location) {
        if self.positions.capacity() == 0 && self.locations.capacity() == 0 {
            match location.position() {
                Some(_) => self.positions.reserve(left),
                None => self.locations.reserve(left),
            }
        }
        self.add(location);
    }
}

/// Lines of messages in the log, and those that wait for their next try: too many to be put into the lines under the queue's lock.
pub(super) struct Lines {
    lines: BTreeMap<u8, Logged>,
    delayed: Waiting,
    has_levels: bool,
}

impl Lines {
    /// One for each level, with all of its messages.
    pub fn complete(mut self) -> impl Iterator<Item = (u8, Logged)> {
        for (number, entry) in logged_of(&self.delayed) {
            let level = if self.has_levels { level_of(number) } else { 0 };
            self.lines.entry(level).or_default().away.push(entry);
        }
        self.lines.into_iter()
    }
}

impl State {
    /// Those of messages that wait, for a consumer, for their dead-letter exchange or for their next try, and of `out`, with
    /// their levels.
    pub(super) fn lines_with(&self, out: impl Iterator<Item = (u8, Entry)>) -> Lines {
        Lines {
            lines: self.ready.lines_with(out.chain(self.dying.logged())),
            delayed: self.delayed.share(),
            has_levels: self.ready.has_levels(),
        }
    }

    /// A delivery has ended: its consumer may have more.
    #[inline]
    pub(super) fn give_credit(&mut self, freed: Freed) {
        match freed {
            Freed::Nothing => {}
            Freed::MayHaveTurn(consumer) => self.consumers.starve(consumer),
            Freed::MayHaveMore(consumer) => {
                self.consumers.unblock(consumer);
                self.offer_aside_to(consumer);
            }
        }
    }
}

impl Queue {
    /// Notes in the log that the queue is done with some messages, and lets go of them, even when the
    /// disk is full. Called without the queue's lock, when it has them no more.
    pub(super) fn settle(
        &self,
        mut settling: Settling,
        sync: Sync,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        let told = self.tell(&mut settling, sync, store);
        let gone = &settling.positions;
        // Now others like these come in. If the log did not know by then that these are gone, a restart could find both.
        if self.holds_no_two()
            && !gone.is_empty()
            && let Some(notes) = &mut self.state.lock().notes
        {
            notes.leave_told(gone, matches!(told, Ok(true)));
        }
        told.map(drop)
    }

    /// Notes in the log, and lets go of them, without what the queue knows of them besides. Returns whether the log had room for
    /// that.
    pub(super) fn tell(
        &self,
        settling: &mut Settling,
        sync: Sync,
        store: &dyn Store,
    ) -> Result<bool, StoreError> {
        if settling.positions.is_empty() && settling.returns.is_empty() {
            return Ok(true);
        }
        gate::assert_inside("messages are settled");
        if self.settings.survives() {
            settling.positions.sort_unstable();
            let settled = Record::Settled { queue: self.id, positions: &settling.positions };
            let returned = Record::Returned { queue: self.id, returns: &settling.returns };
            let records = match (settling.returns.is_empty(), settling.positions.is_empty()) {
                (true, _) => &[settled][..],
                (false, true) => &[returned],
                (false, false) => &[returned, settled],
            };
            return store.settle(records, sync, &settling.positions);
        }
        store.release(&settling.positions);
        Ok(true)
    }

    /// Acknowledges (or drops) deliveries, in portions: their consumers may have more. `in_log` says that the log
    /// knows of it already.
    pub(crate) fn acknowledge(
        self: &Arc<Self>,
        settled: &[Settled],
        in_log: bool,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut done = Ok(());
        for some in settled.chunks(SETTLED_AT_ONCE) {
            // Also where the store has failed: the log may know of all.
            let outcome = Outcome::Acknowledged { in_log };
            done = done.and(self.end_deliveries(some, outcome, store, wakes));
        }
        done
    }

    /// Drops what an operator has taken out of the queue.
    pub(crate) fn drop_taken(
        self: &Arc<Self>,
        taken: &[Settled],
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        self.end_deliveries(taken, Outcome::Purged, store, wakes)
    }

    /// Takes deliveries that their consumers refuse for good, in portions. Whether it counts says if the message may have been at
    /// fault.
    pub(crate) fn reject(
        self: &Arc<Self>,
        refused: &[Settled],
        counts: bool,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut done = Ok(());
        for some in refused.chunks(SETTLED_AT_ONCE) {
            done = done.and(self.end_deliveries(some, Outcome::Rejected { counts }, store, wakes));
        }
        done
    }

    /// Ends deliveries, one way or another, and gives their consumers more.
    #[inline]
    fn end_deliveries(
        self: &Arc<Self>,
        settled: &[Settled],
        outcome: Outcome,
        store: &dyn Store,
        wakes: &mut Wakes,
    ) -> Result<(), StoreError> {
        let mut acknowledged = Settling::default();
        let mut settling = Settling::default();
        let (acknowledges, in_log) = match outcome {
            Outcome::Acknowledged { in_log } => (settled.len(), in_log),
            _ => (0, false),
        };
        let is_done = matches!(outcome, Outcome::Acknowledged { .. } | Outcome::Purged);
        let mut state = self.state.lock();
        self.count_settled(&mut state, acknowledges, wakes);
        work::count(settled.len());
        for (index, one) in settled.iter().enumerate() {
            match state.unacked.remove(one.sequence) {
                Some(location) if is_done => {
                    acknowledged.add_first_of(settled.len() - index, location);
                }
                Some(location) => {
                    let refused = (one.sequence, location);
                    self.put_back_as(outcome, &mut state, refused, &mut settling, wakes);
                }
                None => {}
            }
            state.give_credit(one.freed);
        }
        if let Some(notes) = &mut state.notes {
            if in_log || !notes.keeps_apart() {
                notes.leave_positions(&acknowledged.positions);
            }
            notes.leave_all(&acknowledged.locations);
        }
        state.unacked.shrink_if_empty();
        self.serve(&mut state, &mut settling, store, wakes);
        self.note_handed_out(&mut state, &mut settling);
        drop(state);
        if in_log {
            store.release(&acknowledged.positions);
        } else {
            settling.positions.append(&mut acknowledged.positions);
        }
        self.settle(settling, Sync::Later, store)
    }

    /// Calls `each` with the positions below `end` of its messages that are in the log and the sizes of
    /// their bodies, in ascending runs, the queue's oldest first: of all, or only of those that survive a restart. With the
    /// priority that they count as, where the queue looks at it.
    pub(crate) fn for_each_run_below(
        &self,
        end: Lsn,
        only_surviving: bool,
        each: &mut dyn FnMut(&[Placed], Priority),
    ) {
        let lines = self.logged(&self.state.lock());
        let has_levels = lines.has_levels;
        let mut messages = Vec::new();
        let mut each_run = |level: u8, run: &[Entry]| {
            let counts = |marks: u16| !(only_surviving && marks & SPILLED != 0);
            messages.clear();
            messages.extend(
                run.iter()
                    .filter(|(at, marks, _)| at.is_before(end) && counts(*marks))
                    .map(|(at, _, body)| (*at, *body)),
            );
            messages.sort_unstable();
            if !messages.is_empty() {
                each(&messages, if has_levels { Priority::Is(level) } else { Priority::Unknown });
            }
        };
        for (level, line) in lines.complete() {
            line.for_each_run(&mut |run| each_run(level, run));
        }
    }

    /// What identifies the messages at these places, as far as it holds no two of the same and that is known.
    pub(crate) fn keys_at(&self, run: &[Placed]) -> Vec<(Position, Key)> {
        let mut keys = Vec::new();
        if self.holds_no_two() {
            for some in run.chunks(KEYS_AT_ONCE) {
                let state = self.state.lock();
                let positions = || some.iter().map(|(position, _)| *position);
                keys.extend(state.notes.iter().flat_map(|notes| notes.keys_at(positions())));
            }
        }
        keys
    }

    /// Where its messages are that are in the log, those of each priority by themselves.
    pub(super) fn logged(&self, state: &State) -> Lines {
        let unacked = state.unacked.iter();
        let unacked = unacked.filter_map(|(number, location)| {
            Some((state.ready.rank_of(number), logged(location)?))
        });
        state.lines_with(unacked)
    }

    /// The position of a message that waits for an acknowledgement, if it is in the log.
    pub(crate) fn unacked_position(&self, sequence: u64) -> Option<Position> {
        self.state.lock().unacked.get(sequence)?.position()
    }
}
