//! A message's content that lies in the input as a whole: header frame and one body frame, checked where they lie.
//!
//! Nothing is copied here. What is not plain (frames of other channels in between, a body in several frames, something
//! wrong) is `None`, and is left to the general path, which finds the same bytes untouched.

use courser_codec::{FRAME_BODY, FRAME_END, FRAME_HEADER, Frame, basic};

use crate::framer::{FRAME_HEADER_LEN, Framer, WAIT_MAX};

/// Class and weight that begin a content header.
const HEADER_START: [u8; 4] = [0, basic::CLASS_ID as u8, 0, 0];
/// Class, weight and body size of a content header.
const HEADER_FIXED_LEN: usize = 12;
/// The least that a content header has: the property flags too.
const HEADER_PAYLOAD_MIN: usize = HEADER_FIXED_LEN + 2;

/// Largest payloads that a connection takes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Of a frame.
    payload_max: u32,
    /// Of a body in one frame: no more than a frame's payload and a message may have.
    body_max: u64,
}

impl Limits {
    pub fn new(framer: &Framer, max_message_bytes: u64) -> Self {
        let payload_max = framer.payload_max();
        Self { payload_max, body_max: max_message_bytes.min(payload_max.into()) }
    }

    /// Largest frame, in bytes, header and end marker included.
    #[inline]
    pub fn frame_max(self) -> u32 {
        self.payload_max.saturating_add(Frame::OVERHEAD as u32)
    }
}

/// A message's content in the input.
pub(crate) struct WholeContent<'a> {
    /// Payload of the header frame.
    pub header: &'a [u8],
    pub body: &'a [u8],
    /// What follows the content.
    pub rest: &'a [u8],
}

/// Reads a content off the front of `input`, all of it on this channel.
#[inline]
pub(crate) fn whole_content(
    input: &[u8],
    channel: [u8; 2],
    limits: Limits,
) -> Option<WholeContent<'_>> {
    let fixed: &[u8; FRAME_HEADER_LEN + HEADER_FIXED_LEN] = input.first_chunk()?;
    if fixed[0] != FRAME_HEADER || fixed[1..3] != channel || fixed[7..11] != HEADER_START {
        return None;
    }
    let header_size = u32::from_be_bytes([fixed[3], fixed[4], fixed[5], fixed[6]]);
    let body_size = u64::from_be_bytes([
        fixed[11], fixed[12], fixed[13], fixed[14], fixed[15], fixed[16], fixed[17], fixed[18],
    ]);
    if header_size > limits.payload_max || body_size > limits.body_max {
        return None;
    }
    let (header, rest) = input[FRAME_HEADER_LEN..].split_at_checked(header_size as usize)?;
    let (&end, rest) = rest.split_first()?;
    if end != FRAME_END || header.len() < HEADER_PAYLOAD_MIN {
        return None;
    }
    if body_size == 0 {
        return Some(WholeContent { header, body: &[], rest });
    }
    let (head, rest) = rest.split_first_chunk::<FRAME_HEADER_LEN>()?;
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    if head[0] != FRAME_BODY || head[1..3] != channel || u64::from(size) != body_size {
        return None;
    }
    let (body, rest) = rest.split_at_checked(size as usize)?;
    let (&end, rest) = rest.split_first()?;
    (end == FRAME_END).then_some(WholeContent { header, body, rest })
}

/// Whether what follows a method may still become a small content that [`whole_content`] takes, once more bytes are
/// there.
pub(crate) fn is_worth_waiting(rest: &[u8], channel: u16, limits: Limits) -> bool {
    let channel = channel.to_be_bytes();
    let Some((head, rest)) = rest.split_first_chunk::<FRAME_HEADER_LEN>() else { return true };
    let header_size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let header_max = WAIT_MAX.min(limits.payload_max as usize);
    let is_header = head[0] == FRAME_HEADER && head[1..3] == channel;
    if !is_header || !(HEADER_PAYLOAD_MIN..=header_max).contains(&header_size) {
        return false;
    }
    let Some(&[s0, s1, s2, s3, ref size @ ..]) = rest.first_chunk::<HEADER_FIXED_LEN>() else {
        return true;
    };
    let body_size = u64::from_be_bytes(*size);
    if [s0, s1, s2, s3] != HEADER_START || body_size > limits.body_max.min(WAIT_MAX as u64) {
        return false;
    }
    let Some((&end, rest)) = rest.get(header_size..).and_then(<[u8]>::split_first) else {
        return true;
    };
    if end != FRAME_END || body_size == 0 {
        return false;
    }
    let Some((head, rest)) = rest.split_first_chunk::<FRAME_HEADER_LEN>() else { return true };
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
    let is_whole_body =
        head[0] == FRAME_BODY && head[1..3] == channel && u64::from(size) == body_size;
    is_whole_body && rest.len() <= body_size as usize
}
