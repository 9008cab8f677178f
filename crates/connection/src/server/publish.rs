//! The hot path: a small publish that lies in the input as a whole, three frames that are checked where they lie.

use courser_codec::{FRAME_END, FRAME_METHOD, ShortStr, basic};

use super::event::Publish;
use crate::whole::{Limits, WholeContent, whole_content};

/// Class and method of `basic.publish`.
const PUBLISH_IDS: [u8; 4] = [0, basic::CLASS_ID as u8, 0, basic::Publish::METHOD_ID as u8];

/// Reads a publish off the front of `input`: the message and what follows it. Its channel is not checked, and its
/// `confirm_seq` is 0. What is not plain is left to the general path.
#[inline]
pub(super) fn whole_publish(input: &[u8], limits: Limits) -> Option<(Publish<'_>, &[u8])> {
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
    let (&[bits, end], rest) = rest.split_first_chunk()?;
    let method_size = u32::from_be_bytes([fixed[3], fixed[4], fixed[5], fixed[6]]) as usize;
    let names_len = 2 + exchange_len + usize::from(key_len);
    let immediate = bits & 2 != 0;
    if method_size != names_len + 7 || end != FRAME_END || immediate {
        return None;
    }
    let WholeContent { header, body, rest } = whole_content(rest, channel, limits)?;
    let publish = Publish {
        channel: u16::from_be_bytes(channel),
        publish: basic::Publish {
            exchange: ShortStr::new(exchange).ok()?,
            routing_key: ShortStr::new(routing_key).ok()?,
            mandatory: bits & 1 != 0,
            immediate,
        },
        exchange_and_key: input.get(13..13 + names_len)?,
        header,
        body,
        confirm_seq: 0,
    };
    Some((publish, rest))
}
