//! Finding out which entries a copy has.

use super::{
    Identity,
    entries::{Entries, Place},
    entry::Closing,
    state::State,
};
use crate::{
    Lsn, OpenError,
    format::{FrameHeader, FrameKind},
    recovery::{Recovery, Replayed, Tail, scan::Found},
};
use std::sync::atomic::Ordering::Relaxed;

/// What a start knows of a copy besides its files.
pub struct Copy {
    pub identity: Identity,
    /// There was a log.
    pub begun: bool,
    /// It was synced up to here.
    pub synced: Lsn,
    /// An index that was committed.
    pub commit: u64,
    /// It was closed by intention.
    pub clean: bool,
}

impl From<&State> for Copy {
    fn from(state: &State) -> Self {
        Copy {
            identity: state.identity,
            begun: state.begun,
            synced: state.synced,
            commit: state.commit,
            clean: state.clean,
        }
    }
}

/// What the frames of a copy come to.
struct Walk {
    entries: Entries,
    /// Where the entry begins whose closing frame comes next.
    open: Lsn,
    /// Nothing has been seen yet: the first entry may have begun before.
    first: bool,
}

impl Walk {
    /// Takes the next frame. False if it can't be there.
    fn visit(&mut self, frame: &FrameHeader, payload: &[u8]) -> bool {
        match frame.kind {
            FrameKind::Batch => return true,
            FrameKind::Gap | FrameKind::Close => return false,
            FrameKind::Entry => {}
        }
        let Some(closing) = Closing::decode(payload) else { return false };
        let last = self.entries.last;
        let begins =
            if self.first { closing.start <= self.open } else { closing.start == self.open };
        let follows = closing.id.index == last.index + 1
            && closing.term_before == last.term
            && closing.id.term >= last.term;
        if !begins || !follows {
            return false;
        }
        let end = frame.lsn.plus(frame.frame_len());
        let place = Place { index: closing.id.index, start: closing.start, end };
        let has_note = super::entry::closing_len(&[]) < frame.frame_len();
        self.entries.push(&closing, has_note, place, end);
        self.entries.commit_hint = self.entries.commit_hint.max(closing.commit);
        (self.open, self.first) = (end, false);
        true
    }
}

impl Recovery {
    /// Whether a segment was begun behind the last entry, and nothing of it has been kept.
    pub(super) fn ends_in_an_empty_segment(&self, end: Lsn) -> bool {
        self.chain.len() > 1 && self.chain.last().is_some_and(|(last, _)| end < last.start)
    }

    /// Reads all entries from the checkpoint's start on, and finds out how the log ends.
    ///
    /// Damage is told from a torn tail as in a journal that stands alone; besides, what the file beside the
    /// log says was synced and committed has to be there.
    pub(super) fn walk_entries(&self, copy: &Copy) -> Result<(Tail, Entries), OpenError> {
        let from = self.replay_start();
        let mut base = self.base;
        if let Some((_, first)) = self.chain.first().filter(|_| base.id.index == 0) {
            base.end = base.end.max(first.first_frame());
        }
        let mut walk = Walk { entries: Entries::new(base), open: from, first: true };
        let durable = self.durable.max(copy.synced);
        let replayed = Replayed { clean: copy.clean, ..Replayed::default() };
        let mut tail = Tail { replayed, durable };
        for (index, (segment, header)) in self.chain.iter().enumerate() {
            let next = self.chain.get(index + 1).map(|(_, next)| next.previous_end);
            let limit = next.unwrap_or(header.end());
            let mut scanner = self.scanner(segment, header, from, limit)?;
            tail.durable = tail.durable.max(header.start);
            // Entries do not cross segments; the checkpoint may start within one.
            walk.open = scanner.at();
            let mut end = scanner.at();
            loop {
                let read = scanner.next().map_err(|error| self.read_error(segment, error))?;
                let Found::Frame(frame, payload) = read else { break };
                if !walk.visit(&frame, payload) {
                    break;
                }
                segment.records.fetch_add(u64::from(frame.records), Relaxed);
                tail.durable = tail.durable.max(frame.durable);
                if frame.kind == FrameKind::Entry {
                    end = frame.lsn.plus(frame.frame_len());
                }
            }
            tail.replayed.end = end;
            match next {
                Some(next) if end < next => return Err(self.damaged(segment, end)),
                Some(_) => {}
                None => {
                    scanner.go_to(end);
                    self.judge_tail(segment, &mut scanner, &mut tail)?;
                    let is_there = walk.entries.last.index >= copy.commit;
                    if !is_there {
                        return Err(self.damaged(segment, end));
                    }
                }
            }
        }
        let mut entries = walk.entries;
        let ends_there = self.ends_in_an_empty_segment(entries.end)
            || tail.replayed.end == entries.end
            || entries.last.index == 0;
        if let Some((segment, _)) = self.chain.last().filter(|_| !ends_there) {
            // The checkpoint starts within an entry that is not there.
            return Err(self.damaged(segment, tail.replayed.end));
        }
        entries.commit_hint = entries.commit_hint.max(copy.commit).min(entries.last.index);
        Ok((tail, entries))
    }
}
