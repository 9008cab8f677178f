//! Tells when the other end of a connection has nothing more to say.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// A stream whose end is told as soon as it is read.
pub(super) struct Ending<'a, S> {
    stream: &'a mut S,
    ended: &'a Notify,
}

impl<'a, S> Ending<'a, S> {
    /// Notifies `ended` when `stream` has ended.
    pub fn new(stream: &'a mut S, ended: &'a Notify) -> Self {
        Ending { stream, ended }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ending<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(cx, into))?;
        if into.filled().len() == before && into.remaining() > 0 {
            self.ended.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ending<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}
