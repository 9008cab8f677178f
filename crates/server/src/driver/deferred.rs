//! What is left unread while the store is behind: publishes of a client that has not published to the log lately, as nothing is
//! known of it before, and its first messages would fill what waits for the disk, one client after the other; and, when that
//! is nearly full, what else may come in any number: messages that are not persistent, and acknowledgements.

use courser_codec::{ContentHeader, Frame, FrameKind, basic};

/// If the next frames are a message, as far as it has come, or settle deliveries: whether they are a persistent message.
pub(super) fn next_append(input: &[u8]) -> Option<bool> {
    let (frame, len) = Frame::parse(input, 0).ok()??;
    match frame.kind {
        FrameKind::Header => Some(is_persistent(&frame)),
        FrameKind::Method if frame.payload.starts_with(&PUBLISH) => {
            let next = Frame::parse(&input[len..], 0).ok().flatten();
            let header = next.filter(|(next, _)| next.kind == FrameKind::Header);
            Some(header.is_some_and(|(header, _)| is_persistent(&header)))
        }
        FrameKind::Method => {
            SETTLEMENTS.iter().any(|method| frame.payload.starts_with(method)).then_some(false)
        }
        _ => None,
    }
}

/// How the payload of a frame begins that publishes.
const PUBLISH: [u8; 4] = begin(basic::Publish::METHOD_ID);
/// The same of one that settles deliveries.
const SETTLEMENTS: [[u8; 4]; 3] =
    [begin(basic::Ack::METHOD_ID), begin(basic::Nack::METHOD_ID), begin(basic::Reject::METHOD_ID)];

const fn begin(method: u16) -> [u8; 4] {
    let ([class, of_class], [method, of_method]) =
        (basic::CLASS_ID.to_be_bytes(), method.to_be_bytes());
    [class, of_class, method, of_method]
}

fn is_persistent(header: &Frame<'_>) -> bool {
    let content = ContentHeader::parse(header.payload);
    content.is_ok_and(|content| content.properties.delivery_mode() == Ok(Some(2)))
}
