//! The end of the log: appending to it in memory.

mod buffer;
pub mod pace;
mod writer;

pub use buffer::{Buffer, Cut, Spare, Step, Switch};
pub use writer::{Failed, Writer, write_segment_header};
#[cfg(feature = "testing")]
pub use writer::{Outlook, Turn};

use crate::{
    AppendError, AppendMode, Appended, Batch, Failure, Lsn,
    core::Core,
    format::{FRAME_HEADER_LEN, FrameHeader, FrameKind, SEGMENT_HEADER_LEN, start_sum},
    replica::{Begun, Lead, RESERVED_LEN, Vote},
    segments::Segment,
};
use courser_store::blocking;
use courser_store::critical::{self, Work};
use parking_lot::MutexGuard;
use std::{
    mem,
    sync::{
        Arc,
        atomic::Ordering::{Relaxed, Release},
    },
};

/// Spare files that no batch may use: a checkpoint takes the room of the last one when the disk is
/// full.
pub const KEPT_FOR_CHECKPOINT: usize = 1;
/// Spare files that only batches from the reserve may use, that one included.
pub const KEPT_FOR_RESERVE: usize = 2;

/// What appenders and the log thread share.
pub struct Log {
    /// Where the next frame goes, if the current segment has room for it.
    pub end: Lsn,
    /// The current segment.
    pub segment: Arc<Segment>,
    /// What is not written yet.
    pub buffer: Buffer,
    /// Everything before this is to be synced.
    pub sync_to: Lsn,
    /// Files that can become segments.
    pub spares: Vec<Spare>,
    /// Only batches from the reserve could have taken the file of the current segment.
    pub in_reserve: bool,
    /// Size of a segment that is needed for a batch too large for the usual ones.
    pub wants_large: Option<u64>,
    /// No more appends.
    pub closed: bool,
    /// The log thread is to stop when it has nothing to do.
    pub stop: bool,
    /// The log thread looks at the buffer again before long, without being woken.
    pub lingering: bool,
    /// The log thread is in the gap between two syncs, at whose end it looks without being woken.
    pub gathering: bool,
    /// Records that came with a wish to be synced since the log thread last took the buffer.
    pub sync_records: u64,
    /// Who may append: see [`ALONE`].
    pub epoch: u64,
    /// Who appends batches waits.
    pub paused: bool,
    /// What this machine has gathered, if it leads a replicated log.
    pub lead: Option<Box<Lead>>,
    /// In a replicated log, the end of what is in the buffer: `end` without what was gathered.
    pub queued: Lsn,
    /// How often something was to be made durable in a replicated log: an entry, a cut, a vote.
    pub ticket: u64,
    /// How often the log was cut.
    pub cuts: u64,
    /// A vote that the log thread is to save.
    pub vote: Option<Vote>,
    /// Batches appended since the journal was opened, and the records in them.
    pub appends: u64,
    pub records: u64,
}

/// Who appends to a journal that is no copy of a replicated log. To one that is, it is the leader of a
/// term, or [`FOLLOWS`].
pub const ALONE: u64 = 0;
/// Only entries that another machine has placed are appended.
pub const FOLLOWS: u64 = u64::MAX;

impl Core {
    /// See [`Journal::append`](crate::Journal::append).
    pub fn append<'b>(
        &self,
        batch: &'b mut Batch,
        mode: AppendMode,
        epoch: u64,
    ) -> Result<Appended<'b>, AppendError> {
        let size_bytes = batch.size_bytes();
        let max_bytes = self.options.batch_bytes.min(1 << 31);
        if size_bytes > max_bytes {
            return Err(AppendError::TooLarge { size_bytes, max_bytes });
        }
        if size_bytes == 0 {
            let end = self.end();
            return Ok(batch.appended(end, end));
        }
        let mut log = self.make_room(size_bytes, mode.reserve, epoch)?;
        let start = log.end;
        let end = start.plus(size_bytes);
        let records = batch.len() as u64;
        log.appends += 1;
        log.records += records;
        if log.lead.is_some() {
            self.gather_batch(log, batch, mode);
            return Ok(batch.appended(start, end));
        }
        batch.seal(start, self.durable(), self.id);
        log.segment.records.fetch_add(records, Relaxed);
        log.buffer.put(start, batch.frame());
        if mode.sync {
            log.sync_records += records;
        }
        self.appended(&mut log, end, mode.sync);
        drop(log);
        Ok(batch.appended(start, end))
    }

    /// Locks the log with room for `len` bytes of frames in the buffer and the current segment.
    pub fn make_room(
        &self,
        len: u64,
        reserve: bool,
        epoch: u64,
    ) -> Result<MutexGuard<'_, Log>, AppendError> {
        let in_segment = len + if epoch == ALONE { 0 } else { RESERVED_LEN };
        let mut log = self.log.lock();
        loop {
            if let Some(failure) = self.failed.get() {
                return Err(AppendError::Failed(failure.clone()));
            }
            if log.closed {
                return Err(AppendError::Closed);
            }
            // A note is without frames, and is what the others wait for.
            let gathers = len > 0 && log.lead.is_some();
            if log.epoch != epoch || gathers && log.is_overrun() {
                return Err(AppendError::Deposed);
            }
            // What was gathered goes on only when others let it, and this disk.
            let may_last =
                gathers && (self.is_stalled() || !self.has_room() || !self.options.threads);
            let of_reserve = if may_last && reserve { self.options.buffer_bytes } else { 0 };
            let (buffered, max) = (log.buffered_bytes(), self.options.buffer_bytes + of_reserve);
            // What takes all of the buffer gets in beside some of what others append: it would seldom find nothing there.
            let needed = len.min(max as u64 / 4 * 3);
            let is_over = buffered > 0 && buffered as u64 + needed > max as u64;
            // What another machine has placed was let in with all of its packet, by `room_for`.
            let is_full = len > 0 && epoch != FOLLOWS && is_over;
            if is_full && may_last {
                return Err(self.refuse(log, reserve));
            } else if is_full || log.paused && gathers {
                log = self.wait_for_flush(log)?;
                continue;
            }
            log.close_if_ripe(len);
            if gathers && !reserve && !self.has_room() && log.lacks_file() {
                return Err(AppendError::Full);
            }
            let is_kept = log.in_reserve && !reserve && self.is_reserve_used(&log);
            if in_segment <= log.segment.end().0 - log.end.0 && !is_kept {
                return Ok(log);
            } else if let Some(spare) = self.take_spare(&mut log, in_segment, reserve) {
                self.switch(&mut log, spare.capacity, Some(spare));
            } else if self.has_room() {
                log = self.wait_for_spare(log);
            } else if gathers && reserve {
                // Its file is needed when it is placed.
                let capacity = self.capacity_for(in_segment);
                self.switch(&mut log, capacity, None);
            } else {
                return Err(AppendError::Full);
            }
        }
    }

    /// What an append hears for which there is no room. A leader whose broker has made a change that the log does not
    /// take can't go on: nothing but a new lead brings both together again.
    fn refuse(&self, mut log: MutexGuard<'_, Log>, reserve: bool) -> AppendError {
        let (Some(replica), true) = (&self.replica, reserve) else { return AppendError::Full };
        log.overrun();
        drop(log);
        replica.events.overrun();
        AppendError::Deposed
    }

    fn wait_for_flush<'a>(
        &'a self,
        mut log: MutexGuard<'a, Log>,
    ) -> Result<MutexGuard<'a, Log>, AppendError> {
        if log.lead.is_some() && !self.options.threads {
            return Err(AppendError::Full);
        }
        if self.options.threads {
            critical::check(Work::Room);
            self.work.notify_one();
            blocking::wait_for_disk(|| self.space.wait(&mut log));
            return Ok(log);
        }
        drop(log);
        self.flush_once();
        Ok(self.log.lock())
    }

    /// Waits until a file may have been made that there was none of.
    pub fn wait_for_spare<'a>(&'a self, mut log: MutexGuard<'a, Log>) -> MutexGuard<'a, Log> {
        if self.options.threads {
            critical::check(Work::Room);
            self.wake_upkeep();
            blocking::wait_for_disk(|| self.space.wait(&mut log));
            return log;
        }
        drop(log);
        self.maintain_once();
        self.log.lock()
    }

    /// The size of a segment for a frame of `len` bytes.
    fn capacity_for(&self, len: u64) -> u64 {
        let (needed, usual) = (SEGMENT_HEADER_LEN + len, self.options.segment_bytes);
        if needed > usual { needed.next_multiple_of(4096) } else { usual }
    }

    /// A spare file that a frame of `len` bytes fits into.
    fn take_spare(&self, log: &mut Log, len: u64, reserve: bool) -> Option<Spare> {
        let spare = self.take_spare_of(log, self.capacity_for(len), reserve)?;
        log.in_reserve = self.usual_spares(log) < KEPT_FOR_RESERVE;
        Some(spare)
    }

    /// Whether the file of the reserve that the current segment has is still the only one. No copy of a replicated log is
    /// asked: it takes what the others have.
    fn is_reserve_used(&self, log: &Log) -> bool {
        log.epoch == ALONE && !self.has_room() && self.usual_spares(log) < KEPT_FOR_RESERVE
    }

    fn usual_spares(&self, log: &Log) -> usize {
        log.spares.iter().filter(|spare| spare.capacity == self.options.segment_bytes).count()
    }

    /// A spare file of this size. The last but one of the usual ones is for `reserve`, the last one for a checkpoint.
    pub fn take_spare_of(&self, log: &mut Log, wanted: u64, reserve: bool) -> Option<Spare> {
        let usual = self.options.segment_bytes;
        if wanted > usual {
            // All copies of a replicated log have segments of the same sizes.
            let fits = |capacity| capacity == wanted || capacity > wanted && log.epoch == ALONE;
            let large = log.spares.iter().position(|spare| fits(spare.capacity));
            if large.is_none() {
                log.wants_large = Some(wanted);
            }
            return large.map(|index| log.spares.swap_remove(index));
        }
        if self.usual_spares(log) <= if reserve { KEPT_FOR_CHECKPOINT } else { KEPT_FOR_RESERVE } {
            return None;
        }
        // The one freed last: its bytes are the likeliest to be in memory still.
        let index = log.spares.iter().rposition(|spare| spare.capacity == usual)?;
        Some(log.spares.swap_remove(index))
    }

    /// Goes on in a new segment, whose file only a leader may be without yet.
    fn switch(&self, log: &mut Log, capacity: u64, spare: Option<Spare>) {
        let segment = Arc::new(Segment::new(log.segment.end(), capacity));
        log.close_gathered();
        let previous_end = log.end;
        log.end = segment.start.plus(SEGMENT_HEADER_LEN);
        log.segment = Arc::clone(&segment);
        self.segments.push(Arc::clone(&segment));
        match (&mut log.lead, spare) {
            (Some(lead), spare) => lead.begin_segment(Begun { segment, spare, previous_end }),
            (None, Some(spare)) => log.buffer.switch(Switch { segment, spare, previous_end }),
            (None, None) => {}
        }
        self.wake_upkeep();
    }

    fn appended(&self, log: &mut Log, end: Lsn, sync: bool) {
        log.end = end;
        self.end.store(end.0, Release);
        if sync {
            log.sync_to = end;
        }
        let sleeps_on = log.gathering || log.lingering && !sync;
        if !sleeps_on || log.buffer.bytes() >= self.options.buffer_bytes / 4 {
            self.work.notify_one();
        }
    }

    /// Takes no more appends, makes everything durable and then notes in the log that it ends by
    /// intention, if there is room for the note.
    ///
    /// In this order, because the note says that everything before it is durable.
    pub fn close(&self) -> Result<(), Failure> {
        let mut log = self.log.lock();
        let first = !mem::replace(&mut log.closed, true);
        self.space.notify_all();
        let end = log.end;
        drop(log);
        if self.replica.is_some() {
            return if first { self.close_copy() } else { Ok(()) };
        }
        self.wait_durable(end, ALONE)?;
        if first {
            self.append_close(end);
        }
        self.wait_durable(self.end(), ALONE)
    }

    /// Takes nothing any more, and makes everything durable. Unlike after [`Core::close`], nothing in the log
    /// says that it ends here. Returns where that is.
    pub fn end_for_good(&self) -> Result<Lsn, Failure> {
        let mut log = self.log.lock();
        log.closed = true;
        self.space.notify_all();
        let end = log.end;
        drop(log);
        self.wait_durable(end, ALONE)?;
        Ok(end)
    }

    fn append_close(&self, lsn: Lsn) {
        let mut log = self.log.lock();
        if log.segment.end().0 - lsn.0 < FRAME_HEADER_LEN as u64 {
            return;
        }
        let kind = FrameKind::Close;
        let header = FrameHeader { lsn, durable: lsn, payload_len: 0, records: 0, kind, sum: 0 };
        let mut frame = vec![0; FRAME_HEADER_LEN];
        header.encode(&mut frame);
        let sum = start_sum(self.id, &frame);
        frame[FRAME_HEADER_LEN - 4..].copy_from_slice(&sum.to_le_bytes());
        log.buffer.put(lsn, &mut frame);
        self.appended(&mut log, lsn.plus(FRAME_HEADER_LEN as u64), true);
    }

    /// Asks the log thread to make everything before `lsn` durable.
    pub fn ask_sync(&self, lsn: Lsn) {
        let mut log = self.log.lock();
        if let Some(replica) = &self.replica {
            let tell = log.lead.as_mut().is_some_and(|lead| lead.tell());
            drop(log);
            return if tell {
                replica.events.gathered()
            };
        }
        if log.sync_to < lsn {
            log.sync_to = lsn.min(log.end);
            if !log.gathering {
                self.work.notify_one();
            }
        }
    }
}
