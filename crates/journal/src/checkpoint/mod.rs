//! Checkpoints: the owner's state as of a position, so that what lies before is not replayed.
//!
//! The last two are kept, with all of the log that the older one needs: if the newer one is damaged, a
//! start falls back to the other and loses nothing.

mod file;
mod punch;
mod unlogged;

use punch::{HOLE_ALIGN, Plan};
use unlogged::Unlogged;

pub use file::{CheckpointReader, CheckpointWriter, FileError, Header, SegmentEntry, Table, copy};

use crate::{
    CheckpointDone, CheckpointError, EachLive, Lsn, OpenMode, Usage, core::Core, disk::DiskFile,
    names, replica::Base, segments::Segment, upkeep::is_full,
};
use courser_store::Position;
use parking_lot::Mutex;
use std::{
    io::{self, Write},
    mem,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// By how much the log grows until the next look at whether a checkpoint would free space.
const LOOK_AGAIN_BYTES: u64 = 1 << 20;

/// The last checkpoint, and the one before.
#[derive(Default)]
pub struct Latest {
    start: AtomicU64,
    /// Its number.
    number: AtomicU64,
    /// Where a replay starts from the one before.
    kept_from: AtomicU64,
    pub size_bytes: AtomicU64,
    /// Bytes of dead records that it left.
    dead_bytes: AtomicU64,
    /// The end of the log at which to look again whether there is much dead space.
    look_at: AtomicU64,
    /// The number of one that was found not to be what was written.
    unsound: AtomicU64,
    /// What only a later one stands for.
    pub unlogged: Unlogged,
    /// Holes that it has in its table, to be punched when the next one counts.
    planned: Mutex<Plan>,
    /// It was said that the file system cannot punch holes.
    cannot_punch: AtomicBool,
}

impl Latest {
    /// A checkpoint that was found at the start, and where a replay starts from the one before.
    pub fn new(start: Lsn, number: u64, kept_from: Lsn, size_bytes: u64) -> Self {
        let latest = Latest::default();
        latest.start.store(start.0, Relaxed);
        latest.number.store(number, Relaxed);
        latest.kept_from.store(kept_from.0, Relaxed);
        latest.size_bytes.store(size_bytes, Relaxed);
        latest
    }

    /// Has the next look at whether one is wanted find out how much dead space there is.
    pub fn look_again(&self) {
        self.look_at.store(0, Relaxed);
    }

    /// Logs why a hole was not punched, the first time only.
    pub fn say_once_not_punched(&self, error: &io::Error) {
        if !self.cannot_punch.swap(true, Relaxed) {
            tracing::warn!(%error, "room within segments of the journal cannot be given back");
        }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number.load(Relaxed)
    }

    /// A checkpoint is not what was written.
    pub fn note_unsound(&self, number: u64) {
        self.unsound.store(number, Relaxed);
    }

    /// The last two, that first which is more likely to be sound.
    pub fn in_order(&self) -> [u64; 2] {
        let last = self.number();
        let before = last.saturating_sub(1);
        if self.unsound.load(Relaxed) == last { [before, last] } else { [last, before] }
    }

    /// Where a replay starts.
    pub fn start(&self) -> Lsn {
        Lsn(self.start.load(Relaxed))
    }

    /// Where a replay starts when the last checkpoint can't be read: from here on the log is kept.
    pub fn kept_from(&self) -> Lsn {
        Lsn(self.kept_from.load(Relaxed))
    }
}

impl Core {
    /// See [`Journal::release`](crate::Journal::release).
    pub fn release(&self, positions: &[Position]) {
        let kept_from = self.latest.kept_from();
        let mut may_be_freed = false;
        let all_found = self.segments.release(positions, self.end(), &mut |emptied| {
            may_be_freed |= emptied.start < kept_from;
        });
        debug_assert!(all_found, "some of {positions:?} are released, but in no segment");
        if may_be_freed {
            self.wake_upkeep();
        }
    }

    /// See [`Journal::release_unlogged`](crate::Journal::release_unlogged).
    pub fn release_unlogged(&self, positions: &[Position]) {
        let number = self.latest.unlogged.note(self.end());
        for position in positions {
            self.segments.await_checkpoint((*position).into(), number);
        }
        self.release(positions);
    }

    /// See [`Journal::has_unlogged`](crate::Journal::has_unlogged).
    pub fn has_unlogged(&self) -> bool {
        self.latest.unlogged.is_any(self.latest.start())
    }

    /// Whether a segment is only kept until both checkpoints stand for its releases. One that was made
    /// while these came in may stand for all that the log does not know, and its predecessor not.
    pub fn a_segment_awaits_a_checkpoint(&self) -> bool {
        let done = self.latest.unlogged.done_before();
        let written = self.written();
        let waits = |segment: &Segment| segment.live() == 0 && !segment.is_settled(done);
        self.segments.is_any_before(written, waits)
    }

    /// See [`Journal::usage`](crate::Journal::usage).
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.segments.for_each(&mut |segment| {
            let used = segment.capacity - segment.hole_bytes();
            let live = u128::from(segment.live());
            let live_bytes = match segment.records.load(Relaxed) {
                // Not known: each that is live keeps a page.
                0 => live * u128::from(HOLE_ALIGN),
                records => u128::from(segment.capacity) * live / u128::from(records),
            };
            usage.log_bytes += used;
            usage.live_bytes += live_bytes.min(u128::from(segment.capacity)) as u64;
            usage.segments += 1;
        });
        usage.live_bytes = usage.live_bytes.min(usage.log_bytes);
        usage.spare_bytes = self.log.lock().spares.iter().map(|spare| spare.capacity).sum();
        usage
    }

    /// See [`Journal::wants_checkpoint`](crate::Journal::wants_checkpoint).
    pub fn wants_checkpoint(&self) -> bool {
        let end = self.end().0;
        let since = end.saturating_sub(self.latest.start().0);
        let last = self.latest.size_bytes.load(Relaxed);
        if since > self.options.checkpoint_after_bytes.max(last.saturating_mul(4)) {
            return true;
        }
        let look_at = self.latest.look_at.load(Relaxed);
        if self.has_room() && end < look_at {
            return false;
        }
        let usage = self.usage();
        let dead = usage.log_bytes - usage.live_bytes;
        // Without new dead space since the last one, another one would free nothing.
        // What it has freed has gone only after it.
        let dead_then = self.latest.dead_bytes.fetch_min(dead, Relaxed);
        let dead_since = dead.saturating_sub(dead_then);
        let bound = if self.has_room() { self.options.dead_bytes + usage.live_bytes } else { 0 };
        let has_dead = dead > bound && dead_since >= self.options.segment_bytes;
        // What a copy keeps that is being sent none would free. On a full disk one finds out what that is.
        let would_free = has_dead && !(self.has_room() && self.is_pinned());
        let wanted = would_free || self.a_segment_awaits_a_checkpoint();
        if !wanted {
            self.latest.look_at.store(end + LOOK_AGAIN_BYTES, Relaxed);
        }
        wanted
    }

    /// See [`Journal::checkpoint`](crate::Journal::checkpoint).
    pub fn checkpoint(
        &self,
        start: &mut dyn FnMut() -> Lsn,
        live: &mut dyn FnMut(EachLive<'_>),
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        epoch: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<CheckpointDone, CheckpointError> {
        let _only_one = self.checkpointing.lock();
        // A leader that is deposed in the middle of one may lead again, and waits for this.
        let mut go_on = || go_on() && self.has_epoch(epoch);
        let mut done = self.checkpoint_once(start, live, write, epoch, &mut go_on)?;
        if !self.has_room() {
            // Only what neither of two checkpoints needs is freed. What there is to free is wanted now,
            // and a second one takes less. Without room even for that it stays as it is.
            if let Ok(again) = self.checkpoint_once(start, live, write, epoch, &mut go_on) {
                done.punched_bytes += again.punched_bytes;
            }
        }
        if self.options.threads {
            self.wake_upkeep();
        } else {
            self.maintain_once();
        }
        let usage = self.usage();
        self.latest.dead_bytes.store(usage.log_bytes - usage.live_bytes, Relaxed);
        Ok(done)
    }

    fn checkpoint_once(
        &self,
        start: &mut dyn FnMut() -> Lsn,
        live: &mut dyn FnMut(EachLive<'_>),
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        epoch: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<CheckpointDone, CheckpointError> {
        let begun = Instant::now();
        // First the number: what the owner notes behind the start may take effect when its state has been written.
        let number = self.latest.unlogged.begin();
        let start = start();
        if start < self.latest.start() || start > self.end() {
            return Err(CheckpointError::BadStart(start));
        }
        let holes = self.plan_holes(start, live, go_on)?;
        if !go_on() {
            return Err(CheckpointError::Unwanted);
        }
        let path = self.dir.join(names::CHECKPOINT_BEING_WRITTEN);
        let mut written = self.write_checkpoint(&path, start, &holes, write, epoch);
        if matches!(&written, Err(CheckpointError::Write(error)) if is_full(error))
            && self.give_up_a_spare()
        {
            written = self.write_checkpoint(&path, start, &holes, write, epoch);
        }
        let (size_bytes, base) = match written {
            Ok(written) => written,
            Err(error) => {
                // What could not be written shall not take up room; at the next start it is
                // removed at the latest.
                let _ = self.disk.remove(&path);
                // A spare segment may have been given up for it.
                self.wake_upkeep();
                return Err(error);
            }
        };
        self.install_checkpoint(&path)?;
        self.checkpoint_counts(start, base, live, epoch);
        self.latest.kept_from.store(self.latest.start().0, Relaxed);
        self.latest.start.store(start.0, Relaxed);
        self.latest.unlogged.finish(number);
        self.latest.size_bytes.store(size_bytes, Relaxed);
        holes.counts();
        let earlier = mem::replace(&mut *self.latest.planned.lock(), holes);
        let punched_bytes = self.punch(earlier, go_on);
        self.done.checkpointed(begun.elapsed());
        Ok(CheckpointDone { size_bytes, punched_bytes })
    }

    /// Writes the file and makes everything durable that it may contain effects of.
    fn write_checkpoint(
        &self,
        path: &Path,
        start: Lsn,
        holes: &Plan,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
        epoch: u64,
    ) -> Result<(u64, Base), CheckpointError> {
        let file: Arc<dyn DiskFile> = self.disk.open(path, OpenMode::Create)?;
        let number = self.latest.number.load(Relaxed) + 1;
        let mut writer = CheckpointWriter::new(file, Header { id: self.id, start, number })?;
        write(&mut writer)?;
        let durable = self.make_durable_what_is_covered(start, epoch)?;
        let base = self.entry_before(start)?;
        self.wait_applied(base.id.index, epoch)?;
        let earlier = self.latest.planned.lock();
        let segments = holes.table(&earlier, &self.segments.starting_before(start));
        let size_bytes = writer.finish(Table { durable, data_bytes: 0, base, segments })?;
        Ok((size_bytes, base))
    }

    /// Gives the finished file its name, which makes it the last checkpoint, and removes the last but
    /// two.
    fn install_checkpoint(&self, path: &Path) -> Result<(), CheckpointError> {
        let last = self.latest.number.load(Relaxed);
        let name = self.dir.join(names::checkpoint(last + 1));
        let renamed = self.disk.rename(path, &name).and_then(|()| self.disk.sync_dir(&self.dir));
        if let Err(error) = renamed {
            // Whether it counts after a crash is unknown now, and so is what may be freed.
            self.fail("rename to", &name, error);
        } else {
            self.latest.number.store(last + 1, Relaxed);
            if self.is_pinned() {
                return Ok(());
            }
            // It may be there again after a crash; then the start removes it.
            let old = self.dir.join(names::checkpoint(last.saturating_sub(1)));
            if let Err(error) = self.disk.remove(&old)
                && error.kind() != io::ErrorKind::NotFound
            {
                self.fail("remove", &old, error);
            }
        }
        self.failed.get().map_or(Ok(()), |failure| Err(CheckpointError::Failed(failure.clone())))
    }

    /// Removes a spare segment, even the reserve: a checkpoint is what frees others.
    fn give_up_a_spare(&self) -> bool {
        let mut log = self.log.lock();
        let Some(spare) = log.spares.pop() else { return false };
        drop(log);
        self.disk.remove(&self.dir.join(names::spare(spare.number))).is_ok()
    }
}
