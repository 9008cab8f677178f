//! Looks for `connection.open-ok` in what the node that leads says to a client: it has let the client in.
//!
//! Frames are gone through one after the other, as a client that has not logged in has a say in what is within them: the
//! reason why it is refused names the mechanism that it wants, and a WebSocket sends back what a ping has.

use crate::websocket::FrameHeads;
use courser_codec::connection;
use tungstenite::protocol::frame::coding::OpCode;

/// Bytes of a frame of AMQP around its payload: kind, channel and size, and the end.
const FRAME_HEADER_BYTES: usize = 7;
const FRAME_END_BYTES: u64 = 1;

/// What has been said so far.
pub(super) struct Opening {
    /// Where it comes in the messages of a WebSocket.
    messages: Option<Messages>,
    frames: Frames,
}

impl Opening {
    /// Of a connection of AMQP.
    pub fn of_amqp() -> Self {
        Opening { messages: None, frames: Frames::new() }
    }

    /// Of one in a WebSocket.
    pub fn of_web_socket() -> Self {
        Opening { messages: Some(Messages::default()), ..Opening::of_amqp() }
    }

    /// Whether it is in what is said next.
    pub fn is_in(&mut self, mut said: &[u8]) -> bool {
        let Some(messages) = &mut self.messages else { return self.frames.have_open_ok(said) };
        while !said.is_empty() {
            if self.frames.have_open_ok(messages.take(&mut said)) {
                return true;
            }
        }
        false
    }
}

/// The frames of a WebSocket.
#[derive(Default)]
struct Messages {
    heads: FrameHeads,
    /// Bytes that are left of the last one's payload, and whether they belong to a message.
    left: u64,
    is_data: bool,
}

impl Messages {
    /// Takes something of what is said. Returns what of that belongs to a message.
    fn take<'a>(&mut self, said: &mut &'a [u8]) -> &'a [u8] {
        if self.left == 0 {
            (self.is_data, self.left) = match self.heads.take(said) {
                Ok(Some((head, left))) => (matches!(head.opcode, OpCode::Data(_)), left),
                Ok(None) => (false, 0),
                // It is no WebSocket, and nothing can be found in it.
                Err(_) => (false, u64::MAX),
            };
        }
        let payload = skip(said, &mut self.left);
        if self.is_data { payload } else { &[] }
    }
}

/// The frames of AMQP.
struct Frames {
    open_ok: Vec<u8>,
    /// The beginning of one, as long as it may become that.
    begun: Vec<u8>,
    /// Bytes that are left of another one.
    left: u64,
}

impl Frames {
    fn new() -> Self {
        let mut open_ok = Vec::new();
        connection::OpenOk {}.write_frame(0, &mut open_ok);
        Frames { open_ok, begun: Vec::new(), left: 0 }
    }

    fn have_open_ok(&mut self, mut said: &[u8]) -> bool {
        loop {
            skip(&mut said, &mut self.left);
            let [byte, rest @ ..] = said else { return false };
            said = rest;
            self.begun.push(*byte);
            if self.begun == self.open_ok {
                return true;
            }
            if let Some([_, _, _, size @ ..]) = self.begun.first_chunk::<FRAME_HEADER_BYTES>()
                && !self.open_ok.starts_with(&self.begun)
            {
                let size = u32::from_be_bytes(*size);
                let whole = FRAME_HEADER_BYTES as u64 + u64::from(size) + FRAME_END_BYTES;
                self.left = whole - self.begun.len() as u64;
                self.begun.clear();
            }
        }
    }
}

/// Takes as much as is left.
fn skip<'a>(said: &mut &'a [u8], left: &mut u64) -> &'a [u8] {
    let count = usize::try_from(*left).map_or(said.len(), |left| left.min(said.len()));
    let (taken, rest) = said.split_at(count);
    (*said, *left) = (rest, *left - count as u64);
    taken
}

#[cfg(test)]
pub(super) fn open_ok() -> Vec<u8> {
    Frames::new().open_ok
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_codec::{ShortStr, reply_code};

    /// Says all of it in pieces of each size. Whether the client has been let in.
    fn lets_in(opening: fn() -> Opening, said: &[u8]) -> bool {
        let found = (1..=said.len()).map(|bytes| {
            let mut opening = opening();
            said.chunks(bytes).any(|piece| opening.is_in(piece))
        });
        let found: Vec<bool> = found.collect();
        assert!(found.windows(2).all(|two| two[0] == two[1]), "{said:?}: {found:?}");
        found[0]
    }

    /// A refusal whose reason names this.
    fn refusal(reason: &[u8]) -> Vec<u8> {
        let close = connection::Close {
            reply_code: reply_code::ACCESS_REFUSED,
            reply_text: ShortStr::new(reason).expect("short"),
            class_id: 0,
            method_id: 0,
        };
        let mut frame = Vec::new();
        close.write_frame(0, &mut frame);
        frame
    }

    /// A frame of a WebSocket, as a server sends it.
    fn framed(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            bytes @ ..126 => frame.push(bytes as u8),
            bytes => frame.extend([126, (bytes >> 8) as u8, bytes as u8]),
        }
        frame.extend(payload);
        frame
    }

    #[test]
    fn a_client_is_let_in_by_a_frame_of_its_own_and_by_nothing_within_others() {
        let (open_ok, heartbeat) = (open_ok(), [8, 0, 0, 0, 0, 0, 0, 0xce]);
        let within = refusal(&[b"mechanism '", &open_ok[..], b"\xb1' is not offered"].concat());
        let looks_like_it = [&open_ok[..12], &[0xcd]].concat();
        let before = [&within[..], &heartbeat, &looks_like_it, &refusal(&[b' '; 200])].concat();
        assert!(!lets_in(Opening::of_amqp, &before));
        assert!(lets_in(Opening::of_amqp, &[&before[..], &open_ok].concat()));
        assert!(!lets_in(Opening::of_amqp, &[b"AMQP\0\0\x09\x01", &open_ok[..]].concat()));
    }

    #[test]
    fn what_a_web_socket_says_besides_messages_lets_no_client_in() {
        let open_ok = open_ok();
        let pong = framed(0x8a, &open_ok);
        assert!(!lets_in(Opening::of_web_socket, &pong));
        // A frame of AMQP may be in several messages, with others between them.
        let refusal = refusal(&[b' '; 200]);
        let whole = framed(0x82, &refusal);
        let parts = [framed(0x02, &open_ok[..5]), pong, framed(0x80, &open_ok[5..])].concat();
        assert!(lets_in(Opening::of_web_socket, &[whole, parts].concat()));
        let reserved = [&[0x83, 0][..], &framed(0x82, &open_ok)].concat();
        assert!(!lets_in(Opening::of_web_socket, &reserved));
    }
}
