//! The library's part of a WebSocket, over a stream that is polled.
//!
//! It is made anew where a connection is idle: it would keep the room of the largest message for good.

use super::pieces::InPieces;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

/// The broker's end of a WebSocket.
pub(super) struct Protocol<S> {
    stream: InPieces<S>,
    context: WebSocketContext,
    /// The stream has taken the last message, though it may not be flushed.
    has_room: bool,
    /// The library keeps nothing of what it has read.
    is_drained: bool,
    /// It has room for what was sent or read.
    has_grown: bool,
    is_over: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Protocol<S> {
    /// One whose handshake is done.
    pub fn new(stream: InPieces<S>, config: WebSocketConfig) -> Self {
        Protocol {
            stream,
            context: WebSocketContext::new(Role::Server, Some(config)),
            has_room: true,
            is_drained: true,
            has_grown: false,
            is_over: false,
        }
    }

    pub fn stream(&self) -> &InPieces<S> {
        &self.stream
    }

    /// Waits for a message; `None` is the end. A ping is answered.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let read = waiting(self.context.read(&mut Polled(&mut self.stream, cx)));
        self.is_drained = read.is_pending();
        let read = ready!(read);
        self.has_grown = true;
        self.is_over = read.is_err();
        match read {
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => Poll::Ready(None),
            read => Poll::Ready(Some(read)),
        }
    }

    /// Waits until the stream has taken the last message.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.has_room {
            true => Poll::Ready(Ok(())),
            false => self.poll_flush(cx),
        }
    }

    /// Sends a message when there is room.
    pub fn send(&mut self, message: Message, cx: &mut Context<'_>) -> Result<(), Error> {
        self.has_grown = true;
        let sent = waiting(self.context.write(&mut Polled(&mut self.stream, cx), message));
        self.has_room = sent.is_ready();
        match sent {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    /// Waits until the stream is flushed.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = ready!(waiting(self.context.flush(&mut Polled(&mut self.stream, cx))));
        self.has_room = true;
        match flushed {
            // It has just been closed.
            Err(Error::ConnectionClosed) => Poll::Ready(Ok(())),
            flushed => Poll::Ready(flushed),
        }
    }

    /// Gives back what it keeps for messages, if none is on its way. Returns whether it keeps nothing any more.
    pub fn release_memory(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.has_grown {
            return true;
        }
        let is_active = !self.is_over && self.context.can_write();
        let is_read = self.is_drained && self.stream.is_between_pieces();
        if !is_active || !is_read || !matches!(self.poll_flush(cx), Poll::Ready(Ok(()))) {
            return false;
        }
        self.context = WebSocketContext::new(Role::Server, Some(*self.context.get_config()));
        self.has_grown = false;
        true
    }
}

/// The library waits by an error.
fn waiting<T>(done: Result<T, Error>) -> Poll<Result<T, Error>> {
    match done {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

/// A stream for the library, which knows no context.
struct Polled<'a, 'b, S>(&'a mut InPieces<S>, &'a mut Context<'b>);

fn blocking<T>(done: Poll<io::Result<T>>) -> io::Result<T> {
    match done {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl<S: AsyncRead + Unpin> Read for Polled<'_, '_, S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut read = ReadBuf::new(buf);
        blocking(Pin::new(&mut *self.0).poll_read(self.1, &mut read))?;
        Ok(read.filled().len())
    }
}

impl<S: AsyncWrite + Unpin> Write for Polled<'_, '_, S> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        blocking(Pin::new(&mut *self.0).poll_write(self.1, buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        blocking(Pin::new(&mut *self.0).poll_flush(self.1))
    }
}
