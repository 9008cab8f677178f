//! A client's end of a connection: a socket, or a WebSocket on it.

use super::socket::Socket;
use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Bytes of a message of a WebSocket, at most.
const MESSAGE_BYTES: usize = 16 * 1024;
/// Bytes that are read ahead.
const READ_BYTES: usize = 8 * 1024;

/// What a client speaks AMQP on.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl Wire for Socket {}

/// What a client asks for that wants a connection over which requests come to become a WebSocket.
const UPGRADE: &[u8] =
    b"GET /ws/amqp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Has a connection over which requests come become a WebSocket.
pub(super) async fn upgrade(socket: &mut Socket) -> io::Result<()> {
    socket.write_all(UPGRADE).await?;
    let mut head = Vec::new();
    // What follows is the WebSocket's.
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    match head.starts_with(b"HTTP/1.1 101 ") {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&head).into_owned())),
    }
}

/// A client's end of a WebSocket whose handshake is done.
pub(crate) struct ClientWebSocket<S> {
    socket: WebSocketStream<S>,
    received: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientWebSocket<S> {
    pub async fn new(socket: S) -> Self {
        let config = WebSocketConfig::default().read_buffer_size(READ_BYTES);
        let socket = WebSocketStream::from_raw_socket(socket, Role::Client, Some(config)).await;
        ClientWebSocket { socket, received: Bytes::new() }
    }
}

impl Wire for ClientWebSocket<Socket> {}

fn into_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientWebSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.received.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.received = bytes,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(into_io(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.received.len().min(buf.remaining());
        buf.put_slice(&self.received[..count]);
        self.received.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientWebSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        // One message at a time.
        ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(into_io)?;
        let count = buf.len().min(MESSAGE_BYTES);
        let message = Message::Binary(Bytes::copy_from_slice(&buf[..count]));
        Pin::new(&mut self.socket).start_send(message).map_err(into_io)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(into_io)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx).map_err(into_io)
    }
}
