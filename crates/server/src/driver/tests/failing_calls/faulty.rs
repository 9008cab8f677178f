//! A stream of which one call goes wrong.

use crate::driver::ClientStream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A byte is all that it does.
    Short,
    /// It waits, and is to be tried again at once.
    Blocked,
    /// The client is gone: reads end, and writes fail.
    Ended,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read,
    Write,
    Flush,
    Shutdown,
}

/// A stream whose calls of one kind go wrong when so many have passed.
pub struct Faulty<S> {
    pub stream: S,
    pub fault: Fault,
    pub call: Call,
    pub left: usize,
    pub is_written_anywhere: bool,
    pub went_wrong: Arc<AtomicBool>,
}

impl<S: ClientStream> ClientStream for Faulty<S> {
    fn is_written_anywhere(&self) -> bool {
        self.is_written_anywhere
    }
}

impl<S> Faulty<S> {
    /// What is wrong with this call, if anything is.
    fn check(&mut self, call: Call) -> Option<Fault> {
        if self.went_wrong.load(Relaxed) {
            let is_over = matches!(self.fault, Fault::Ended | Fault::Failed);
            return is_over.then_some(self.fault);
        }
        if call != self.call {
            return None;
        }
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.went_wrong.store(true, Relaxed);
        Some(self.fault)
    }
}

impl<S: ClientStream> AsyncRead for Faulty<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.check(Call::Read) {
            None => Pin::new(&mut self.stream).poll_read(cx, buf),
            Some(Fault::Short) => {
                let mut short = [0];
                let mut one = ReadBuf::new(&mut short);
                let read = Pin::new(&mut self.stream).poll_read(cx, &mut one);
                buf.put_slice(one.filled());
                read
            }
            Some(Fault::Blocked) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Fault::Ended) => Poll::Ready(Ok(())),
            Some(Fault::Failed) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl<S: ClientStream> AsyncWrite for Faulty<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.check(Call::Write) {
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
            Some(Fault::Short) => {
                let short = bytes.len().min(1);
                Pin::new(&mut self.stream).poll_write(cx, &bytes[..short])
            }
            Some(Fault::Blocked) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Fault::Ended) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(Fault::Failed) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.check(Call::Flush) {
            None => Pin::new(&mut self.stream).poll_flush(cx),
            Some(fault) => nothing_done(fault, cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.check(Call::Shutdown) {
            None => Pin::new(&mut self.stream).poll_shutdown(cx),
            Some(fault) => nothing_done(fault, cx),
        }
    }
}

/// What is said of a call that has no part which could be done.
fn nothing_done(fault: Fault, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    match fault {
        Fault::Short | Fault::Blocked => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Fault::Ended => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        Fault::Failed => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
    }
}
