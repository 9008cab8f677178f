//! Packets as bytes of a connection: `4 length, 4 sum (CRC-32C), packet`; a length of 0 without a sum asks whether the
//! other end is there, which it answers with one byte.

use crate::packet::{MalformedPacket, PACKET_BYTES_MAX, Packet};
use bytes::{BufMut, Bytes, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The answer to the question whether one is there.
pub(super) const PONG: u8 = 1;
/// The answer of a node whose part of the group does not run: what it is sent for the group is lost.
pub(super) const IDLE: u8 = 2;
/// The question.
pub(super) const PING: [u8; 4] = [0; 4];

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
    let head = out.len();
    out.put_u64_le(0);
    packet.encode(out);
    let body = head + 8;
    let (len, sum) = ((out.len() - body) as u32, crc32c::crc32c(&out[body..]));
    out[head..head + 4].copy_from_slice(&len.to_le_bytes());
    out[head + 4..body].copy_from_slice(&sum.to_le_bytes());
}

/// Reads the next frame. What a peer only announces takes no memory.
///
/// # Errors
/// When the connection has ended, or what comes is no frame.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let len = within(stream.read_u32_le()).await? as usize;
    if len == 0 {
        return Ok(Frame::Ping);
    }
    if len > PACKET_BYTES_MAX {
        return Err(malformed("a packet between nodes is too long"));
    }
    let sum = within(stream.read_u32_le()).await?;
    let bytes = read_exactly(stream, len).await?;
    if crc32c::crc32c(&bytes) != sum {
        return Err(malformed("a packet between nodes was damaged on its way"));
    }
    Packet::decode(bytes).map(Frame::Packet).map_err(|MalformedPacket(what)| malformed(what))
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
