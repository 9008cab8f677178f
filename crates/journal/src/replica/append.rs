//! Entries that another machine has placed.

use super::{AppendEntryError, BadEntry, Entry, entry::RESERVED_LEN};
use crate::{
    AppendError, Lsn,
    core::Core,
    format::SEGMENT_HEADER_LEN,
    log::{FOLLOWS, Log},
};
use std::sync::atomic::Ordering::Release;

impl Core {
    /// Appends one entry. See [`Replica::append`](super::Replica::append).
    pub fn append_entry(&self, entry: &Entry) -> Result<(), AppendEntryError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        let sound = Entry::parse(entry.frame.clone(), self.id)?;
        let closing = sound.closing().filter(|closing| closing.id == entry.id);
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
        let frames_len = sound.closing_at().unwrap_or_default() as u64;
        self.expect_at(entry, frames_len)?;
        let mut log = self.make_room(frames_len, true, FOLLOWS).map_err(append_error)?;
        log.end = entry.end();
        self.end.store(log.end.0, Release);
        self.buffer_entry(&mut log, entry, &closing, !sound.note().is_empty());
        Ok(())
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
