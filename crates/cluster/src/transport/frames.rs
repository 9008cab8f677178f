//! Packets as bytes of a connection: `4 length, 4 sum (CRC-32C), packet`; a length of 0 without a sum asks whether the
//! other end is there, which it answers with one byte.
//!
//! A long packet goes in parts, so that others go between them: each has a length and a sum of its own. The length has
//! [`PART`] in it, and that of the last one [`LAST`] too.

use crate::packet::{MalformedPacket, PACKET_BYTES_MAX, Packet};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The answer to the question whether one is there.
pub(super) const PONG: u8 = 1;
/// The answer of a node whose part of the group does not run: what it is sent for the group is lost.
pub(super) const IDLE: u8 = 2;
/// The question.
pub(super) const PING: [u8; 4] = [0; 4];

/// Bytes of a part, at most, and of a packet that goes as a whole.
pub(super) const PART_BYTES: usize = 256 << 10;
/// In the length of a part. No packet is so long.
const PART: u32 = 1 << 31;
/// In the length of the last part.
const LAST: u32 = 1 << 30;

/// Bytes that are made room for before they have come.
const ROOM_BYTES: usize = 1 << 20;
/// How long nothing may come: nodes say every second that they are there.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What a connection for packets says.
#[derive(Debug)]
pub(super) enum Frame {
    Packet(Packet),
    Ping,
}

/// Appends a packet.
pub(super) fn encode(packet: &Packet, out: &mut BytesMut) {
    let head = begin(out);
    packet.encode(out);
    end(out, head, 0);
}

fn begin(out: &mut BytesMut) -> usize {
    out.put_u64_le(0);
    out.len() - 8
}

/// Says what has been put behind the head of a frame.
fn end(out: &mut BytesMut, head: usize, flags: u32) {
    let body = head + 8;
    let (len, sum) = ((out.len() - body) as u32, crc32c::crc32c(&out[body..]));
    out[head..head + 4].copy_from_slice(&(len | flags).to_le_bytes());
    out[head + 4..body].copy_from_slice(&sum.to_le_bytes());
}

/// What is left to be sent of a packet that goes in parts. Its entries are not copied before.
pub(super) struct Parts(VecDeque<Bytes>);

impl Parts {
    pub fn new(packet: &Packet) -> Self {
        Parts(packet.pieces().into())
    }

    /// Appends the next part. Returns whether others follow.
    pub fn encode_next(&mut self, out: &mut BytesMut) -> bool {
        let head = begin(out);
        let mut room = PART_BYTES;
        while let Some(piece) = self.0.front_mut().filter(|_| room > 0) {
            let taken = piece.split_to(piece.len().min(room));
            out.put_slice(&taken);
            room -= taken.len();
            if piece.is_empty() {
                self.0.pop_front();
            }
        }
        let follows = !self.0.is_empty();
        end(out, head, if follows { PART } else { PART | LAST });
        follows
    }
}

/// Reads the next frame. What a peer only announces takes no memory. `parts` is what has come of a packet that comes in
/// parts, and belongs to the connection.
///
/// # Errors
/// When the connection has ended, or what comes is no frame.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    parts: &mut BytesMut,
) -> io::Result<Frame> {
    loop {
        let word = within(stream.read_u32_le()).await?;
        if word == 0 {
            return Ok(Frame::Ping);
        }
        let is_part = word & PART != 0;
        let (len, most) = match is_part {
            true => ((word & !(PART | LAST)) as usize, PART_BYTES),
            false => (word as usize, PACKET_BYTES_MAX),
        };
        if len > most || is_part && parts.len() + len > PACKET_BYTES_MAX {
            return Err(malformed("a packet between nodes is too long"));
        }
        let sum = within(stream.read_u32_le()).await?;
        let mut bytes = read_exactly(stream, len).await?;
        if crc32c::crc32c(&bytes) != sum {
            return Err(malformed("a packet between nodes was damaged on its way"));
        }
        if is_part {
            parts.extend_from_slice(&bytes);
            if word & LAST == 0 {
                continue;
            }
            bytes = std::mem::take(parts).freeze();
        }
        return Packet::decode(bytes)
            .map(Frame::Packet)
            .map_err(|MalformedPacket(what)| malformed(what));
    }
}

/// Reads so many bytes.
pub(super) async fn read_exactly(
    stream: &mut (impl AsyncRead + Unpin),
    len: usize,
) -> io::Result<Bytes> {
    let mut bytes = BytesMut::with_capacity(len.min(ROOM_BYTES));
    let mut rest = stream.take(len as u64);
    while bytes.len() < len {
        bytes.reserve((len - bytes.len()).min(ROOM_BYTES));
        if within(rest.read_buf(&mut bytes)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.freeze())
}

/// Does it, unless the other end is silent.
pub(super) async fn within<T>(reading: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(SILENCE_MAX, reading).await {
        Ok(read) => read,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the other end is silent")),
    }
}

pub(super) fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
