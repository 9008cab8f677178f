//! What the handle of a journal and its threads share.

use crate::{
    Disk, Failure, Lsn, Options,
    checkpoint::Latest,
    figures::Done,
    log::{Log, Writer},
    replica,
    segments::Segments,
    upkeep::Upkeep,
    waiters::Waiters,
};
use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// The state of an open journal.
///
/// Locks are taken in this order: `checkpointing`, `upkeeping`, `writer`, `log`, `upkeep`; the
/// segment table and the waiters have locks of their own, below all of these.
pub struct Core {
    pub dir: PathBuf,
    pub disk: Arc<dyn Disk>,
    pub options: Options,
    /// The journal's number, part of every sum.
    pub id: u64,
    pub segments: Segments,

    /// What appenders share with the log thread.
    pub log: Mutex<Log>,
    /// The log thread waits here for something to do.
    pub work: Condvar,
    /// Appenders wait here for room in the buffer or for a spare segment.
    pub space: Condvar,
    /// What the log thread owns.
    pub writer: Mutex<Writer>,
    /// The end of the log; changed under the lock of `log`.
    pub end: AtomicU64,
    /// Everything before can be read from the files.
    pub written: AtomicU64,
    /// Everything before is durable.
    pub durable: AtomicU64,
    pub waiters: Waiters,

    /// What there is to do for the maintenance thread.
    pub upkeep: Mutex<Upkeep>,
    /// The maintenance thread waits here for something to do.
    pub upkeep_work: Condvar,
    /// Held while segments are freed, and while none may be.
    pub upkeeping: Mutex<()>,
    /// Whether segments cannot be made for lack of room.
    pub full: AtomicBool,
    /// Who waits for room; all of them for the same, so the position is always zero.
    pub room_waiters: Waiters,

    /// Held while a checkpoint is made.
    pub checkpointing: Mutex<()>,
    /// What the last checkpoint was like.
    pub latest: Latest,

    /// What it is besides, if it is a copy of a replicated log.
    pub replica: Option<Box<replica::Shared>>,
    /// What its checkpoints stand for, when it becomes a copy: see [`replica::Adoption`].
    pub adopted: OnceLock<replica::Base>,
    /// What has been done since the journal was opened.
    pub done: Done,

    pub failed: OnceLock<Failure>,
    /// Keeps other processes out.
    pub _lock: Box<dyn Any + Send + Sync>,
}

impl Core {
    /// The end of everything appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.end.load(Acquire))
    }

    /// Everything before this can be read from the files.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.load(Acquire))
    }

    /// Everything before this is durable: synced, or committed in a replicated log.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Acquire))
    }

    /// Everything before this is synced on this machine.
    pub fn synced(&self) -> Lsn {
        self.replica.as_ref().map_or_else(|| self.durable(), |replica| replica.synced())
    }

    /// Says that everything before `lsn` is synced, which are all entries up to `ticket` in a
    /// replicated log.
    pub fn publish_synced(&self, lsn: Lsn, ticket: Option<u64>) {
        match &self.replica {
            Some(replica) => replica.publish_synced(lsn, ticket),
            None => self.publish_durable(lsn),
        }
    }

    /// Says that everything before `lsn` is durable, and wakes who waits for it.
    pub fn publish_durable(&self, lsn: Lsn) {
        debug_assert!(self.durable() <= lsn);
        self.durable.store(lsn.0, Release);
        let is_free = self.options.threads && self.log.lock().sync_to <= lsn;
        self.waiters.wake_up_to(lsn, is_free);
    }

    /// Fails the journal for good, if it has not failed before.
    pub fn fail(&self, action: &'static str, path: &Path, error: io::Error) {
        let failure = Failure { action, path: path.to_owned(), error: Arc::new(error) };
        tracing::error!(%failure, "journal failed; rejecting appends");
        // Who loses this race has failed all the same.
        let _ = self.failed.set(failure);
        let log = self.log.lock();
        self.work.notify_all();
        self.space.notify_all();
        drop(log);
        let upkeep = self.upkeep.lock();
        self.upkeep_work.notify_all();
        drop(upkeep);
        if let (Some(replica), Some(failure)) = (&self.replica, self.failed.get()) {
            replica.events.failed(failure);
            replica.proofs.give_up();
        }
        self.waiters.wake_up_to(Lsn(u64::MAX), false);
        self.room_waiters.wake_up_to(Lsn(0), false);
    }

    /// See [`Journal::is_behind`](crate::Journal::is_behind).
    pub fn is_behind(&self) -> bool {
        self.waits_more_than(self.options.buffer_bytes / 4)
    }

    /// See [`Journal::may_block`](crate::Journal::may_block).
    pub fn may_block(&self) -> bool {
        self.waits_more_than(self.options.buffer_bytes / 8 * 7)
    }

    /// Whether more bytes wait for the log thread.
    fn waits_more_than(&self, bytes: usize) -> bool {
        // The second is never ahead of the first.
        let written = self.written();
        let waiting = self.end().0.saturating_sub(written.0);
        waiting > bytes as u64 && self.options.threads && self.failed.get().is_none()
    }

    /// Whether the journal has room for more than the reserve.
    pub fn has_room(&self) -> bool {
        !self.full.load(Relaxed)
    }
}
