//! The other half of the hot path: what consumers send, `basic.ack`, a frame of fixed size.

use courser_codec::{FRAME_END, FRAME_METHOD, basic};

/// Size of the payload, then class and method.
const ACK_START: [u8; 8] = [0, 0, 0, 13, 0, basic::CLASS_ID as u8, 0, basic::Ack::METHOD_ID as u8];

/// Reads an acknowledgement off the front of `input`: its channel, the method, and what follows it. What is anything
/// else is left to the general path.
#[inline]
pub(super) fn whole_ack(input: &[u8]) -> Option<(u16, basic::Ack, &[u8])> {
    let (frame, rest) = input.split_first_chunk::<21>()?;
    if frame[0] != FRAME_METHOD || frame[3..11] != ACK_START || frame[20] != FRAME_END {
        return None;
    }
    let delivery_tag = u64::from_be_bytes([
        frame[11], frame[12], frame[13], frame[14], frame[15], frame[16], frame[17], frame[18],
    ]);
    let ack = basic::Ack { delivery_tag, multiple: frame[19] & 1 != 0 };
    Some((u16::from_be_bytes([frame[1], frame[2]]), ack, rest))
}
