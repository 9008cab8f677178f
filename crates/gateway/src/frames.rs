//! How a ZeroMQ message of many frames becomes an AMQP message, and back, without loss.
//!
//! The last frame is the body. Frames before it go into the header [`FRAMES_HEADER`], an array of byte arrays. When
//! they are too large for a header, the body is all frames one behind the other, and [`LENGTHS_HEADER`] has the length
//! of each.

use bytes::{Bytes, BytesMut};
use courser_client::{FieldTable, FieldValue, Message as AmqpMessage, ShortString};
use omq_tokio::Message;

/// An array with the frames before the last one.
pub const FRAMES_HEADER: &str = "x-zmq-frames";
/// An array with the lengths of all frames, which stand one behind the other in the body.
pub const LENGTHS_HEADER: &str = "x-zmq-lengths";
/// Bytes of frames that go into a header, and of lengths. A broker whose frames are the smallest that AMQP has, 4096 bytes, takes
/// headers of three quarters of that from publishers; 500 bytes are left for other properties.
const HEADER_BYTES_MAX: usize = 2560;
/// Bytes of a frame's length in a header.
const LENGTH_BYTES: usize = 5;
/// Frames of a message. More of them are refused: their lengths have to fit into a header.
pub(crate) const FRAMES_MAX: usize = HEADER_BYTES_MAX / LENGTH_BYTES;

/// The headers and the body that a message is carried as.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Headers that say what the body alone does not.
    pub headers: FieldTable,
    /// The last frame, or all.
    pub body: Bytes,
}

/// Maps frames to an AMQP message. A single frame has no headers, unless `always`: then there is an empty array, which
/// tells it from a message of an AMQP program.
///
/// `None` when there is no frame, or more than 512.
pub fn to_amqp(frames: &[Bytes], always: bool) -> Option<Mapped> {
    let (last, before) = frames.split_last()?;
    if frames.len() > FRAMES_MAX {
        return None;
    }
    // A type and a length come before each.
    let header_bytes: usize = before.iter().map(|frame| frame.len() + 5).sum();
    let mut headers = FieldTable::new();
    if header_bytes <= HEADER_BYTES_MAX {
        if always || !before.is_empty() {
            let array = before.iter().map(|frame| FieldValue::Bytes(frame.to_vec())).collect();
            headers.insert(name(FRAMES_HEADER)?, FieldValue::Array(array));
        }
        return Some(Mapped { headers, body: last.clone() });
    }
    let mut lengths = Vec::with_capacity(frames.len());
    let mut body = BytesMut::with_capacity(frames.iter().map(Bytes::len).sum());
    for frame in frames {
        lengths.push(FieldValue::I32(i32::try_from(frame.len()).ok()?));
        body.extend_from_slice(frame);
    }
    headers.insert(name(LENGTHS_HEADER)?, FieldValue::Array(lengths));
    Some(Mapped { headers, body: body.freeze() })
}

fn name(header: &str) -> Option<ShortString> {
    ShortString::try_from(header).ok()
}

/// The frames of an AMQP message: those that it was made from, or the body alone. The flag says whether its headers
/// told.
///
/// `None` when the headers contradict the body, or are no headers of this kind.
pub fn from_amqp(headers: Option<&FieldTable>, body: Bytes) -> Option<(Vec<Bytes>, bool)> {
    let find = |header| headers.and_then(|headers| headers.get(header));
    if let Some(lengths) = find(LENGTHS_HEADER) {
        return Some((cut(lengths, body)?, true));
    }
    let Some(before) = find(FRAMES_HEADER) else {
        return Some((vec![body], false));
    };
    let FieldValue::Array(before) = before else { return None };
    let mut frames = Vec::with_capacity(before.len() + 1);
    for frame in before {
        match frame {
            FieldValue::Bytes(bytes) | FieldValue::LongStr(bytes) => {
                frames.push(Bytes::copy_from_slice(bytes));
            }
            _ => return None,
        }
    }
    frames.push(body);
    (frames.len() <= FRAMES_MAX).then_some((frames, true))
}

/// Cuts a body into frames. Programs may have written the lengths in any width.
fn cut(lengths: &FieldValue, mut body: Bytes) -> Option<Vec<Bytes>> {
    let FieldValue::Array(lengths) = lengths else { return None };
    if lengths.is_empty() || lengths.len() > FRAMES_MAX {
        return None;
    }
    let mut frames = Vec::with_capacity(lengths.len());
    for length in lengths {
        let length: usize = match *length {
            FieldValue::I8(n) => n.try_into().ok()?,
            FieldValue::U8(n) => n.into(),
            FieldValue::I16(n) => n.try_into().ok()?,
            FieldValue::U16(n) => n.into(),
            FieldValue::I32(n) => n.try_into().ok()?,
            FieldValue::U32(n) => n.try_into().ok()?,
            FieldValue::I64(n) => n.try_into().ok()?,
            _ => return None,
        };
        if length > body.len() {
            return None;
        }
        frames.push(body.split_to(length));
    }
    body.is_empty().then_some(frames)
}

/// The frames of a ZeroMQ message.
pub(crate) fn frames_of(message: &Message) -> Vec<Bytes> {
    (0..message.len()).filter_map(|index| message.part_bytes(index)).collect()
}

/// The frames of an AMQP message; see [`from_amqp`]. `None` for malformed headers.
pub(crate) fn frames_of_amqp(message: AmqpMessage) -> Option<(Vec<Bytes>, bool)> {
    let properties = message.owned_properties().ok()?;
    from_amqp(properties.headers.as_ref(), message.into_body())
}

/// A request, divided at its first empty frame as ZeroMQ's patterns do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Everything up to and with the first empty frame; nothing where there is no empty frame.
    pub address: Vec<Bytes>,
    /// What comes behind it, at least one frame.
    pub content: Vec<Bytes>,
}

impl Envelope {
    /// Divides a message.
    #[must_use]
    pub fn divide(mut frames: Vec<Bytes>) -> Self {
        let mut content = match frames.iter().position(Bytes::is_empty) {
            Some(at) => frames.split_off(at + 1),
            None => std::mem::take(&mut frames),
        };
        if content.is_empty() {
            content.push(Bytes::new());
        }
        Envelope { address: frames, content }
    }
}
