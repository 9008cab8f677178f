//! Pieces that are too long to be brought at once: of each part no more is read than the part.

use super::{MendError, Piece, Replica, pages::bytes_in_front};
use crate::{
    core::Core,
    disk::read_up_to,
    format::{FRAME_HEADER_LEN, FrameHeader, FrameKind},
    scrub::PAGE_BYTES,
};

impl Replica {
    /// As [`Replica::stretch`], from the byte `from` on, `max_bytes` at most. Whether a piece that is longer than that is whole is not
    /// known here: [`Replica::mend`] checks it when the other copy has all parts.
    ///
    /// # Errors
    /// Those of [`Replica::stretch`].
    pub fn part(
        &self,
        piece: Piece,
        from: usize,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, MendError> {
        if let Some(part) = self.journal.core.part_of_long(piece, from, max_bytes)? {
            return Ok(Some(part));
        }
        Ok(self.stretch(piece)?.map(|bytes| {
            let rest = bytes.get(from..).unwrap_or_default();
            rest[..rest.len().min(max_bytes)].to_vec()
        }))
    }
}

impl Core {
    /// None if the piece is not longer, or is not whole by what its head says.
    fn part_of_long(
        &self,
        piece: Piece,
        from: usize,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, MendError> {
        let (position, fixed_to) = (piece.position(), self.fixed_to());
        let segment = self.segments.find(position).filter(|_| position < fixed_to);
        let Some(segment) = segment else { return Ok(None) };
        let (file, offset) = (segment.open(&*self.disk, &self.dir)?, position.0 - segment.start.0);
        let mut head = [0; FRAME_HEADER_LEN];
        let found = read_up_to(&*file, &mut head, offset)?;
        let header = FrameHeader::decode(&head[..found], position);
        // What closes an entry has something of each copy's own, and is short.
        let is_there = match piece {
            Piece::Record(_) => true,
            Piece::Frame(_) => header.is_some_and(|header| header.kind == FrameKind::Batch),
        };
        let len = piece.own_len(&head[..found]).filter(|_| is_there).unwrap_or(0);
        let (front, end) = (bytes_in_front(position), position.plus(len as u64));
        if front + len <= max_bytes || end > segment.end() {
            return Ok(None);
        }
        if end > fixed_to {
            return Err(MendError::Uncommitted(position));
        }
        if segment.has_hole(offset..offset + len as u64) {
            return Err(MendError::Gone(position));
        }
        let first = offset - front as u64;
        let page_end = (first + (front + len) as u64).next_multiple_of(PAGE_BYTES);
        let is_fixed = segment.start.plus(page_end) <= fixed_to;
        let total = if is_fixed { (page_end - first) as usize } else { front + len };
        let mut part = vec![0; total.saturating_sub(from).min(max_bytes)];
        let found = read_up_to(&*file, &mut part, first + from as u64)?;
        Ok((found == part.len()).then_some(part))
    }
}
