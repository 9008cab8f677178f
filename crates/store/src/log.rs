//! The log of a shard: changes that survive together, in one order.

use crate::{Figures, Location, Lsn, Position, Proof, Record, StoreError};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// Whether an answer waits for a batch to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// A confirm or a reply hangs on it.
    Wanted,
    /// It is enough if it becomes durable with what comes later, or when an answer waits for it.
    Later,
}

/// Keeps every change that has to survive.
///
/// What "durable" means is the log's own affair: synced to a disk, or committed by a majority.
pub trait Log: Send + std::marker::Sync + 'static {
    /// Appends a batch of changes that survive together or not at all, and pushes one [`Location`]
    /// for each record with a message onto `locations`.
    ///
    /// Returns the LSN that [`Log::durable`] has to reach before the batch may be confirmed.
    ///
    /// # Errors
    /// Nothing is kept then.
    fn append(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        locations: &mut Vec<Location>,
    ) -> Result<Lsn, StoreError>;

    /// Appends records that say that messages are done with, and lets go of these, which are at
    /// `positions`. Done even without room, by [`Log::unlogged`], where the store has that. Called when
    /// their queues have them no more. Returns whether the log has the records.
    ///
    /// # Errors
    /// When the log has failed.
    fn settle(
        &self,
        records: &[Record<'_>],
        sync: Sync,
        positions: &[Position],
    ) -> Result<bool, StoreError>;

    /// Makes changes durable that find no room in the log. None where each change is in the log or has
    /// not happened, as others have copies of the log: there an append without messages never fails with
    /// [`StoreError::Full`].
    fn unlogged(&self) -> Option<&dyn Unlogged>;

    /// The end of everything appended so far.
    fn end(&self) -> Lsn;

    /// Everything up to here survives what this log promises to survive. Never goes back.
    fn durable(&self) -> Lsn;

    /// Up to here messages may be handed out. Everything ([`Lsn::MAX`], for as long as the log lives) where no other machine
    /// has a copy of the log; otherwise what is durable: the others may go on without the rest. Cheap.
    fn deliverable(&self) -> Lsn {
        Lsn::MAX
    }

    /// Lets `waiter` know, once, when [`Log::durable`] has reached `lsn`, or never will.
    fn when_durable(&self, lsn: Lsn, waiter: Waiter);

    /// Why the log takes nothing more, once it has failed.
    fn failure(&self) -> Option<String>;

    /// Whether that is because another machine leads the replicated log by now: [`StoreError::Deposed`].
    fn is_deposed(&self) -> bool {
        false
    }

    /// Asks for a proof that no other machine led the log when this was called: what was read of the broker's state before
    /// is current as of then. Answers that tell of it wait until [`Log::proven`] reaches what this returns.
    ///
    /// Reached at once where no other machine can lead.
    fn prove_lead(&self) -> Proof {
        Proof::default()
    }

    /// The last proof of [`Log::prove_lead`] that there is. Never goes back while this machine leads.
    fn proven(&self) -> Proof {
        Proof::default()
    }

    /// Lets `waiter` know, once, when [`Log::proven`] has reached `proof`, or never will.
    fn when_proven(&self, _proof: Proof, waiter: Waiter) {
        waiter.notify(false);
    }

    /// Whether there is room for more messages; acknowledgements are taken even without.
    fn has_room(&self) -> bool;

    /// Whether so much waits to be written that who appends more should wait first: an append blocks
    /// when there is no room to wait in. Cheap.
    fn is_behind(&self) -> bool {
        false
    }

    /// Whether the next append may block, with what others append meanwhile. Cheap.
    fn may_block(&self) -> bool {
        false
    }

    /// Wakes `waker` when [`Log::has_room`] again, or never will have.
    fn when_room(&self, waker: &Waker);

    /// What it has done, and what it takes. Nothing but an identity of 0 where it is not on a disk.
    fn figures(&self) -> Figures {
        Figures::default()
    }
}

/// Makes durable what the log has no room for: a checkpoint stands for it, which only this broker reads.
pub trait Unlogged: Send + std::marker::Sync {
    /// As [`Messages::release`](crate::Messages::release) for all of these, after an append that would
    /// have said so, and has failed because the log has no room: the next checkpoint is made without them.
    /// Until then a crash brings them back.
    ///
    /// Called when their queues have them no more. Without positions, it is another change of what
    /// the broker holds that is in the same case.
    fn release(&self, positions: &[Position]);
}

/// Who waits for something to be durable.
#[derive(Clone)]
pub enum Waiter {
    /// A task, which is woken.
    Task(Waker),
    /// Something so short that the log may do it itself, on the thread that has made it durable,
    /// while nothing else waits for that thread: it saves waking another.
    InPlace(Arc<dyn InPlace>),
}

/// See [`Waiter::InPlace`].
pub trait InPlace: Send + std::marker::Sync {
    /// Does, at once, what hangs on it. It waits for nothing: others may be waiting for the log.
    /// Returns false if it can't be done here; then it is woken as well.
    fn run(&self) -> bool;

    /// Leaves it to its own task, which is woken.
    fn wake(&self);
}

impl Waiter {
    /// Tells the waiter, in place if that `may_run` and can be.
    pub fn notify(self, may_run: bool) {
        match self {
            Waiter::Task(waker) => waker.wake(),
            Waiter::InPlace(work) => {
                if !may_run || !work.run() {
                    work.wake();
                }
            }
        }
    }
}

impl From<Waker> for Waiter {
    fn from(waker: Waker) -> Self {
        Waiter::Task(waker)
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Waiter::Task(_) => "Task",
            Waiter::InPlace(_) => "InPlace",
        })
    }
}
