//! Mending one damaged place.

mod stand_in;

use crate::{
    Damage, Disk, DiskFile, Lsn, OpenMode,
    checkpoint::{CheckpointReader, CheckpointWriter, Header, Table},
    disk::{aside, read_up_to, write_all},
    format::{
        FRAME_ALIGN, FRAME_HEADER_LEN, FrameHeader, FrameKind, SEGMENT_HEADER_LEN, SegmentHeader,
        lost_record, start_sum,
    },
    log::write_segment_header,
    names::{self, Named},
    recovery::{has_followed, read_segment_header, scan::Scanner, vote},
    tools::survey::survey,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A segment whose size nothing says is not larger than this.
const CAPACITY_MAX: u64 = 1 << 30;
/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// What is known about a journal, whatever state it is in.
pub struct Mender<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// The journal's number, if any file still says it.
    id: Option<u64>,
    /// Starts and sizes of all segment files, in order.
    segments: Vec<(Lsn, u64)>,
    /// The headers of those that have one.
    headers: Vec<SegmentHeader>,
    /// What the last sound checkpoint says about the log.
    checkpoint: Option<Table>,
}

/// What was done about a damaged place.
pub struct Mended {
    /// For the user.
    pub text: String,
    /// Something that was there is not any more.
    pub lost: bool,
}

impl Mended {
    fn whole(text: impl Into<String>) -> Self {
        Mended { text: text.into(), lost: false }
    }

    fn less(text: impl Into<String>) -> Self {
        Mended { text: text.into(), lost: true }
    }
}

impl<'a> Mender<'a> {
    /// Looks at the folder.
    pub fn new(disk: &'a dyn Disk, dir: &'a Path) -> io::Result<Self> {
        let (mut segments, mut headers, mut checkpoints) = (Vec::new(), Vec::new(), Vec::new());
        let mut files = disk.list(dir)?;
        files.sort_by(|one, other| one.name.cmp(&other.name));
        for file in files {
            let path = dir.join(&file.name);
            match names::parse(&file.name) {
                Some(Named::Segment(start)) => {
                    segments.push((start, file.size_bytes));
                    headers.extend(read_segment_header(disk, &path, start, file.size_bytes));
                }
                Some(Named::Checkpoint(_)) => {
                    let file = disk.open(&path, OpenMode::Read)?;
                    if let Ok((reader, table)) = CheckpointReader::open(file) {
                        let id = reader.header().id;
                        if reader.check().is_ok() {
                            checkpoints.push((id, table));
                        }
                    }
                }
                _ => {}
            }
        }
        let ids = headers.iter().map(|header| header.id);
        let ids = ids.chain(checkpoints.iter().map(|(id, _)| *id));
        let id = vote(checkpoints.last().map(|(id, _)| *id), ids);
        checkpoints.retain(|(of, _)| Some(*of) == id);
        headers.retain(|header| Some(header.id) == id);
        let checkpoint = checkpoints.pop().map(|(_, table)| table);
        Ok(Mender { disk, dir, id, segments, headers, checkpoint })
    }

    /// Mends what is wrong at `offset` of the file `path`, and says how.
    pub fn mend(&self, path: &Path, offset: u64, damage: Damage) -> io::Result<Mended> {
        let done = match (damage, self.segment_start(path)) {
            (Damage::Checkpoint, _) => self.set_aside(path, "it is not what was written"),
            (Damage::SegmentForeign, _) => self.set_aside(path, "it is of another journal"),
            (Damage::CheckpointMissing, _) => self.empty_checkpoints(),
            (Damage::SegmentShort(size_bytes), _) => self.lengthen(path, size_bytes),
            (Damage::SegmentHeader, Some(start)) => self.write_header(path, start),
            (Damage::Frame, Some(start)) => self.take_out(path, start, start.plus(offset)),
            (Damage::SegmentMissing(start), _) => self.stand_in(start),
            (Damage::SegmentHeader | Damage::Frame, None) => {
                Err(io::Error::other("the damaged file is not a segment"))
            }
        }?;
        self.disk.sync_dir(self.dir)?;
        Ok(done)
    }

    /// What the last checkpoint saw of the log.
    fn durable(&self) -> Option<Lsn> {
        self.checkpoint.as_ref().map(|table| table.durable)
    }

    fn segment_start(&self, path: &Path) -> Option<Lsn> {
        match names::parse(path.file_name()?.to_str()?)? {
            Named::Segment(start) => Some(start),
            _ => None,
        }
    }

    /// The first segment behind `start`.
    fn next(&self, start: Lsn) -> Option<Lsn> {
        self.segments.iter().map(|(next, _)| *next).find(|next| *next > start)
    }

    fn id(&self) -> io::Result<u64> {
        self.id.ok_or_else(|| io::Error::other("no file says which journal this is"))
    }

    fn set_aside(&self, path: &Path, why: &str) -> io::Result<Mended> {
        self.disk.rename(path, &aside(self.disk, path)?)?;
        Ok(Mended::whole(format!("set aside, as {why}")))
    }

    fn lengthen(&self, path: &Path, size_bytes: u64) -> io::Result<Mended> {
        let file = self.disk.open(path, OpenMode::Write)?;
        let was = file.size_bytes()?;
        write_all(&*file, &[0], size_bytes - 1)?;
        file.sync_data()?;
        let text = format!("filled up with zeros from {was} to {size_bytes} bytes");
        let start = self.segment_start(path).filter(|start| self.next(*start).is_none());
        let (Some(start), Some(id)) = (start, self.id) else { return Ok(Mended::whole(text)) };
        // Of the newest one only a clean end says that nothing was behind.
        let from = start.plus(SEGMENT_HEADER_LEN);
        let found = survey(&mut Scanner::new(file, id, start, from, start.plus(size_bytes)))?;
        if found.closed {
            return Ok(Mended::whole(text));
        }
        Ok(Mended::less(format!("{text}: what was there, if anything was, is lost")))
    }

    /// Writes the header of a segment anew, from what its name and its neighbours say.
    fn write_header(&self, path: &Path, start: Lsn) -> io::Result<Mended> {
        let Some(id) = self.id.filter(|id| self.is_ours(*id, start)) else {
            return self.set_aside(path, "nothing says that it is part of the log");
        };
        let index = self.segments.partition_point(|(other, _)| *other < start);
        let size_bytes = self.segments.get(index).map_or(0, |(_, size_bytes)| *size_bytes);
        // The file may have been cut short as well, which is seen next.
        let listed = self.listed(start).filter(|entry| entry.start == start);
        let capacity = match (listed, self.next(start)) {
            (Some(entry), _) => entry.capacity,
            // It reaches to the next one.
            (None, Some(next)) => (next.0 - start.0).min(size_bytes.max(CAPACITY_MAX)),
            (None, None) => size_bytes,
        };
        if capacity <= SEGMENT_HEADER_LEN {
            return self.set_aside(path, "it has nothing but a damaged header");
        }
        let previous = index.checked_sub(1).map(|index| self.segments[index].0);
        let previous_end = previous.map_or(Ok(start), |previous| self.frames_end(id, previous))?;
        let header = SegmentHeader { id, start, capacity, previous_end };
        write_segment_header(&*self.disk.open(path, OpenMode::Write)?, &header)?;
        Ok(Mended::whole("wrote the header anew"))
    }

    /// Whether anything but its name says that the file which should start at `start` is a segment:
    /// a checkpoint, the segment before, or frames.
    fn is_ours(&self, id: u64, start: Lsn) -> bool {
        if self.headers.iter().any(|other| other.start < start && start < other.end()) {
            return false;
        }
        let listed = self.checkpoint.iter().flat_map(|table| &table.segments);
        let mut before = self.headers.iter().filter(|other| other.end() == start);
        listed.into_iter().any(|entry| entry.start == start)
            || before.any(|other| {
                let path = self.dir.join(names::segment(other.start));
                let file = self.disk.open(&path, OpenMode::Read);
                file.and_then(|file| has_followed(&*file, id, other.start)).unwrap_or(false)
            })
            || self.frames_end(id, start).is_ok_and(|end| end > start.plus(SEGMENT_HEADER_LEN))
    }

    /// Where the last valid frame of a segment ends.
    fn frames_end(&self, id: u64, start: Lsn) -> io::Result<Lsn> {
        let file = self.disk.open(&self.dir.join(names::segment(start)), OpenMode::Read)?;
        let end = start.plus(file.size_bytes()?).min(self.next(start).unwrap_or(Lsn(u64::MAX)));
        let from = start.plus(SEGMENT_HEADER_LEN);
        Ok(survey(&mut Scanner::new(file, id, start, from, end))?.end)
    }

    /// Replaces what is at `at`, up to the next valid frame, by a gap, and every other such place
    /// further on in the segment.
    fn take_out(&self, path: &Path, start: Lsn, at: Lsn) -> io::Result<Mended> {
        let id = self.id()?;
        let file = self.disk.open(path, OpenMode::Write)?;
        let header = read_segment_header(self.disk, path, start, file.size_bytes()?);
        let segment_end = header.map_err(io::Error::other)?.end();
        let previous_end = self.next(start).and_then(|next| self.previous_end(next));
        let end = previous_end.unwrap_or(segment_end);
        let found = survey(&mut Scanner::new(Arc::clone(&file), id, start, at, end))?;
        let mut gaps = found.bad;
        if gaps.is_empty() {
            // Nothing valid follows: up to where the next segment says that there was something,
            // or, in the newest one, up to what the checkpoint saw.
            let seen = self.durable().map_or(end, |durable| durable.min(end));
            let gap_end = if self.next(start).is_some() || seen <= at { end } else { seen };
            if gap_end.0 < at.0 + FRAME_HEADER_LEN as u64 {
                // No gap fits in before the end of the file: the log goes on in another one.
                return self.stand_in(segment_end);
            }
            gaps.push(at..gap_end);
        }
        let mut taken_bytes = 0;
        for gap in &gaps {
            let len = gap.end.0 - gap.start.0;
            self.keep(path, &*file, gap.start.0 - start.0, len)?;
            write_gap(&*file, id, start, gap.clone())?;
            taken_bytes += len;
        }
        file.sync_data()?;
        let (places, offset) = (gaps.len(), at.0 - start.0);
        Ok(Mended::less(format!(
            "took {taken_bytes} bytes out of the log, in {places} places from {offset} on: what they \
             said is lost"
        )))
    }

    /// Where the segment before the one that starts at `next` ends, as that one says.
    fn previous_end(&self, next: Lsn) -> Option<Lsn> {
        let path = self.dir.join(names::segment(next));
        let header = read_segment_header(self.disk, &path, next, u64::MAX);
        header.ok().map(|header| header.previous_end)
    }

    /// Copies a range of a file to one beside it.
    fn keep(&self, path: &Path, file: &dyn DiskFile, offset: u64, len: u64) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{offset}"));
        let copy = aside(self.disk, &PathBuf::from(name))?;
        let copy = self.disk.open(&copy, OpenMode::Create)?;
        let mut bytes = vec![0; COPY_BYTES.min(len) as usize];
        let mut done = 0;
        while done < len {
            let part = &mut bytes[..COPY_BYTES.min(len - done) as usize];
            let found = read_up_to(file, part, offset + done)?;
            write_all(&*copy, &part[..found], done)?;
            done += part.len() as u64;
        }
        copy.sync_data()
    }

    /// Marks the record at `position` as lost.
    pub fn mark_lost(&self, position: Lsn, id: u64) -> io::Result<()> {
        let mut headers = self.headers.iter().filter(|header| header.start <= position);
        let Some(header) = headers.next_back() else { return Ok(()) };
        let path = self.dir.join(names::segment(header.start));
        let file = self.disk.open(&path, OpenMode::Write)?;
        write_all(&*file, &lost_record(position, id), position.0 - header.start.0)?;
        file.sync_data()
    }

    /// The checkpoints are lost: the replay starts with the oldest record that there is.
    fn empty_checkpoints(&self) -> io::Result<Mended> {
        let oldest = self.headers.first().ok_or_else(|| io::Error::other("the log is lost too"))?;
        for number in [1, 2] {
            let path = self.dir.join(names::checkpoint(number));
            let file = self.disk.open(&path, OpenMode::Create)?;
            let header = Header { id: oldest.id, start: oldest.start, number };
            let table = Table { durable: oldest.start, ..Table::default() };
            CheckpointWriter::new(file, header)?.finish(table)?;
        }
        Ok(Mended::less(format!(
            "wrote empty checkpoints: the replay starts at {}, and what was declared, published and \
             acknowledged before is lost",
            oldest.start
        )))
    }
}

/// Writes a frame that says that `range` holds nothing.
fn write_gap(
    file: &dyn DiskFile,
    id: u64,
    start: Lsn,
    range: std::ops::Range<Lsn>,
) -> io::Result<()> {
    let len = range.end.0 - range.start.0;
    debug_assert!(len.is_multiple_of(FRAME_ALIGN as u64));
    let payload_len = u32::try_from(len - FRAME_HEADER_LEN as u64);
    let header = FrameHeader {
        lsn: range.start,
        durable: range.start,
        payload_len: payload_len.map_err(|_| io::ErrorKind::FileTooLarge)?,
        records: 0,
        kind: FrameKind::Gap,
        sum: 0,
    };
    let mut frame = [0; FRAME_HEADER_LEN];
    header.encode(&mut frame);
    let sum = start_sum(id, &frame);
    frame[FRAME_HEADER_LEN - 4..].copy_from_slice(&sum.to_le_bytes());
    write_all(file, &frame, range.start.0 - start.0)
}
