//! A TLS connection as the driver wants it: large reads, and few system calls for them.
//!
//! rustls asks its transport for 4 KiB at a time and hands out one record a read. So the transport
//! reads ahead into a buffer that the thread lends, and a read takes all records that are there.

use crate::read_buffers;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes asked of the socket in one read.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// A socket of which more is read than was asked for, and that counts what it takes.
pub(crate) struct ReadAhead<S = TcpStream> {
    stream: S,
    /// Read and not asked for yet, from `taken` on.
    ahead: Vec<u8>,
    taken: usize,
    /// Bytes that it has taken.
    written: Arc<AtomicU64>,
}

impl<S> ReadAhead<S> {
    pub fn new(stream: S) -> Self {
        ReadAhead { stream, ahead: Vec::new(), taken: 0, written: Arc::default() }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.stream
    }

    /// Bytes that it has taken, as they are counted.
    pub fn written(&self) -> &Arc<AtomicU64> {
        &self.written
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.written.fetch_add(*bytes as u64, Ordering::Relaxed);
        }
        written
    }

    fn take(&mut self, buf: &mut ReadBuf<'_>) {
        let waiting = &self.ahead[self.taken..];
        let count = waiting.len().min(buf.remaining());
        buf.put_slice(&waiting[..count]);
        self.taken += count;
        if self.taken == self.ahead.len() {
            // An idle connection holds nothing.
            (self.ahead, self.taken) = (Vec::new(), 0);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken < self.ahead.len() {
            self.take(buf);
            return Poll::Ready(Ok(()));
        }
        read_buffers::lend(&read_buffers::RECORDS, READ_AHEAD_BYTES, |lent| {
            let mut read = ReadBuf::new(lent);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let filled = read.filled();
            let count = filled.len().min(buf.remaining());
            buf.put_slice(&filled[..count]);
            self.ahead.extend_from_slice(&filled[count..]);
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(written)
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

/// A connection behind its handshake.
pub(crate) struct TlsStream(tokio_rustls::server::TlsStream<ReadAhead>);

impl TlsStream {
    pub fn new(stream: tokio_rustls::server::TlsStream<ReadAhead>) -> Self {
        TlsStream(stream)
    }

    /// What it goes over.
    pub fn socket(&self) -> &TcpStream {
        self.0.get_ref().0.socket()
    }

    /// Encrypted bytes that the socket has taken.
    pub fn written(&self) -> u64 {
        self.0.get_ref().0.written().load(Ordering::Relaxed)
    }
}

#[cfg(test)]
impl TlsStream {
    /// Bytes that have come and were not read, encrypted and decrypted.
    pub fn unread_bytes(&mut self) -> usize {
        let (below, tls) = self.0.get_mut();
        let state = tls.process_new_packets().expect("good records");
        below.ahead.capacity() + state.plaintext_bytes_to_read()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.0).poll_read(cx, buf))?;
        let mut last = before;
        // Until nothing more is there, the end included; what fails after that fails the next read.
        while buf.remaining() > 0 && buf.filled().len() > last {
            last = buf.filled().len();
            match Pin::new(&mut self.0).poll_read(cx, buf) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
