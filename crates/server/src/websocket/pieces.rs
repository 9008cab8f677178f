//! Messages of a WebSocket in pieces, as they come.
//!
//! The library collects a message until its end, however large it is and however slowly it comes. Where a message ends
//! says nothing in AMQP. So each piece of a message gets a header of its own here and is a message by itself for the
//! library: what a client has sent of something unfinished is in its connection of AMQP only, which counts and bounds it.

use bytes::{Buf, BufMut, BytesMut};
use std::io::{self, Cursor};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// Bytes of the longest piece.
pub(super) const PIECE_BYTES: usize = 8 * 1024;
/// Bytes of the longest header: two, the size and the mask.
const HEADER_BYTES_MAX: usize = 14;

/// Why no more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("AMQP needs binary messages")]
    Text,
    #[error("this is not WebSocket")]
    Disorder,
}

/// A stream that is read in pieces. What is written to it stays as it is.
pub(super) struct InPieces<S> {
    pub stream: S,
    /// Bytes that it has taken.
    pub taken: u64,
    cutter: Cutter,
    /// Pieces that have not been read.
    ready: BytesMut,
    refused: Option<Refused>,
}

/// Where in a message the next byte belongs.
#[derive(Default)]
struct Cutter {
    heads: FrameHeads,
    frame: Option<Frame>,
    /// The last frame was not the last of its message.
    is_within_message: bool,
}

/// A frame whose payload has not come whole.
struct Frame {
    /// What pieces have before them, unless the frame stays whole.
    piece: Option<FrameHeader>,
    left: u64,
}

impl<S> InPieces<S> {
    pub fn new(stream: S) -> Self {
        let (cutter, ready) = (Cutter::default(), BytesMut::new());
        InPieces { stream, taken: 0, cutter, ready, refused: None }
    }

    /// Whether who reads it has all of each piece that was begun.
    pub fn is_between_pieces(&self) -> bool {
        // Only a frame of the protocol's own goes on as it comes.
        let is_whole = self.cutter.frame.as_ref().is_none_or(|frame| frame.piece.is_some());
        self.ready.is_empty() && is_whole
    }
}

impl Cutter {
    /// Puts what `input` has of frames into `pieces`.
    fn cut(&mut self, mut input: &[u8], pieces: &mut BytesMut) -> Result<(), Refused> {
        while !input.is_empty() {
            let Some(frame) = &mut self.frame else {
                self.begin(&mut input, pieces)?;
                continue;
            };
            let count =
                usize::try_from(frame.left).map_or(input.len(), |left| left.min(input.len()));
            let (piece, rest) = input.split_at(count);
            if let Some(header) = &mut frame.piece {
                put_header(header, count as u64, pieces);
                // The mask goes on behind this piece where it stopped.
                if let Some(mask) = &mut header.mask {
                    let used = count % mask.len();
                    mask.rotate_left(used);
                }
            }
            pieces.extend_from_slice(piece);
            frame.left -= count as u64;
            if frame.left == 0 {
                self.frame = None;
            }
            input = rest;
        }
        Ok(())
    }

    /// Begins a frame when its header is complete.
    fn begin(&mut self, input: &mut &[u8], pieces: &mut BytesMut) -> Result<(), Refused> {
        let Some((mut header, left)) = self.heads.take(input)? else { return Ok(()) };
        let piece = match header.opcode {
            OpCode::Control(_) => {
                put_header(&header, left, pieces);
                None
            }
            OpCode::Data(Data::Text) => return Err(Refused::Text),
            OpCode::Data(kind) => {
                if (kind == Data::Continue) != self.is_within_message {
                    return Err(Refused::Disorder);
                }
                self.is_within_message = !header.is_final;
                (header.is_final, header.opcode) = (true, OpCode::Data(Data::Binary));
                Some(header)
            }
        };
        self.frame = (left > 0).then_some(Frame { piece, left });
        Ok(())
    }
}

/// The headers of frames, as they come.
#[derive(Default)]
pub(crate) struct FrameHeads {
    /// The beginning of one.
    begun: Vec<u8>,
}

impl FrameHeads {
    /// Takes a header and the size of what follows it, when all of it has come.
    pub fn take(&mut self, input: &mut &[u8]) -> Result<Option<(FrameHeader, u64)>, Refused> {
        let before = self.begun.len();
        let more = input.len().min(HEADER_BYTES_MAX - before);
        self.begun.extend_from_slice(&input[..more]);
        let mut begun = Cursor::new(&self.begun);
        let header = FrameHeader::parse(&mut begun).map_err(|_| Refused::Disorder)?;
        let taken = match header {
            Some(_) => begun.position() as usize - before,
            None => more,
        };
        if header.is_some() {
            self.begun.clear();
        }
        *input = &input[taken..];
        Ok(header)
    }
}

fn put_header(header: &FrameHeader, payload: u64, pieces: &mut BytesMut) {
    // Memory takes all that is written to it.
    let _ = header.format(payload, &mut pieces.writer());
}

impl<S: AsyncRead + Unpin> AsyncRead for InPieces<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.ready.is_empty() {
            if let Some(refused) = this.refused {
                return Poll::Ready(Err(io::Error::other(refused)));
            }
            let mut room = [MaybeUninit::uninit(); PIECE_BYTES];
            let mut read = ReadBuf::uninit(&mut room);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.refused = this.cutter.cut(read.filled(), &mut this.ready).err();
        }
        let count = this.ready.len().min(buf.remaining());
        buf.put_slice(&this.ready[..count]);
        this.ready.advance(count);
        if this.ready.is_empty() {
            // A connection that is idle keeps no memory for this.
            this.ready = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InPieces<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.taken += count as u64;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tungstenite::protocol::frame::FrameSocket;

    const MASK: [u8; 4] = [1, 20, 3, 40];

    /// A frame as clients send it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let size = [0xfe, (payload.len() >> 8) as u8, payload.len() as u8];
        let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [first].into_iter().chain(size).chain(MASK).chain(masked).collect()
    }

    /// The frames that become of `input`, cut into reads of so many bytes: first bytes and payloads.
    fn pieces(input: &[u8], read_bytes: usize) -> Vec<(u8, Vec<u8>)> {
        let (mut cutter, mut out) = (Cutter::default(), BytesMut::new());
        for read in input.chunks(read_bytes) {
            cutter.cut(read, &mut out).expect("good frames");
        }
        let mut frames = FrameSocket::new(Cursor::new(out.to_vec()));
        let mut found = Vec::new();
        while let Some(frame) = frames.read(None).expect("good frames") {
            let mask = frame.header().mask.expect("a mask");
            let first = u8::from(frame.header().opcode) | u8::from(frame.header().is_final) << 7;
            let payload = frame.payload().iter().zip(mask.iter().cycle());
            found.push((first, payload.map(|(byte, mask)| byte ^ mask).collect()));
        }
        found
    }

    #[test]
    fn a_message_comes_in_pieces_and_pings_within_it_come_whole() {
        let ping = [0x89, 0x82, 0, 0, 0, 0, b'h', b'i'];
        let input =
            [frame(0x02, b"some"), ping.to_vec(), frame(0x80, b" bytes"), frame(0x82, b"!")];
        let input = input.concat();
        for read_bytes in 1..=input.len() {
            let found = pieces(&input, read_bytes);
            let (pings, data): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(first, _)| *first == 0x89);
            assert_eq!(pings, [(0x89, b"hi".to_vec())], "{read_bytes}");
            assert!(data.iter().all(|(first, _)| *first == 0x82), "{read_bytes}: {data:?}");
            let bytes: Vec<u8> = data.into_iter().flat_map(|(_, payload)| payload).collect();
            assert_eq!(bytes, b"some bytes!", "{read_bytes}");
        }
    }

    #[test]
    fn text_and_frames_out_of_their_order_are_refused() {
        let cut = |input: &[u8]| Cutter::default().cut(input, &mut BytesMut::new());
        assert_eq!(cut(&frame(0x81, b"text")), Err(Refused::Text));
        assert_eq!(cut(&frame(0x80, b"the rest of nothing")), Err(Refused::Disorder));
        let second_begins = [frame(0x02, b"one"), frame(0x82, b"other")].concat();
        assert_eq!(cut(&second_begins), Err(Refused::Disorder));
        assert_eq!(cut(&frame(0x83, b"no such opcode")), Err(Refused::Disorder));
    }
}
