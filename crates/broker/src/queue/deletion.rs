//! The end of a queue, or of all that waits in it.

use super::ready::Ready;
use super::settle::Settling;
use super::{Consumer, Queue, QueueStatus};
use crate::fault::Fault;
use crate::memory::Use;
use crate::timers::TimerKind;
use courser_store::{Location, Position, Store, StoreError, Sync};
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
    pub left: Left,
}

/// Positions that are released together.
const RELEASED_AT_ONCE: usize = 1 << 14;

/// Messages of a purge that are settled together: so many hold up others, and take memory, at the same time.
const PURGED_AT_ONCE: usize = 1 << 14;

/// The messages of a deleted queue.
#[derive(Debug)]
pub(crate) struct Left {
    waiting: Ready,
    /// The positions of the others in the log.
    others: Vec<Position>,
}

impl Left {
    /// Calls `release` with the positions of those in the log: with some at a time, as all together would take much memory.
    pub fn release(self, release: &mut dyn FnMut(&[Position])) {
        release(&self.others);
        let mut some = Vec::new();
        self.waiting.for_each(&mut |location| {
            some.extend(location.position());
            if some.len() == RELEASED_AT_ONCE {
                release(&some);
                some.clear();
            }
        });
        release(&some);
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
        let consumers = state.consumers.take_all();
        self.backlog.store(0, Ordering::Relaxed);
        self.active_consumers.store(0, Ordering::Relaxed);
        drop(state);
        let mut others = Vec::new();
        others.extend(unacked.values().filter_map(Location::position));
        others.extend(dying.locations().filter_map(Location::position));
        let mut count = waiting.len() + delayed.len();
        others.extend(delayed.values().filter_map(Location::position));
        if let Some(stream) = self.stream() {
            let (in_stream, mut places) = stream.delete(&self.timers);
            count += in_stream as usize;
            others.append(&mut places);
        }
        Ok(Remains { messages: count, consumers, left: Left { waiting, others } })
    }

    /// Drops everything that waits, also for its dead-letter exchange to take it: a restart would find that
    /// in the queue. Returns how much that was. A crash before that may leave a part of it.
    pub(crate) fn purge(&self, store: &dyn Store) -> Result<usize, StoreError> {
        let mut state = self.state.lock();
        state.return_passed_over();
        let purged = state.ready.take_all();
        let stranded = state.dying.take_stranded();
        let delayed = state.delayed.take_all();
        state.reader.close();
        self.finish(&mut state, Ok(()));
        drop(state);
        let messages = purged.len() + stranded.len() + delayed.len();
        let (mut some, mut done) = (Settling::default(), Ok(()));
        let mut drop_one = |location: Location| {
            if some.positions.len() + some.locations.len() == PURGED_AT_ONCE {
                let some = &mut std::mem::take(&mut some);
                if done.is_ok() {
                    done = self.settle_purged(some, Sync::Later, store);
                }
            }
            some.add(location);
        };
        purged.for_each(&mut |location| drop_one(location.clone()));
        stranded.for_each(&mut drop_one);
        delayed.into_iter().for_each(|(_, location)| drop_one(location));
        done?;
        self.settle_purged(&mut some, Sync::Wanted, store)?;
        Ok(messages)
    }

    /// Settles purged messages, and forgets what was noted of them. What has come since and is the same as one of these may
    /// have been dropped, as if it had come before the purge.
    fn settle_purged(
        &self,
        some: &mut Settling,
        sync: Sync,
        store: &dyn Store,
    ) -> Result<(), StoreError> {
        let told = self.tell(some, sync, store);
        self.forget_notes(some);
        told
    }
}
