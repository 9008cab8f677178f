//! Takes the input apart: whole frames as they are, large body frames piece by piece.
//!
//! A method, header or heartbeat frame is only taken when it is complete. A body frame that is larger than
//! [`WAIT_MAX`] is taken as it comes, so that the caller need not keep (and move) a large half frame. The last byte of
//! such a frame's payload waits for the end marker behind it: a piece that ends a frame is always good.

use courser_codec::reply_code::{COMMAND_INVALID, FRAME_ERROR, NOT_IMPLEMENTED, UNEXPECTED_FRAME};
use courser_codec::{DecodeError, DecodeErrorKind, FRAME_END, Frame, FrameError, FrameKind};

use crate::binary::{FrameSnippet, SNIPPET_LEN};
use crate::close::Failure;

/// Frames and bodies up to this size, in bytes, are waited for as a whole instead of being taken in pieces.
pub(crate) const WAIT_MAX: usize = 16 * 1024;

/// How far a frame's size may be above the agreed one. Clients that forget to count header and end marker are common,
/// and RabbitMQ lets them pass.
const SIZE_TOLERANCE: u32 = Frame::OVERHEAD as u32;

/// Bytes before a frame's payload.
pub(crate) const FRAME_HEADER_LEN: usize = 7;

/// What lies at the front of the input.
pub(crate) enum Piece<'a> {
    /// A whole method, header or heartbeat frame.
    Frame(Frame<'a>),
    /// A body frame or a piece of one.
    Body(BodyPiece<'a>),
    /// Nothing yet; more bytes are needed.
    More,
    /// What cannot be a frame. Nothing behind it can be read.
    Broken(Failure),
}

/// A body frame's payload, or a piece of it.
pub(crate) struct BodyPiece<'a> {
    pub channel: u16,
    pub bytes: &'a [u8],
    /// Bytes of this same frame that are still to come.
    pub frame_left: u32,
}

/// Finds frames in the input.
#[derive(Debug)]
pub(crate) struct Framer {
    /// Largest payload that a frame may have.
    payload_max: u32,
    half_read: Option<HalfReadBody>,
}

/// A body frame of which the front was taken already.
#[derive(Debug)]
struct HalfReadBody {
    channel: u16,
    payload_len: u32,
    payload_left: u32,
    /// For the error text when its end marker turns out to be wrong.
    first_bytes: [u8; SNIPPET_LEN],
}

impl Framer {
    /// For frames of `frame_max` bytes, header and end marker included.
    pub fn new(frame_max: u32) -> Self {
        Self { payload_max: payload_max(frame_max), half_read: None }
    }

    pub fn set_frame_max(&mut self, frame_max: u32) {
        self.payload_max = payload_max(frame_max);
    }

    /// Largest payload that is accepted, in bytes.
    #[inline]
    pub fn payload_max(&self) -> u32 {
        self.payload_max
    }

    /// Whether the input continues a body frame whose front was taken.
    #[inline]
    pub fn is_within_frame(&self) -> bool {
        self.half_read.is_some()
    }

    /// Takes what lies at the front of `input`.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Piece<'a> {
        if self.half_read.is_some() {
            return self.continue_body(input);
        }
        let bytes = *input;
        match Frame::parse(bytes, self.payload_max.saturating_add(Frame::OVERHEAD as u32)) {
            Ok(Some((frame, len))) => {
                *input = &bytes[len..];
                match frame.kind {
                    FrameKind::Body => Piece::Body(BodyPiece {
                        channel: frame.channel,
                        bytes: frame.payload,
                        frame_left: 0,
                    }),
                    _ => Piece::Frame(frame),
                }
            }
            Ok(None) => self.begin_body(input),
            Err(FrameError::UnknownType(_)) => self.unknown_frame(bytes),
            Err(error) => Piece::Broken(broken_frame(error, bytes)),
        }
    }

    /// The error for a frame of a type that does not exist, as soon as there is enough of it to say which.
    #[cold]
    fn unknown_frame<'a>(&self, input: &[u8]) -> Piece<'a> {
        let Some((&[frame_type, _, _, len0, len1, len2, len3], rest)) = input.split_first_chunk()
        else {
            return Piece::More;
        };
        let payload_len = u32::from_be_bytes([len0, len1, len2, len3]);
        if payload_len > self.payload_max {
            let overhead = Frame::OVERHEAD as u32;
            let (size, max) =
                (u64::from(payload_len) + u64::from(overhead), self.payload_max + overhead);
            return Piece::Broken(broken_frame(FrameError::TooLarge { size, max }, input));
        }
        let payload_len = payload_len as usize;
        let payload = &rest[..rest.len().min(payload_len)];
        if payload_len <= SNIPPET_LEN {
            match rest.get(payload_len) {
                Some(&FRAME_END) => {}
                Some(&end) => {
                    return Piece::Broken(bad_end(frame_type, payload, payload_len as u32, end));
                }
                None => return Piece::More,
            }
        } else if payload.len() < SNIPPET_LEN {
            return Piece::More;
        }
        let snippet = FrameSnippet { frame_type, payload, payload_len };
        Piece::Broken(Failure::new(FRAME_ERROR, format!("{snippet}: unknown_frame")))
    }

    /// Takes the front of a body frame that is not complete, if it is worth it.
    #[cold]
    fn begin_body<'a>(&mut self, input: &mut &'a [u8]) -> Piece<'a> {
        let bytes = *input;
        let Some((&[kind, ch0, ch1, len0, len1, len2, len3], payload)) = bytes.split_first_chunk()
        else {
            return Piece::More;
        };
        let payload_len = u32::from_be_bytes([len0, len1, len2, len3]);
        if kind != FrameKind::Body as u8 || payload_len as usize <= WAIT_MAX {
            return Piece::More;
        }
        let Some(&first_bytes) = payload.first_chunk() else { return Piece::More };
        self.half_read = Some(HalfReadBody {
            channel: u16::from_be_bytes([ch0, ch1]),
            payload_len,
            payload_left: payload_len,
            first_bytes,
        });
        *input = payload;
        self.continue_body(input)
    }

    fn continue_body<'a>(&mut self, input: &mut &'a [u8]) -> Piece<'a> {
        let bytes = *input;
        let Some(body) = &mut self.half_read else { return Piece::More };
        let channel = body.channel;
        let payload_left = body.payload_left as usize;
        if let Some((payload, [end, rest @ ..])) = bytes.split_at_checked(payload_left) {
            if *end != FRAME_END {
                return Piece::Broken(bad_end(
                    FrameKind::Body as u8,
                    &body.first_bytes,
                    body.payload_len,
                    *end,
                ));
            }
            *input = rest;
            self.half_read = None;
            return Piece::Body(BodyPiece { channel, bytes: payload, frame_left: 0 });
        }
        // The last byte of the payload stays for when the end marker is there.
        let (now, rest) = bytes.split_at(bytes.len().min(payload_left - 1));
        if now.is_empty() {
            return Piece::More;
        }
        *input = rest;
        body.payload_left -= now.len() as u32;
        Piece::Body(BodyPiece { channel, bytes: now, frame_left: body.payload_left })
    }
}

fn payload_max(frame_max: u32) -> u32 {
    frame_max.saturating_sub(Frame::OVERHEAD as u32).saturating_add(SIZE_TOLERANCE)
}

fn bad_end(frame_type: u8, payload: &[u8], payload_len: u32, end: u8) -> Failure {
    let snippet = FrameSnippet { frame_type, payload, payload_len: payload_len as usize };
    Failure::new(FRAME_ERROR, format!("{snippet}: {{invalid_frame_end_marker,{end}}}"))
}

/// The error that a frame at the front of `input` gives.
#[cold]
fn broken_frame(error: FrameError, input: &[u8]) -> Failure {
    let frame_type = input.first().copied().unwrap_or_default();
    match error {
        FrameError::UnknownType(_) => Failure::new(FRAME_ERROR, error.to_string()),
        FrameError::TooLarge { size, max } => {
            let payload_len = size - Frame::OVERHEAD as u64;
            let limit = max - SIZE_TOLERANCE - Frame::OVERHEAD as u32;
            // Its payload may not have come, and is not waited for.
            let snippet = FrameSnippet { frame_type, payload: &[], payload_len: 0 };
            Failure::new(
                FRAME_ERROR,
                format!("{snippet}: {{frame_too_large,{payload_len},{limit}}}"),
            )
        }
        FrameError::BadEnd(end) => {
            let Some((&[_, _, _, len0, len1, len2, len3], payload)) = input.split_first_chunk()
            else {
                return Failure::new(FRAME_ERROR, error.to_string());
            };
            let payload_len = u32::from_be_bytes([len0, len1, len2, len3]);
            bad_end(
                frame_type,
                &payload[..payload.len().min(payload_len as usize)],
                payload_len,
                end,
            )
        }
    }
}

/// A frame whose payload is too short for its type, or a heartbeat with one.
pub(crate) fn malformed_frame(frame: Frame<'_>) -> Failure {
    Failure::new(FRAME_ERROR, format!("{}: unknown_frame", snippet_of(frame)))
}

/// A frame of a type that must not come here.
pub(crate) fn unexpected_frame(frame: Frame<'_>) -> Failure {
    Failure::new(UNEXPECTED_FRAME, snippet_of(frame).to_string())
}

/// A body frame that must not come here.
pub(crate) fn unexpected_body(body: &BodyPiece<'_>) -> Failure {
    let payload_len = body.bytes.len() + body.frame_left as usize;
    let snippet =
        FrameSnippet { frame_type: FrameKind::Body as u8, payload: body.bytes, payload_len };
    Failure::new(UNEXPECTED_FRAME, snippet.to_string())
}

fn snippet_of(frame: Frame<'_>) -> FrameSnippet<'_> {
    let payload = frame.payload;
    FrameSnippet { frame_type: frame.kind as u8, payload, payload_len: payload.len() }
}

/// The error for a method that cannot be decoded; `payload` is that of its frame.
pub(crate) fn decode_failure(error: DecodeError, payload: &[u8]) -> Failure {
    let Some((&[class0, class1, method0, method1], _)) = payload.split_first_chunk() else {
        return malformed_frame(Frame { kind: FrameKind::Method, channel: 0, payload });
    };
    let ids = (u16::from_be_bytes([class0, class1]), u16::from_be_bytes([method0, method1]));
    match error.kind {
        DecodeErrorKind::UnknownClass(_) => {
            Failure::of(COMMAND_INVALID, "unimplemented method", ids)
        }
        DecodeErrorKind::UnknownMethod { .. } => {
            Failure::of(NOT_IMPLEMENTED, "unimplemented method", ids)
        }
        // RabbitMQ's answer to arguments that do not fit their method.
        _ => Failure::of(FRAME_ERROR, error.to_string(), ids),
    }
}
