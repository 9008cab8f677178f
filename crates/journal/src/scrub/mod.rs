//! Reading the whole journal while it is in use, to find what the disk has changed before it is needed.
//!
//! A pass reads what is synced (and committed, in a copy of a replicated log): every frame of every segment, the headers of
//! the segments, and both checkpoints. It reads from the files, a block at a time, holds no lock while it reads, and asks
//! before each block whether it may. What looks damaged, or can't be read, is read a second time, and counts only if nothing has
//! changed the segment meanwhile.

mod blocks;
mod frames;
mod segment;

pub(crate) use frames::PAGE_BYTES;

use crate::{
    Journal, Lsn, OpenMode,
    checkpoint::{CheckpointReader, FileError},
    core::Core,
    disk::read_up_to,
    format::{SEGMENT_HEADER_USED, SegmentHeader},
    names,
    segments::Segment,
};
use segment::Walk;
use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// The party that has a journal read.
pub trait Scrubbing {
    /// So many bytes are read next: waits until that is in order. `false` ends the pass.
    fn may_read(&mut self, bytes: u64) -> bool;

    /// Something is not what was written.
    fn found(&mut self, damaged: Damaged);
}

/// A part of a journal that is not what was written, or can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// What it is.
    pub part: Part,
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What the system said, if it refuses to read it.
    pub error: Option<String>,
}

/// A part of a journal that can be damaged by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The record at a position.
    Record(Lsn),
    /// The frame at a position: its header, the heads of its records, or what is behind them.
    Frame(Lsn),
    /// The header of the segment that starts at a position.
    Header(Lsn),
    /// The checkpoint of this number.
    Checkpoint(u64),
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damaged { part, path, offset, error } = self;
        match part {
            Part::Record(at) => write!(f, "the record at position {at}")?,
            Part::Frame(at) => write!(f, "the frame at position {at}")?,
            Part::Header(at) => write!(f, "the header of the segment at position {at}")?,
            Part::Checkpoint(number) => write!(f, "checkpoint {number}")?,
        }
        match error {
            Some(error) => write!(f, " can't be read: {error}")?,
            None => f.write_str(" is not what was written")?,
        }
        write!(f, " (offset {offset} of {})", path.display())
    }
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All was read.
    Complete,
    /// It was ended, or the journal was.
    Ended,
}

/// Why a part of a pass ends early.
enum Stop {
    /// The pass is over.
    Ended,
    /// What was being read is not part of the journal any more.
    Gone,
    /// The system refuses to open the file.
    Unopened(io::Error),
}

impl Journal {
    /// Reads all of the journal, and tells `by` what is damaged. Blocks for as long as `by` wants it to; everything else goes
    /// on meanwhile.
    pub fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        self.core.scrub(by)
    }

    /// Estimate of the bytes that [`Journal::scrub`] reads.
    pub fn scrub_bytes(&self) -> u64 {
        self.core.scrub_bytes()
    }
}

impl Core {
    pub(crate) fn scrub(&self, by: &mut dyn Scrubbing) -> Pass {
        match self.scrub_all(by) {
            Err(Stop::Ended) => Pass::Ended,
            _ => Pass::Complete,
        }
    }

    pub(crate) fn scrub_bytes(&self) -> u64 {
        let end = self.scrubbed_to();
        let of = |segment: &Segment| {
            let len = end.min(segment.end()).0 - segment.start.0;
            len.saturating_sub(segment.hole_bytes())
        };
        let log: u64 = self.segments.starting_before(end).iter().map(|one| of(one)).sum();
        log + 2 * self.latest.size_bytes.load(Relaxed)
    }

    /// The end of what does not change any more.
    fn scrubbed_to(&self) -> Lsn {
        self.durable().min(self.synced())
    }

    fn scrub_all(&self, by: &mut dyn Scrubbing) -> Result<(), Stop> {
        let mut from = Lsn(0);
        while let Some(segment) =
            self.segments.next_from(from).filter(|s| s.start < self.scrubbed_to())
        {
            from = segment.end();
            match Walk::open(self, &segment, by).and_then(Walk::read) {
                Ok(()) | Err(Stop::Gone) => {}
                Err(Stop::Ended) => return Err(Stop::Ended),
                Err(Stop::Unopened(error)) => self.tell_unopened(&segment, &error, by)?,
            }
        }
        let last = self.latest.number();
        for number in [last.saturating_sub(1), last] {
            if number > 0 {
                self.scrub_checkpoint(number, by)?;
            }
        }
        Ok(())
    }

    fn tell_unopened(
        &self,
        segment: &Arc<Segment>,
        error: &io::Error,
        by: &mut dyn Scrubbing,
    ) -> Result<(), Stop> {
        if self.is_over() {
            return Err(Stop::Ended);
        }
        if self.segments.has(segment) {
            let (part, path) = (Part::Header(segment.start), segment.path(&self.dir));
            by.found(Damaged { part, path, offset: 0, error: Some(error.to_string()) });
        }
        Ok(())
    }

    /// What the file of a segment begins with, if that is what was written.
    pub(crate) fn header_of(&self, segment: &Segment) -> Option<SegmentHeader> {
        let mut header = [0; SEGMENT_HEADER_USED];
        let file = segment.open(&*self.disk, &self.dir).ok()?;
        let found = read_up_to(&*file, &mut header, 0).ok()?;
        let header = SegmentHeader::decode(&header).ok().filter(|_| found == SEGMENT_HEADER_USED);
        header.filter(|header| header.id == self.id && header.start == segment.start)
    }

    fn scrub_checkpoint(&self, number: u64, by: &mut dyn Scrubbing) -> Result<(), Stop> {
        let path = self.dir.join(names::checkpoint(number));
        let mut ended = false;
        let mut read = || -> Result<(), FileError> {
            let file = self.disk.open(&path, OpenMode::Read)?;
            file.forget(0, file.size_bytes()?);
            let (mut reader, _) = CheckpointReader::open(file)?;
            let header = reader.header();
            if header.number != number || header.id != self.id {
                return Err(FileError::Bad(0));
            }
            while !ended && reader.check_block()? {
                ended = !by.may_read(reader.block_bytes());
            }
            Ok(())
        };
        let (offset, error) = match read() {
            Ok(()) if ended => return Err(Stop::Ended),
            Ok(()) => return Ok(()),
            Err(FileError::Bad(offset)) => (offset, None),
            Err(FileError::Version(_)) => (8, None),
            Err(FileError::Io(error)) => (0, Some(error.to_string())),
        };
        if self.is_over() {
            return Err(Stop::Ended);
        }
        // Removed by the next but one: the number is there before the file has gone.
        if self.latest.number() <= number + 1 {
            by.found(Damaged { part: Part::Checkpoint(number), path, offset, error });
        }
        Ok(())
    }

    /// Whether the files may be those of another journal by now.
    fn is_over(&self) -> bool {
        self.log.lock().closed || self.failed.get().is_some()
    }
}
