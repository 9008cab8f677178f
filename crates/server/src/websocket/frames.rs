//! Frames of AMQP in what is sent: only whole ones go out.

/// Bytes of a frame of AMQP around its payload: kind, channel and size, and the end.
const FRAME_HEADER_BYTES: usize = 7;
const FRAME_END_BYTES: usize = 1;
/// What a broker answers to a wrong protocol header is no frame.
const PROTOCOL_HEADER: &[u8] = b"AMQP";
const PROTOCOL_HEADER_BYTES: usize = 8;

/// The complete frames that `bytes` begins with.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let [_, _, _, size @ ..] = bytes.get(..FRAME_HEADER_BYTES)? else { return None };
        let size = size.iter().fold(0, |size, byte| size << 8 | usize::from(*byte));
        let (frame, rest) = bytes.split_at_checked(FRAME_HEADER_BYTES + size + FRAME_END_BYTES)?;
        bytes = rest;
        Some(frame)
    })
}

/// Bytes of the complete frames that `bytes` begins with.
pub(super) fn whole_frames(bytes: &[u8]) -> usize {
    if bytes.starts_with(PROTOCOL_HEADER) {
        return if bytes.len() >= PROTOCOL_HEADER_BYTES { bytes.len() } else { 0 };
    }
    frames(bytes).map(<[u8]>::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(size: u8) -> Vec<u8> {
        let mut frame = vec![1, 0, 0, 0, 0, 0, size];
        frame.resize(FRAME_HEADER_BYTES + usize::from(size), 7);
        frame.push(0xce);
        frame
    }

    #[test]
    fn only_whole_frames_go_out() {
        let both = [frame(3), frame(0)].concat();
        for cut in 0..=both.len() {
            let whole = if cut == both.len() { both.len() } else { usize::from(cut >= 11) * 11 };
            assert_eq!(whole_frames(&both[..cut]), whole, "{cut}");
        }
        assert_eq!(whole_frames(b"AMQP\0\0\x09"), 0);
        assert_eq!(whole_frames(b"AMQP\0\0\x09\x01"), 8);
    }
}
