//! The handshake of a client and a broker, looked at by the node that carries it: which vhost the client opens, and when the
//! broker has let it come that far.
//!
//! Nothing is answered here. What does not belong into a handshake is passed on as it is, and nothing is watched any more:
//! the broker behind has the right answer to it.

use courser_codec::{Frame, FrameKind, Method, PROTOCOL_HEADER};
use zeroize::Zeroizing;

/// Bytes of a client that are kept at most; there may be a token in them. A broker's frames are no larger either.
const BYTES_MAX: usize = 64 << 10;
/// Bytes of a frame with `connection.open`, at most: three short strings and a few numbers.
const OPEN_BYTES_MAX: usize = 1 << 10;

/// What a client has said so far.
pub(super) struct Handshake {
    /// All of it. There is a password in it.
    bytes: Zeroizing<Vec<u8>>,
    /// Bytes of what is understood.
    read: usize,
    awaited: Awaited,
}

/// What a client says next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Header,
    StartOk,
    /// Or another `secure-ok`.
    TuneOk,
    Open,
    /// Whatever it likes.
    Anything,
}

/// What the last bytes of a client have led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// More has to come.
    More,
    /// The client wants to open this vhost.
    Open(String),
    /// It is no handshake that leads to a vhost: all is to be passed on.
    Other,
}

impl Handshake {
    pub fn new() -> Self {
        Handshake { bytes: Zeroizing::default(), read: 0, awaited: Awaited::Header }
    }

    /// Takes what has come from the client. Not to be called again once it was something else than [`Heard::More`].
    pub fn hear(&mut self, bytes: &[u8]) -> Heard {
        extend(&mut self.bytes, bytes);
        let heard = loop {
            match self.step() {
                Some(Heard::More) => {}
                Some(heard) => break heard,
                None if self.bytes.len() > BYTES_MAX => break Heard::Other,
                None => return Heard::More,
            }
        };
        if heard == Heard::Other {
            self.awaited = Awaited::Anything;
        }
        heard
    }

    /// Understands one more piece, if it is there as a whole.
    fn step(&mut self) -> Option<Heard> {
        let rest = &self.bytes[self.read..];
        if self.awaited == Awaited::Header {
            // Whether it is a good one shows in what the broker says to it.
            rest.get(..PROTOCOL_HEADER.len())?;
            (self.read, self.awaited) = (PROTOCOL_HEADER.len(), Awaited::StartOk);
            return Some(Heard::More);
        }
        let most = if self.awaited == Awaited::Open { OPEN_BYTES_MAX } else { BYTES_MAX };
        let (frame, len) = match Frame::parse(rest, most as u32) {
            Ok(Some(whole)) => whole,
            Ok(None) => return None,
            Err(_) => return Some(Heard::Other),
        };
        if !is_heartbeat(&frame) {
            match (self.awaited, method(&frame)) {
                (Awaited::StartOk, Some(Method::ConnectionStartOk(_))) => {
                    self.awaited = Awaited::TuneOk;
                }
                (Awaited::TuneOk, Some(Method::ConnectionSecureOk(_))) => {}
                (Awaited::TuneOk, Some(Method::ConnectionTuneOk(_))) => {
                    self.awaited = Awaited::Open;
                }
                (Awaited::Open, Some(Method::ConnectionOpen(open))) => {
                    return Some(Heard::Open(open.virtual_host.to_string()));
                }
                _ => return Some(Heard::Other),
            }
        }
        self.read += len;
        Some(Heard::More)
    }

    /// What may be passed on of all that the client has said: all but `connection.open` and what follows it.
    pub fn passable(&self) -> &[u8] {
        match self.awaited {
            Awaited::Open => &self.bytes[..self.read],
            _ => &self.bytes,
        }
    }

    /// All that the client has said.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be kept.
    pub fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        self.bytes
    }
}

/// What a broker says before a client is let into a vhost: `start`, `tune`, and signs of life.
#[derive(Default)]
pub(super) struct Greeting {
    pub stage: Stage,
}

/// How far a broker has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Start,
    Tune,
    /// All is said.
    Tuned,
    /// Something else was said, which is for the client.
    Other,
}

impl Greeting {
    /// Takes the whole frames of a greeting off the front of what a broker says. Once all is said, only signs of life are.
    pub fn take(&mut self, said: &mut Vec<u8>) {
        let mut taken = 0;
        loop {
            let rest = &said[taken..];
            let (frame, len) = match Frame::parse(rest, BYTES_MAX as u32) {
                Ok(Some(whole)) => whole,
                Ok(None) => break,
                Err(_) => {
                    self.stage = Stage::Other;
                    break;
                }
            };
            if !is_heartbeat(&frame) {
                self.stage = match (self.stage, method(&frame)) {
                    (Stage::Start, Some(Method::ConnectionStart(_))) => Stage::Tune,
                    (Stage::Tune, Some(Method::ConnectionTune(_))) => Stage::Tuned,
                    _ => Stage::Other,
                };
            }
            if self.stage == Stage::Other {
                break;
            }
            taken += len;
        }
        said.drain(..taken);
    }
}

/// Appends to bytes with a secret in them, of which none are left behind where they grow.
fn extend(bytes: &mut Zeroizing<Vec<u8>>, more: &[u8]) {
    if bytes.capacity() - bytes.len() < more.len() {
        let mut grown = Zeroizing::new(Vec::with_capacity(2 * (bytes.len() + more.len())));
        grown.extend_from_slice(bytes);
        *bytes = grown;
    }
    bytes.extend_from_slice(more);
}

fn is_heartbeat(frame: &Frame<'_>) -> bool {
    frame.kind == FrameKind::Heartbeat && frame.channel == 0 && frame.payload.is_empty()
}

/// The method of the connection in a frame.
fn method<'a>(frame: &Frame<'a>) -> Option<Method<'a>> {
    let is_method = frame.kind == FrameKind::Method && frame.channel == 0;
    is_method.then(|| Method::decode(frame.payload).ok())?
}

#[cfg(test)]
mod tests;
