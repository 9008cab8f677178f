//! The end of a queue, or of all that waits in it.

use super::priority::Ends;
use super::ready::Ready;
use super::settle::Settling;
use super::{Consumer, Queue, QueueStatus};
use crate::fault::Fault;
use crate::memory::Use;
use crate::persistence::gone::{HoldsPlaces, wait_for_log};
use crate::timers::TimerKind;
use courser_store::{Location, Position, Store, StoreError, Sync, critical};
use std::sync::atomic::Ordering;

/// What a deletion may depend on.
pub(crate) struct BeforeDeletion {
    pub status: QueueStatus,
    /// Its lease is over (`x-expires`).
    pub is_unused: bool,
}

/// What is left of a deleted queue.
pub(crate) struct Remains {
    /// How many messages waited in it.
    pub messages: usize,
    /// The consumers that have to be told.
    pub consumers: Vec<Consumer>,
    /// Its messages in the log, to be released once that knows that it is gone.
    pub left: Vec<Box<dyn HoldsPlaces>>,
}

/// Messages of a purge that leave the queue in one section: so many hold up others, and take memory, at the same time.
const PURGED_AT_ONCE: usize = 1 << 14;

/// A purge of more waits where the log is behind: it is known before to take long, so its thread is one that may.
pub(crate) const PURGED_WITHOUT_WAITING: usize = 300_000;
/// A purge under way: what waited when it began, as far as it still does.
pub(crate) struct Purge {
    ends: Ends,
    /// Where the numbers of letters ended.
    letters_end: u64,
    may_wait: bool,
    /// How many messages it has dropped.
    pub messages: usize,
}

impl Purge {
    /// If it is a long one, waits for a while until the log takes more without holding up others that append.
    pub fn wait_for_log(&self, store: &dyn Store) {
        critical::assert_outside("a purge waits for the log");
        if self.may_wait {
            wait_for_log(store);
        }
    }
}

impl HoldsPlaces for Ready {
    fn for_each_position(&self, each: &mut dyn FnMut(Position)) {
        self.for_each(&mut |location| location.position().into_iter().for_each(&mut *each));
    }
}

impl Queue {
    /// Whether it is gone, and takes nothing any more.
    pub(crate) fn is_deleted(&self) -> bool {
        self.state.lock().deleted
    }

    /// Marks the queue as gone if `condition` agrees. What it leaves behind is the caller's.
    pub(crate) fn delete(
        &self,
        condition: impl FnOnce(BeforeDeletion) -> Result<(), Fault>,
    ) -> Result<Remains, Fault> {
        let mut state = self.state.lock();
        let (status, is_unused) = (self.status_of(&state), state.is_unused(self.now_ms()));
        condition(BeforeDeletion { status, is_unused })?;
        state.deleted = true;
        // What keeps it from now on is deliveries that wait for an acknowledgement, and routes that are remembered.
        state.charge.count_as(Use::Sessions);
        // No start finds it again.
        self.matched.end();
        state.return_passed_over();
        self.end_lease(&mut state);
        self.end_expiry(&mut state);
        self.timers.disarm(&mut state.serving, (self.id, TimerKind::Serve));
        let dying = self.take_dying(&mut state);
        self.timers.disarm(&mut state.read_ahead, (self.id, TimerKind::ReadAhead));
        state.reader.close();
        state.notes = None;
        self.end_delayed(&mut state);
        let delayed = state.delayed.take_all();
        let waiting = state.ready.take_all();
        let unacked = state.unacked.take_all();
        let returning = std::mem::take(&mut state.returning);
        let consumers = state.consumers.take_all();
        self.backlog.store(0, Ordering::Relaxed);
        self.active_consumers.store(0, Ordering::Relaxed);
        drop(state);
        drop(returning);
        let mut others: Vec<Position> = Vec::new();
        others.extend(unacked.values().filter_map(Location::position));
        others.extend(dying.locations().filter_map(Location::position));
        let mut count = waiting.len() + delayed.len();
        others.extend(delayed.values().filter_map(Location::position));
        let mut left: Vec<Box<dyn HoldsPlaces>> = vec![Box::new(others), Box::new(waiting)];
        if let Some(stream) = self.stream() {
            let (in_stream, places) = stream.delete(&self.timers);
            count += in_stream as usize;
            left.push(Box::new(places));
        }
        Ok(Remains { messages: count, consumers, left })
    }

    /// Begins to drop everything that waits, also for its dead-letter exchange to take it: a restart would find that in the
    /// queue. What comes from now on stays. [`Queue::purge_some`] follows, as long as there is more.
    pub(crate) fn begin_purge(&self) -> Purge {
        let state = self.state.lock();
        let waiting = state.ready.len() + state.delayed.len();
        let are_logged = [state.ready.amounts(), state.delayed.amounts()];
        let are_logged = are_logged.iter().any(|amounts| amounts.has_logged());
        Purge {
            ends: state.ready.ends(),
            letters_end: state.dying.end(),
            may_wait: self.settings.survives() && are_logged && waiting > PURGED_WITHOUT_WAITING,
            messages: 0,
        }
    }

    /// Drops some of what is to be purged. Returns whether there is more. Called in a section of the gate, in which the log is
    /// told of them: a checkpoint between two of these finds the others in the queue, and so does a restart.
    pub(crate) fn purge_some(
        &self,
        purge: &mut Purge,
        store: &dyn Store,
    ) -> Result<bool, StoreError> {
        let Purge { ends, letters_end, messages, .. } = purge;
        let (mut some, mut count) = (Settling::default(), 0);
        let mut state = self.state.lock();
        state.return_passed_over();
        while count < PURGED_AT_ONCE
            && let Some(location) = state.ready.pop_before(ends)
        {
            some.add(location);
            count += 1;
        }
        while count < PURGED_AT_ONCE
            && let Some(location) = state.dying.pop_stranded(*letters_end)
        {
            some.add(location);
            count += 1;
        }
        state.delayed.take_before(ends, PURGED_AT_ONCE - count, &mut |location| {
            some.add(location);
            count += 1;
        });
        if state.ready.is_empty() {
            // Gives back what it keeps for the next ones.
            drop(state.ready.take_all());
        }
        // The next one is another, which may expire earlier.
        if state.expiry.watching {
            self.watch_head(&mut state);
        }
        state.reader.close();
        self.finish(&mut state, Ok(()));
        drop(state);
        *messages += count;
        self.settle_purged(&mut some, store)?;
        Ok(count == PURGED_AT_ONCE)
    }

    /// Settles purged messages, and forgets what was noted of them. What has come since and is the same as one of these may
    /// have been dropped, as if it had come before the purge.
    fn settle_purged(&self, some: &mut Settling, store: &dyn Store) -> Result<(), StoreError> {
        // Which portion is the last is only known when none follows, and there may be no answer that asks for the sync.
        let told = self.tell(some, Sync::Wanted, store);
        if let Some(notes) = &mut self.state.lock().notes {
            notes.leave_told(&some.positions, matches!(told, Ok(true)));
            notes.leave_all(&some.locations);
        }
        told.map(drop)
    }
}
