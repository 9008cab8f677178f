//! Publishes that are left unread while the store is behind, from a client that has not published to the log lately: nothing is
//! known of it before, and its first messages would fill what waits for the disk, one client after the other.

use courser_codec::{ContentHeader, Frame, FrameKind, basic};

/// If the next frames are a message, whether it is persistent; as far as it has come.
pub(super) fn next_publish(input: &[u8]) -> Option<bool> {
    let (frame, len) = Frame::parse(input, 0).ok()??;
    match frame.kind {
        FrameKind::Header => Some(is_persistent(&frame)),
        FrameKind::Method if frame.payload.starts_with(&PUBLISH) => {
            let next = Frame::parse(&input[len..], 0).ok().flatten();
            let header = next.filter(|(next, _)| next.kind == FrameKind::Header);
            Some(header.is_some_and(|(header, _)| is_persistent(&header)))
        }
        _ => None,
    }
}

/// How the payload of a frame begins that publishes.
const PUBLISH: [u8; 4] = {
    let [class, method] = [basic::CLASS_ID, basic::Publish::METHOD_ID];
    [(class >> 8) as u8, class as u8, (method >> 8) as u8, method as u8]
};

fn is_persistent(header: &Frame<'_>) -> bool {
    let content = ContentHeader::parse(header.payload);
    content.is_ok_and(|content| content.properties.delivery_mode() == Ok(Some(2)))
}
