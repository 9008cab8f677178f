//! What is left unread while the store is behind: publishes of a client that has not published to the log lately, as nothing is
//! known of it before, and its first messages would fill what waits for the disk, one client after the other; and, when that
//! is nearly full, what else may come in any number: messages that are not persistent, acknowledgements and commits.

use courser_broker::NextAppend;
use courser_codec::{ContentHeader, Frame, FrameKind, basic, tx};

/// What the next frames are of this, as far as they have come.
pub(super) fn next_append(input: &[u8]) -> Option<NextAppend> {
    let (frame, len) = Frame::parse(input, 0).ok()??;
    match frame.kind {
        FrameKind::Header => Some(message(&frame)),
        FrameKind::Method if frame.payload.starts_with(&PUBLISH) => {
            let next = Frame::parse(&input[len..], 0).ok().flatten();
            let header = next.filter(|(next, _)| next.kind == FrameKind::Header);
            Some(header.map_or(NextAppend::Transient, |(header, _)| message(&header)))
        }
        FrameKind::Method => {
            let settles = SETTLEMENTS.iter().any(|method| frame.payload.starts_with(method));
            settles.then_some(NextAppend::Settlement)
        }
        _ => None,
    }
}

/// How the payload of a frame begins that publishes.
const PUBLISH: [u8; 4] = method(basic::CLASS_ID, basic::Publish::METHOD_ID);
/// The same of those that settle deliveries.
const SETTLEMENTS: [[u8; 4]; 4] = [
    method(basic::CLASS_ID, basic::Ack::METHOD_ID),
    method(basic::CLASS_ID, basic::Nack::METHOD_ID),
    method(basic::CLASS_ID, basic::Reject::METHOD_ID),
    method(tx::CLASS_ID, tx::Commit::METHOD_ID),
];

const fn method(class: u16, method: u16) -> [u8; 4] {
    let (class, method) = (class.to_be_bytes(), method.to_be_bytes());
    [class[0], class[1], method[0], method[1]]
}

/// A message by its header.
fn message(header: &Frame<'_>) -> NextAppend {
    let content = ContentHeader::parse(header.payload);
    match content.is_ok_and(|content| content.properties.delivery_mode() == Ok(Some(2))) {
        true => NextAppend::Persistent,
        false => NextAppend::Transient,
    }
}
