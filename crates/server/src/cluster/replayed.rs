//! A client that another broker has greeted already, for the broker that serves it: what it has said is said once more,
//! and the answers that it has had are kept from it.

use super::handshake::{Greeting, Stage};
use crate::driver::ClientStream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use zeroize::Zeroizing;

/// Bytes of a greeting that are kept back at most.
const KEPT_BACK_MAX: usize = 64 << 10;

/// The stream of such a client.
pub(super) struct Replayed {
    stream: Box<dyn ClientStream>,
    /// What it has said, as long as not all of it is read.
    said: Option<Said>,
    /// What it has heard already, as long as not all of it is said once more.
    heard: Option<Box<KeptBack>>,
}

struct Said {
    bytes: Zeroizing<Vec<u8>>,
    read: usize,
}

#[derive(Default)]
struct KeptBack {
    greeting: Greeting,
    bytes: Vec<u8>,
    /// Bytes of those that the client gets after all.
    written: usize,
}

impl Replayed {
    /// `said` is what the client has said so far; what it says next comes from the stream.
    pub fn new(stream: Box<dyn ClientStream>, said: Zeroizing<Vec<u8>>) -> Self {
        let said = (!said.is_empty()).then_some(Said { bytes: said, read: 0 });
        Replayed { stream, said, heard: Some(Box::default()) }
    }

    /// Keeps back what belongs to the greeting. Returns how many bytes it has taken.
    fn keep_back(&mut self, slices: &[IoSlice<'_>]) -> Option<usize> {
        let heard = self.heard.as_mut().filter(|heard| heard.is_greeting())?;
        let mut count = 0;
        for slice in slices {
            let room = KEPT_BACK_MAX - heard.bytes.len();
            let taken = slice.len().min(room);
            heard.bytes.extend_from_slice(&slice[..taken]);
            count += taken;
        }
        heard.greeting.take(&mut heard.bytes);
        if heard.bytes.len() == KEPT_BACK_MAX {
            heard.greeting.stage = Stage::Other;
        }
        if !heard.is_greeting() && heard.bytes.is_empty() {
            self.heard = None;
        }
        Some(count)
    }

    /// Gives the client what was kept back and was no greeting.
    fn poll_give(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(heard) = self.heard.as_mut().filter(|heard| !heard.is_greeting()) else {
            return Poll::Ready(Ok(()));
        };
        while heard.written < heard.bytes.len() {
            let rest = &heard.bytes[heard.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => heard.written += count,
            }
        }
        self.heard = None;
        Poll::Ready(Ok(()))
    }
}

impl KeptBack {
    fn is_greeting(&self) -> bool {
        matches!(self.greeting.stage, Stage::Start | Stage::Tune)
    }
}

impl ClientStream for Replayed {
    fn has_hung_up(&self) -> bool {
        self.stream.has_hung_up()
    }

    fn passed_on(&self) -> u64 {
        self.stream.passed_on()
    }

    fn keeps(&self) -> usize {
        self.stream.keeps()
    }

    fn throw_away_unsent(&self) {
        self.stream.throw_away_unsent();
    }

    fn release_memory(&mut self, cx: &mut Context<'_>) {
        self.stream.release_memory(cx);
    }
}

impl AsyncRead for Replayed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(said) = &mut this.said else {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        };
        let rest = &said.bytes[said.read..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        said.read += count;
        if said.read == said.bytes.len() {
            this.said = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Replayed {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.heard.is_some() {
            if let Some(count) = self.keep_back(bufs) {
                return Poll::Ready(Ok(count));
            }
            ready!(self.poll_give(cx))?;
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_give(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_give(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
