//! What the driver asks of a client's connection besides its bytes.

use crate::inside::PIPE_BYTES;
use crate::tls::TlsStream;
use crate::websocket::WebSocket;
use courser_cluster::transport::Stream as NodeStream;
use courser_management::{ClientTls, Upgraded};
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Interest, ReadBuf};
use tokio::net::TcpStream;

/// What the library takes to be encrypted before it waits for the socket, with what it adds to each record.
const TLS_KEEPS_BYTES: usize = 66 * 1024;

/// A client's connection.
pub(crate) trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Whether the log thread may write to it. It may where a write is a call of the system that does not wait: sockets,
    /// and TLS around them. Other streams may need the runtime, or wake tasks of other programs.
    fn is_written_anywhere(&self) -> bool {
        false
    }

    /// Whether the client is known to send nothing more, without reading what it has sent.
    fn has_hung_up(&self) -> bool {
        false
    }

    /// Bytes that have gone on, where the stream keeps a part of what it has taken: a client that takes some of that does its
    /// part, though the stream takes no more or is not flushed yet.
    fn passed_on(&self) -> u64 {
        0
    }

    /// Bytes that it may keep of what it has taken while it can't pass them on.
    fn keeps(&self) -> usize {
        0
    }

    /// Has what the other end has not taken thrown away with the stream. The node that passes the stream on learns of the end
    /// by that: behind what a client does not take it would never come.
    fn throw_away_unsent(&self) {}

    /// Its file descriptor, where that is one of a connection between nodes.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Gives back the memory that an idle connection need not keep.
    fn release_memory(&mut self, _cx: &mut Context<'_>) {}
}

impl ClientStream for TcpStream {
    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn has_hung_up(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.ready(Interest::READABLE)).poll(&mut context) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) | Poll::Pending => false,
        }
    }
}

impl ClientStream for TlsStream {
    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn has_hung_up(&self) -> bool {
        self.socket().has_hung_up()
    }

    fn passed_on(&self) -> u64 {
        self.written()
    }

    fn keeps(&self) -> usize {
        TLS_KEEPS_BYTES
    }
}

impl ClientStream for NodeStream {
    fn is_written_anywhere(&self) -> bool {
        matches!(self, NodeStream::Plain(_))
    }

    fn has_hung_up(&self) -> bool {
        self.socket().has_hung_up()
    }

    fn passed_on(&self) -> u64 {
        NodeStream::passed_on(self)
    }

    fn keeps(&self) -> usize {
        if let NodeStream::Secured(_) = self { TLS_KEEPS_BYTES } else { 0 }
    }

    fn throw_away_unsent(&self) {
        // If that fails, the stream has ended.
        let _ = self.socket().set_zero_linger();
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket().as_raw_fd())
    }
}

impl ClientStream for Box<dyn ClientStream> {
    fn is_written_anywhere(&self) -> bool {
        (**self).is_written_anywhere()
    }

    fn has_hung_up(&self) -> bool {
        (**self).has_hung_up()
    }

    fn passed_on(&self) -> u64 {
        (**self).passed_on()
    }

    fn keeps(&self) -> usize {
        (**self).keeps()
    }

    fn throw_away_unsent(&self) {
        (**self).throw_away_unsent();
    }

    fn descriptor(&self) -> Option<RawFd> {
        (**self).descriptor()
    }

    fn release_memory(&mut self, cx: &mut Context<'_>) {
        (**self).release_memory(cx);
    }
}

impl<S: ClientStream> ClientStream for WebSocket<S> {
    fn passed_on(&self) -> u64 {
        self.taken()
    }

    fn keeps(&self) -> usize {
        self.unsent_bytes()
    }

    fn release_memory(&mut self, cx: &mut Context<'_>) {
        WebSocket::release_memory(self, cx);
    }
}

/// A connection that was one for HTTP, at this node or at another one.
pub(crate) struct OfHttp {
    stream: Upgraded,
    /// What is known of the TLS below, if there is some.
    tls: Option<Arc<ClientTls>>,
}

impl OfHttp {
    pub fn new(stream: Upgraded, tls: Option<Arc<ClientTls>>) -> Self {
        OfHttp { stream, tls }
    }
}

impl ClientStream for OfHttp {
    fn passed_on(&self) -> u64 {
        self.tls.as_ref().map_or(0, |tls| tls.taken.load(Ordering::Relaxed))
    }

    fn keeps(&self) -> usize {
        if self.tls.is_some() { TLS_KEEPS_BYTES } else { 0 }
    }
}

impl AsyncRead for OfHttp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for OfHttp {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A pipe within the process.
impl ClientStream for DuplexStream {
    fn keeps(&self) -> usize {
        PIPE_BYTES
    }
}
