//! The bytes of a checkpoint file, as `docs/journal-format.md` draws them.

use crate::{
    DiskFile, Lsn,
    disk::{read_up_to, write_all},
    format::{HeaderError, VERSION, check_header, u32_at, u64_at},
    replica::{Base, EntryId},
};
use std::{
    io::{self, Read, Write},
    ops::Range,
    sync::Arc,
};

const MAGIC: &[u8; 8] = b"courserC";
const HEADER_LEN: usize = 40;
const BLOCK_HEAD_LEN: usize = 8;
/// Bytes of the owner's data in a block, at most.
const BLOCK_LEN_MAX: usize = 64 << 10;
const TRAILER_LEN: usize = 16;
const TRAILER_MAGIC: &[u8; 4] = b"tail";
/// Bytes after which they are synced, so that the log's syncs never wait for many.
const SYNC_BYTES: u64 = 4 << 20;

/// What the journal itself keeps in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The log was durable up to here when the checkpoint was made.
    pub durable: Lsn,
    /// Bytes of the owner's data.
    pub data_bytes: u64,
    /// In a replicated log, the last entry that ends where the checkpoint starts or before.
    pub base: Base,
    /// The segments that start before the checkpoint does.
    pub segments: Vec<SegmentEntry>,
}

/// What is known about a segment that is not replayed, or not all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Position of its first byte.
    pub start: Lsn,
    /// Bytes of log that it covers.
    pub capacity: u64,
    /// Records that were appended to it, 0 if that is not known. Those behind the checkpoint's start are counted again
    /// when they are replayed: the number serves as a measure only.
    pub records: u64,
    /// Ranges of offsets in the file that may have been punched out.
    pub holes: Vec<Range<u32>>,
}

/// Writes a checkpoint's file from front to back.
pub struct CheckpointWriter {
    file: Arc<dyn DiskFile>,
    id: u64,
    start: Lsn,
    /// The block that is being filled, with room for its head.
    block: Vec<u8>,
    offset: u64,
    data_bytes: u64,
    synced: u64,
}

impl CheckpointWriter {
    /// Starts a checkpoint in an empty file.
    pub fn new(file: Arc<dyn DiskFile>, header: Header) -> io::Result<Self> {
        write_all(&*file, &header.encode(), 0)?;
        let Header { id, start, .. } = header;
        let block = vec![0; BLOCK_HEAD_LEN];
        let offset = HEADER_LEN as u64;
        Ok(CheckpointWriter { file, id, start, block, offset, data_bytes: 0, synced: 0 })
    }

    /// Writes what the journal keeps, makes the file durable and returns its size.
    pub fn finish(mut self, mut table: Table) -> io::Result<u64> {
        self.flush()?;
        // An empty block ends the data.
        self.write_block()?;
        table.data_bytes = self.data_bytes;
        let table_offset = self.offset;
        self.block.extend_from_slice(&encode_table(&table));
        self.write_block()?;
        let mut trailer = [0; TRAILER_LEN];
        trailer[..8].copy_from_slice(&table_offset.to_le_bytes());
        trailer[12..].copy_from_slice(TRAILER_MAGIC);
        let sum = block_sum(self.id, self.start, self.offset, &trailer[..8]);
        trailer[8..12].copy_from_slice(&sum.to_le_bytes());
        write_all(&*self.file, &trailer, self.offset)?;
        self.file.sync_data()?;
        Ok(self.offset + TRAILER_LEN as u64)
    }

    fn write_block(&mut self) -> io::Result<()> {
        let data_len = self.block.len() - BLOCK_HEAD_LEN;
        let sum = block_sum(self.id, self.start, self.offset, &self.block[BLOCK_HEAD_LEN..]);
        let len = u32::try_from(data_len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.block[..4].copy_from_slice(&len.to_le_bytes());
        self.block[4..8].copy_from_slice(&sum.to_le_bytes());
        write_all(&*self.file, &self.block, self.offset)?;
        self.offset += self.block.len() as u64;
        self.block.truncate(BLOCK_HEAD_LEN);
        if self.offset - self.synced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.synced = self.offset;
        }
        Ok(())
    }
}

impl Write for CheckpointWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(BLOCK_HEAD_LEN + BLOCK_LEN_MAX - self.block.len());
        self.block.extend_from_slice(&bytes[..len]);
        self.data_bytes += len as u64;
        if self.block.len() == BLOCK_HEAD_LEN + BLOCK_LEN_MAX {
            self.write_block()?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.len() > BLOCK_HEAD_LEN { self.write_block() } else { Ok(()) }
    }
}

/// The start of a checkpoint's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The journal's number.
    pub id: u64,
    /// Where the replay starts.
    pub start: Lsn,
    /// How many checkpoints there were before this one; also in the name.
    pub number: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.id.to_le_bytes());
        header[24..32].copy_from_slice(&self.start.0.to_le_bytes());
        header[32..40].copy_from_slice(&self.number.to_le_bytes());
        let sum = crc32c::crc32c(&header);
        header[12..16].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Reads the header of a file.
    pub fn read(file: &dyn DiskFile) -> Result<Self, FileError> {
        let mut header = [0; HEADER_LEN];
        if read_up_to(file, &mut header, 0)? < HEADER_LEN {
            return Err(FileError::Bad(0));
        }
        check_header(&header, MAGIC).map_err(|error| match error {
            HeaderError::Version(found) => FileError::Version(found),
            HeaderError::Bad => FileError::Bad(0),
        })?;
        let (id, start) = (u64_at(&header, 16), Lsn(u64_at(&header, 24)));
        Ok(Header { id, start, number: u64_at(&header, 32) })
    }
}

/// Writes the checkpoint in `from` into the empty file `to` under another number, and makes it
/// durable.
pub fn copy(from: &dyn DiskFile, to: &dyn DiskFile, number: u64) -> Result<(), FileError> {
    let header = Header { number, ..Header::read(from)? };
    write_all(to, &header.encode(), 0)?;
    let mut bytes = vec![0; BLOCK_LEN_MAX];
    let mut offset = HEADER_LEN as u64;
    loop {
        let found = read_up_to(from, &mut bytes, offset)?;
        write_all(to, &bytes[..found], offset)?;
        offset += found as u64;
        if found < bytes.len() {
            return Ok(to.sync_data()?);
        }
    }
}

/// Reads the data of a checkpoint; each block's checksum is checked before it is handed out.
pub struct CheckpointReader {
    file: Arc<dyn DiskFile>,
    header: Header,
    block: Vec<u8>,
    /// How much of the block was handed out.
    done: usize,
    offset: u64,
    at_end: bool,
    left_bytes: u64,
}

/// What is wrong with a checkpoint's file.
#[derive(Debug)]
pub enum FileError {
    /// It is of another format version.
    Version(u32),
    /// It is not what was written, at this offset.
    Bad(u64),
    /// It cannot be read.
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        FileError::Io(error)
    }
}

impl CheckpointReader {
    /// Opens a checkpoint and reads what the journal itself keeps in it.
    pub(crate) fn open(file: Arc<dyn DiskFile>) -> Result<(Self, Table), FileError> {
        let header = Header::read(&*file)?;
        let Header { id, start, .. } = header;
        let trailer_offset = file.size_bytes()?.saturating_sub(TRAILER_LEN as u64);
        let mut trailer = [0; TRAILER_LEN];
        let found = read_up_to(&*file, &mut trailer, trailer_offset)?;
        let sum = block_sum(id, start, trailer_offset, &trailer[..8]);
        if found < TRAILER_LEN || &trailer[12..] != TRAILER_MAGIC || u32_at(&trailer, 8) != sum {
            return Err(FileError::Bad(trailer_offset));
        }
        let mut reader = CheckpointReader {
            file,
            header,
            block: Vec::new(),
            done: 0,
            offset: u64_at(&trailer, 0),
            at_end: false,
            left_bytes: 0,
        };
        let table_offset = reader.offset;
        let table_len_max = trailer_offset.saturating_sub(table_offset);
        reader.read_block(table_len_max)?;
        let table = decode_table(&reader.block).ok_or(FileError::Bad(table_offset))?;
        reader.offset = HEADER_LEN as u64;
        reader.block.clear();
        reader.left_bytes = table.data_bytes;
        Ok((reader, table))
    }

    /// Where the replay starts: the checkpoint has the effects of everything before.
    pub fn start(&self) -> Lsn {
        self.header.start
    }

    /// What the file begins with.
    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Reads everything to see whether it is what was written.
    pub(crate) fn check(mut self) -> Result<(), FileError> {
        while self.check_block()? {}
        Ok(())
    }

    /// All of the data.
    pub(crate) fn read_all(mut self) -> Result<Vec<u8>, FileError> {
        let mut data = Vec::new();
        while self.check_block()? {
            data.extend_from_slice(&self.block);
        }
        Ok(data)
    }

    /// Reads the next block to see whether it is what was written; `false` behind the last.
    pub(crate) fn check_block(&mut self) -> Result<bool, FileError> {
        if !self.at_end {
            self.next_block()?;
            self.left_bytes -= self.block.len() as u64;
        }
        Ok(!self.at_end)
    }

    /// Reads on up to this offset to see whether it is what was written.
    pub(crate) fn check_to(&mut self, offset: u64) -> Result<(), FileError> {
        while self.offset < offset && self.check_block()? {}
        Ok(())
    }

    /// Bytes of the block that was read last.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.block.len() as u64
    }

    /// Bytes of data that were not handed out yet.
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    fn read_block(&mut self, len_max: u64) -> Result<(), FileError> {
        let at = self.offset;
        let mut head = [0; BLOCK_HEAD_LEN];
        let found = read_up_to(&*self.file, &mut head, at)?;
        let len = u32_at(&head, 0);
        if found < BLOCK_HEAD_LEN || u64::from(len) > len_max {
            return Err(FileError::Bad(at));
        }
        self.block.resize(len as usize, 0);
        let found = read_up_to(&*self.file, &mut self.block, at + BLOCK_HEAD_LEN as u64)?;
        let sum = block_sum(self.header.id, self.header.start, at, &self.block);
        if found < self.block.len() || sum != u32_at(&head, 4) {
            return Err(FileError::Bad(at));
        }
        self.offset = at + (BLOCK_HEAD_LEN + self.block.len()) as u64;
        self.done = 0;
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), FileError> {
        let at = self.offset;
        self.read_block(BLOCK_LEN_MAX as u64)?;
        let len = self.block.len() as u64;
        self.at_end = len == 0;
        // The data ends exactly where the table says.
        let fits = len <= self.left_bytes && self.at_end == (self.left_bytes == 0);
        if fits { Ok(()) } else { Err(FileError::Bad(at)) }
    }
}

impl Read for CheckpointReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() || self.at_end {
            return Ok(0);
        }
        if self.done == self.block.len() {
            let at = self.offset;
            let number = self.header.number;
            // Who reads the data has no other name for the file.
            self.next_block().map_err(|error| match error {
                FileError::Io(error) => io::Error::new(
                    error.kind(),
                    format!("reading checkpoint {number} failed: {error}"),
                ),
                _ => io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("checkpoint {number} is damaged at offset {at}"),
                ),
            })?;
        }
        let len = out.len().min(self.block.len() - self.done);
        out[..len].copy_from_slice(&self.block[self.done..self.done + len]);
        self.done += len;
        self.left_bytes -= len as u64;
        Ok(len)
    }
}

fn block_sum(id: u64, start: Lsn, offset: u64, data: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&id.to_le_bytes());
    let seed = crc32c::crc32c_append(seed, &start.0.to_le_bytes());
    let seed = crc32c::crc32c_append(seed, &offset.to_le_bytes());
    crc32c::crc32c_append(seed, data)
}

fn encode_table(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&table.durable.0.to_le_bytes());
    out.extend_from_slice(&table.data_bytes.to_le_bytes());
    out.extend_from_slice(&table.base.id.index.to_le_bytes());
    out.extend_from_slice(&table.base.id.term.to_le_bytes());
    out.extend_from_slice(&table.base.end.0.to_le_bytes());
    for segment in &table.segments {
        out.extend_from_slice(&segment.start.0.to_le_bytes());
        out.extend_from_slice(&segment.capacity.to_le_bytes());
        out.extend_from_slice(&segment.records.to_le_bytes());
        out.extend_from_slice(&(segment.holes.len() as u64).to_le_bytes());
        for hole in &segment.holes {
            out.extend_from_slice(&hole.start.to_le_bytes());
            out.extend_from_slice(&hole.end.to_le_bytes());
        }
    }
    out
}

fn decode_table(mut bytes: &[u8]) -> Option<Table> {
    let mut number = || {
        let (number, rest) = bytes.split_at_checked(8)?;
        bytes = rest;
        Some(u64_at(number, 0))
    };
    let mut table = Table {
        durable: Lsn(number()?),
        data_bytes: number()?,
        base: Base { id: EntryId { index: number()?, term: number()? }, end: Lsn(number()?) },
        segments: Vec::new(),
    };
    while let Some(start) = number() {
        let (capacity, records) = (number()?, number()?);
        let mut entry = SegmentEntry { start: Lsn(start), capacity, records, holes: Vec::new() };
        for _ in 0..number()? {
            let hole = number()?;
            entry.holes.push(hole as u32..(hole >> 32) as u32);
        }
        table.segments.push(entry);
    }
    Some(table)
}
