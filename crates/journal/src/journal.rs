//! The open journal.

use crate::{
    AppendError, Appended, Batch, CheckpointError, Disk, Failure, Lsn, OpenError, Options,
    ReadCache, ReadError, Recovery, core::Core, log::ALONE,
};
use courser_store::{Figures, Position, Proof, Waiter};
use parking_lot::Mutex;
use std::{
    io,
    path::Path,
    sync::Arc,
    task::{Poll, Waker},
    thread::{self, JoinHandle},
};

/// How a batch is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendMode {
    /// Sync it to the disk as soon as the disk is free. Without it the batch is written out within
    /// milliseconds all the same (and survives `kill -9` from then on), but synced only with the
    /// next batch that asks, when [`Options::unsynced_bytes`] have gathered, when a thread waits
    /// for it, or on close.
    pub sync: bool,
    /// Take it even from the reserve when the disk is full: for small batches that free space,
    /// such as acknowledgements.
    pub reserve: bool,
}

/// What an owner calls with every live position when a checkpoint asks for them.
pub type EachLive<'a> = &'a mut dyn FnMut(Lsn);

/// What a checkpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointDone {
    /// Bytes of the checkpoint's file.
    pub size_bytes: u64,
    /// Bytes given back to the file system by punching holes.
    pub punched_bytes: u64,
}

/// What the journal takes on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all segments that hold log, without what is punched out.
    pub log_bytes: u64,
    /// Estimate of the bytes of held records.
    pub live_bytes: u64,
    /// Bytes of segments that are ready to be used.
    pub spare_bytes: u64,
    /// Segments that hold log.
    pub segments: usize,
}

/// A durable log of atomic batches. All methods may be called from many threads.
///
/// Dropping it does the same as [`Journal::close`], with errors ignored.
pub struct Journal {
    pub(crate) core: Arc<Core>,
    /// Whether it is the only handle, or the lead of a replicated log in this term.
    epoch: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Journal {
    /// Opens the journal in `dir`, making the folder if there is none, and locks it.
    ///
    /// What it holds is read through the [`Recovery`], which turns into the journal.
    pub fn open(dir: &Path, options: Options, disk: Arc<dyn Disk>) -> Result<Recovery, OpenError> {
        crate::recovery::open(dir, options, disk)
    }

    /// Appends `batch` as one atomic unit behind everything appended before.
    ///
    /// One copy of the bytes under a short lock (none for large batches); the record positions
    /// are in the result. `batch` may be filled anew at once. Blocks while more than
    /// [`Options::buffer_bytes`] wait for the disk or while a new segment is being made.
    /// On an error nothing was appended and the batch still holds its records.
    pub fn append<'b>(
        &self,
        batch: &'b mut Batch,
        mode: AppendMode,
    ) -> Result<Appended<'b>, AppendError> {
        self.core.append(batch, mode, self.epoch)
    }

    /// The end of everything appended: where the next batch goes, or shortly before it.
    pub fn end(&self) -> Lsn {
        self.core.end()
    }

    /// Everything before this position is synced to the disk, or committed in a replicated log. Never
    /// goes back; an atomic load.
    pub fn durable(&self) -> Lsn {
        self.core.durable_for(self.epoch)
    }

    /// Whether other machines have copies of the log, so that what is durable is what is committed.
    pub fn is_replicated(&self) -> bool {
        self.core.replica.is_some()
    }

    /// Whether everything before `lsn` is durable; if not, `waker` is woken once when it is, or
    /// when the journal has failed. Asks for a sync if none is on its way.
    ///
    /// Each `Pending` registers one more waker, which is dropped when it is woken.
    pub fn poll_durable(&self, lsn: Lsn, waker: &Waker) -> Poll<Result<(), Failure>> {
        self.core.poll_durable(lsn, waker, self.epoch)
    }

    /// Notifies `waiter`, once or twice, when everything before `lsn` is durable or the journal has
    /// failed; in place, if the log thread does it and no thread waits for that. Asks for a sync if
    /// none is on its way.
    pub fn when_durable(&self, lsn: Lsn, waiter: Waiter) {
        self.core.when_durable(lsn, waiter, self.epoch);
    }

    /// Asks for a proof that this handle's term still led a replicated log when this was called.
    pub fn prove_lead(&self) -> Proof {
        self.core.prove_lead(self.epoch)
    }

    /// The last proof that there is; none in a term that is over.
    pub fn proven(&self) -> Proof {
        self.core.proven_for(self.epoch)
    }

    /// Notifies `waiter`, once or twice, when there is this proof, or never will be.
    pub fn when_proven(&self, proof: Proof, waiter: Waiter) {
        self.core.when_proven(proof, waiter, self.epoch);
    }

    /// Blocks until everything before `lsn` is durable.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Failure> {
        self.core.wait_durable(lsn, self.epoch)
    }

    /// Reads the record at `position`, which has to be held or not yet covered by a checkpoint.
    ///
    /// Works at once after the append, wherever the record is: in the log buffer or on the disk.
    /// `cache` belongs to the reader, such as one queue being drained; records near each other
    /// cost one read of the file together. The record's checksum is checked here.
    pub fn read<'c>(&self, position: Lsn, cache: &'c mut ReadCache) -> Result<&'c [u8], ReadError> {
        self.core.read(position, cache)
    }

    /// Counts the record at `position` as live `times` times more, or `times` records of its batch once. Its segment stays
    /// until all is released again.
    ///
    /// A record has to be held before a checkpoint is made whose start lies behind it, and may
    /// not be held again after its last release.
    pub fn hold(&self, position: Lsn, times: u64) {
        self.core.while_leading(self.epoch, || {
            let found = self.core.segments.hold(position, times);
            debug_assert!(found, "{position} is held, but in no segment");
        });
    }

    /// Says what is live, when this node has just taken the lead of a replicated log: `live` calls its argument
    /// with the position of each record that is held, once for each hold. Before anything is appended,
    /// held or released; until then no segment is freed.
    ///
    /// # Errors
    /// With a position that the log does not have any more. Nothing has changed then.
    pub fn count_live(&self, live: &mut dyn FnMut(EachLive<'_>)) -> Result<(), Lsn> {
        self.core.count_live(live, self.epoch)
    }

    /// Takes one [`Journal::hold`] of the record at each of these positions back.
    ///
    /// Release *after* appending the record that says so (the acknowledgement): the segment is
    /// used again only when everything appended before the release is durable.
    pub fn release(&self, positions: &[Position]) {
        self.core.while_leading(self.epoch, || self.core.release(positions));
    }

    /// As [`Journal::release`] for all of these, where there was no room to append what says so (or
    /// to note another change of the owner's state, which may be without a position): until a
    /// checkpoint that begins after this call their segments stay, and a restart finds the records
    /// in them as if they had not been released.
    ///
    /// What they belong to is not in the owner's state any more when a checkpoint that begins after this call has found its start.
    pub fn release_unlogged(&self, positions: &[Position]) {
        debug_assert!(self.epoch == ALONE, "other nodes would not know of it");
        self.core.release_unlogged(positions);
    }

    /// Whether a checkpoint, as soon as there is room for one, would let go of what was given to
    /// [`Journal::release_unlogged`], or may have been before the journal was opened: of the two that were found then, the older
    /// one may bring back what the newer one has let go of.
    pub fn awaits_checkpoint(&self) -> bool {
        self.core.has_unlogged()
            || self.core.latest.unlogged.is_older_in_doubt()
            || self.core.a_segment_awaits_a_checkpoint()
    }

    /// Whether something was given to [`Journal::release_unlogged`] that no checkpoint stands for
    /// yet. Cheap.
    pub fn has_unlogged(&self) -> bool {
        self.core.has_unlogged()
    }

    /// Whether a checkpoint should be made now: enough log has gathered since the last one, or
    /// one would free enough space. Cheap.
    pub fn wants_checkpoint(&self) -> bool {
        self.core.wants_checkpoint()
    }

    /// Makes the owner's state durable, so that a replay starts at `start`, and frees what nothing
    /// needs any more. Blocks; one at a time; everything else goes on meanwhile.
    ///
    /// `start` is called first. What was given to [`Journal::release_unlogged`] before has taken effect when it returns. Without
    /// room all three are called a second time, for another checkpoint: what neither of two needs is freed.
    ///
    /// `write` writes the state, which has to contain the effects of every record before `start`
    /// and may contain effects of later ones if replaying those a second time does no harm. All of these are appended when it
    /// returns. Before the checkpoint counts, everything appended until then is made durable.
    ///
    /// `live` is called *before* `write`, and only if there are segments worth punching holes in:
    /// it calls its argument with every position before `start` that is live, in any order. What
    /// it does not name is deallocated once the checkpoint is durable.
    pub fn checkpoint(
        &self,
        start: &mut dyn FnMut() -> Lsn,
        live: &mut dyn FnMut(EachLive<'_>),
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<CheckpointDone, CheckpointError> {
        self.core.checkpoint(start, live, write, self.epoch, &mut || true)
    }

    /// Whether batches without [`AppendMode::reserve`] find room. When not, appends still go on
    /// until the current segment is full, or is the reserve, then fail with [`AppendError::Full`].
    pub fn has_room(&self) -> bool {
        self.core.has_room() && !self.core.is_stalled()
    }

    /// Whether a quarter of what may wait for the log thread does: who can wait before an append
    /// should, as the append itself blocks when the buffer is full. Cheap. Never without threads.
    pub fn is_behind(&self) -> bool {
        self.core.is_behind()
    }

    /// Whether seven eighths of it do, so that the next append may block. Cheap. Never without threads.
    pub fn may_block(&self) -> bool {
        self.core.may_block()
    }

    /// Ready when [`Journal::has_room`] (or the journal has failed); otherwise `waker` is woken
    /// once when that changes.
    pub fn poll_room(&self, waker: &Waker) -> Poll<()> {
        if self.has_room() || self.failure().is_some() {
            return Poll::Ready(());
        }
        self.core.room_waiters.push(Lsn(0), waker.clone().into());
        let changed = self.has_room() || self.failure().is_some();
        if changed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// What is on the disk.
    pub fn usage(&self) -> Usage {
        self.core.usage()
    }

    /// What it has done since it was opened, and what is on the disk.
    pub fn figures(&self) -> Figures {
        self.core.figures()
    }

    /// The write or sync that failed, if one did: no append succeeds any more and
    /// [`Journal::durable`] does not move.
    pub fn failed(&self) -> Option<&Failure> {
        self.core.failed.get()
    }

    /// As [`Journal::failed`], and that this machine does not lead the log any more.
    pub fn failure(&self) -> Option<Failure> {
        self.failed().cloned().or_else(|| self.deposed())
    }

    /// Why what is read may be another leader's: this machine does not lead the log any more.
    pub fn deposed(&self) -> Option<Failure> {
        self.core.deposed(self.epoch)
    }

    /// Makes everything durable, notes in the log that it ends here by intention, and stops the
    /// threads. Later appends fail with [`AppendError::Closed`].
    pub fn close(&self) -> Result<(), Failure> {
        let closed = self.core.close();
        self.stop_threads();
        closed
    }

    /// Writes what was appended, and syncs if that is wanted: one round of the log thread. For
    /// journals without threads. Returns whether there was anything to do.
    pub fn flush_once(&self) -> bool {
        self.core.flush_once()
    }

    /// Frees segments and pre-writes spare ones: one round of the maintenance thread. For
    /// journals without threads.
    pub fn maintain_once(&self) {
        self.core.maintain_once();
    }

    /// What the leader of the term `epoch` appends to. Only the first handle closes the journal.
    pub(crate) fn of_leader(&self, epoch: u64) -> Self {
        Journal { core: Arc::clone(&self.core), epoch, threads: Mutex::default() }
    }

    /// Starts the threads, if there are to be any.
    pub(crate) fn run(core: Core) -> io::Result<Self> {
        let (core, threads) = (Arc::new(core), Mutex::default());
        let journal = Journal { core, epoch: ALONE, threads };
        let core = &journal.core;
        if core.options.threads {
            let mut threads = journal.threads.lock();
            threads.push(spawn("journal-log", core, Core::run_log)?);
            threads.push(spawn("journal-upkeep", core, Core::run_upkeep)?);
            core.wake_upkeep();
            if core.replica.is_some() {
                threads.push(spawn("journal-reads", core, Core::run_reads)?);
            }
        }
        Ok(journal)
    }

    fn stop_threads(&self) {
        self.core.upkeep.lock().stop = true;
        self.core.upkeep_work.notify_all();
        if let Some(replica) = &self.core.replica {
            replica.aside.stop();
        }
        self.core.log.lock().stop = true;
        self.core.work.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A panic has failed the journal already.
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.epoch == ALONE {
            let _ = self.close();
        }
    }
}

fn spawn(name: &str, core: &Arc<Core>, work: fn(&Core)) -> io::Result<JoinHandle<()>> {
    let core = FailOnPanic(Arc::clone(core));
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let core = core;
        work(&core.0);
    })
}

/// Fails the journal when its thread panics: who waits for the thread has to know.
struct FailOnPanic(Arc<Core>);

impl Drop for FailOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let error = io::Error::other("a thread of the journal panicked");
            self.0.fail("work in", &self.0.dir, error);
        }
    }
}
