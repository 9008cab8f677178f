//! Entries that another machine has placed.

use super::{AppendEntryError, BadEntry, Entry, EntryId, Replica, Shared, entry::RESERVED_LEN};
use crate::{
    AppendError, Lsn,
    core::Core,
    format::SEGMENT_HEADER_LEN,
    log::{FOLLOWS, KEPT_FOR_CHECKPOINT, KEPT_FOR_RESERVE, Log},
};
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Whether [`Replica::append`] finds room for some entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It does, and waits for no disk.
    Ready,
    /// A file is being made, or what came before is being written: [`Events::room`](super::Events::room) or
    /// [`Events::synced`](super::Events::synced) says when to ask again.
    Coming,
    /// The disk is full.
    Full,
}

impl Replica {
    /// Whether the disk has room for more than the reserve, as of the last time that a file was made. May be called on any
    /// thread.
    pub fn has_room(&self) -> bool {
        self.journal.core.has_room()
    }

    /// Whether [`Replica::place_note`] finds room at once.
    pub fn has_room_for_note(&self) -> bool {
        let core = &self.journal.core;
        let log = core.log.lock();
        let usual = core.options.segment_bytes;
        let ready = log.spares.iter().filter(|spare| spare.capacity == usual).count();
        RESERVED_LEN <= log.segment.end().0 - log.end.0 || ready > KEPT_FOR_CHECKPOINT
    }
}

impl Core {
    /// Appends one entry, whose sums are right. See [`Replica::append`](super::Replica::append).
    pub fn append_entry(&self, entry: &Entry) -> Result<(), AppendEntryError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let closing = entry.closing().filter(|closing| closing.id == entry.id);
        let closing = closing.ok_or(BadEntry { offset: 0 })?;
        let id = entry.id;
        let (last, here) = {
            let entries = replica.entries.lock();
            (entries.last, entries.term(id.index))
        };
        if id.index <= last.index {
            match here {
                Some(term) if term == id.term => return Ok(()),
                _ => self.cut(id.index.saturating_sub(1))?,
            }
        }
        let last = replica.entries.lock().last;
        if id.index != last.index + 1 || closing.term_before != last.term || id.term < last.term {
            return Err(AppendEntryError::Gap { found: id, last });
        }
        let frames_len = entry.closing_at().unwrap_or_default() as u64;
        self.expect_at(entry, frames_len)?;
        let records = entry.record_count();
        let mut log = self.make_room(frames_len, true, FOLLOWS).map_err(append_error)?;
        // As the leader counts them: by this is known how much of a segment is dead.
        log.segment.records.fetch_add(records, Relaxed);
        log.end = entry.end();
        self.end.store(log.end.0, Release);
        self.buffer_entry(&mut log, entry, &closing, !entry.note().is_empty());
        Ok(())
    }

    /// See [`Replica::room_for`](super::Replica::room_for).
    pub fn room_for(&self, entries: &[Entry], replica: &Shared) -> Room {
        let mut log = self.log.lock();
        if self.failed.get().is_some() || log.closed {
            // The append says so.
            return Room::Ready;
        }
        let entries = not_here(replica, entries);
        let (buffered, len) =
            (log.buffered_bytes(), entries.iter().map(|one| one.frame.len()).sum::<usize>());
        // With nothing left to write, no event would say when to ask again.
        if buffered > 0 && buffered + len > self.options.buffer_bytes {
            return Room::Coming;
        }
        if replica.synced_ticket() < log.ticket && contradicts(replica, entries) {
            // A cut would wait for what the log thread is doing.
            return Room::Coming;
        }
        match self.missing_file(&log, entries) {
            None => return Room::Ready,
            Some(_) if !self.has_room() => return Room::Full,
            Some(Missing::Large(capacity)) => log.wants_large = Some(capacity),
            Some(Missing::Usual) => {}
        }
        // Under the log's lock, under which the file is put there.
        replica.wants_room.store(true, Relaxed);
        drop(log);
        self.wake_upkeep();
        Room::Coming
    }

    /// There are more files, or there is no room for them.
    pub fn tell_room(&self) {
        self.space.notify_all();
        if let Some(replica) = &self.replica
            && replica.wants_room.swap(false, Relaxed)
        {
            replica.events.room();
        }
    }

    /// Sees that an entry begins where its leader has it, before anything is done for it.
    fn expect_at(&self, entry: &Entry, frames_len: u64) -> Result<(), AppendEntryError> {
        let log = self.log.lock();
        if log.epoch != FOLLOWS {
            return Err(AppendEntryError::Leads);
        }
        let (found, expected) = (entry.start(), next_start(&log, frames_len));
        if found == expected {
            return Ok(());
        }
        Err(AppendEntryError::Elsewhere { id: entry.id, found, expected })
    }
}

/// Where an entry with so many bytes of frames begins: [`Core::make_room`] sees to it.
fn next_start(log: &Log, frames_len: u64) -> Lsn {
    let segment_end = log.segment.end();
    if frames_len + RESERVED_LEN <= segment_end.0 - log.end.0 {
        log.end
    } else {
        segment_end.plus(SEGMENT_HEADER_LEN)
    }
}

fn append_error(error: AppendError) -> AppendEntryError {
    match error {
        AppendError::Full => AppendEntryError::Full,
        AppendError::Failed(failure) => AppendEntryError::Failed(failure),
        AppendError::Closed | AppendError::Deposed | AppendError::TooLarge { .. } => {
            AppendEntryError::Leads
        }
    }
}

/// These without the first ones, as far as they are here already: the append passes them over.
fn not_here<'e>(replica: &Shared, entries: &'e [Entry]) -> &'e [Entry] {
    let here = replica.entries.lock();
    let is_here = |id: EntryId| id.index <= here.last.index && here.term(id.index) == Some(id.term);
    let count = entries.iter().take_while(|entry| is_here(entry.id)).count();
    &entries[count..]
}

/// Whether something else is here instead of one of these.
fn contradicts(replica: &Shared, others: &[Entry]) -> bool {
    let here = replica.entries.lock();
    let is_other =
        |id: EntryId| id.index <= here.last.index && here.term(id.index) != Some(id.term);
    others.iter().any(|other| is_other(other.id))
}

/// A file that is needed and not ready.
enum Missing {
    Usual,
    /// One of this capacity.
    Large(u64),
}

impl Core {
    /// What some entries need that is not there. One usual file more than they need has to be ready, as a checkpoint may
    /// take one meanwhile. On a full disk the reserve is for them: the leader had it for what frees room.
    fn missing_file(&self, log: &Log, entries: &[Entry]) -> Option<Missing> {
        let usual = self.options.segment_bytes;
        let ready = |capacity| log.spares.iter().filter(|spare| spare.capacity == capacity).count();
        let (mut end, mut segment_end) = (log.end, log.segment.end());
        let mut switches = false;
        for entry in entries {
            let (start, needed) = (entry.start(), room_of(entry));
            if start < log.end
                && let Some(segment) = self.segments.find(start)
            {
                // It replaces what is here, or comes behind that: its segment may have to be begun again.
                let is_first = start == segment.start.plus(SEGMENT_HEADER_LEN);
                (end, segment_end) = (start, if is_first { start } else { segment.end() });
            }
            if end.plus(needed) > segment_end {
                let capacity = SEGMENT_HEADER_LEN + needed;
                segment_end = start.plus(usual - SEGMENT_HEADER_LEN);
                if capacity <= usual {
                    switches = true;
                } else {
                    let capacity = capacity.next_multiple_of(4096);
                    if ready(capacity) == 0 {
                        return Some(Missing::Large(capacity));
                    }
                    segment_end = start.plus(capacity - SEGMENT_HEADER_LEN);
                }
            }
            end = entry.end();
        }
        // No more than these are kept ready: between two segments, an append waits again.
        let kept = if self.has_room() { KEPT_FOR_RESERVE } else { KEPT_FOR_CHECKPOINT };
        (switches && ready(usual) <= kept).then_some(Missing::Usual)
    }
}

/// Bytes that a segment has to have left for an entry to be put there.
fn room_of(entry: &Entry) -> u64 {
    entry.closing_at().unwrap_or_default() as u64 + RESERVED_LEN
}
