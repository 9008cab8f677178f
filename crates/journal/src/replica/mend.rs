//! Records and frames that this copy can't read, and other copies may have.
//!
//! All copies have the same bytes at the same positions, as far as they are committed. So what the disk has changed is asked
//! for elsewhere, and written again in its place. Only when no copy has it is it lost.

use super::{Replica, pages};
use crate::{
    Journal, Lsn, OpenMode, ReadCache, ReadError,
    core::Core,
    disk::{read_up_to, write_all},
    format::{
        self, FRAME_HEADER_LEN, FrameHeader, FrameKind, RECORD_HEAD_LEN, check_frame, frame_len,
        record_is_valid, u32_at,
    },
    replica::entry::make_own,
};
use std::{collections::BTreeSet, io};

/// Pieces that are known to be damaged at most; others are noted when these are whole again.
const DAMAGED_MAX: usize = 1024;
/// Bytes of a stretch of frames at most, if its first one is not longer.
const STRETCH_BYTES_MAX: usize = 1 << 20;
/// Bytes of the log that are read from a frame on that was written again: damage seldom comes alone, and what a reader needs next
/// can be brought before it finds it.
const READ_ON_BYTES: u64 = 64 << 20;
/// Bytes of entries that are read at once then.
const READ_BYTES: u64 = 1 << 20;

/// What copies give each other of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece {
    /// The record at a position.
    Record(Lsn),
    /// The frame at a position, without what is each copy's own in it.
    Frame(Lsn),
}

impl Piece {
    /// Where it is.
    pub fn position(self) -> Lsn {
        match self {
            Piece::Record(position) | Piece::Frame(position) => position,
        }
    }

    /// How many bytes [`Replica::stretch`] brings at least, as the first of them say; none if these are too few.
    pub fn len_of(self, brought: &[u8]) -> Option<usize> {
        let front = pages::bytes_in_front(self.position());
        let own = self.own_len(brought.get(front..)?)?;
        front.checked_add(own)
    }

    /// How many bytes it has itself.
    pub(super) fn own_len(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Piece::Record(_) => {
                let head = bytes.first_chunk::<RECORD_HEAD_LEN>()?;
                Some(RECORD_HEAD_LEN + u32_at(head, 0) as usize)
            }
            Piece::Frame(_) => {
                let head = bytes.first_chunk::<FRAME_HEADER_LEN>()?;
                Some(frame_len(u32_at(head, 16) as usize))
            }
        }
    }
}

/// What is known of pieces that can't be read.
#[derive(Default)]
pub struct Damage {
    /// Other copies are to be asked for these.
    wanted: BTreeSet<Piece>,
    /// Which of them was asked for last: those that no copy has now do not keep others waiting.
    asked: Option<Piece>,
    /// No copy has these.
    lost: BTreeSet<Piece>,
    /// How many pieces were written again.
    mended: u64,
    /// The last frame that can't be read here and that the copies that could have brought it have freed.
    pub(super) freed_to: Option<Lsn>,
    /// Where the entries begin that are needed behind the checkpoint that was read since the last one was made: it may be the one
    /// before.
    pub(super) needed_from: Option<Lsn>,
}

impl Damage {
    /// The next of those that are wanted.
    fn next(&mut self, most: usize) -> Vec<Piece> {
        let behind = |piece: &&Piece| self.asked.is_none_or(|asked| **piece > asked);
        let from = self.wanted.iter().filter(behind);
        let next: Vec<Piece> =
            from.chain(&self.wanted).take(most.min(self.wanted.len())).copied().collect();
        self.asked = next.last().copied();
        next
    }

    fn want(&mut self, piece: Piece) {
        if self.wanted.len() < DAMAGED_MAX {
            self.wanted.insert(piece);
        }
    }

    /// The same for what a reader has found. Returns whether another copy may have it.
    pub(super) fn want_unless_lost(&mut self, piece: Piece) -> bool {
        let may_be_had = !self.lost.contains(&piece);
        if may_be_had {
            self.want(piece);
        }
        may_be_had
    }
}

/// Why a piece was not written again.
#[derive(Debug, thiserror::Error)]
pub enum MendError {
    /// What was brought is not what was written at this position.
    #[error("it is not what was written at position {0}")]
    Bad(Lsn),
    /// Whether the piece is committed is not known here, so another one may take its place yet.
    #[error("position {0} is not committed")]
    Uncommitted(Lsn),
    /// The log has nothing at this position any more.
    #[error("position {0} is not in the log")]
    Gone(Lsn),
    /// The disk refuses it.
    #[error("it can't be written: {0}")]
    Write(#[from] io::Error),
}

impl Replica {
    /// Pieces that a reader could not read, and that can't be read now: `most` of them, in turn. Other copies may have them:
    /// see [`Replica::stretch`].
    pub fn damaged(&self, most: usize) -> Vec<Piece> {
        let next = self.shared().damage.lock().next(most);
        let (damaged, others): (Vec<Piece>, Vec<Piece>) = next.into_iter().partition(|piece| {
            let found = self.journal.core.whole_piece(*piece);
            matches!(found, Err(ReadError::Bad { .. } | ReadError::Io { .. }))
        });
        let mut damage = self.shared().damage.lock();
        damage.wanted.retain(|piece| !others.contains(piece));
        damaged
    }

    /// Whether other copies are to be asked for something.
    pub fn wants_pieces(&self) -> bool {
        !self.shared().damage.lock().wanted.is_empty()
    }

    /// How many pieces were written again so far.
    pub fn mended(&self) -> u64 {
        self.shared().damage.lock().mended
    }

    /// Has [`Replica::damaged`] name a piece that was found to be damaged.
    pub fn want(&self, piece: Piece) {
        self.shared().damage.lock().want(piece);
    }

    /// A piece of the log, for a copy whose disk has damaged it, with the whole pages that it lies in, as far as they are committed;
    /// `None` if it is damaged here as well, or has not come here yet. A frame comes with those that follow it, as far as they are
    /// whole: a disk that has lost a page has damaged all frames in it, and no reader of the other copy knows where they begin.
    ///
    /// # Errors
    /// [`MendError::Gone`] when it is not needed here any more, and not kept. Else when it can't be said now: what is there may not
    /// be committed, or the disk can't be read.
    pub fn stretch(&self, piece: Piece) -> Result<Option<Vec<u8>>, MendError> {
        let (core, start) = (&self.journal.core, piece.position());
        let Some(mut bytes) = core.committed_piece(piece)? else { return Ok(None) };
        if start > core.fixed_to() {
            return Err(MendError::Uncommitted(start));
        }
        while let Piece::Frame(_) = piece
            && let next = Piece::Frame(start.plus(bytes.len() as u64))
            && let Ok(Some(next)) = core.committed_piece(next)
            && bytes.len() + next.len() <= STRETCH_BYTES_MAX
        {
            bytes.extend_from_slice(&next);
        }
        Ok(Some(core.with_pages(start, &bytes)?))
    }

    /// Writes again what [`Replica::stretch`] of another copy has returned, and syncs it: the pages that can't be read, and of the
    /// frames that follow the first one those that are damaged. Returns which, and has [`Replica::damaged`] name the next one behind
    /// them that is damaged.
    ///
    /// # Errors
    /// Nothing has changed, unless the disk has failed meanwhile.
    pub fn mend(&self, piece: Piece, bytes: &[u8]) -> Result<Vec<Piece>, MendError> {
        let core = &self.journal.core;
        let written = core.mend(piece, bytes)?;
        let mut damage = self.shared().damage.lock();
        damage.wanted.retain(|wanted| !written.contains(wanted));
        damage.mended += written.len() as u64;
        drop(damage);
        if let Piece::Frame(position) = piece {
            core.read_on(position);
        }
        Ok(written)
    }

    /// No other copy has this piece: readers of a record are told that it is lost, if it is damaged here. What the system
    /// refuses to read is not: it may let itself be read again.
    pub fn give_up(&self, piece: Piece) {
        let found = self.journal.core.whole_piece(piece);
        let mut damage = self.shared().damage.lock();
        if !matches!(found, Err(ReadError::Io { .. })) {
            damage.wanted.remove(&piece);
        }
        if matches!(found, Err(ReadError::Bad { .. })) {
            damage.lost.insert(piece);
            if damage.lost.len() > DAMAGED_MAX {
                damage.lost.pop_first();
            }
        }
    }
}

impl Journal {
    /// Whether another copy of the log may have a record that can't be read here, which is noted then for
    /// [`Replica::damaged`].
    pub(crate) fn asks_others(&self, position: Lsn, error: &ReadError) -> bool {
        let Some(replica) = &self.core.replica else { return false };
        !matches!(error, ReadError::Gone(_))
            && replica.damage.lock().want_unless_lost(Piece::Record(position))
    }
}

impl Core {
    /// A piece as all copies have it, if it is committed; `None` if it is damaged or not there.
    fn committed_piece(&self, piece: Piece) -> Result<Option<Vec<u8>>, MendError> {
        let position = piece.position();
        if position >= self.end() {
            return Ok(None);
        }
        if position >= self.durable() {
            return Err(MendError::Uncommitted(position));
        }
        match self.whole_piece(piece) {
            Ok(bytes) if position.plus(bytes.len() as u64) <= self.durable() => Ok(Some(bytes)),
            Ok(_) => Err(MendError::Uncommitted(position)),
            Err(ReadError::Gone(_)) => Err(MendError::Gone(position)),
            Err(ReadError::Bad { .. }) if self.is_punched(position) => {
                Err(MendError::Gone(position))
            }
            Err(ReadError::Bad { .. }) => Ok(None),
            Err(ReadError::Io { error, .. }) => Err(error.into()),
        }
    }

    /// A piece as all copies have it.
    pub(super) fn whole_piece(&self, piece: Piece) -> Result<Vec<u8>, ReadError> {
        match piece {
            Piece::Record(position) => {
                let mut cache = ReadCache::default();
                let record = self.read(position, &mut cache)?;
                Ok(format::whole_record(record, position, self.id))
            }
            Piece::Frame(position) => self.whole_frame(position),
        }
    }

    /// A frame as all copies have it.
    pub(super) fn whole_frame(&self, position: Lsn) -> Result<Vec<u8>, ReadError> {
        let segment = self.segments.find(position).ok_or(ReadError::Gone(position))?;
        let (path, offset) = (segment.path(&self.dir), position.0 - segment.start.0);
        let failed = |error| ReadError::Io { path: path.clone(), error };
        let bad = || ReadError::Bad { path: path.clone(), offset };
        let file = segment.open(&*self.disk, &self.dir).map_err(failed)?;
        let mut frame = vec![0; FRAME_HEADER_LEN];
        let found = read_up_to(&*file, &mut frame, offset).map_err(failed)?;
        let header = FrameHeader::decode(&frame[..found], position).ok_or_else(bad)?;
        let left = self.written().min(segment.end()).0.saturating_sub(position.0);
        if header.frame_len() > left {
            return Err(bad());
        }
        frame.resize(header.frame_len() as usize, 0);
        read_up_to(&*file, &mut frame, offset).map_err(failed)?;
        if !is_frame_at(position, &frame, self.id) {
            return Err(bad());
        }
        if header.kind == FrameKind::Entry {
            make_own(&mut frame, Lsn(0), 0, self.id);
        }
        Ok(frame)
    }

    /// Returns what was written: the piece, and those behind it that were damaged.
    fn mend(&self, piece: Piece, brought: &[u8]) -> Result<Vec<Piece>, MendError> {
        let position = piece.position();
        let pieces = split(piece, brought, self.id).ok_or(MendError::Bad(position))?;
        // While this is held, no segment becomes a spare file and then another segment.
        let _not_freed = self.upkeeping.lock();
        let segment = self.segments.find(position).ok_or(MendError::Gone(position))?;
        let (mut damaged, mut whole_to) = (Vec::new(), position);
        for (one, bytes) in pieces {
            let end = one.position().plus(bytes.len() as u64);
            let offset = one.position().0 - segment.start.0;
            let is_first = one == piece;
            match () {
                () if is_first && end > self.durable() => {
                    return Err(MendError::Uncommitted(position));
                }
                () if is_first && end > segment.end() => return Err(MendError::Bad(position)),
                () if is_first => {}
                // What was given back to the file system no reader needs.
                () if end > self.durable() || end > segment.end() => break,
                () if segment.has_hole(offset..offset + bytes.len() as u64) => break,
                () => {}
            }
            whole_to = end;
            if is_first || self.whole_piece(one).is_err() {
                damaged.push((one, bytes));
            }
        }
        let file = self.disk.open(&segment.path(&self.dir), OpenMode::Write)?;
        self.write_unreadable_pages(&*file, &segment, position..whole_to, brought)?;
        for (one, bytes) in &damaged {
            write_all(&*file, bytes, one.position().0 - segment.start.0)?;
        }
        file.sync_data()?;
        Ok(damaged.into_iter().map(|(one, _)| one).collect())
    }

    /// Reads entries from a position on, so that other copies are asked for the next one that is damaged.
    fn read_on(&self, position: Lsn) {
        let Some(replica) = &self.replica else { return };
        let (mark, base, last) = {
            let entries = replica.entries.lock();
            (entries.mark_before(position), entries.base.index, entries.commit)
        };
        let Some(mark) = mark else { return };
        let mut next = mark.index.max(base + 1);
        let to = position.plus(READ_ON_BYTES);
        while next <= last {
            let Ok(read) = self.read_entries(next, last + 1, READ_BYTES) else { return };
            if read.last().is_none_or(|entry| entry.end() >= to) {
                return;
            }
            next += read.len() as u64;
        }
    }
}

/// The pieces that were brought together, one behind the other, as far as they are what was written; none if the first one is not.
fn split(first: Piece, brought: &[u8], id: u64) -> Option<Vec<(Piece, &[u8])>> {
    let bytes = brought.get(pages::bytes_in_front(first.position())..)?;
    let own = |piece: Piece, rest: &'_ [u8]| piece.own_len(rest).filter(|len| *len <= rest.len());
    let start = match first {
        Piece::Record(position) => {
            let record = &bytes[..own(first, bytes)?];
            return is_record_at(position, record, id).then(|| vec![(first, record)]);
        }
        Piece::Frame(position) => position,
    };
    let (mut frames, mut done) = (Vec::new(), 0);
    loop {
        let (next, rest) = (Piece::Frame(start.plus(done as u64)), &bytes[done..]);
        let frame = own(next, rest).map(|len| &rest[..len]);
        let Some(frame) = frame.filter(|frame| is_frame_at(next.position(), frame, id)) else {
            break;
        };
        frames.push((next, frame));
        done += frame.len();
    }
    (!frames.is_empty()).then_some(frames)
}

/// Whether these are a record that was written at a position, with its head.
fn is_record_at(position: Lsn, record: &[u8], id: u64) -> bool {
    let Some((head, rest)) = record.split_at_checked(RECORD_HEAD_LEN) else { return false };
    u32_at(head, 0) as usize == rest.len() && record_is_valid(rest, u32_at(head, 4), position, id)
}

/// Whether these are a frame that was written at a position of a replicated log, with all that belongs to it.
fn is_frame_at(position: Lsn, frame: &[u8], id: u64) -> bool {
    let Some(header) = FrameHeader::decode(frame, position) else { return false };
    let end = FRAME_HEADER_LEN + header.payload_len as usize;
    matches!(header.kind, FrameKind::Batch | FrameKind::Entry)
        && header.frame_len() == frame.len() as u64
        && frame[end..].iter().all(|byte| *byte == 0)
        && check_frame(&header, frame, id)
}
