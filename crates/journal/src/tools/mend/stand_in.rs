//! Empty segments in the place of missing ones.

use super::{CAPACITY_MAX, Mended, Mender, write_gap};
use crate::{
    Lsn, OpenMode,
    checkpoint::SegmentEntry,
    disk::write_all,
    format::{SEGMENT_HEADER_LEN, SegmentHeader},
    log::write_segment_header,
    names,
};
use std::io;

impl Mender<'_> {
    /// What the last checkpoint says about the segment that has `position` in it.
    pub(super) fn listed(&self, position: Lsn) -> Option<&SegmentEntry> {
        let mut listed = self.checkpoint.iter().flat_map(|table| &table.segments);
        listed.find(|entry| entry.start <= position && position < entry.start.plus(entry.capacity))
    }

    /// Whether there is a file for the segment that starts there, whatever is in it.
    fn has_file(&self, start: Lsn) -> bool {
        self.segments.iter().any(|(other, _)| *other == start)
    }

    /// Where a missing segment that should have `position` in it began. Where nothing says that, its first frame would start there.
    fn missing_start(&self, position: Lsn) -> Lsn {
        let listed = self.listed(position).filter(|entry| !self.has_file(entry.start));
        if let Some(entry) = listed {
            return entry.start;
        }
        let before = self.headers.iter().rev().find(|header| header.start < position);
        let before_end = before.map_or(Lsn(0), SegmentHeader::end);
        let with_header = Lsn(position.0.saturating_sub(SEGMENT_HEADER_LEN));
        before_end.max(with_header).min(position)
    }

    /// Puts segments with nothing in them where some are missing, of which one should have `position` in it.
    pub(super) fn stand_in(&self, position: Lsn) -> io::Result<Mended> {
        let id = self.id()?;
        let mut start = self.missing_start(position);
        if self.has_file(position) || self.has_file(start) {
            return Err(io::Error::other("there is a segment where one should be missing"));
        }
        let before = self.segments.iter().rev().map(|(other, _)| *other).find(|o| *o < start);
        let next = self.next(start);
        let mut previous_end = before.map_or(Ok(start), |before| self.frames_end(id, before))?;
        let durable = self.durable().unwrap_or_default();
        // Behind the last segment a stand-in needs room for a gap up to what was durable.
        let end = next.unwrap_or(durable.max(start).plus(2 * SEGMENT_HEADER_LEN));
        while start < end {
            let capacity = CAPACITY_MAX.min(end.0 - start.0);
            let header = SegmentHeader { id, start, capacity, previous_end };
            self.make_stand_in(&header, next, durable)?;
            previous_end = header.end();
            start = header.end();
        }
        Ok(Mended::less("put an empty segment in the place of a missing one: what it said is lost"))
    }

    /// Puts an empty segment in the place of one that should have `position` in it, but is not
    /// replayed.
    pub fn stand_in_for(&self, position: Lsn) -> io::Result<String> {
        let id = self.id()?;
        let (start, end) = match self.listed(position) {
            Some(entry) => (entry.start, entry.start.plus(entry.capacity)),
            None => {
                let next = self.next(position).ok_or_else(|| io::Error::other("it is beyond"))?;
                (self.missing_start(position), next)
            }
        };
        // As far as a segment can reach, around the position.
        let start = start.max(Lsn(position.0.saturating_sub(CAPACITY_MAX / 2) & !4095));
        let capacity = CAPACITY_MAX.min(end.0 - start.0);
        let header = SegmentHeader { id, start, capacity, previous_end: start };
        self.make_stand_in(&header, Some(start), Lsn(0))?;
        let name = names::segment(start);
        Ok(format!("{name}: is missing; put an empty one in its place, what it said is lost"))
    }

    /// Whether there is a segment that has `position` in it.
    pub fn has_segment_for(&self, position: Lsn) -> bool {
        self.headers.iter().any(|header| header.start <= position && position < header.end())
    }

    fn make_stand_in(
        &self,
        header: &SegmentHeader,
        next: Option<Lsn>,
        durable: Lsn,
    ) -> io::Result<()> {
        let gap_end = match next {
            None => durable.min(header.end()),
            Some(next) if next > header.end() => header.end(),
            Some(next) => self.previous_end(next).map_or(header.end(), |end| end.min(header.end())),
        };
        let path = self.dir.join(names::segment(header.start));
        let file = self.disk.open(&path, OpenMode::Create)?;
        write_all(&*file, &[0], header.capacity - 1)?;
        if gap_end > header.first_frame() {
            write_gap(&*file, header.id, header.start, header.first_frame()..gap_end)?;
        }
        write_segment_header(&*file, header)
    }
}
