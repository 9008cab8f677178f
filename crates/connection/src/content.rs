//! A message that comes in several pieces: method, content header and body, copied together.

use bytes::Bytes;

use courser_codec::reply_code::FRAME_ERROR;

use crate::close::Failure;

/// The body's buffer starts no larger than this, whatever size was announced, and grows as octets come.
const FIRST_CAPACITY: u64 = 64 * 1024;

/// What has come of a message so far.
#[derive(Debug)]
pub(crate) struct Assembly {
    method: Vec<u8>,
    /// Empty until it has come.
    header: Vec<u8>,
    body: Vec<u8>,
    body_size: u64,
}

/// A message that is complete.
pub(crate) struct Assembled {
    /// The method frame's payload.
    pub method: Bytes,
    /// The header frame's payload.
    pub header: Bytes,
    /// All body frames' payloads.
    pub body: Bytes,
}

/// What a body frame did to the assembly it belongs to.
pub(crate) enum Progress {
    Incomplete,
    Complete,
}

impl Assembly {
    /// Begins with a method; `payload` is that of its frame.
    pub fn new(payload: &[u8]) -> Self {
        Self { method: payload.to_vec(), header: Vec::new(), body: Vec::new(), body_size: 0 }
    }

    pub fn awaits_header(&self) -> bool {
        self.header.is_empty()
    }

    /// Takes the content header; an empty body makes the message complete.
    pub fn set_header(&mut self, payload: &[u8], body_size: u64) -> Progress {
        self.header = payload.to_vec();
        self.body_size = body_size;
        self.progress()
    }

    /// Takes a body frame or a piece of one, of whose frame `frame_left` more octets will come.
    pub fn append(&mut self, octets: &[u8], frame_left: u32) -> Result<Progress, BodyTooLong> {
        let body_left = self.body_size - self.body.len() as u64;
        if octets.len() as u64 + u64::from(frame_left) > body_left {
            return Err(BodyTooLong);
        }
        self.reserve(octets.len());
        self.body.extend_from_slice(octets);
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.body.len() as u64 == self.body_size {
            Progress::Complete
        } else {
            Progress::Incomplete
        }
    }

    /// Makes room for `additional` octets: doubling, but never beyond the announced size.
    fn reserve(&mut self, additional: usize) {
        let needed = self.body.len() + additional;
        if needed > self.body.capacity() {
            let doubled = (self.body.capacity() as u64 * 2).max(FIRST_CAPACITY).max(needed as u64);
            let capacity = doubled.min(self.body_size) as usize;
            self.body.reserve_exact(capacity - self.body.len());
        }
    }

    /// Octets of memory that it takes.
    pub fn held_bytes(&self) -> u64 {
        (self.method.capacity() + self.header.capacity() + self.body.capacity()) as u64
    }

    pub fn finish(self) -> Assembled {
        Assembled { method: self.method.into(), header: self.header.into(), body: self.body.into() }
    }
}

/// A body frame is longer than what its message still lacks.
pub(crate) struct BodyTooLong;

impl BodyTooLong {
    pub fn failure(self, method_ids: (u16, u16)) -> Failure {
        Failure::of(FRAME_ERROR, "content body frame exceeds remaining content size", method_ids)
    }
}
