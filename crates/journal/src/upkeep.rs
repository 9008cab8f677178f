//! The maintenance thread's work: freeing segments and keeping pre-written ones ready.

use crate::{
    DiskFile, Lsn, OpenMode, core::Core, disk::write_all, log::Spare, names, segments::Segment,
};
use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Bytes that are written and synced at once when a file is filled with zeros: few, as the log's
/// own syncs wait for them.
const FILL_BYTES: usize = 512 << 10;
/// Spare files that are kept at least: the reserve, the one for a checkpoint, and one to go on in.
const SPARES_MIN: usize = 3;
/// How long filling a file leaves the disk to the log at most before it goes on.
const FILL_PAUSE_MAX: Duration = Duration::from_millis(100);
/// How often a full disk is looked at again.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// What the maintenance thread is told.
#[derive(Default)]
pub struct Upkeep {
    /// There may be something to do.
    pub wanted: bool,
    /// Stop.
    pub stop: bool,
    /// The number for the next spare file.
    pub next_number: u64,
}

/// An operation that failed, and on what.
type Failed = (&'static str, PathBuf, io::Error);

impl Core {
    /// Tells the maintenance thread to look for something to do.
    pub fn wake_upkeep(&self) {
        self.upkeep.lock().wanted = true;
        self.upkeep_work.notify_one();
    }

    /// The maintenance thread.
    pub fn run_upkeep(&self) {
        loop {
            // Asked first: the log's lock is never taken under this one. Only this thread makes more.
            let has_excess = self.log.lock().spares.len() > self.spares_wanted();
            let (mut upkeep, mut is_quiet) = (self.upkeep.lock(), false);
            while !upkeep.wanted && !upkeep.stop && self.failed.get().is_none() && !is_quiet {
                if self.has_room() && has_excess {
                    let quiet = self.options.quiet;
                    is_quiet = self.upkeep_work.wait_for(&mut upkeep, quiet).timed_out();
                } else if self.has_room() {
                    self.upkeep_work.wait(&mut upkeep);
                } else if self.upkeep_work.wait_for(&mut upkeep, FULL_RETRY).timed_out() {
                    upkeep.wanted = true;
                }
            }
            if upkeep.stop || self.failed.get().is_some() {
                return;
            }
            upkeep.wanted = false;
            drop(upkeep);
            if is_quiet {
                self.give_back_a_spare();
            }
            self.maintain_once();
        }
    }

    /// Removes a spare file if there are more than are always kept.
    fn give_back_a_spare(&self) {
        let _only_one = self.upkeeping.lock();
        let mut log = self.log.lock();
        if log.spares.len() <= self.spares_wanted() {
            return;
        }
        let spare = log.spares.remove(0);
        drop(log);
        let path = self.dir.join(names::spare(spare.number));
        if let Err(error) = self.disk.remove(&path) {
            self.fail("remove", &path, error);
        }
    }

    /// Frees what can be freed and makes the spare segments that are missing.
    pub fn maintain_once(&self) {
        if self.failed.get().is_some() {
            return;
        }
        if let Err(failed) = self.free_segments().and_then(|()| self.make_spares()) {
            self.fail(failed.0, &failed.1, failed.2);
        }
    }

    /// Makes spare files of the segments that nothing needs any more, or removes them.
    fn free_segments(&self) -> Result<(), Failed> {
        let _only_one = self.upkeeping.lock();
        let free = self.free_list(|lsn| self.is_released_for_good(lsn));
        if free.is_empty() {
            return Ok(());
        }
        let usual = self.options.segment_bytes;
        // What one checkpoint frees is needed until the next one does, and a fast log goes on for as
        // long again while that one is made.
        let keep =
            self.spares_wanted() + (2 * self.options.checkpoint_after_bytes / usual) as usize;
        let mut ready = self.log.lock().spares.len();
        let mut spares = Vec::new();
        for segment in free {
            // First it cannot be found any more, then it changes its name.
            self.segments.remove(segment.start);
            let path = segment.path(&self.dir);
            let whole = segment.capacity == usual && segment.hole_bytes() == 0;
            if whole && ready < keep {
                let spare = Spare { number: self.next_number(), capacity: usual };
                let name = self.dir.join(names::spare(spare.number));
                self.disk.rename(&path, &name).map_err(|error| ("rename", path, error))?;
                spares.push(spare);
                ready += 1;
            } else {
                self.disk.remove(&path).map_err(|error| ("remove", path, error))?;
            }
        }
        // Only then may they get another name: otherwise one file could have two after a crash.
        self.disk.sync_dir(&self.dir).map_err(|error| ("sync", self.dir.clone(), error))?;
        self.log.lock().spares.append(&mut spares);
        self.tell_room();
        Ok(())
    }

    /// Segments that a start from neither of the two checkpoints would replay, with nothing live in
    /// them, all of whose releases are durable, which is asked for each.
    fn free_list(&self, is_durable: impl Fn(Lsn) -> bool) -> Vec<Arc<Segment>> {
        let epoch = self.epoch();
        let written = self.written();
        // First the number: what has been released meanwhile waits for a later one.
        let done = self.latest.unlogged.done_before();
        if !self.may_free() || self.latest.unlogged.is_older_in_doubt() {
            return Vec::new();
        }
        let mut before = self.segments.before(self.latest.kept_from());
        before.retain(|segment| {
            // Beyond its end something was written, so the next segment is on the disk. In a copy that is not cut off.
            if segment.end() >= written.min(self.durable()) {
                return false;
            }
            segment.free_from().is_some_and(&is_durable) && segment.is_settled(done)
        });
        // What was released by a lead that has ended meanwhile may be cut off: what is durable there is of another leader.
        if self.epoch() == epoch && self.may_free() { before } else { Vec::new() }
    }

    fn spares_wanted(&self) -> usize {
        self.options.spare_segments.max(SPARES_MIN)
    }

    fn next_number(&self) -> u64 {
        let mut upkeep = self.upkeep.lock();
        upkeep.next_number += 1;
        upkeep.next_number - 1
    }

    /// The size of a file that is missing.
    fn missing_spare(&self) -> Option<u64> {
        let log = self.log.lock();
        let usual = self.options.segment_bytes;
        let ready = log.spares.iter().filter(|spare| spare.capacity == usual).count();
        log.wants_large.or_else(|| (ready < self.spares_wanted()).then_some(usual))
    }

    /// Leaves the disk to the log for as long as the last piece took, unless the log will need the
    /// file soon. Returns whether to go on at all.
    fn pause_filling(&self, last: &mut Instant) -> bool {
        // Asked first: the log's lock is never taken under this one.
        let hurry = !self.options.threads || self.needs_spare_soon();
        let mut upkeep = self.upkeep.lock();
        if !hurry && !upkeep.stop {
            self.upkeep_work.wait_for(&mut upkeep, last.elapsed().min(FILL_PAUSE_MAX));
        }
        *last = Instant::now();
        !upkeep.stop
    }

    /// Whether the log is half-way to where it has to wait for a spare file.
    fn needs_spare_soon(&self) -> bool {
        let log = self.log.lock();
        let left = log.segment.end().0 - log.end.0;
        let none_left = log.spares.len() < SPARES_MIN;
        log.wants_large.is_some() || (none_left && left < log.segment.capacity / 2)
    }

    /// Not under [`Core::upkeeping`]: filling a file takes long.
    fn make_spares(&self) -> Result<(), Failed> {
        while let Some(capacity) = self.missing_spare() {
            let number = self.next_number();
            let path = self.dir.join(names::spare(number));
            let opened = self.disk.open(&path, OpenMode::Create);
            let mut last = Instant::now();
            let mut go_on = || self.pause_filling(&mut last);
            let made = opened.and_then(|file| fill_with_zeros(&*file, capacity, &mut go_on));
            let mut log = self.log.lock();
            if log.wants_large == Some(capacity) {
                log.wants_large = None;
            }
            match made {
                Ok(true) => log.spares.push(Spare { number, capacity }),
                Ok(false) => return Ok(()),
                Err(error) if is_full(&error) => {
                    if !self.full.swap(true, Relaxed) {
                        tracing::warn!(%error, "no room for another segment of the journal");
                    }
                    drop(log);
                    self.tell_room();
                    return self.remove_unfilled(path);
                }
                Err(error) => return Err(("write to", path, error)),
            }
            drop(log);
            self.tell_room();
        }
        if self.full.swap(false, Relaxed) {
            tracing::info!("there is room for the journal again");
            self.space.notify_all();
            self.room_waiters.wake_up_to(Lsn(0), false);
        }
        Ok(())
    }

    /// Removes a file that there was no room to fill. Without room for its name, it was never there.
    fn remove_unfilled(&self, path: PathBuf) -> Result<(), Failed> {
        match self.disk.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(("remove", path, error)),
            _ => Ok(()),
        }
    }
}

/// Makes an empty file one of zeros, so that a sync of what is written into it later changes
/// nothing but its bytes. `false` if `go_on`, which is asked after each piece, said so.
pub fn fill_with_zeros(
    file: &dyn DiskFile,
    capacity: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    let zeros = vec![0; FILL_BYTES];
    let mut offset = 0;
    while offset < capacity {
        let len = (capacity - offset).min(FILL_BYTES as u64);
        write_all(file, &zeros[..len as usize], offset)?;
        file.sync_data()?;
        offset += len;
        if offset < capacity && !go_on() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an error says that there is no room, which is no reason to give up. A limit of file sizes (`ulimit -f`) is
/// no different from a quota: it can be raised, and until then what is there is enough for acknowledgements.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

#[cfg(test)]
mod tests;
