//! A client whose vhost is not known yet, for the broker that logs it in: its reader gets all that it says but
//! `connection.open`. There it is decided where the client goes. Either it stays, and nothing is watched any more; or its
//! stream ends for who has read it, and is handed over, with all that the client has said.

use super::handshake::{Greeting, Handshake, Heard, Stage};
use crate::driver::ClientStream;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

/// Bytes read at a time while a client is watched.
const READ_BYTES: usize = 4 << 10;

/// Says where a client goes that wants to open a vhost: nowhere, if nothing is said.
pub(super) type Decision<W> = Pin<Box<dyn Future<Output = Option<W>> + Send>>;

/// A client that goes elsewhere.
pub(super) struct Redirected<W> {
    pub stream: Box<dyn ClientStream>,
    /// What it has said.
    pub said: Zeroizing<Vec<u8>>,
    /// Where it goes.
    pub way: W,
}

/// The stream of a client.
pub(super) struct Watched<W> {
    /// Nothing once it goes elsewhere.
    stream: Option<Box<dyn ClientStream>>,
    /// Nothing once it stays.
    watch: Option<Box<Watch<W>>>,
}

struct Watch<W> {
    handshake: Handshake,
    /// Bytes of what it has said that are passed on.
    passed: usize,
    greeting: Greeting,
    /// The beginning of a frame of the broker's, whose end has yet to come.
    half_said: Vec<u8>,
    /// Wakes who reads when the broker has said more.
    reader: Waker,
    phase: Phase<W>,
    redirected: oneshot::Sender<Redirected<W>>,
}

enum Phase<W> {
    /// The client has not said where it wants to go.
    Listening(Box<dyn FnOnce(String) -> Decision<W> + Send>),
    /// It has; before that is looked at, the broker has to have logged it in.
    Asked(Decision<W>),
    Deciding(Decision<W>),
    /// It goes as soon as no frame is torn apart.
    Going(W),
    Staying,
}

impl<W: Send> Watched<W> {
    /// Has `decide` say where a client goes when it wants to open a vhost. If it does not stay, it is received.
    pub fn new(
        stream: Box<dyn ClientStream>,
        decide: impl FnOnce(String) -> Decision<W> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Redirected<W>>) {
        let (redirected, receiver) = oneshot::channel();
        let watch = Watch {
            handshake: Handshake::new(),
            passed: 0,
            greeting: Greeting::default(),
            half_said: Vec::new(),
            reader: Waker::noop().clone(),
            phase: Phase::Listening(Box::new(decide)),
            redirected,
        };
        (Watched { stream: Some(stream), watch: Some(Box::new(watch)) }, receiver)
    }

    /// Reads while the client is watched.
    fn poll_watched(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let (Some(stream), Some(watch)) = (&mut self.stream, &mut self.watch) else {
                return Poll::Ready(Ok(()));
            };
            if watch.pass(buf) {
                return Poll::Ready(Ok(()));
            }
            match &mut watch.phase {
                Phase::Listening(_) => ready!(watch.poll_listen(stream, cx))?,
                Phase::Asked(_) => ready!(watch.poll_tuned(cx)),
                Phase::Deciding(decision) => {
                    watch.phase = match ready!(decision.as_mut().poll(cx)) {
                        Some(way) => Phase::Going(way),
                        None => Phase::Staying,
                    };
                }
                Phase::Going(_) => {
                    ready!(watch.poll_whole(cx));
                    if matches!(watch.phase, Phase::Going(_)) {
                        self.redirect();
                    }
                }
                Phase::Staying => {
                    self.watch = None;
                    let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(())) };
                    return Pin::new(stream).poll_read(cx, buf);
                }
            }
        }
    }

    /// Hands the stream over, unless its receiver is gone.
    fn redirect(&mut self) {
        if let (Some(stream), Some(watch)) = (self.stream.take(), self.watch.take())
            && let Watch { phase: Phase::Going(way), handshake, redirected, .. } = *watch
        {
            let _ = redirected.send(Redirected { stream, said: handshake.into_bytes(), way });
        }
    }
}

impl<W> Watch<W> {
    /// Passes on what may be. Returns whether there was anything.
    fn pass(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let passable = match self.phase {
            Phase::Staying => self.handshake.bytes(),
            _ => self.handshake.passable(),
        };
        let rest = &passable[self.passed..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        self.passed += count;
        !rest.is_empty()
    }

    /// Hears more of the client.
    fn poll_listen(
        &mut self,
        stream: &mut Box<dyn ClientStream>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = Zeroizing::new([0; READ_BYTES]);
        let mut read = ReadBuf::new(&mut *bytes);
        ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        let heard = match read.filled() {
            [] => Heard::Other,
            bytes => self.handshake.hear(bytes),
        };
        let vhost = match heard {
            Heard::More => return Poll::Ready(Ok(())),
            Heard::Open(vhost) => Some(vhost),
            Heard::Other => None,
        };
        self.phase = match (std::mem::replace(&mut self.phase, Phase::Staying), vhost) {
            (Phase::Listening(decide), Some(vhost)) => Phase::Asked(decide(vhost)),
            _ => Phase::Staying,
        };
        Poll::Ready(Ok(()))
    }

    /// Waits until the client knows that it is logged in, or not. One that is not stays where it is told.
    fn poll_tuned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if matches!(self.greeting.stage, Stage::Start | Stage::Tune) {
            return self.wait_for_broker(cx);
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Staying) {
            Phase::Asked(decision) if self.greeting.stage == Stage::Tuned => {
                Phase::Deciding(decision)
            }
            _ => Phase::Staying,
        };
        Poll::Ready(())
    }

    /// Waits until nothing is left of a frame of the broker's. If that is the end of the connection, the client stays.
    fn poll_whole(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.greeting.stage == Stage::Other {
            self.phase = Phase::Staying;
        } else if !self.half_said.is_empty() {
            return self.wait_for_broker(cx);
        }
        Poll::Ready(())
    }

    fn wait_for_broker(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.reader.clone_from(cx.waker());
        Poll::Pending
    }

    /// Takes note of what the broker has said.
    fn note_said<'b>(&mut self, slices: impl IntoIterator<Item = &'b [u8]>, mut count: usize) {
        if self.greeting.stage == Stage::Other {
            return;
        }
        for slice in slices {
            let said = &slice[..slice.len().min(count)];
            self.half_said.extend_from_slice(said);
            count -= said.len();
        }
        self.greeting.take(&mut self.half_said);
        if self.greeting.stage == Stage::Other {
            self.half_said = Vec::new();
        }
        self.reader.wake_by_ref();
    }
}

impl<W: Send + 'static> ClientStream for Watched<W> {
    fn has_hung_up(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.has_hung_up())
    }

    fn passed_on(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.passed_on())
    }

    fn keeps(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.keeps())
    }

    fn throw_away_unsent(&self) {
        if let Some(stream) = &self.stream {
            stream.throw_away_unsent();
        }
    }

    fn release_memory(&mut self, cx: &mut Context<'_>) {
        if let Some(stream) = &mut self.stream {
            stream.release_memory(cx);
        }
    }
}

impl<W: Send> AsyncRead for Watched<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Watched { stream: Some(stream), watch: None } => Pin::new(stream).poll_read(cx, buf),
            this => this.poll_watched(cx, buf),
        }
    }
}

impl<W: Send> AsyncWrite for Watched<W> {
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
        let Watched { stream, watch } = &mut *self;
        let Some(stream) = stream else {
            // Another task speaks to the client now.
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        };
        let count = ready!(Pin::new(stream).poll_write_vectored(cx, bufs))?;
        if let Some(watch) = watch {
            watch.note_said(bufs.iter().map(|buf| &**buf), count);
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests;
