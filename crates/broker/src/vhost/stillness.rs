//! A vhost that stands still, as all that is in it is carried to another broker.
//!
//! No client gets in, no operator changes anything in it, and nothing comes of its timers; what is there can be looked at.
//! Clients in it when that begins are told to go, and until all have gone it is only about to stand still. Kept in memory
//! only: a restart ends it.
//!
//! It stands still for a move, which has a number: of two moves the later one has the greater number. What comes late of an
//! earlier move does nothing to a later one, which takes the vhost over. 0 is a move without a number.

use super::Vhost;
use crate::fault::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a vhost stands still, and who still moves in it.
#[derive(Debug, Default)]
pub(super) struct Stillness {
    /// Odd while it stands still; rises whenever that changes.
    turn: AtomicU64,
    /// The move that it stood still for last. This and what follows is changed by one at a time: see [`Vhost::stop`].
    mover: AtomicU64,
    /// Moves up to this number have ended, and do not begin again.
    ended: AtomicU64,
    /// Operators who are about to change something.
    changes: AtomicU64,
}

/// A change that an operator makes in a vhost: it does not stand still before this is dropped.
#[must_use = "the change goes on as long as this lives"]
pub(crate) struct Change(Arc<Vhost>);

impl Drop for Change {
    fn drop(&mut self) {
        self.0.stillness.changes.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Vhost {
    /// Whether it stands still, or is about to.
    pub(crate) fn is_still(&self) -> bool {
        self.still_turn().is_some()
    }

    /// Which time it is that it stands still, if it does.
    pub(crate) fn still_turn(&self) -> Option<u64> {
        // A client that comes in is counted first and looks here then; the thread that stops the vhost
        // looks at the counts after this. So of two that do so at the same moment one sees the other.
        Some(self.stillness.turn.load(Ordering::SeqCst)).filter(|turn| turn % 2 == 1)
    }

    /// Lets nothing begin in it any more, for this move. What has begun is waited for by [`Vhost::in_motion`], and what was due
    /// by [`Gate::wait_for_passers`](crate::gate::Gate::wait_for_passers). Returns whether the move may have it. The caller
    /// holds `shards_write`, if others know the vhost.
    pub(crate) fn stop(&self, number: u64) -> bool {
        let Stillness { turn, mover, ended, .. } = &self.stillness;
        let (is_still, before) = (self.is_still(), mover.load(Ordering::SeqCst));
        let has_ended = number > 0 && number <= ended.load(Ordering::SeqCst);
        if has_ended || is_still && before > number {
            return false;
        }
        mover.store(number, Ordering::SeqCst);
        match (is_still, before == number) {
            (false, _) => drop(turn.fetch_add(1, Ordering::SeqCst)),
            (true, true) => {}
            // What the earlier move reads out comes to nothing.
            (true, false) => drop(turn.fetch_add(2, Ordering::SeqCst)),
        }
        true
    }

    /// Ends that for this move, and for all before it. Returns whether it stood still. The caller holds `shards_write`.
    pub(crate) fn start(&self, number: u64) -> bool {
        let Stillness { turn, ended, .. } = &self.stillness;
        ended.fetch_max(number, Ordering::SeqCst);
        let stands_still_for_it = self.is_still() && self.mover() <= number;
        if stands_still_for_it {
            for queue in self.queues() {
                // No client could use it meanwhile.
                queue.touch();
            }
            turn.fetch_add(1, Ordering::SeqCst);
        }
        stands_still_for_it
    }

    /// The move that it stood still for last.
    pub(crate) fn mover(&self) -> u64 {
        self.stillness.mover.load(Ordering::SeqCst)
    }

    /// How many are still in it who may change something: connections, and operators with what they do
    /// just now.
    pub(crate) fn in_motion(&self) -> u64 {
        self.connections.load(Ordering::SeqCst) + self.stillness.changes.load(Ordering::SeqCst)
    }

    /// An operator is about to change something in it.
    pub(crate) fn begin_change(self: &Arc<Self>) -> Result<Change, Fault> {
        self.stillness.changes.fetch_add(1, Ordering::SeqCst);
        let change = Change(Arc::clone(self));
        self.refuse_if_still()?;
        Ok(change)
    }

    /// Refuses what can't be done while it stands still.
    pub(crate) fn refuse_if_still(&self) -> Result<(), Fault> {
        if self.is_still() { Err(stands_still(&self.name)) } else { Ok(()) }
    }
}

/// What those hear who are in a vhost that is to stand still, and those who want to come in or to change something.
pub(crate) fn stands_still(name: &str) -> Fault {
    Fault::new(
        320,
        format_args!("vhost '{name}' is being moved to another group; try again in a moment"),
    )
}
