//! Reading the frames of one segment.

use super::{
    Damaged, Part, Scrubbing, Stop,
    blocks::{BLOCK_BYTES, Blocks},
    frames::{Found, FoundRecord, PAGE_BYTES, reaches_in_from_afar},
};
use crate::{
    core::Core,
    format::{
        FRAME_ALIGN, FRAME_HEADER_LEN, RECORD_HEAD_LEN, SEGMENT_HEADER_LEN, SEGMENT_HEADER_USED,
        SegmentHeader,
    },
    segments::Segment,
};
use std::{ops::Range, sync::Arc};

/// Pages that the system refuses to read while one frame's start is searched for: it may take seconds for each.
const REFUSALS_MAX: usize = 64;

/// A reader of one segment. Offsets are those in its file.
pub struct Walk<'a> {
    pub core: &'a Core,
    pub segment: Arc<Segment>,
    pub blocks: Blocks<'a>,
    /// No frame reaches beyond.
    pub limit: u64,
    /// Frames reach up to the limit. Otherwise their end is not known, since the header of the next segment says it.
    reaches_limit: bool,
    /// Ranges that were given back to the file system.
    holes: Vec<Range<u64>>,
}

impl<'a> Walk<'a> {
    /// Opens a segment, and finds out where its frames end.
    pub fn open(
        core: &'a Core,
        segment: &Arc<Segment>,
        by: &'a mut dyn Scrubbing,
    ) -> Result<Self, Stop> {
        let file = segment.open(&*core.disk, &core.dir).map_err(Stop::Unopened)?;
        let (to, end) = (core.scrubbed_to(), segment.end());
        let mut frames_end = Some(to);
        if to > end {
            let next = core.segments.find(end);
            frames_end = next.and_then(|next| core.header_of(&next)).map(|next| next.previous_end);
        }
        let limit = frames_end.unwrap_or(end).min(end).0.saturating_sub(segment.start.0);
        let mut walk = Walk {
            core,
            segment: Arc::clone(segment),
            blocks: Blocks::new(file, limit.max(SEGMENT_HEADER_LEN), by),
            limit,
            reaches_limit: frames_end.is_some(),
            holes: Vec::new(),
        };
        walk.holes = walk.holes_now();
        Ok(walk)
    }

    /// Reads the header and all frames, and tells what is damaged.
    pub fn read(mut self) -> Result<(), Stop> {
        while !self.has_sound_header()? {
            if self.is_still_so(&mut |walk| Ok(!walk.has_sound_header()?))? {
                self.tell(Part::Header(self.segment.start), 0..SEGMENT_HEADER_USED as u64);
                break;
            }
        }
        let mut at = SEGMENT_HEADER_LEN;
        while at + FRAME_HEADER_LEN as u64 <= self.limit {
            at = match self.hole_in(at, at + FRAME_HEADER_LEN as u64) {
                Some(hole) => self.behind_hole(hole.end)?,
                None => self.at_frame(at)?,
            };
        }
        Ok(())
    }

    fn has_sound_header(&mut self) -> Result<bool, Stop> {
        let head = self.blocks.array::<SEGMENT_HEADER_USED>(0)?;
        let header = head.and_then(|head| SegmentHeader::decode(&head).ok());
        let Segment { start, capacity, .. } = *self.segment;
        Ok(header.is_some_and(|header| {
            (header.id, header.start, header.capacity) == (self.core.id, start, capacity)
        }))
    }

    /// Reads the frame at an offset. Returns where to go on.
    fn at_frame(&mut self, at: u64) -> Result<u64, Stop> {
        match self.frame(at)? {
            Found::Sound(end) => return Ok(end),
            Found::Holed(end, bad) if bad.is_empty() => return self.behind_hole(end),
            _ => {}
        }
        if !self.is_still_so(&mut |walk| Ok(!matches!(walk.frame(at)?, Found::Sound(_))))? {
            return Ok(at);
        }
        match self.frame(at)? {
            Found::Sound(end) => Ok(end),
            Found::BadRecords(end, bad) => {
                self.tell_records(&bad, end);
                Ok(end)
            }
            Found::Holed(end, bad) => {
                self.tell_records(&bad, end);
                self.behind_hole(end)
            }
            Found::Bad(end) => {
                let header_end = at + FRAME_HEADER_LEN as u64;
                let refused = self.blocks.refusal(at..end.unwrap_or(header_end));
                let is_end = |walk: &mut Self, end| {
                    Ok(walk.limit == end
                        || walk.hole_in(end, end + FRAME_HEADER_LEN as u64).is_some()
                        || walk.header(end)?.is_some()
                        || walk.blocks.refusal(end..end + 1).is_some())
                };
                let next = match end {
                    Some(end) if is_end(self, end)? => Some(end),
                    _ => self.next_header(at + FRAME_ALIGN as u64)?,
                };
                // Where it is not known where the frames end, this may be the end, unless something names its own position.
                let is_one = next.is_some() || end.is_some() || self.reaches_limit;
                let is_headless = end.is_none() && refused.is_some();
                if is_one || is_headless {
                    self.tell_refused(Part::Frame(self.position(at)), at, refused);
                }
                if is_headless {
                    // Written again, it says where it ends, and what follows in the same page can be read.
                    self.blocks.forget();
                    if let Some((header, _)) = self.header(at)? {
                        return Ok(at + header.frame_len());
                    }
                }
                Ok(next.unwrap_or(self.limit))
            }
        }
    }

    /// Goes on behind a hole, where the frames that begin in it have records that were live when it was made. The first of
    /// these begins within a page. Returns where to go on.
    fn behind_hole(&mut self, hole_end: u64) -> Result<u64, Stop> {
        loop {
            if let Some(end) = self.go_on_behind(hole_end)? {
                return Ok(end);
            }
            if self.is_still_so(&mut |walk| Ok(walk.go_on_behind(hole_end)?.is_none()))? {
                let page = hole_end..hole_end + PAGE_BYTES;
                self.tell(Part::Frame(self.position(hole_end)), page);
                return Ok(self.next_header(hole_end)?.unwrap_or(self.limit));
            }
        }
    }

    /// Where to go on if something sound begins within a page, or nothing has to.
    fn go_on_behind(&mut self, hole_end: u64) -> Result<Option<u64>, Stop> {
        if hole_end >= self.limit {
            return Ok(Some(self.limit));
        }
        let to = (hole_end + PAGE_BYTES).min(self.limit);
        let (mut end, mut read_max) = self.stretch(hole_end)?;
        for at in hole_end..to {
            if let Some(hole) = self.hole_in(at, at + 1) {
                return Ok(Some(hole.start));
            }
            if at == end {
                if matches!(self.frame(at)?, Found::Sound(_) | Found::BadRecords(..)) {
                    return Ok(Some(at));
                }
                (end, read_max) = self.stretch(at + FRAME_ALIGN as u64)?;
            }
            if let FoundRecord::Record(end, true) = self.record(at, end)? {
                return self.records_from(end).map(Some);
            }
            if self.blocks.read_bytes > read_max {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Where the records end that follow without a frame's header, and how many bytes the search for the first of them may
    /// bring the reader to. What stands in front of that record is the rest of a message, whose bytes can pass for the lengths
    /// of many records that reach far. So the search may read no more than what is there once again: else a pass takes days.
    fn stretch(&mut self, from: u64) -> Result<(u64, u64), Stop> {
        let end = self.next_header(from)?.unwrap_or(self.limit);
        let most = end.saturating_sub(from) + 2 * BLOCK_BYTES as u64;
        Ok((end, self.blocks.read_bytes + most))
    }

    /// Reads records of a frame whose header is gone, up to the next frame or hole.
    fn records_from(&mut self, mut at: u64) -> Result<u64, Stop> {
        loop {
            let next = at.next_multiple_of(FRAME_ALIGN as u64);
            let left = self.limit.saturating_sub(next);
            if left < FRAME_HEADER_LEN as u64 {
                return Ok(self.limit);
            }
            if let Some(hole) = self.hole_in(at, next + FRAME_HEADER_LEN as u64) {
                return Ok(hole.start);
            }
            if self.header(next)?.is_some() {
                return Ok(next);
            }
            match self.record(at, self.limit)? {
                FoundRecord::Record(end, true) => at = end,
                FoundRecord::Holed(hole) if !reaches_in_from_afar(at, &hole) => {
                    return Ok(hole.start);
                }
                FoundRecord::KnownLost => {
                    let from = at + RECORD_HEAD_LEN as u64;
                    return Ok(self.next_header(from)?.unwrap_or(self.limit));
                }
                _ => {
                    let is_bad = &mut |walk: &mut Self| {
                        let next_is_frame = walk.header(next)?.is_some();
                        let record = walk.record(at, walk.limit)?;
                        Ok(!next_is_frame && !matches!(record, FoundRecord::Record(_, true)))
                    };
                    if self.is_still_so(is_bad)? {
                        self.tell(Part::Record(self.position(at)), at..self.limit);
                        let from = at + RECORD_HEAD_LEN as u64;
                        return Ok(self.next_header(from)?.unwrap_or(self.limit));
                    }
                }
            }
        }
    }

    /// The next offset from `from` on that looks like the start of a frame, or a hole's. Where the system refuses too much,
    /// the rest of the segment is left to the next pass.
    fn next_header(&mut self, from: u64) -> Result<Option<u64>, Stop> {
        let mut at = from.next_multiple_of(FRAME_ALIGN as u64);
        let refusals_max = self.blocks.refused.len() + REFUSALS_MAX;
        while at + FRAME_HEADER_LEN as u64 <= self.limit && self.blocks.refused.len() < refusals_max
        {
            if let Some(hole) = self.hole_in(at, at + FRAME_HEADER_LEN as u64) {
                return Ok(Some(hole.start));
            }
            if self.header(at)?.is_some() {
                return Ok(Some(at));
            }
            at += FRAME_ALIGN as u64;
        }
        Ok(None)
    }

    /// Whether what was found is so when the disk is asked once more, and the segment is unchanged meanwhile.
    fn is_still_so(
        &mut self,
        found: &mut dyn FnMut(&mut Self) -> Result<bool, Stop>,
    ) -> Result<bool, Stop> {
        // What is being written again, or given back, is done then.
        drop(self.core.upkeeping.lock());
        self.blocks.forget();
        if self.changed()? {
            return Ok(false);
        }
        let is_so = found(self)?;
        drop(self.core.upkeeping.lock());
        Ok(!self.changed()? && is_so)
    }

    /// Whether there are other holes than there were, which are taken note of.
    fn changed(&mut self) -> Result<bool, Stop> {
        if !self.core.segments.has(&self.segment) {
            return Err(Stop::Gone);
        }
        if self.core.is_over() {
            return Err(Stop::Ended);
        }
        let now = self.holes_now();
        let changed = now != self.holes;
        self.holes = now;
        Ok(changed)
    }

    fn holes_now(&self) -> Vec<Range<u64>> {
        let holes = self.segment.holes();
        holes.into_iter().map(|hole| hole.start.into()..hole.end.into()).collect()
    }

    /// The first hole that overlaps this range.
    pub fn hole_in(&self, from: u64, to: u64) -> Option<Range<u64>> {
        let first = self.holes.partition_point(|hole| hole.end <= from);
        self.holes.get(first).filter(|hole| hole.start < to).cloned()
    }

    /// Tells of records of a frame that ends at `end`.
    fn tell_records(&mut self, bad: &[u64], end: u64) {
        for (at, next) in bad.iter().zip(bad.iter().skip(1).chain([&end])) {
            self.tell(Part::Record(self.position(*at)), *at..*next);
        }
    }

    /// Tells of a part that lies in this range.
    fn tell(&mut self, part: Part, range: Range<u64>) {
        let refused = self.blocks.refusal(range.clone());
        self.tell_refused(part, range.start, refused);
    }

    fn tell_refused(&mut self, part: Part, at: u64, refused: Option<(u64, String)>) {
        let (offset, error) = refused.map_or((at, None), |(at, error)| (at, Some(error)));
        let path = self.segment.path(&self.core.dir);
        self.blocks.by.found(Damaged { part, path, offset, error });
    }
}
