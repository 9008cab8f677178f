//! The segments of the log, and what is live in them.

use crate::{Disk, DiskFile, Lsn, OpenMode, names};
use courser_store::Position;
use courser_store::blocking::{self, Lock};
use parking_lot::{Mutex, RwLock};
use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// One file of the log.
pub struct Segment {
    /// Position of its first byte.
    pub start: Lsn,
    /// Bytes of log that it covers.
    pub capacity: u64,
    /// Records that were appended to it; 0 where that is not known, as of what an earlier version has written as a follower.
    pub records: AtomicU64,
    /// Holds that were not released.
    live: AtomicU64,
    /// The end of the log when the last hold was released: what released it has to be durable
    /// before the segment is used again.
    released_at: AtomicU64,
    /// The number of the checkpoint without which it may not be used again: the log does not know
    /// of all its releases.
    checkpoint: AtomicU64,
    /// Half of this many live records are few enough to look for holes again.
    pub sparse_below: AtomicU64,
    /// Ranges of offsets in the file that were given back to the file system.
    holes: Mutex<Vec<Range<u32>>>,
    /// Bytes of these.
    hole_bytes: AtomicU64,
    /// The open file, while it is read.
    file: Lock<Option<Weak<dyn DiskFile>>>,
}

impl Segment {
    /// A segment with nothing live in it.
    pub fn new(start: Lsn, capacity: u64) -> Self {
        Segment {
            start,
            capacity,
            records: AtomicU64::new(0),
            live: AtomicU64::new(0),
            released_at: AtomicU64::new(0),
            checkpoint: AtomicU64::new(0),
            sparse_below: AtomicU64::new(u64::MAX),
            holes: Mutex::default(),
            hole_bytes: AtomicU64::new(0),
            file: Lock::default(),
        }
    }

    /// The position behind its last byte.
    pub fn end(&self) -> Lsn {
        self.start.plus(self.capacity)
    }

    /// Its file in `dir`.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(names::segment(self.start))
    }

    /// Holds that were not released.
    pub fn live(&self) -> u64 {
        self.live.load(Acquire)
    }

    /// Says how many holds there are, as of a change that the log knows at `released_at`.
    pub fn set_live(&self, count: u64, released_at: Lsn) {
        self.released_at.fetch_max(released_at.0, Release);
        self.live.store(count, Release);
    }

    /// Where the log has to be durable before the segment may be used for something else; `None`
    /// while something in it is live.
    pub fn free_from(&self) -> Option<Lsn> {
        (self.live() == 0).then(|| Lsn(self.released_at.load(Acquire)))
    }

    /// Whether all its releases are in the log, or stood for by the checkpoint `done`.
    pub fn is_settled(&self, done: u64) -> bool {
        self.checkpoint.load(Acquire) <= done
    }

    /// Estimates how many records were appended to it, where that is not known, by some of them and the bytes that they take.
    pub fn estimate_records(&self, some: u64, bytes: u64) {
        let all = u128::from(self.capacity) * u128::from(some) / u128::from(bytes.max(1));
        // Where it is known, it stays.
        let _ = self.records.compare_exchange(0, all as u64, Relaxed, Relaxed);
    }

    /// Bytes that were punched out of it.
    pub fn hole_bytes(&self) -> u64 {
        self.hole_bytes.load(Acquire)
    }

    /// Ranges of offsets in the file that were punched out of it.
    pub fn holes(&self) -> Vec<Range<u32>> {
        self.holes.lock().clone()
    }

    /// Says that these were.
    pub fn set_holes(&self, holes: Vec<Range<u32>>) {
        let mut now = self.holes.lock();
        let bytes = holes.iter().map(|hole| u64::from(hole.end - hole.start)).sum();
        self.hole_bytes.store(bytes, Release);
        *now = holes;
    }

    /// Whether some of these offsets were punched out of it.
    pub fn has_hole(&self, offsets: Range<u64>) -> bool {
        let overlaps = |hole: &Range<u32>| {
            u64::from(hole.start) < offsets.end && offsets.start < u64::from(hole.end)
        };
        self.holes.lock().iter().any(overlaps)
    }

    /// Opens its file to read, or shares it with others that read it now.
    pub fn open(&self, disk: &dyn Disk, dir: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut file = self.file.lock();
        if let Some(open) = file.as_ref().and_then(Weak::upgrade) {
            return Ok(open);
        }
        let opened = blocking::wait_for_disk(|| disk.open(&self.path(dir), OpenMode::Read))?;
        *file = Some(Arc::downgrade(&opened));
        Ok(opened)
    }
}

/// All segments, by their starts.
#[derive(Default)]
pub struct Segments {
    table: RwLock<Vec<Arc<Segment>>>,
}

impl Segments {
    /// Adds a segment behind all others.
    pub fn push(&self, segment: Arc<Segment>) {
        self.table.write().push(segment);
    }

    /// Takes the segment that starts at `start` out.
    pub fn remove(&self, start: Lsn) {
        let mut table = self.table.write();
        if let Ok(index) = table.binary_search_by_key(&start, |segment| segment.start) {
            table.remove(index);
        }
    }

    /// The segment that has `position` in it.
    pub fn find(&self, position: Lsn) -> Option<Arc<Segment>> {
        self.with(position, Arc::clone)
    }

    /// Whether this segment is among them, rather than another one with its positions.
    pub fn has(&self, segment: &Arc<Segment>) -> bool {
        self.find(segment.start).is_some_and(|found| Arc::ptr_eq(&found, segment))
    }

    /// The first segment that starts at `position` or behind.
    pub fn next_from(&self, position: Lsn) -> Option<Arc<Segment>> {
        let table = self.table.read();
        table.get(table.partition_point(|segment| segment.start < position)).cloned()
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<Arc<Segment>> {
        self.table.read().clone()
    }

    /// Calls `each` with all of them, oldest first. Until it returns, none is added or taken out.
    pub fn for_each(&self, each: &mut dyn FnMut(&Segment)) {
        self.table.read().iter().for_each(|segment| each(segment));
    }

    /// Whether one of those that lie before `start` as a whole is such a one.
    pub fn is_any_before(&self, start: Lsn, is_such: impl Fn(&Segment) -> bool) -> bool {
        let table = self.table.read();
        table.iter().take_while(|segment| segment.end() <= start).any(|segment| is_such(segment))
    }

    /// Those that lie before `start` as a whole, oldest first.
    pub fn before(&self, start: Lsn) -> Vec<Arc<Segment>> {
        let table = self.table.read();
        table.iter().take_while(|segment| segment.end() <= start).cloned().collect()
    }

    /// Those that start before `start`, oldest first.
    pub fn starting_before(&self, start: Lsn) -> Vec<Arc<Segment>> {
        let table = self.table.read();
        table.iter().take_while(|segment| segment.start < start).cloned().collect()
    }

    /// Counts `times` holds of the record at `position`. Returns whether a segment has it.
    pub fn hold(&self, position: Lsn, times: u64) -> bool {
        let found = self.with(position, |segment| {
            segment.live.fetch_add(times, Relaxed);
        });
        found.is_some()
    }

    /// Takes one hold of each of these back, `end` being the end of the log now, and calls `emptied` for segments whose last
    /// hold that was. Those that follow each other in a segment are counted together. Returns whether all are in segments.
    pub fn release(
        &self,
        positions: &[Position],
        end: Lsn,
        emptied: &mut dyn FnMut(&Segment),
    ) -> bool {
        let table = self.table.read();
        let (mut rest, mut all_found) = (positions, true);
        while let Some((first, behind)) = rest.split_first() {
            let Some(segment) = found_in(&table, (*first).into()) else {
                all_found = false;
                rest = behind;
                continue;
            };
            let range = segment.start..segment.end();
            let others =
                behind.iter().take_while(|position| range.contains(&Lsn::from(**position)));
            let count = 1 + others.count();
            // First the position, then the count: who sees zero sees the position too.
            segment.released_at.fetch_max(end.0, Release);
            let before = segment.live.fetch_sub(count as u64, Release);
            debug_assert!(before >= count as u64, "{first} is released more often than held");
            if before == count as u64 {
                emptied(segment);
            }
            rest = &rest[count..];
        }
        all_found
    }

    /// Has the segment with `position` wait for the checkpoint of this number. To be called before
    /// the release that the log does not know.
    pub fn await_checkpoint(&self, position: Lsn, number: u64) {
        self.with(position, |segment| segment.checkpoint.fetch_max(number, Release));
    }

    fn with<T>(&self, position: Lsn, use_it: impl FnOnce(&Arc<Segment>) -> T) -> Option<T> {
        found_in(&self.table.read(), position).map(use_it)
    }
}

/// The one of these segments, oldest first, that has `position` in it.
fn found_in(table: &[Arc<Segment>], position: Lsn) -> Option<&Arc<Segment>> {
    let behind = table.partition_point(|segment| segment.start <= position);
    let segment = table.get(behind.checked_sub(1)?)?;
    (position < segment.end()).then_some(segment)
}
