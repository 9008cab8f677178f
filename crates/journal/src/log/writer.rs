//! The log thread's work: from the buffer to the disk.

use super::{
    Log, Step, Switch,
    pace::{Delays, Pace},
};
use crate::{
    DiskFile, OpenMode,
    core::Core,
    disk::write_all,
    format::{FOLLOWED_OFFSET, SegmentHeader, followed},
    names,
    segments::Segment,
};
use courser_store::critical::{self, Section};
use parking_lot::MutexGuard;
use std::{
    io, mem,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Release},
    time::{Duration, Instant},
};

/// How long records that no thread waits for may wait for company.
const LINGER: Duration = Duration::from_millis(5);

/// What the log thread owns.
pub struct Writer {
    /// The segment that is being written.
    pub segment: Arc<Segment>,
    /// Its file.
    pub file: Arc<dyn DiskFile>,
    /// Bytes written to it since the last sync.
    pub unsynced_bytes: u64,
}

/// What the log thread sees when it looks for something to do.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// Something is to be synced.
    pub wished: bool,
    /// Something is to be written.
    pub buffered: bool,
    /// So much that it waits for no company.
    pub much: bool,
    /// It has had time to find company.
    pub lingered: bool,
    /// The thread was told to stop, or the journal has failed.
    pub over: bool,
}

/// What the log thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It waits to be woken.
    Wait,
    /// It writes, and syncs if that is wished.
    Flush,
    /// It ends: nothing is appended any more.
    End,
}

impl Outlook {
    /// What follows from it.
    pub fn next_turn(self) -> Turn {
        let ripe = self.much || (self.lingered || self.over) && self.buffered;
        match (self.wished || ripe, self.over) {
            (true, _) => Turn::Flush,
            (false, true) => Turn::End,
            (false, false) => Turn::Wait,
        }
    }
}

/// An operation that failed, and on what.
pub type Failed = (&'static str, PathBuf, io::Error);

impl Core {
    /// The log thread: flushes until it is told to stop or something fails.
    ///
    /// Records that no thread waits for are written together with those that have waiters, or after [`LINGER`]: they wake this
    /// thread only if it sleeps without an end.
    pub fn run_log(&self) {
        let _section = critical::enter(Section::LogThread);
        let (mut pace, mut delays) = (Pace::new(self.options.gather), Delays::of_this_thread());
        sleep_precisely();
        loop {
            let mut log = self.log.lock();
            let mut lingered = false;
            // Looked at once for all that follows from it: others may call `flush_once` meanwhile.
            let next = loop {
                let outlook = Outlook {
                    wished: self.is_sync_wished(&log),
                    buffered: !log.buffer.is_empty(),
                    much: log.buffer.bytes() >= self.options.buffer_bytes / 4,
                    lingered,
                    over: log.stop || self.failed.get().is_some(),
                };
                let next = outlook.next_turn();
                if next != Turn::Wait {
                    break next;
                }
                log.lingering = !lingered;
                lingered = if lingered {
                    self.work.wait(&mut log);
                    false
                } else {
                    self.work.wait_for(&mut log, LINGER).timed_out()
                };
                log.lingering = false;
            };
            if next == Turn::End {
                return;
            }
            if self.is_sync_wished(&log) {
                self.gather(&mut log, &mut pace);
            }
            let records = mem::take(&mut log.sync_records);
            drop(log);
            let start = Instant::now();
            self.flush_once();
            if records > 0 {
                pace.synced(start, Instant::now(), records);
                delays.after_sync().into_iter().for_each(|mean| pace.delayed(mean));
            }
            if self.failed.get().is_some() {
                return;
            }
        }
    }

    /// Whether something is to be synced. In a replicated log that is all that has got a ticket.
    fn is_sync_wished(&self, log: &Log) -> bool {
        match &self.replica {
            Some(replica) => log.ticket > replica.synced_ticket(),
            None => log.sync_to > self.durable(),
        }
    }

    /// Leaves the gap before the next sync, in which appenders do not wake this thread. It ends early
    /// when nothing comes in any more, when the buffer fills and at the journal's end.
    fn gather(&self, log: &mut MutexGuard<'_, Log>, pace: &mut Pace) {
        while let Some(start) = pace.next_start() {
            let left = start.saturating_duration_since(Instant::now());
            let is_full = log.buffer.bytes() >= self.options.buffer_bytes / 4;
            if left.is_zero() || is_full || log.stop || self.failed.get().is_some() {
                return;
            }
            let before = log.sync_records;
            log.gathering = true;
            let timed_out = self.work.wait_for(log, left.min(pace.sleep())).timed_out();
            log.gathering = false;
            let has_gathered = log.sync_records > before;
            pace.slept(has_gathered);
            if !timed_out || !has_gathered {
                return;
            }
        }
    }

    /// Writes what is in the buffer, then syncs if that was asked for or much is unsynced.
    /// Returns whether there was anything to do.
    ///
    /// A wish for a sync that comes in during the write is met by the same sync.
    pub fn flush_once(&self) -> bool {
        let mut writer = self.writer.lock();
        // The thread that had the lock may have failed: nothing behind what it could not write or sync may be called durable.
        if self.failed.get().is_some() {
            return false;
        }
        let mut log = self.log.lock();
        let (steps, vote, cuts) = (log.buffer.take(), log.vote.take(), log.cuts);
        let end = if self.replica.is_some() { log.queued } else { log.end };
        let ticket = log.ticket;
        drop(log);
        let before = Instant::now();
        if let Err(failed) = self.take_steps(&mut writer, &steps) {
            // The steps stay where readers find them.
            self.fail(failed.0, &failed.1, failed.2);
            return false;
        }
        let wrote = !steps.is_empty();
        if wrote {
            self.done.wrote(before.elapsed(), &steps);
        }
        let mut log = self.log.lock();
        if log.cuts > cuts {
            // All was on the disk that had a ticket, and the log ends before `end` now.
            log.buffer.written(steps);
            return true;
        }
        self.written.store(end.0, Release);
        log.buffer.written(steps);
        let wanted = self.is_sync_wished(&log);
        self.space.notify_all();
        drop(log);
        if !wanted && writer.unsynced_bytes < self.options.unsynced_bytes {
            return wrote;
        }
        match self.sync(&mut writer).and_then(|()| self.save_vote_of_log(vote)) {
            Ok(()) => self.publish_synced(end, Some(ticket)),
            Err(failed) => self.fail(failed.0, &failed.1, failed.2),
        }
        true
    }

    pub fn take_steps(&self, writer: &mut Writer, steps: &[Step]) -> Result<(), Failed> {
        for step in steps {
            match step {
                Step::Write(piece) => {
                    let offset = piece.start.0 - writer.segment.start.0;
                    write_all(&*writer.file, &piece.bytes, offset)
                        .map_err(|error| ("write to", writer.segment.path(&self.dir), error))?;
                    writer.unsynced_bytes += piece.bytes.len() as u64;
                }
                Step::Switch(switch) => self.switch_file(writer, switch)?,
                Step::Cut(cut) => self.cut_files_of(writer, cut)?,
            }
        }
        Ok(())
    }

    pub fn sync(&self, writer: &mut Writer) -> Result<(), Failed> {
        if writer.unsynced_bytes > 0 {
            let before = Instant::now();
            writer
                .file
                .sync_data()
                .map_err(|error| ("sync", writer.segment.path(&self.dir), error))?;
            writer.unsynced_bytes = 0;
            self.done.synced(before.elapsed());
        }
        Ok(())
    }

    /// Seals the current segment and goes on in the next one.
    ///
    /// When the new file bears its name, and before anything is written behind its header, all of
    /// the old segment is durable: only the newest segment can ever have a torn tail.
    fn switch_file(&self, writer: &mut Writer, switch: &Switch) -> Result<(), Failed> {
        self.sync(writer)?;
        if self.synced() < switch.previous_end {
            self.publish_synced(switch.previous_end, None);
        }
        let spare = self.dir.join(names::spare(switch.spare.number));
        let path = switch.segment.path(&self.dir);
        let file = self
            .disk
            .open(&spare, OpenMode::Write)
            .map_err(|error| ("open", spare.clone(), error))?;
        let header = SegmentHeader {
            id: self.id,
            start: switch.segment.start,
            capacity: switch.segment.capacity,
            previous_end: switch.previous_end,
        };
        write_segment_header(&*file, &header)
            .map_err(|error| ("write to", spare.clone(), error))?;
        self.disk
            .rename(&spare, &path)
            .and_then(|()| self.disk.sync_dir(&self.dir))
            .map_err(|error| ("rename to", path, error))?;
        // From now on the new file can't be missing. Not synced: the file's last sync is over.
        let note = followed(self.id, writer.segment.start);
        write_all(&*writer.file, &note, FOLLOWED_OFFSET)
            .map_err(|error| ("write to", writer.segment.path(&self.dir), error))?;
        writer.segment = Arc::clone(&switch.segment);
        writer.file = file;
        Ok(())
    }
}

/// Lets the calling thread sleep not much longer than it asks for: gaps are shorter than what Linux
/// rounds a sleep to.
fn sleep_precisely() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(5_000));
}

/// Writes a segment's header and makes it durable.
pub fn write_segment_header(file: &dyn DiskFile, header: &SegmentHeader) -> io::Result<()> {
    write_all(file, &header.encode(), 0)?;
    file.sync_data()
}
