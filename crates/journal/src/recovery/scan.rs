//! Walking the frames of a segment file, none of which is trusted before it is checked.

use crate::{
    DiskFile, Lsn,
    disk::read_up_to,
    format::{FRAME_ALIGN, FRAME_HEADER_LEN, FrameHeader, FrameKind, check_frame, u64_at},
};
use std::{io, sync::Arc};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Reads frames one after the other.
pub struct Scanner {
    file: Arc<dyn DiskFile>,
    id: u64,
    /// Position of the file's first byte.
    start: Lsn,
    /// Where the next frame should be.
    at: Lsn,
    /// No frame reaches beyond.
    limit: Lsn,
    buffer: Vec<u8>,
    /// Position of the first byte of `buffer`.
    buffer_at: Lsn,
}

/// What is at a position.
pub enum Found<'a> {
    /// A frame, all of whose sums are right, and its records.
    Frame(FrameHeader, &'a [u8]),
    /// No frame.
    Bad,
    /// Nothing, as no frame fits in before the limit.
    End,
}

/// What follows a place where there is no frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rest {
    /// The largest durable position that a valid frame names.
    pub durable: Lsn,
    /// Whether anything looks like the start of a frame, valid or not, or is one but for its position.
    pub frames: bool,
}

impl Scanner {
    /// Reads from `from` to `limit` in the segment that starts at `start`.
    pub fn new(file: Arc<dyn DiskFile>, id: u64, start: Lsn, from: Lsn, limit: Lsn) -> Self {
        let buffer = Vec::new();
        Scanner { file, id, start, at: from, limit, buffer, buffer_at: from }
    }

    /// Where the next frame should be.
    pub fn at(&self) -> Lsn {
        self.at
    }

    /// Goes on at another place.
    pub fn go_to(&mut self, at: Lsn) {
        self.at = at;
    }

    /// Reads what is at [`Scanner::at`], and goes on behind it if it is a frame.
    pub fn next(&mut self) -> io::Result<Found<'_>> {
        let at = self.at;
        if self.limit.0.saturating_sub(at.0) < FRAME_HEADER_LEN as u64 {
            return Ok(Found::End);
        }
        let Some(header) = self.valid_frame(at)? else { return Ok(Found::Bad) };
        self.at = at.plus(header.frame_len());
        let payload = if header.kind == FrameKind::Gap {
            &[]
        } else {
            let from = (at.0 - self.buffer_at.0) as usize + FRAME_HEADER_LEN;
            &self.buffer[from..from + header.payload_len as usize]
        };
        Ok(Found::Frame(header, payload))
    }

    /// Goes on at the next valid frame, wherever it is, and returns its position. Whatever is at
    /// [`Scanner::at`] is not shorter than a frame's header.
    pub fn find_valid_frame(&mut self) -> io::Result<Option<Lsn>> {
        self.at = self.at.plus(FRAME_HEADER_LEN as u64);
        while let Some((lsn, valid)) = self.find_frame()? {
            self.at = lsn;
            if valid.is_some() {
                return Ok(Some(lsn));
            }
            self.at = lsn.plus(FRAME_ALIGN as u64);
        }
        Ok(None)
    }

    /// Looks for frames from [`Scanner::at`] on, wherever one could start.
    pub fn rest(&mut self) -> io::Result<Rest> {
        let mut rest = Rest { frames: self.lacks_its_position()?, ..Rest::default() };
        while let Some((lsn, valid)) = self.find_frame()? {
            rest.frames = true;
            self.at = lsn.plus(FRAME_ALIGN as u64);
            if let Some(header) = valid {
                rest.durable = rest.durable.max(header.durable);
                self.at = lsn.plus(header.frame_len());
            }
        }
        Ok(rest)
    }

    /// Whether a frame is here, all of which is right but the position that it names: the disk has changed that.
    fn lacks_its_position(&mut self) -> io::Result<bool> {
        let (at, id, left) = (self.at, self.id, self.limit.0.saturating_sub(self.at.0));
        let Some(bytes) = self.load(at, FRAME_HEADER_LEN)? else { return Ok(false) };
        let with_position = |bytes: &[u8]| [&at.0.to_le_bytes(), &bytes[8..]].concat();
        let header = FrameHeader::decode(&with_position(&bytes[..FRAME_HEADER_LEN]), at);
        let header = header.filter(|header| header.frame_len() <= left);
        let Some(header) = header else { return Ok(false) };
        let bytes = self.load(at, header.frame_len() as usize)?;
        Ok(bytes.is_some_and(|bytes| {
            check_frame(&header, &with_position(&bytes[..header.frame_len() as usize]), id)
        }))
    }

    /// The next place from [`Scanner::at`] on that looks like the start of a frame, and that
    /// frame's header if it is valid.
    fn find_frame(&mut self) -> io::Result<Option<(Lsn, Option<FrameHeader>)>> {
        let mut at = Lsn(self.at.0.next_multiple_of(FRAME_ALIGN as u64));
        while self.limit.0.saturating_sub(at.0) >= FRAME_HEADER_LEN as u64 {
            if self.load(at, FRAME_HEADER_LEN)?.is_none() {
                break;
            }
            let bytes = &self.buffer[(at.0 - self.buffer_at.0) as usize..];
            let candidates = bytes.len() / FRAME_ALIGN;
            let found = (0..candidates).find(|index| {
                let offset = index * FRAME_ALIGN;
                u64_at(bytes, offset) == at.0 + offset as u64
            });
            match found {
                Some(index) => {
                    let lsn = at.plus((index * FRAME_ALIGN) as u64);
                    return Ok(Some((lsn, self.valid_frame(lsn)?)));
                }
                None => at = at.plus((candidates * FRAME_ALIGN) as u64),
            }
        }
        Ok(None)
    }

    /// The header of the frame at `at`, if all of the frame is what was written there.
    fn valid_frame(&mut self, at: Lsn) -> io::Result<Option<FrameHeader>> {
        let Some(bytes) = self.load(at, FRAME_HEADER_LEN)? else { return Ok(None) };
        let header = FrameHeader::decode(bytes, at);
        let left = self.limit.0.saturating_sub(at.0);
        let Some(header) = header.filter(|header| header.frame_len() <= left) else {
            return Ok(None);
        };
        let id = self.id;
        let needed = match header.kind {
            FrameKind::Gap => FRAME_HEADER_LEN,
            FrameKind::Batch | FrameKind::Close | FrameKind::Entry => header.frame_len() as usize,
        };
        let bytes = self.load(at, needed)?;
        Ok(bytes.is_some_and(|bytes| check_frame(&header, bytes, id)).then_some(header))
    }

    /// At least `len` bytes from `at` on, if the file has them.
    fn load(&mut self, at: Lsn, len: usize) -> io::Result<Option<&[u8]>> {
        let buffer_end = self.buffer_at.0 + self.buffer.len() as u64;
        if at < self.buffer_at || at.0 + len as u64 > buffer_end {
            let left = self.limit.0.saturating_sub(at.0);
            let want = (len.max(READ_BYTES) as u64).min(left) as usize;
            self.buffer.resize(want, 0);
            let offset = at.0 - self.start.0;
            let found = read_up_to(&*self.file, &mut self.buffer, offset)?;
            self.buffer.truncate(found);
            self.buffer_at = at;
            self.file.will_need(offset + found as u64, READ_BYTES as u64);
        }
        let from = (at.0 - self.buffer_at.0) as usize;
        Ok(self.buffer.get(from..).filter(|bytes| bytes.len() >= len))
    }
}
