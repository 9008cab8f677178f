//! Which entries a copy has, and where they are. Bounded: the last few thousand are known one by one, and those that
//! may be cut or come to be committed, which must not wait for the disk; the others by a mark every 64 KiB of log.

use super::{
    EntryId, EntryKind,
    entry::{Base, Closing},
};
use crate::Lsn;
use std::collections::VecDeque;

/// Entries that are known one by one, once they are on the disk and committed.
const RECENT_MAX: usize = 4096;
/// Bytes of log between two marks, at most, if entries are not longer.
const MARK_EVERY_BYTES: u64 = 64 << 10;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub index: u64,
    pub start: Lsn,
    pub end: Lsn,
}

/// Where an entry begins from which others are found by reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub index: u64,
    pub start: Lsn,
}

/// The entries of a copy, from the one behind `base` to `last`.
#[derive(Debug, Default)]
pub struct Entries {
    /// The entry before the first that is there.
    pub base: EntryId,
    /// Where that one ends.
    pub base_end: Lsn,
    /// The last one, which is `base` if there are none.
    pub last: EntryId,
    /// Where the last one ends.
    pub end: Lsn,
    /// The greatest index that is committed.
    pub commit: u64,
    /// The greatest index that was known to be committed before the start.
    pub commit_hint: u64,
    /// The first entry of each term.
    terms: VecDeque<EntryId>,
    marks: VecDeque<Mark>,
    /// Entries with a note, or of a kind of their own.
    notes: VecDeque<u64>,
    recent: VecDeque<Place>,
}

impl Entries {
    /// None yet, behind `base`.
    pub fn new(base: Base) -> Self {
        let Base { id, end } = base;
        let (commit, commit_hint) = (id.index, id.index);
        Entries {
            base: id,
            base_end: end,
            last: id,
            end,
            commit,
            commit_hint,
            ..Entries::default()
        }
    }

    /// Adds the next one, which is on the disk from `synced` on if it ends before that.
    pub fn push(&mut self, closing: &Closing, has_note: bool, place: Place, synced: Lsn) {
        debug_assert_eq!(closing.id.index, self.last.index + 1, "entries have no gaps");
        if self.terms.back().is_none_or(|last| last.term != closing.id.term) {
            self.terms.push_back(closing.id);
        }
        let is_far = |last: &Mark| place.start.0 - last.start.0 >= MARK_EVERY_BYTES;
        // The first entry of a segment is not where the one before ends.
        if place.start != self.end || self.marks.back().is_none_or(is_far) {
            self.marks.push_back(Mark { index: place.index, start: place.start });
        }
        if has_note || closing.kind != EntryKind::Batch {
            self.notes.push_back(place.index);
        }
        self.recent.push_back(place);
        let committed = self.commit.max(self.commit_hint);
        let is_done = |first: &mut Place| first.end <= synced && first.index < committed;
        while self.recent.len() > RECENT_MAX && self.recent.pop_front_if(is_done).is_some() {}
        (self.last, self.end) = (closing.id, place.end);
    }

    /// Forgets what follows `after`, which ends at `end`.
    pub fn cut(&mut self, after: EntryId, end: Lsn) {
        self.terms.retain(|first| first.index <= after.index);
        self.marks.retain(|mark| mark.index <= after.index);
        self.notes.retain(|index| *index <= after.index);
        self.recent.retain(|place| place.index <= after.index);
        (self.last, self.end) = (after, end);
    }

    /// Forgets everything up to `base`.
    pub fn trim(&mut self, base: Base) {
        let Base { id: base, end } = base;
        if base.index <= self.base.index {
            return;
        }
        (self.base, self.base_end) = (base, end);
        while self.terms.get(1).is_some_and(|next| next.index <= base.index + 1) {
            self.terms.pop_front();
        }
        // The mark of the first one that is left, or the one before.
        while self.marks.get(1).is_some_and(|next| next.index <= base.index + 1) {
            self.marks.pop_front();
        }
        while self.notes.front().is_some_and(|index| *index <= base.index) {
            self.notes.pop_front();
        }
        while self.recent.front().is_some_and(|place| place.index <= base.index) {
            self.recent.pop_front();
        }
    }

    /// The term of an entry, or of the one before the first.
    pub fn term(&self, index: u64) -> Option<u64> {
        if index == self.base.index {
            return Some(self.base.term);
        }
        if index < self.base.index || index > self.last.index {
            return None;
        }
        let behind = self.terms.partition_point(|first| first.index <= index);
        Some(self.terms.get(behind.checked_sub(1)?)?.term)
    }

    /// Where an entry is, if it is one of the last.
    pub fn place(&self, index: u64) -> Option<Place> {
        let first = self.recent.front()?.index;
        self.recent.get(usize::try_from(index.checked_sub(first)?).ok()?).copied()
    }

    /// Where to read on from to find the entry `index`.
    pub fn mark_for(&self, index: u64) -> Option<Mark> {
        let behind = self.marks.partition_point(|mark| mark.index <= index);
        self.marks.get(behind.checked_sub(1)?).copied()
    }

    /// Where to read on from to find the entry at `position`.
    pub fn mark_before(&self, position: Lsn) -> Option<Mark> {
        let behind = self.marks.partition_point(|mark| mark.start <= position);
        self.marks.get(behind.checked_sub(1)?).copied()
    }

    /// Where the entry `index` begins, if the one before it ends at `end`.
    pub fn start_behind(&self, end: Lsn, index: u64) -> Lsn {
        self.mark_for(index).filter(|mark| mark.index == index).map_or(end, |mark| mark.start)
    }

    /// The entries behind `index` that are more than batches.
    pub fn notes_after(&self, index: u64) -> Vec<u64> {
        self.notes.iter().copied().filter(|noted| *noted > index).collect()
    }
}
