//! Giving dead bytes back to the file system where a segment as a whole cannot be freed.
//!
//! Nothing is moved: a range of a segment in which no record is live becomes a hole. The holes
//! are planned from what is live *before* the owner writes its state, written down in the
//! checkpoint, and punched when the next checkpoint counts: a start that has to fall back by one
//! checkpoint needs none of it, and knows of it.

use super::SegmentEntry;
use crate::{
    CheckpointError, EachLive, Lsn, OpenMode, ReadCache,
    core::Core,
    format::{RECORD_HEAD_LEN, SEGMENT_HEADER_LEN},
    segments::Segment,
};
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Holes begin and end at multiples of this, which file systems can give back.
pub const HOLE_ALIGN: u64 = 4096;
/// Smaller holes are not worth an extent of their own.
const HOLE_BYTES_MIN: u64 = 16 << 10;
/// Live records that are looked at for one checkpoint, at most.
const LIVE_MAX: u64 = 1 << 20;

/// The holes that a checkpoint brings, for each of the segments that get some.
#[derive(Default)]
pub struct Plan {
    segments: Vec<(Arc<Segment>, Vec<Range<u32>>)>,
}

impl Plan {
    /// What the checkpoint says about `segments`: old holes, and those of this plan.
    ///
    /// `earlier` is what the checkpoint before has planned, which is punched when this one counts.
    pub fn table(&self, earlier: &Plan, segments: &[Arc<Segment>]) -> Vec<SegmentEntry> {
        // Where both have some, those of this one.
        let all = earlier.segments.iter().chain(&self.segments);
        let planned: HashMap<_, _> =
            all.map(|(segment, holes)| (Arc::as_ptr(segment), holes)).collect();
        let entry = |segment: &Arc<Segment>| SegmentEntry {
            start: segment.start,
            capacity: segment.capacity,
            records: segment.records.load(Relaxed),
            holes: match planned.get(&Arc::as_ptr(segment)) {
                Some(holes) => (*holes).clone(),
                None => segment.holes(),
            },
        };
        segments.iter().map(entry).collect()
    }
}

impl Plan {
    /// Says that the checkpoint of this plan counts: the segments in it are not looked at again
    /// before much more in them is dead.
    pub fn counts(&self) {
        for (segment, _) in &self.segments {
            segment.sparse_below.store(segment.live(), Relaxed);
        }
    }
}

impl Core {
    /// Finds the segments before `start` with few live records, and the holes they could have. All of these records are read,
    /// which may take minutes: `go_on` is asked before each.
    pub fn plan_holes(
        &self,
        start: Lsn,
        live: &mut dyn FnMut(EachLive<'_>),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Plan, CheckpointError> {
        let sparse = self.sparse_segments(start);
        // While a copy is sent, none would be punched.
        if sparse.is_empty() || self.is_pinned() {
            return Ok(Plan::default());
        }
        let find = |position: Lsn| {
            let behind = sparse.partition_point(|segment| segment.start <= position);
            let index = behind.checked_sub(1)?;
            (position < sparse[index].end()).then_some(index)
        };
        let mut positions = vec![Vec::new(); sparse.len()];
        live(&mut |position| {
            if let Some(index) = find(position) {
                positions[index].push(position);
            }
        });
        let mut plan = Plan::default();
        for (segment, positions) in sparse.iter().zip(&mut positions) {
            positions.sort_unstable();
            positions.dedup();
            if let Some(holes) = self.holes(segment, positions, go_on)? {
                plan.segments.push((Arc::clone(segment), holes));
            }
        }
        Ok(plan)
    }

    /// Segments at most half of whose records are live, and more than half of what was live when
    /// they got their last holes is dead by now; the emptiest first, as far as they can be looked
    /// at in one go; in the order of their positions. One of unknown records is among them until it has been looked at.
    fn sparse_segments(&self, start: Lsn) -> Vec<Arc<Segment>> {
        let mut sparse = self.segments.before(start);
        sparse.retain(|segment| {
            let live = segment.live();
            let records = match segment.records.load(Relaxed) {
                0 => u64::MAX,
                known => known,
            };
            live > 0 && live <= segment.sparse_below.load(Relaxed).min(records) / 2
        });
        sparse.sort_by_key(|segment| segment.live());
        let mut sum = 0;
        sparse.retain(|segment| {
            sum += segment.live();
            sum <= LIVE_MAX
        });
        sparse.sort_by_key(|segment| segment.start);
        sparse
    }

    /// All holes that `segment` can have when just `positions` are live; `None` if the lengths of
    /// the records cannot be read, for then nothing may be given up.
    fn holes(
        &self,
        segment: &Segment,
        positions: &[Lsn],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Range<u32>>>, CheckpointError> {
        let mut holes = Vec::new();
        let mut cache = ReadCache::default();
        let (mut free_from, mut live_bytes) = (SEGMENT_HEADER_LEN, 0);
        let mut add = |free: Range<u64>| {
            let hole = free.start.next_multiple_of(HOLE_ALIGN)..free.end / HOLE_ALIGN * HOLE_ALIGN;
            if hole.end >= hole.start + HOLE_BYTES_MIN {
                holes.push(hole.start as u32..hole.end as u32);
            }
        };
        for &position in positions {
            if !go_on() {
                return Err(CheckpointError::Unwanted);
            }
            let offset = position.0 - segment.start.0;
            add(free_from..offset);
            // One that is damaged has a length that can't be relied upon.
            let Ok(record) = self.read(position, &mut cache) else { return Ok(None) };
            let len = (RECORD_HEAD_LEN + record.len()) as u64;
            free_from = offset + len;
            live_bytes += len;
        }
        segment.estimate_records(positions.len() as u64, live_bytes);
        add(free_from..segment.capacity);
        Ok(Some(holes))
    }

    /// Punches the holes of a plan that both checkpoints know. Returns the bytes they have more
    /// than before; a file system that cannot give them back keeps them. What is left when `go_on` says no is planned again, and
    /// so is all of it while a copy is sent.
    pub fn punch(&self, plan: Plan, go_on: &mut dyn FnMut() -> bool) -> u64 {
        let mut punched_bytes = 0;
        // While this is held, no segment becomes a spare file and then another segment.
        let _not_freed = self.upkeeping.lock();
        let may_punch = !self.is_pinned();
        for (segment, holes) in plan.segments {
            if !(may_punch && go_on()) {
                segment.sparse_below.store(u64::MAX, Relaxed);
                continue;
            }
            if self.segments.find(segment.start).is_none_or(|now| !Arc::ptr_eq(&now, &segment)) {
                continue;
            }
            let Ok(file) = self.disk.open(&segment.path(&self.dir), OpenMode::Write) else {
                continue;
            };
            let before = segment.hole_bytes();
            let failed = holes.iter().position(|hole| {
                let (offset, end) = (u64::from(hole.start), u64::from(hole.end));
                let punched = file.punch(offset, end - offset);
                punched.inspect_err(|error| self.latest.say_once_not_punched(error)).is_err()
            });
            // A hole that failed half-way may have taken bytes: all of them count as gone, except
            // where nothing can be punched at all.
            if failed != Some(0) {
                segment.set_holes(holes);
                punched_bytes += segment.hole_bytes().saturating_sub(before);
            }
        }
        punched_bytes
    }
}
