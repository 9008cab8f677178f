//! The hot path: a small publish that lies in the input as a whole.
//!
//! Such a message is three frames: method, content header, body. They are checked where they lie, and nothing is
//! copied. Whatever is not plain (frames in between, a body in several frames, something wrong) is `None` here and is
//! left to the general path, which finds the same octets untouched.

use courser_codec::{FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_METHOD, ShortStr, basic};

use super::event::Publish;
use crate::framer::{FRAME_HEADER_LEN, WAIT_MAX};

/// Class and method of `basic.publish`.
const PUBLISH_IDS: [u8; 4] = [0, basic::CLASS_ID as u8, 0, basic::Publish::METHOD_ID as u8];
/// Class and weight that begin its content header.
const HEADER_START: [u8; 4] = [0, basic::CLASS_ID as u8, 0, 0];
/// The least that a content header has: class, weight, body size, property flags.
const HEADER_PAYLOAD_MIN: usize = 14;

/// Largest payloads that a connection takes, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of a frame.
    pub payload_max: u32,
    /// Of a body in one frame: no more than a frame's payload and a message may have.
    pub body_max: u64,
}

/// Reads a publish off the front of `input`: the message and how many octets it has. Its channel is not checked, and
/// its `confirm_seq` is 0.
#[inline]
pub(super) fn whole_publish(input: &[u8], limits: Limits) -> Option<(Publish<'_>, usize)> {
    // Type, channel, size; class, method; ticket, length of the exchange's name.
    let fixed: &[u8; 14] = input.first_chunk()?;
    if fixed[0] != FRAME_METHOD || fixed[7..11] != PUBLISH_IDS {
        return None;
    }
    let channel = [fixed[1], fixed[2]];
    let exchange_len = usize::from(fixed[13]);
    let (exchange, rest) = input[14..].split_at_checked(exchange_len)?;
    let (&key_len, rest) = rest.split_first()?;
    let (routing_key, rest) = rest.split_at_checked(key_len.into())?;
    // Flags, end; type, channel, size; class, weight, body size.
    let (middle, rest) = rest.split_first_chunk::<21>()?;
    let exchange_and_key_len = 2 + exchange_len + usize::from(key_len);
    let method_size = u32::from_be_bytes([fixed[3], fixed[4], fixed[5], fixed[6]]) as usize;
    if method_size != exchange_and_key_len + 7 || middle[1] != FRAME_END {
        return None;
    }
    let bits = middle[0];
    let immediate = bits & 2 != 0;
    if immediate
        || middle[2] != FRAME_HEADER
        || middle[3..5] != channel
        || middle[9..13] != HEADER_START
    {
        return None;
    }
    let header_size = u32::from_be_bytes([middle[5], middle[6], middle[7], middle[8]]);
    let body_size = u64::from_be_bytes([
        middle[13], middle[14], middle[15], middle[16], middle[17], middle[18], middle[19],
        middle[20],
    ]);
    if header_size > limits.payload_max || body_size > limits.body_max {
        return None;
    }
    let header_size = header_size as usize;
    if header_size < HEADER_PAYLOAD_MIN {
        return None;
    }
    // Twelve octets of the header's payload are behind us; its end follows the rest.
    let (&header_end, rest) = rest.get(header_size - 12..)?.split_first()?;
    if header_end != FRAME_END {
        return None;
    }
    let header_at = 14 + exchange_and_key_len - 1 + 9;
    let header = input.get(header_at..header_at + header_size)?;
    let (body, rest) = if body_size == 0 {
        (&[][..], rest)
    } else {
        whole_body(rest, channel, body_size as usize)?
    };
    let publish = Publish {
        channel: u16::from_be_bytes(channel),
        publish: basic::Publish {
            exchange: ShortStr::new(exchange).ok()?,
            routing_key: ShortStr::new(routing_key).ok()?,
            mandatory: bits & 1 != 0,
            immediate,
        },
        exchange_and_key: input.get(13..13 + exchange_and_key_len)?,
        header,
        body,
        confirm_seq: 0,
    };
    Some((publish, input.len() - rest.len()))
}

/// Reads a body frame that has the whole body, and gives what follows it.
#[inline]
fn whole_body(input: &[u8], channel: [u8; 2], body_size: usize) -> Option<(&[u8], &[u8])> {
    let (head, rest) = input.split_first_chunk::<FRAME_HEADER_LEN>()?;
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    if head[0] != FRAME_BODY || head[1..3] != channel || size != body_size {
        return None;
    }
    let (body, rest) = rest.split_at_checked(size)?;
    let (&end, rest) = rest.split_first()?;
    (end == FRAME_END).then_some((body, rest))
}

/// Whether the frames behind a publish's method may still become a small message that [`whole_publish`] takes, once
/// more octets are there. `rest` is what follows the method's frame.
pub(super) fn is_worth_waiting(rest: &[u8], channel: u16, limits: Limits) -> bool {
    let channel = channel.to_be_bytes();
    let Some((head, rest)) = rest.split_first_chunk::<FRAME_HEADER_LEN>() else { return true };
    let header_size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let is_header = head[0] == FRAME_HEADER && head[1..3] == channel;
    let header_max = WAIT_MAX.min(limits.payload_max as usize);
    if !is_header || !(HEADER_PAYLOAD_MIN..=header_max).contains(&header_size) {
        return false;
    }
    let Some(fixed) = rest.first_chunk::<12>() else { return true };
    let body_size = u64::from_be_bytes([
        fixed[4], fixed[5], fixed[6], fixed[7], fixed[8], fixed[9], fixed[10], fixed[11],
    ]);
    if fixed[..4] != HEADER_START || body_size > limits.body_max.min(WAIT_MAX as u64) {
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
