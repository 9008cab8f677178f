//! Reading entries back, by their index, from the copy's own files.

use super::{
    Entry, Piece, ReadEntryError,
    entries::{Entries, Mark},
    entry::{Base, Closing},
};
use crate::{
    Lsn, ReadError,
    core::Core,
    disk::read_up_to,
    format::{FRAME_HEADER_LEN, FrameHeader, FrameKind, check_frame},
    replica::entry::make_own,
    segments::Segment,
};
use bytes::Bytes;
use std::sync::Arc;

/// Bytes that are read at once, at least.
const BLOCK_BYTES: usize = 64 << 10;

/// An entry as it was found, with the copy's own bytes in it.
pub(super) struct Found {
    pub index: u64,
    pub end: Lsn,
    pub bytes: Vec<u8>,
}

impl Core {
    /// See [`Replica::read`](super::Replica::read).
    pub fn read_entries(
        &self,
        from: u64,
        to: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, ReadEntryError> {
        let mut read = Vec::new();
        let mut left = max_bytes;
        let mut cursor = self.cursor_at(from)?;
        for index in from..to {
            if index > cursor.last {
                break;
            }
            let most = if read.is_empty() { u64::MAX } else { left };
            let found = match self.read_within(&mut cursor, most) {
                Ok(Some(found)) => found,
                Err(error) if read.is_empty() => return Err(error),
                Ok(None) | Err(_) => break,
            };
            debug_assert_eq!(found.index, index, "entries are read in order");
            left = left.saturating_sub(found.bytes.len() as u64);
            read.push(self.whole(found, cursor.cuts)?);
        }
        Ok(read)
    }

    /// See [`Replica::end_of`](super::Replica::end_of).
    pub fn end_of(&self, index: u64) -> Result<Lsn, ReadEntryError> {
        {
            let Some(replica) = &self.replica else { return Ok(Lsn(0)) };
            let entries = replica.entries.lock();
            if index == entries.last.index {
                return Ok(entries.end);
            }
            if let Some(place) = entries.place(index) {
                return Ok(place.end);
            }
            if index == entries.base.index {
                return Ok(entries.base_end);
            }
        }
        let mut cursor = self.cursor_at(index)?;
        self.read_next(&mut cursor).map(|found| found.end)
    }

    /// The last entry that ends at `position` or before.
    pub fn last_ending_by(&self, position: Lsn) -> Result<Base, ReadEntryError> {
        let Some(replica) = &self.replica else { return Ok(Base::default()) };
        let cuts = self.cuts();
        let (base, mark) = {
            let entries = replica.entries.lock();
            if entries.end <= position {
                return Ok(Base { id: entries.last, end: entries.end });
            }
            let base = Base { id: entries.base, end: entries.base_end };
            (base, entries.mark_before(position))
        };
        let Some(mark) = mark else { return Ok(base) };
        let mut cursor = self.cursor_from(mark, cuts);
        let mut index = mark.index - 1;
        let mut end = if index <= base.id.index { base.end } else { self.end_of(index)? };
        loop {
            let found = self.read_next(&mut cursor)?;
            if found.end > position {
                break;
            }
            (index, end) = (found.index, found.end);
        }
        if index <= base.id.index {
            return Ok(base);
        }
        let term = replica.entries.lock().term(index).unwrap_or_default();
        Ok(Base { id: super::EntryId { term, index }, end })
    }

    /// Takes the copy's own bytes out of an entry.
    fn whole(&self, found: Found, cuts: u64) -> Result<Entry, ReadEntryError> {
        let start = Lsn(found.end.0 - found.bytes.len() as u64);
        self.checked(found, start).inspect_err(|_| self.want_frame_of_entry(start, cuts))
    }

    pub(super) fn checked(&self, found: Found, start: Lsn) -> Result<Entry, ReadEntryError> {
        let Found { index, mut bytes, .. } = found;
        if let Some(at) = closing_at(&bytes, start) {
            // Its sum is about to be another.
            let header = FrameHeader::decode(&bytes[at..], start.plus(at as u64));
            if !header.is_some_and(|header| check_frame(&header, &bytes[at..], self.id)) {
                return Err(self.damaged_at(index, start.plus(at as u64)));
            }
            make_own(&mut bytes[at..], Lsn(0), 0, self.id);
        }
        Entry::parse(Bytes::from(bytes), self.id)
            .map_err(|bad| self.damaged_at(index, start.plus(bad.offset as u64)))
    }

    fn cursor_at(&self, index: u64) -> Result<Cursor, ReadEntryError> {
        let gone = |entries: &Entries| ReadEntryError::Gone {
            index,
            first: entries.base.index + 1,
            last: entries.last.index,
        };
        let Some(replica) = &self.replica else { return Err(gone(&Entries::default())) };
        let cuts = self.cuts();
        let mark = {
            let entries = replica.entries.lock();
            if index <= entries.base.index || index > entries.last.index {
                return Err(gone(&entries));
            }
            let place = entries.place(index).map(|place| Mark { index, start: place.start });
            place.or_else(|| entries.mark_for(index)).ok_or_else(|| gone(&entries))?
        };
        let mut cursor = self.cursor_from(mark, cuts);
        while cursor.next < index {
            self.read_next(&mut cursor)?;
        }
        Ok(cursor)
    }

    /// How often the log was cut. Who reads looks before it learns where entries are.
    pub(super) fn cuts(&self) -> u64 {
        self.log.lock().cuts
    }

    fn cursor_from(&self, mark: Mark, cuts: u64) -> Cursor {
        let last = self.replica.as_ref().map_or(0, |replica| replica.entries.lock().last.index);
        Cursor {
            next: mark.index,
            last,
            at: mark.start,
            cuts,
            block: Vec::new(),
            block_at: mark.start,
            small_to: Lsn(0),
            segment: None,
        }
    }

    /// Reads the entry that a cursor is at, and moves it on to the next.
    fn read_next(&self, cursor: &mut Cursor) -> Result<Found, ReadEntryError> {
        let (index, at) = (cursor.next, cursor.at);
        self.read_within(cursor, u64::MAX)?.ok_or_else(|| self.damaged_at(index, at))
    }

    /// The same, unless the entry has more than so many bytes: then not all of it is read, and the cursor stays. Other copies
    /// are asked for what can't be read.
    fn read_within(
        &self,
        cursor: &mut Cursor,
        max_bytes: u64,
    ) -> Result<Option<Found>, ReadEntryError> {
        let found = self.find_within(cursor, max_bytes);
        found.inspect_err(|_| self.want_frame_of_entry(cursor.at, cursor.cuts))
    }

    /// The entry that begins here can't be read: other copies are asked for the first of its frames of which that is so. If the log
    /// was cut since the reader has learnt where it begins, other entries may be there now, and nothing may be wrong with those.
    pub(super) fn want_frame_of_entry(&self, start: Lsn, cuts: u64) {
        let Some(replica) = &self.replica else { return };
        let mut at = start;
        // What is not committed may be another entry elsewhere.
        while at < self.durable() {
            match self.whole_frame(at) {
                Ok(frame) => {
                    let header = FrameHeader::decode(&frame, at);
                    if header.is_none_or(|header| header.kind == FrameKind::Entry) {
                        return;
                    }
                    at = at.plus(frame.len() as u64);
                }
                Err(ReadError::Gone(_)) => return,
                Err(_) => {
                    // Asked last: what was committed when it was found is not cut any more.
                    if self.cuts() == cuts {
                        replica.damage.lock().want_unless_lost(Piece::Frame(at));
                    }
                    return;
                }
            }
        }
    }

    fn find_within(
        &self,
        cursor: &mut Cursor,
        max_bytes: u64,
    ) -> Result<Option<Found>, ReadEntryError> {
        let index = cursor.next;
        let start = cursor.at;
        let mut len = 0;
        loop {
            let frame_at = start.plus(len as u64);
            let bytes = self.load(cursor, index, len + FRAME_HEADER_LEN)?;
            let header = FrameHeader::decode(&bytes[len..], frame_at);
            let header = header.ok_or_else(|| self.damaged_at(index, frame_at))?;
            let frame_len = usize::try_from(header.frame_len()).unwrap_or(usize::MAX);
            if (len as u64).saturating_add(frame_len as u64) > max_bytes {
                return Ok(None);
            }
            let is_last = header.kind == FrameKind::Entry;
            if is_last {
                let bytes = self.load(cursor, index, len + frame_len)?;
                let payload = &bytes[len + FRAME_HEADER_LEN..][..header.payload_len as usize];
                let closing = Closing::decode(payload).filter(|closing| closing.id.index == index);
                closing.ok_or_else(|| self.damaged_at(index, frame_at))?;
            }
            len = len.saturating_add(frame_len);
            if is_last {
                break;
            }
        }
        let bytes = self.load(cursor, index, len)?[..len].to_vec();
        let end = start.plus(len as u64);
        cursor.next += 1;
        let next = self
            .replica
            .as_ref()
            .map(|replica| replica.entries.lock().start_behind(end, cursor.next));
        cursor.at = next.unwrap_or(end);
        Ok(Some(Found { index, end, bytes }))
    }

    /// At least `len` bytes from where the cursor is.
    fn load<'c>(
        &self,
        cursor: &'c mut Cursor,
        index: u64,
        len: usize,
    ) -> Result<&'c [u8], ReadEntryError> {
        let from = cursor.at.0.wrapping_sub(cursor.block_at.0) as usize;
        let has = cursor.block.len().checked_sub(from).is_some_and(|rest| rest >= len);
        if !has {
            self.fill_block(cursor, index, len)?;
        }
        let from = (cursor.at.0 - cursor.block_at.0) as usize;
        Ok(&cursor.block[from..])
    }

    fn fill_block(
        &self,
        cursor: &mut Cursor,
        index: u64,
        len: usize,
    ) -> Result<(), ReadEntryError> {
        let position = cursor.at;
        let segment =
            self.segments.find(position).ok_or_else(|| self.damaged_at(index, position))?;
        if len as u64 > segment.end().0 - position.0 {
            return Err(self.damaged_at(index, position));
        }
        // What is there of the entry is not read again.
        let from = position.0.checked_sub(cursor.block_at.0).unwrap_or(u64::MAX);
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(cursor.block.len());
        cursor.block.drain(..from);
        cursor.block_at = position;
        while cursor.block.len() < len {
            let at = position.plus(cursor.block.len() as u64);
            let written = self.written();
            if at >= written {
                let before = cursor.block.len();
                let log = self.log.lock();
                if let Some(rest) = log.buffer.find(at) {
                    let take = rest.len().min(len.max(BLOCK_BYTES));
                    cursor.block.extend_from_slice(&rest[..take]);
                }
                drop(log);
                if cursor.block.len() > before {
                    continue;
                }
                // It was written meanwhile, or is not there.
                if at >= self.written() {
                    return Err(self.damaged_at(index, at));
                }
                continue;
            }
            let rest = written.min(segment.end()).0 - at.0;
            let rest = usize::try_from(rest).unwrap_or(usize::MAX);
            let needed = (len - cursor.block.len()).min(rest);
            let most =
                if at < cursor.small_to { needed } else { needed.max(BLOCK_BYTES).min(rest) };
            match self.read_file(cursor, &segment, at, most, index) {
                Err(ReadEntryError::Io { .. }) if needed < most => {
                    // What is unreadable may lie behind the entry. Large blocks would come upon it again.
                    cursor.small_to = at.plus(most as u64);
                }
                read => read?,
            }
        }
        Ok(())
    }

    fn read_file(
        &self,
        cursor: &mut Cursor,
        segment: &Arc<Segment>,
        at: Lsn,
        len: usize,
        index: u64,
    ) -> Result<(), ReadEntryError> {
        let path = || segment.path(&self.dir);
        let io = |error| ReadEntryError::Io { path: path(), error };
        let file = match &cursor.segment {
            Some((of, file)) if Arc::ptr_eq(of, segment) => Arc::clone(file),
            _ => segment.open(&*self.disk, &self.dir).map_err(io)?,
        };
        let before = cursor.block.len();
        cursor.block.resize(before + len, 0);
        let offset = at.0 - segment.start.0;
        let found = read_up_to(&*file, &mut cursor.block[before..], offset);
        cursor.block.truncate(before + found.as_ref().map_or(0, |found| *found));
        let found = found.map_err(io)?;
        cursor.segment = Some((Arc::clone(segment), file));
        if found < len {
            return Err(self.damaged_at(index, at.plus(found as u64)));
        }
        Ok(())
    }

    pub(super) fn damaged_at(&self, index: u64, position: Lsn) -> ReadEntryError {
        let segment = self.segments.find(position);
        let path = segment.as_ref().map_or_else(|| self.dir.clone(), |one| one.path(&self.dir));
        let offset = segment.map_or(0, |segment| position.0 - segment.start.0);
        ReadEntryError::Damaged { index, path, offset }
    }
}

/// Where a reader of entries is.
struct Cursor {
    next: u64,
    /// The last one when it began.
    last: u64,
    at: Lsn,
    /// How often the log had been cut when it was known where that is.
    cuts: u64,
    block: Vec<u8>,
    block_at: Lsn,
    /// Up to here no more is read than what is needed: the system has refused to read a block of it.
    small_to: Lsn,
    segment: Option<(Arc<Segment>, Arc<dyn crate::DiskFile>)>,
}

fn closing_at(bytes: &[u8], start: Lsn) -> Option<usize> {
    let mut offset = 0;
    loop {
        let header = FrameHeader::decode(bytes.get(offset..)?, start.plus(offset as u64))?;
        if header.kind == FrameKind::Entry {
            return Some(offset);
        }
        offset += usize::try_from(header.frame_len()).ok()?;
    }
}
