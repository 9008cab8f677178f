//! What a leader gathers, and how it becomes entries.

use super::{
    Entry, EntryId, EntryKind, NOTE_BYTES_MAX, PlaceError,
    entries::Place,
    entry::{CLOSING_LEN, Closing, RESERVED_LEN},
};
use crate::{
    AppendError, AppendMode, Batch, Lsn,
    core::Core,
    log::{FOLLOWS, Log, Spare, Switch},
    segments::Segment,
};
use bytes::Bytes;
use parking_lot::MutexGuard;
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, atomic::Ordering::Release},
};

/// Frames that are gathered into one entry, about; one batch may be larger.
const ENTRY_BYTES: usize = 1 << 20;

/// Frames that wait for their entry to be placed.
#[derive(Default)]
struct Gathered {
    start: Lsn,
    frames: Vec<u8>,
    /// It begins a segment.
    begins: Option<Begun>,
}

/// A segment that begins with an entry that is not placed.
pub struct Begun {
    pub segment: Arc<Segment>,
    /// The file that is to become it; none if there was no room for one. The entry is not placed before there is.
    pub spare: Option<Spare>,
    /// Where the last frame of the segment before ends.
    pub previous_end: Lsn,
}

impl Gathered {
    /// The size of the file that has to be there before it can be placed.
    fn lacks_file(&self) -> Option<u64> {
        let begun = self.begins.as_ref().filter(|begun| begun.spare.is_none());
        begun.map(|begun| begun.segment.capacity)
    }
}

/// What a leader has appended and not placed. Each entry in it ends with room for its closing frame.
#[derive(Default)]
pub struct Lead {
    closed: VecDeque<Gathered>,
    open: Gathered,
    /// The thread that places has been told that there is something.
    told: bool,
    /// It could not gather what the broker has done: the lead has to end.
    overrun: bool,
}

impl Lead {
    fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.frames.is_empty()
    }

    fn bytes(&self) -> usize {
        self.closed.iter().map(|entry| entry.frames.len()).sum::<usize>() + self.open.frames.len()
    }

    /// Whether it is to be said that there is something to place.
    pub fn tell(&mut self) -> bool {
        !self.is_empty() && !mem::replace(&mut self.told, true)
    }

    /// The next frame begins a segment.
    pub fn begin_segment(&mut self, begun: Begun) {
        self.open.begins = Some(begun);
    }

    fn gather(&mut self, start: Lsn, frame: &mut Vec<u8>) {
        if self.open.frames.is_empty() {
            self.open.start = start;
        }
        if self.open.frames.capacity() == 0 && frame.len() >= ENTRY_BYTES {
            mem::swap(&mut self.open.frames, frame);
        } else {
            self.open.frames.extend_from_slice(frame);
        }
    }

    fn close(&mut self) {
        self.closed.push_back(mem::take(&mut self.open));
    }

    /// The bytes from `position` on, if they are here.
    pub fn find(&self, position: Lsn) -> Option<&[u8]> {
        let all = self.closed.iter().chain([&self.open]);
        let mut found = all.filter_map(|entry| {
            let offset = position.0.checked_sub(entry.start.0)?;
            entry.frames.get(usize::try_from(offset).ok()?..).filter(|rest| !rest.is_empty())
        });
        found.next()
    }
}

impl Log {
    /// Bytes that are not written yet.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.bytes() + self.lead.as_ref().map_or(0, |lead| lead.bytes())
    }

    /// Ends the entry that is being gathered, if there is one.
    pub fn close_gathered(&mut self) {
        if let Some(lead) = &mut self.lead
            && !lead.open.frames.is_empty()
        {
            lead.close();
            self.end = self.end.plus(CLOSING_LEN);
        }
    }

    /// Nothing more is gathered.
    pub fn overrun(&mut self) {
        if let Some(lead) = &mut self.lead {
            lead.overrun = true;
        }
    }

    /// Whether something gathered has no file that it could be written to.
    pub fn lacks_file(&self) -> bool {
        let Some(lead) = &self.lead else { return false };
        lead.closed.iter().chain([&lead.open]).any(|entry| entry.lacks_file().is_some())
    }

    /// Whether [`Log::overrun`] was called in this lead.
    pub fn is_overrun(&self) -> bool {
        self.lead.as_ref().is_some_and(|lead| lead.overrun)
    }

    /// Ends the entry that is being gathered if it is long enough, or what comes next is long enough to be one by itself: that is
    /// not copied then.
    pub fn close_if_ripe(&mut self, next_bytes: u64) {
        let is_ripe = |gathered: usize| {
            gathered >= ENTRY_BYTES || gathered > 0 && next_bytes >= ENTRY_BYTES as u64
        };
        if self.lead.as_ref().is_some_and(|lead| is_ripe(lead.open.frames.len())) {
            self.close_gathered();
        }
    }
}

impl Core {
    /// Appends a batch to what waits to be placed; there is room for it.
    pub fn gather_batch(&self, mut log: MutexGuard<'_, Log>, batch: &mut Batch, mode: AppendMode) {
        let (start, size_bytes) = (log.end, batch.size_bytes());
        batch.seal(start, Lsn(0), self.id);
        log.segment.records.fetch_add(batch.len() as u64, std::sync::atomic::Ordering::Relaxed);
        log.end = start.plus(size_bytes);
        self.end.store(log.end.0, Release);
        let is_much = log.buffered_bytes() >= self.options.buffer_bytes / 4;
        let Some(lead) = &mut log.lead else { return };
        lead.gather(start, batch.frame());
        let tell = (mode.sync || is_much) && lead.tell();
        drop(log);
        if let Some(replica) = self.replica.as_ref().filter(|_| tell) {
            replica.events.gathered();
        }
    }

    /// See [`Replica::place`](super::Replica::place).
    pub fn place(&self, id: EntryId) -> Result<Option<Entry>, PlaceError> {
        let mut log = self.log.lock();
        self.check_next(id)?;
        let Some(lead) = &mut log.lead else { return Ok(None) };
        if lead.is_empty() {
            lead.told = false;
            return Ok(None);
        }
        if lead.closed.is_empty() {
            log.close_gathered();
            self.end.store(log.end.0, Release);
        }
        self.find_file_for_next(&mut log)?;
        let Some(gathered) = log.lead.as_mut().and_then(|lead| lead.closed.pop_front()) else {
            return Ok(None);
        };
        if let Some(lead) = &mut log.lead
            && lead.is_empty()
        {
            lead.told = false;
        }
        Ok(Some(self.put_entry(&mut log, id, EntryKind::Batch, gathered, &[])))
    }

    /// Sees that the next entry has the file that it needs.
    fn find_file_for_next(&self, log: &mut Log) -> Result<(), PlaceError> {
        let next = log.lead.as_ref().and_then(|lead| lead.closed.front());
        let Some(capacity) = next.and_then(Gathered::lacks_file) else { return Ok(()) };
        let spare = self.take_spare_of(log, capacity, true).ok_or(PlaceError::Full)?;
        let next = log.lead.as_mut().and_then(|lead| lead.closed.front_mut());
        if let Some(begun) = next.and_then(|next| next.begins.as_mut()) {
            begun.spare = Some(spare);
        }
        Ok(())
    }

    /// See [`Replica::place_note`](super::Replica::place_note).
    pub fn place_note(
        &self,
        id: EntryId,
        kind: EntryKind,
        note: &[u8],
    ) -> Result<Entry, PlaceError> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(PlaceError::TooLong(note.len()));
        }
        let epoch = self.log.lock().epoch;
        let mut log = self.make_room(0, true, epoch).map_err(place_error)?;
        self.check_next(id)?;
        let mut gathered = match &mut log.lead {
            Some(lead) if !lead.closed.is_empty() => return Err(PlaceError::Gathered),
            Some(lead) if lead.open.lacks_file().is_some() => return Err(PlaceError::Full),
            Some(lead) => {
                lead.told = false;
                mem::take(&mut lead.open)
            }
            None => Gathered::default(),
        };
        if gathered.frames.is_empty() {
            gathered.start = log.end;
        }
        let entry = self.put_entry(&mut log, id, kind, gathered, note);
        log.end = entry.end();
        self.end.store(log.end.0, Release);
        Ok(entry)
    }

    fn check_next(&self, id: EntryId) -> Result<(), PlaceError> {
        if let Some(failure) = self.failed.get() {
            return Err(PlaceError::Failed(failure.clone()));
        }
        let Some(replica) = &self.replica else { return Ok(()) };
        let last = replica.entries.lock().last;
        if id.index != last.index + 1 || id.term < last.term {
            return Err(PlaceError::Gap { found: id, last });
        }
        Ok(())
    }

    /// Makes an entry of what was gathered, and hands it to the log thread.
    fn put_entry(
        &self,
        log: &mut Log,
        id: EntryId,
        kind: EntryKind,
        gathered: Gathered,
        note: &[u8],
    ) -> Entry {
        let Gathered { start, mut frames, begins } = gathered;
        let term_before =
            self.replica.as_ref().map_or(0, |replica| replica.entries.lock().last.term);
        let closing = Closing { commit: 0, id, term_before, start, kind };
        closing.append(&mut frames, note, self.id);
        let entry = Entry { id, kind, frame: Bytes::from(frames) };
        if let Some(Begun { segment, spare: Some(spare), previous_end }) = begins {
            log.buffer.switch(Switch { segment, spare, previous_end });
        }
        self.buffer_entry(log, &entry, &closing, !note.is_empty());
        entry
    }

    /// Has the log thread write an entry, with what is this copy's own.
    pub fn buffer_entry(&self, log: &mut Log, entry: &Entry, closing: &Closing, has_note: bool) {
        let Some(replica) = &self.replica else { return };
        let (start, end) = (entry.start(), entry.end());
        let at = entry.closing_at().unwrap_or(entry.frame.len());
        let mut entries = replica.entries.lock();
        let mut bytes = entry.frame[at..].to_vec();
        super::entry::make_own(&mut bytes, replica.synced(), entries.commit, self.id);
        if at > 0 {
            log.buffer.put_shared(start, &entry.frame.slice(..at));
        }
        log.buffer.put(start.plus(at as u64), &mut bytes);
        let place = Place { index: entry.id.index, start, end };
        entries.push(closing, has_note, place, replica.synced());
        drop(entries);
        log.queued = end;
        log.sync_to = end;
        log.ticket += 1;
        self.work.notify_one();
    }

    /// See [`Replica::lead`](super::Replica::lead).
    pub fn begin_lead(&self, term: u64) {
        let mut log = self.log.lock();
        debug_assert!(log.epoch == FOLLOWS, "the lead is taken once a term");
        log.lead = Some(Box::default());
        log.epoch = term;
        if let Some(replica) = &self.replica {
            replica.set_epoch(term);
        }
    }

    /// See [`Replica::follow`](super::Replica::follow).
    pub fn end_lead(&self) {
        let mut log = self.log.lock();
        let Some(lead) = log.lead.take() else { return };
        (log.epoch, log.paused) = (FOLLOWS, false);
        for begun in lead.closed.into_iter().chain([lead.open]).filter_map(|entry| entry.begins) {
            // No file bears its name yet.
            self.segments.remove(begun.segment.start);
            log.spares.extend(begun.spare);
        }
        log.end = log.queued;
        if let Some(segment) = self.segments.find(Lsn(log.queued.0 - 1)) {
            log.segment = segment;
        }
        // Who sees the shorter end sees that the lead is over.
        if let Some(replica) = &self.replica {
            replica.set_epoch(FOLLOWS);
            replica.aside.forget();
        }
        self.end.store(log.end.0, Release);
        self.space.notify_all();
        drop(log);
        self.waiters.wake_up_to(Lsn(u64::MAX), false);
        if let Some(replica) = &self.replica {
            replica.proofs.give_up();
        }
        self.room_waiters.wake_up_to(Lsn(0), false);
    }
}

fn place_error(error: AppendError) -> PlaceError {
    match error {
        AppendError::Failed(failure) => PlaceError::Failed(failure),
        // The others are of batches.
        _ => PlaceError::Full,
    }
}

const _: () = assert!(CLOSING_LEN < RESERVED_LEN);
