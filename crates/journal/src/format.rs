//! The bytes of segments and frames, as `docs/journal-format.md` draws them. Pure functions.
//!
//! All integers are little-endian.

use crate::Lsn;

/// The format version that this program writes, and the only one that it reads.
pub const VERSION: u32 = 3;
/// Bytes at the start of a segment that hold no frames: a page, so that no write of a frame ever
/// touches the page of the header.
pub const SEGMENT_HEADER_LEN: u64 = 4096;
/// Bytes of the header that mean something.
pub const SEGMENT_HEADER_USED: usize = 56;
/// Bytes in front of a frame's records.
pub const FRAME_HEADER_LEN: usize = 32;
/// Bytes in front of a record: its length and its check.
pub const RECORD_HEAD_LEN: usize = 8;
/// Frames start at multiples of this.
pub const FRAME_ALIGN: usize = 8;

const SEGMENT_MAGIC: &[u8; 8] = b"courserJ";

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A batch of records.
    Batch = 1,
    /// Nothing: bytes that a repair took out.
    Gap = 2,
    /// Nothing: the journal was closed by intention here.
    Close = 3,
    /// What the frames since the last one like it are an entry of: see [`replica`](crate::replica).
    Entry = 4,
}

/// The start of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The journal's number, drawn when it was made.
    pub id: u64,
    /// Position of the file's first byte.
    pub start: Lsn,
    /// Bytes of log that the file covers, this header included.
    pub capacity: u64,
    /// Where the last frame of the segment before ends.
    pub previous_end: Lsn,
}

/// Why a segment's header was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// It is of another format version.
    Version(u32),
    /// It is not a header, or not what was written.
    Bad,
}

impl SegmentHeader {
    /// The position of the first frame.
    pub fn first_frame(&self) -> Lsn {
        self.start.plus(SEGMENT_HEADER_LEN)
    }

    /// The position behind the file's last byte: where the next segment starts.
    pub fn end(&self) -> Lsn {
        self.start.plus(self.capacity)
    }

    /// The bytes to write at the start of the file.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_USED] {
        let mut out = [0; SEGMENT_HEADER_USED];
        out[..8].copy_from_slice(SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.id.to_le_bytes());
        out[24..32].copy_from_slice(&self.start.0.to_le_bytes());
        out[32..40].copy_from_slice(&self.capacity.to_le_bytes());
        out[40..48].copy_from_slice(&self.previous_end.0.to_le_bytes());
        let sum = crc32c::crc32c(&out);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads what [`SegmentHeader::encode`] wrote.
    pub fn decode(bytes: &[u8; SEGMENT_HEADER_USED]) -> Result<Self, HeaderError> {
        check_header(bytes, SEGMENT_MAGIC)?;
        let header = SegmentHeader {
            id: u64_at(bytes, 16),
            start: Lsn(u64_at(bytes, 24)),
            capacity: u64_at(bytes, 32),
            previous_end: Lsn(u64_at(bytes, 40)),
        };
        let end = header.start.0.checked_add(header.capacity);
        let plausible = header.capacity > SEGMENT_HEADER_LEN && end.is_some();
        if plausible { Ok(header) } else { Err(HeaderError::Bad) }
    }
}

/// Checks magic, sum and version of a header. Every version has them where this one has, and the sum
/// covers as many bytes: so a harmed version number is told from one that is not known.
pub fn check_header(header: &[u8], magic: &[u8; 8]) -> Result<(), HeaderError> {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &[0; 4]);
    let sum = crc32c::crc32c_append(sum, &header[16..]);
    if &header[..8] != magic || sum != u32_at(header, 12) {
        return Err(HeaderError::Bad);
    }
    let version = u32_at(header, 8);
    if version == VERSION { Ok(()) } else { Err(HeaderError::Version(version)) }
}

/// Where a segment notes that another one has followed it, away from the sector of its header.
pub const FOLLOWED_OFFSET: u64 = 2048;
/// Bytes of that note.
pub const FOLLOWED_LEN: usize = 16;
const FOLLOWED_MAGIC: &[u8; 8] = b"followed";

/// What is at [`FOLLOWED_OFFSET`] of the segment that starts at `start` once there is a next one.
pub fn followed(id: u64, start: Lsn) -> [u8; FOLLOWED_LEN] {
    let mut out = [0; FOLLOWED_LEN];
    out[..8].copy_from_slice(FOLLOWED_MAGIC);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&id.to_le_bytes()), &start.0.to_le_bytes());
    out[8..12].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Its position.
    pub lsn: Lsn,
    /// What was durable when it was appended.
    pub durable: Lsn,
    /// Bytes of its records, without the padding behind them.
    pub payload_len: u32,
    /// How many records there are.
    pub records: u32,
    /// What it holds.
    pub kind: FrameKind,
    /// Sum over the journal's number, this header and the heads of all records.
    pub sum: u32,
}

impl FrameHeader {
    /// Bytes up to the next frame.
    pub fn frame_len(&self) -> u64 {
        frame_len(self.payload_len as usize) as u64
    }

    /// Writes the header, its sum excepted.
    pub fn encode(&self, out: &mut [u8]) {
        out[..8].copy_from_slice(&self.lsn.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.durable.0.to_le_bytes());
        out[16..20].copy_from_slice(&self.payload_len.to_le_bytes());
        out[20..24].copy_from_slice(&self.records.to_le_bytes());
        out[24..28].copy_from_slice(&(self.kind as u32).to_le_bytes());
    }

    /// Reads a header that claims to stand at `lsn`; nothing is checked but that claim and the
    /// kind. `None` if `bytes` are too few.
    pub fn decode(bytes: &[u8], lsn: Lsn) -> Option<Self> {
        if bytes.len() < FRAME_HEADER_LEN || u64_at(bytes, 0) != lsn.0 {
            return None;
        }
        let kind = match u32_at(bytes, 24) {
            1 => FrameKind::Batch,
            2 => FrameKind::Gap,
            3 => FrameKind::Close,
            4 => FrameKind::Entry,
            _ => return None,
        };
        Some(FrameHeader {
            lsn,
            durable: Lsn(u64_at(bytes, 8)),
            payload_len: u32_at(bytes, 16),
            records: u32_at(bytes, 20),
            kind,
            sum: u32_at(bytes, 28),
        })
    }
}

/// Bytes that a frame with `payload_len` bytes of records takes.
pub fn frame_len(payload_len: usize) -> usize {
    (FRAME_HEADER_LEN + payload_len).next_multiple_of(FRAME_ALIGN)
}

/// Starts the sum of a frame with its header, of which the last four bytes are left out.
pub fn start_sum(id: u64, header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&id.to_le_bytes()), &header[..FRAME_HEADER_LEN - 4])
}

/// The part of a record's check that does not depend on where it goes.
pub fn record_sum(parts: &[&[u8]], len: u32) -> u32 {
    let seed = crc32c::crc32c(&len.to_le_bytes());
    parts.iter().fold(seed, |sum, part| crc32c::crc32c_append(sum, part))
}

/// What a record's sum is masked with at `position` of journal `id`, so that what was written
/// elsewhere, or into another journal, is no record here.
pub fn mask(position: Lsn, id: u64) -> u32 {
    ((position.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The head of a record that a repair has found to be lost, so that it is not found again.
pub fn lost_record(position: Lsn, id: u64) -> [u8; RECORD_HEAD_LEN] {
    let mut head = [0xff; RECORD_HEAD_LEN];
    let check = record_sum(&[b"lost"], u32::MAX) ^ mask(position, id);
    head[4..].copy_from_slice(&check.to_le_bytes());
    head
}

/// Whether `bytes` are what was pushed as the record at `position`, whose head says `check`.
pub fn record_is_valid(bytes: &[u8], check: u32, position: Lsn, id: u64) -> bool {
    record_sum(&[bytes], bytes.len() as u32) ^ mask(position, id) == check
}

/// A record as it stands at `position`: its head, and `bytes`.
pub fn whole_record(bytes: &[u8], position: Lsn, id: u64) -> Vec<u8> {
    let len = bytes.len() as u32;
    let check = record_sum(&[bytes], len) ^ mask(position, id);
    let mut record = Vec::with_capacity(RECORD_HEAD_LEN + bytes.len());
    record.extend_from_slice(&len.to_le_bytes());
    record.extend_from_slice(&check.to_le_bytes());
    record.extend_from_slice(bytes);
    record
}

/// Checks a frame as a whole: `bytes` starts with it and may go on behind it.
pub fn check_frame(header: &FrameHeader, bytes: &[u8], id: u64) -> bool {
    let payload_end = FRAME_HEADER_LEN + header.payload_len as usize;
    if header.kind == FrameKind::Gap {
        return header.sum == start_sum(id, bytes);
    }
    let Some(payload) = bytes.get(FRAME_HEADER_LEN..payload_end) else { return false };
    if header.kind == FrameKind::Entry {
        return header.sum == crc32c::crc32c_append(start_sum(id, bytes), payload);
    }
    let mut sum = start_sum(id, bytes);
    let mut records = 0;
    for (offset, head, body) in Records::new(payload) {
        sum = crc32c::crc32c_append(sum, head);
        let position = header.lsn.plus((FRAME_HEADER_LEN + offset) as u64);
        if !record_is_valid(body, u32_at(head, 4), position, id) {
            return false;
        }
        records += 1;
    }
    records == header.records && sum == header.sum
}

/// Walks the records of a frame: offset in the payload, head, bytes. Ends early where a length
/// leads out of the payload, which [`check_frame`] notices by the number of records.
pub struct Records<'a> {
    payload: &'a [u8],
    offset: usize,
}

impl<'a> Records<'a> {
    /// The records in `payload`.
    pub fn new(payload: &'a [u8]) -> Self {
        Records { payload, offset: 0 }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, &'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.payload[self.offset..].split_at_checked(RECORD_HEAD_LEN)?;
        let bytes = rest.get(..u32_at(head, 0) as usize)?;
        let offset = self.offset;
        self.offset += RECORD_HEAD_LEN + bytes.len();
        Some((offset, head, bytes))
    }
}

/// The `u32` at `offset`, which is within `bytes`.
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(out)
}

/// The `u64` at `offset`, which is within `bytes`.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(out)
}
