//! Whether a frame is what was written, without having all of it in memory.

use super::{Stop, segment::Walk};
use crate::{
    Lsn,
    format::{
        FRAME_HEADER_LEN, FrameHeader, FrameKind, RECORD_HEAD_LEN, lost_record, mask, start_sum,
        u32_at,
    },
};
use std::ops::Range;

/// Holes begin and end at multiples of this, and so do segments. The system refuses to read so much at once at least.
pub const PAGE_BYTES: u64 = 4096;

/// What is where a frame should be.
pub enum Found {
    /// A frame, all of whose sums are right, which ends at this offset.
    Sound(u64),
    /// A frame that ends at this offset, with records at these offsets that are not what was written.
    BadRecords(u64, Vec<u64>),
    /// A frame that was given back to the file system in part: records at these offsets are not what was written.
    /// The hole ends at the offset.
    Holed(u64, Vec<u64>),
    /// No frame, or one whose header or heads are not what was written. It ends at this offset, if its header says so.
    Bad(Option<u64>),
}

/// What is where a record should be.
pub enum FoundRecord {
    /// A record that ends at this offset, and whether it is what was written.
    Record(u64, bool),
    /// A repair has found the record that was here to be lost.
    KnownLost,
    /// Some of it was given back to the file system: this hole.
    Holed(Range<u64>),
    /// Nothing that could be one.
    Nothing,
}

impl Walk<'_> {
    /// The header at an offset, if there is one of a frame that ends before the limit.
    pub fn header(
        &mut self,
        at: u64,
    ) -> Result<Option<(FrameHeader, [u8; FRAME_HEADER_LEN])>, Stop> {
        let Some(head) = self.blocks.array::<FRAME_HEADER_LEN>(at)? else { return Ok(None) };
        let header = FrameHeader::decode(&head, self.position(at));
        let left = self.limit.saturating_sub(at);
        Ok(header.filter(|header| header.frame_len() <= left).map(|header| (header, head)))
    }

    /// What is at an offset where a frame should be.
    pub fn frame(&mut self, at: u64) -> Result<Found, Stop> {
        let Some((header, head)) = self.header(at)? else { return Ok(Found::Bad(None)) };
        let frame_end = at + header.frame_len();
        let payload = at + FRAME_HEADER_LEN as u64;
        let payload_end = payload + u64::from(header.payload_len);
        let sum = start_sum(self.core.id, &head);
        match header.kind {
            FrameKind::Gap => Ok(match sum == header.sum {
                true => Found::Sound(frame_end),
                false => Found::Bad(Some(frame_end)),
            }),
            FrameKind::Entry => {
                if let Some(hole) = self.hole_in(at, frame_end) {
                    return Ok(Found::Holed(hole.end, Vec::new()));
                }
                let sum = self.blocks.sum(sum, payload, payload_end)?;
                let is_sound =
                    sum == Some(header.sum) && self.blocks.are_zeros(payload_end, frame_end)?;
                Ok(if is_sound { Found::Sound(frame_end) } else { Found::Bad(Some(frame_end)) })
            }
            FrameKind::Batch | FrameKind::Close => {
                self.records(sum, &header, payload..payload_end, frame_end)
            }
        }
    }

    fn records(
        &mut self,
        mut sum: u32,
        header: &FrameHeader,
        payload: Range<u64>,
        frame_end: u64,
    ) -> Result<Found, Stop> {
        let (mut at, mut count, mut bad) = (payload.start, 0, Vec::new());
        while at < payload.end {
            let head = self.blocks.array::<RECORD_HEAD_LEN>(at)?;
            match self.record(at, payload.end)? {
                FoundRecord::Record(end, is_sound) => {
                    sum = crc32c::crc32c_append(sum, head.as_ref().map_or(&[][..], |head| head));
                    if !is_sound {
                        bad.push(at);
                    }
                    (at, count) = (end, count + 1);
                }
                FoundRecord::KnownLost => return Ok(Found::Sound(frame_end)),
                FoundRecord::Holed(hole) => {
                    if reaches_in_from_afar(at, &hole) {
                        bad.push(at);
                    }
                    return Ok(Found::Holed(hole.end, bad));
                }
                FoundRecord::Nothing => match self.hole_in(at, frame_end) {
                    Some(hole) => {
                        bad.push(at);
                        return Ok(Found::Holed(hole.end, bad));
                    }
                    None => return Ok(Found::Bad(Some(frame_end))),
                },
            }
        }
        if let Some(hole) = self.hole_in(payload.end, frame_end) {
            return Ok(Found::Holed(hole.end, bad));
        }
        let is_whole = sum == header.sum
            && count == header.records
            && self.blocks.are_zeros(payload.end, frame_end)?;
        Ok(match (is_whole, bad.is_empty()) {
            (true, true) => Found::Sound(frame_end),
            (true, false) => Found::BadRecords(frame_end, bad),
            (false, _) => Found::Bad(Some(frame_end)),
        })
    }

    /// What is at an offset where a record should be that ends at `end` or before.
    pub fn record(&mut self, at: u64, end: u64) -> Result<FoundRecord, Stop> {
        let body = at + RECORD_HEAD_LEN as u64;
        if let Some(hole) = self.hole_in(at, body) {
            return Ok(FoundRecord::Holed(hole));
        }
        if body > end {
            return Ok(FoundRecord::Nothing);
        }
        let Some(head) = self.blocks.array::<RECORD_HEAD_LEN>(at)? else {
            return Ok(FoundRecord::Nothing);
        };
        let (id, position) = (self.core.id, self.position(at));
        if head == lost_record(position, id) {
            return Ok(FoundRecord::KnownLost);
        }
        let len = u32_at(&head, 0);
        let record_end = body + u64::from(len);
        if record_end > end {
            return Ok(FoundRecord::Nothing);
        }
        if let Some(hole) = self.hole_in(body, record_end) {
            return Ok(FoundRecord::Holed(hole));
        }
        let sum = self.blocks.sum(crc32c::crc32c(&len.to_le_bytes()), body, record_end)?;
        let is_sound = sum.is_some_and(|sum| sum ^ mask(position, id) == u32_at(&head, 4));
        Ok(FoundRecord::Record(record_end, is_sound))
    }

    /// Where in the log an offset is.
    pub fn position(&self, at: u64) -> Lsn {
        self.segment.start.plus(at)
    }
}

/// Whether what seems to be a record can't be one: a hole begins less than a page behind a record that was live, and what
/// reaches into the hole begins behind that.
pub fn reaches_in_from_afar(at: u64, hole: &Range<u64>) -> bool {
    hole.start.saturating_sub(at) >= PAGE_BYTES
}
