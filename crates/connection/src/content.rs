//! A message that comes in several pieces: method, content header and body, copied together.

use bytes::Bytes;
use courser_codec::reply_code::{FRAME_ERROR, UNEXPECTED_FRAME};
use courser_codec::{ContentHeader, DecodeErrorKind, Frame, basic};

use crate::close::Failure;
use crate::framer::malformed_frame;

/// The body's buffer starts no larger than this, whatever size was announced, and grows as bytes come.
const FIRST_CAPACITY: u64 = 64 * 1024;

/// The absolute limit of a body in bytes; a size above it is no message, whatever is configured.
const BODY_SIZE_MAX: u64 = 512 * 1024 * 1024;

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

/// What a frame did to the message it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Class and method.
    pub fn ids(&self) -> (u16, u16) {
        match self.method.first_chunk() {
            Some(&[class0, class1, method0, method1]) => {
                (u16::from_be_bytes([class0, class1]), u16::from_be_bytes([method0, method1]))
            }
            None => (0, 0),
        }
    }

    /// Takes the content header; an empty body makes the message complete.
    pub fn set_header(&mut self, payload: &[u8], body_size: u64) -> Progress {
        self.header = payload.to_vec();
        self.body_size = body_size;
        self.progress()
    }

    /// Takes a body frame or a piece of one, of whose frame `frame_left` more bytes will come. `None` when the frame
    /// is longer than what the message still lacks.
    pub fn append(&mut self, bytes: &[u8], frame_left: u32) -> Option<Progress> {
        let body_left = self.body_size - self.body.len() as u64;
        if bytes.len() as u64 + u64::from(frame_left) > body_left {
            return None;
        }
        self.reserve(bytes.len());
        self.body.extend_from_slice(bytes);
        Some(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.body.len() as u64 == self.body_size {
            Progress::Complete
        } else {
            Progress::Incomplete
        }
    }

    /// Makes room for `additional` bytes: doubling, but never beyond the announced size.
    fn reserve(&mut self, additional: usize) {
        let needed = self.body.len() + additional;
        if needed > self.body.capacity() {
            let doubled = (self.body.capacity() as u64 * 2).max(FIRST_CAPACITY).max(needed as u64);
            let capacity = doubled.min(self.body_size) as usize;
            self.body.reserve_exact(capacity - self.body.len());
        }
    }

    /// Bytes of memory that it takes.
    pub fn held_bytes(&self) -> u64 {
        (self.method.capacity() + self.header.capacity() + self.body.capacity()) as u64
    }

    pub fn finish(self) -> Assembled {
        Assembled { method: self.method.into(), header: self.header.into(), body: self.body.into() }
    }
}

/// Reads the header frame that a message under way waits for; `ids` are those of its method.
///
/// The error tells whether the header is no good (as a failure of the connection), or comes out of order.
pub(crate) fn check_header<'a>(
    frame: Frame<'a>,
    ids: (u16, u16),
) -> Result<ContentHeader<'a>, HeaderError> {
    let header = ContentHeader::parse(frame.payload).map_err(|error| match error.kind {
        DecodeErrorKind::NonZeroWeight(_) => HeaderError::OutOfOrder,
        _ => HeaderError::Failed(malformed_frame(frame)),
    })?;
    if header.class_id != basic::CLASS_ID {
        let (expected, got) = (basic::CLASS_ID, header.class_id);
        let explanation = format!(
            "expected content header for class {expected}, got one for class {got} instead"
        );
        return Err(HeaderError::Failed(Failure::of(UNEXPECTED_FRAME, explanation, ids)));
    }
    if header.body_size > BODY_SIZE_MAX {
        let size = header.body_size;
        let explanation =
            format!("content body size {size} exceeds maximum allowed size {BODY_SIZE_MAX}");
        return Err(HeaderError::Failed(Failure::of(FRAME_ERROR, explanation, ids)));
    }
    Ok(header)
}

/// What can be wrong with a header frame.
pub(crate) enum HeaderError {
    /// It is none that a message can begin with.
    OutOfOrder,
    Failed(Failure),
}
