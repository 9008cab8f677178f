//! Frames: type, channel and size before the payload, an end marker behind it (section 4.2.3 of the
//! specification).

use alloc::vec::Vec;

use crate::Sink;
use crate::error::FrameError;
use crate::generated::constants::{
    FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD,
};
use crate::sink::put_filled;
use crate::value::wire_len;

/// Bytes before a frame's payload.
const HEADER_LEN: usize = 7;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A method.
    Method = FRAME_METHOD,
    /// A content header.
    Header = FRAME_HEADER,
    /// A piece of a content's body.
    Body = FRAME_BODY,
    /// A sign of life.
    Heartbeat = FRAME_HEARTBEAT,
}

impl FrameKind {
    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            FRAME_METHOD => Some(Self::Method),
            FRAME_HEADER => Some(Self::Header),
            FRAME_BODY => Some(Self::Body),
            FRAME_HEARTBEAT => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// A frame, its payload borrowed from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload is.
    pub kind: FrameKind,
    /// Number of the channel, 0 for the connection itself.
    pub channel: u16,
    /// The bytes between header and end marker.
    pub payload: &'a [u8],
}

/// A heartbeat, whole.
pub const HEARTBEAT_FRAME: [u8; 8] = [FRAME_HEARTBEAT, 0, 0, 0, 0, 0, 0, FRAME_END];

impl<'a> Frame<'a> {
    /// Bytes that a frame has besides its payload.
    pub const OVERHEAD: usize = HEADER_LEN + 1;

    /// Takes one frame off the front of `input`: the frame and how many bytes it has.
    ///
    /// `None` means that the frame is not there as a whole yet. A type that does not exist and a
    /// size above `frame_max` are found as soon as they can be seen. `frame_max` counts the whole
    /// frame; 0 is no limit.
    ///
    /// # Errors
    /// When the input is no frame; nothing that follows can be read then.
    #[inline]
    pub fn parse(input: &'a [u8], frame_max: u32) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((header, rest)) = input.split_first_chunk::<HEADER_LEN>() else {
            return Self::parse_short(input);
        };
        let Some(kind) = FrameKind::from_byte(header[0]) else {
            return Err(FrameError::UnknownType(header[0]));
        };
        let channel = u16::from_be_bytes([header[1], header[2]]);
        let payload_len = u32::from_be_bytes([header[3], header[4], header[5], header[6]]);
        if frame_max != 0 && u64::from(payload_len) + Self::OVERHEAD as u64 > u64::from(frame_max) {
            return Err(FrameError::TooLarge {
                size: u64::from(payload_len) + Self::OVERHEAD as u64,
                max: frame_max,
            });
        }
        let payload_len = payload_len as usize;
        let Some((payload, rest)) = rest.split_at_checked(payload_len) else {
            return Ok(None);
        };
        match rest.first() {
            Some(&FRAME_END) => {
                Ok(Some((Self { kind, channel, payload }, payload_len + Self::OVERHEAD)))
            }
            Some(&byte) => Err(FrameError::BadEnd(byte)),
            None => Ok(None),
        }
    }

    /// What can be said of less than a frame's header.
    #[cold]
    fn parse_short(input: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        match input.first() {
            Some(&byte) if FrameKind::from_byte(byte).is_none() => {
                Err(FrameError::UnknownType(byte))
            }
            _ => Ok(None),
        }
    }

    /// Bytes of the whole frame.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        Self::OVERHEAD + self.payload.len()
    }

    /// Writes the frame.
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) {
        write_frame(self.kind, self.channel, self.payload, sink);
    }
}

/// Writes what stands before a payload of `payload_len` bytes. [`FRAME_END`] has to follow it.
#[inline]
pub fn write_frame_header(kind: FrameKind, channel: u16, payload_len: u32, sink: &mut impl Sink) {
    // As one number: that stays in a register until it is stored at once.
    let header = (kind as u64) << 56 | u64::from(channel) << 40 | u64::from(payload_len) << 8;
    sink.put(&header.to_be_bytes()[..HEADER_LEN]);
}

/// Writes a frame around a payload.
#[inline]
pub fn write_frame(kind: FrameKind, channel: u16, payload: &[u8], sink: &mut impl Sink) {
    put_filled!(sink, Frame::OVERHEAD + payload.len(), |window| {
        write_frame_header(kind, channel, wire_len(payload.len()), window);
        window.put(payload);
        window.put_u8(FRAME_END);
    });
}

/// Writes a body frame; a body that is larger than a frame has to be cut before.
#[inline]
pub fn write_body_frame(channel: u16, body: &[u8], sink: &mut impl Sink) {
    write_frame(FrameKind::Body, channel, body, sink);
}

/// Writes what stands before `args_len` bytes of a method's arguments.
#[inline]
pub(crate) fn begin_method_frame(
    ids: (u16, u16),
    channel: u16,
    args_len: usize,
    sink: &mut impl Sink,
) {
    // Header and ids as one number, as in `write_frame_header`.
    let header = u128::from(FRAME_METHOD) << 120
        | u128::from(channel) << 104
        | u128::from(wire_len(4 + args_len)) << 72
        | u128::from(ids.0) << 56
        | u128::from(ids.1) << 40;
    sink.put(&header.to_be_bytes()[..HEADER_LEN + 4]);
}

/// Where a frame that is being written in place began.
#[derive(Debug)]
#[must_use = "a frame that was begun has to be ended"]
pub struct FrameMark(usize);

/// Begins a frame whose payload is appended to `out` afterwards.
pub fn begin_frame(kind: FrameKind, channel: u16, out: &mut Vec<u8>) -> FrameMark {
    let mark = FrameMark(out.len());
    write_frame_header(kind, channel, 0, out);
    mark
}

/// Ends a frame: its size is what was appended since it was begun.
pub fn end_frame(mark: FrameMark, out: &mut Vec<u8>) {
    let payload_len = wire_len(out.len() - mark.0 - HEADER_LEN);
    out[mark.0 + 3..mark.0 + HEADER_LEN].copy_from_slice(&payload_len.to_be_bytes());
    out.put_u8(FRAME_END);
}
