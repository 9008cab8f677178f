//! AMQP over WebSocket: the messages of a socket as a stream of bytes, such as the driver of a connection wants.
//!
//! What comes in may be cut in any way. What goes out are whole frames of AMQP, as not every client in a browser puts
//! together what is cut. Text is an error. A socket that nothing is heard from is asked with a ping, and given up when it
//! says nothing to that either: clients in browsers do without AMQP's heartbeats. One that takes what waits for it is
//! there, however slowly: the ping comes behind all that.

mod frames;
mod pieces;
mod pings;
mod protocol;

use crate::cluster::{Front, Newcomer};
use crate::driver::{self, ClientStream, OfHttp, Shared};
use crate::peer::Peer;
use crate::places::{Admission, Place};
use bytes::{Buf, Bytes, BytesMut};
use courser_management::{ServeWebSocket, Upgraded, WebSocketEnds};
use frames::whole_frames;
pub(crate) use pieces::FrameHeads;
use pieces::{InPieces, PIECE_BYTES, Refused};
use pings::Pings;
use protocol::Protocol;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Error, Message};

/// How long nothing may be heard before a ping is sent, and from that to the end.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Bytes that are put into one message, unless a frame is larger.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Room for answers to pings behind a message that waits for the socket. Of more only the last one is kept; a client that
/// lets so many wait loses the connection with the next message.
const PONGS_BYTES: usize = 64 * 1024;
/// Numbers sockets of the operator, which have no address that tells them apart.
static OPERATORS: AtomicU64 = AtomicU64::new(1);

/// Serves the sockets that the HTTP API hands over, until the broker stops. Those whose vhosts are in another group of the
/// cluster are passed on by `front`.
pub(crate) fn serve(
    shared: &Arc<Shared>,
    stop: &Arc<watch::Sender<bool>>,
    front: &Weak<Front>,
) -> ServeWebSocket {
    // A receiver of its own would count among those that a stop waits for, and with the sender a broker that is dropped
    // would never end.
    let (shared, stop, front) = (Arc::clone(shared), Arc::downgrade(stop), Weak::clone(front));
    Arc::new(move |upgraded, ends| {
        let Some(stop) = stop.upgrade() else { return };
        let (shared, stopping, front) = (Arc::clone(&shared), stop.subscribe(), front.upgrade());
        let peer = ends.peer;
        // An operator, over the socket in the data folder, gets in as over HTTP.
        if shared.suspension.is_on() && !ends.is_operator {
            tracing::debug!(%peer, "WebSocket refused: the listeners are suspended");
            return;
        }
        let admission = Arc::clone(&shared.places).admit(|place| {
            tokio::spawn(run(upgraded, ends, place, shared, stopping, front)).abort_handle()
        });
        if admission == Admission::Refused {
            tracing::debug!(%peer, "WebSocket refused: too many connections");
        }
    })
}

async fn run(
    upgraded: Upgraded,
    ends: WebSocketEnds,
    place: Place,
    shared: Arc<Shared>,
    stopping: watch::Receiver<bool>,
    front: Option<Arc<Front>>,
) {
    let name = match ends.is_operator {
        true => format!("operator {}", OPERATORS.fetch_add(1, Ordering::Relaxed)),
        false => format!("{} -> {}", ends.peer, ends.local),
    };
    let stream = OfHttp::new(upgraded, ends.tls.clone());
    let socket = WebSocket::new(stream, shared.connection.frame_max);
    let (by_foreign_name, is_operator) = (ends.by_foreign_name, ends.is_operator);
    let peer = Peer { by_foreign_name, is_operator, ..Peer::new(ends.peer, ends.tls) };
    if let Some(front) = front.filter(|front| front.has_several_groups()) {
        let (client, home) = (Newcomer { peer, place, name }, (shared, stopping.clone()));
        return front.serve_at_home(Box::new(socket), client, home, stopping).await;
    }
    driver::serve(socket, peer, place, name, shared, stopping).await;
}

/// A WebSocket as a stream of bytes.
pub(crate) struct WebSocket<S> {
    protocol: Protocol<S>,
    /// What is left of the last piece of a message.
    received: Bytes,
    /// What is to be sent: whole frames, and the beginning of one.
    sending: BytesMut,
    /// Bytes of the last message, which the socket keeps until it has taken all of it.
    message_bytes: usize,
    pings: Pings,
    /// Why it ends, if not for the end of the AMQP connection.
    wrong: Option<(CloseCode, &'static str)>,
    is_close_sent: bool,
}

impl<S: ClientStream> WebSocket<S> {
    /// The broker's end of a socket whose handshake is done, for frames of `frame_max` bytes.
    pub fn new(stream: S, frame_max: u32) -> Self {
        let sent_max = MESSAGE_BYTES + frame_max as usize + PONGS_BYTES;
        let config = WebSocketConfig::default()
            .read_buffer_size(PIECE_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(sent_max)
            .max_message_size(Some(PIECE_BYTES))
            .max_frame_size(Some(PIECE_BYTES));
        WebSocket {
            protocol: Protocol::new(InPieces::new(stream), config),
            received: Bytes::new(),
            sending: BytesMut::new(),
            message_bytes: 0,
            pings: Pings::new(PING_INTERVAL),
            wrong: None,
            is_close_sent: false,
        }
    }

    /// Bytes that have gone on. A message is taken in parts, of which TLS keeps some. It grows when one of the two takes
    /// something.
    pub fn taken(&self) -> u64 {
        let below = self.protocol.stream();
        below.taken + below.stream.passed_on()
    }

    /// Bytes that wait here, in the socket, and below, while that takes nothing.
    pub fn unsent_bytes(&self) -> usize {
        self.sending.capacity() + self.message_bytes + self.protocol.stream().stream.keeps()
    }

    /// Gives back what an idle connection need not keep.
    pub fn release_memory(&mut self, cx: &mut Context<'_>) {
        if self.protocol.release_memory(cx) && self.sending.is_empty() {
            (self.sending, self.message_bytes) = (BytesMut::new(), 0);
        }
    }

    /// Waits for a piece of a message with bytes in it. Returns false at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.received.is_empty() {
            let message = match ready!(self.protocol.poll_message(cx)) {
                None => return Poll::Ready(Ok(false)),
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Err(self.failed(error))),
            };
            self.pings.heard();
            match message {
                Message::Binary(bytes) => self.received = bytes,
                // Text is refused where the pieces are cut, and the others are answered where they are read.
                Message::Text(_)
                | Message::Ping(_)
                | Message::Pong(_)
                | Message::Close(_)
                | Message::Frame(_) => {}
            }
        }
        Poll::Ready(Ok(true))
    }

    fn failed(&mut self, error: Error) -> io::Error {
        let refused = match &error {
            Error::Io(error) => error.get_ref().and_then(|why| why.downcast_ref::<Refused>()),
            _ => None,
        };
        self.wrong = match (&error, refused) {
            (_, Some(Refused::Text)) => {
                Some((CloseCode::Unsupported, "AMQP needs binary messages"))
            }
            (_, Some(Refused::Disorder))
            | (Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_), _) => {
                Some((CloseCode::Protocol, "this is not WebSocket"))
            }
            _ => None,
        };
        into_io(error)
    }

    /// Sends a ping where nothing was heard for a while.
    fn poll_ping(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.pings.poll_due(cx).is_ready() {
            // Where the socket takes nothing, there is no need for more to find that out.
            if let Poll::Ready(ready) = self.poll_room(cx) {
                ready?;
                let ping = Message::Ping(Bytes::new());
                self.protocol.send(ping, cx).map_err(into_io)?;
                self.pings.sent();
                let _ = self.protocol.poll_flush(cx).map_err(into_io)?;
            }
        }
        Ok(())
    }

    /// Waits until the socket has taken all that was handed to it.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let room = self.protocol.poll_room(cx);
        let taken = self.taken();
        self.pings.note_room(room.is_ready(), taken);
        room.map_err(into_io)
    }

    /// Hands the frames that are complete to the socket.
    fn send_frames(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let whole = whole_frames(&self.sending);
        if whole == 0 {
            return Ok(());
        }
        let frames = self.sending.split_to(whole).freeze();
        self.message_bytes = whole;
        self.protocol.send(Message::Binary(frames), cx).map_err(into_io)
    }
}

fn into_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<S: ClientStream> AsyncRead for WebSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let piece = self.poll_piece(cx);
        if piece.is_pending() {
            self.poll_ping(cx)?;
            if self.pings.is_unanswered() {
                let error = io::Error::new(io::ErrorKind::TimedOut, "no answer to a ping");
                return Poll::Ready(Err(error));
            }
        }
        let mut has_piece = ready!(piece)?;
        while has_piece && buf.remaining() > 0 {
            let count = self.received.len().min(buf.remaining());
            buf.put_slice(&self.received[..count]);
            self.received.advance(count);
            // A socket that fails here is at its end for the next read.
            has_piece = matches!(self.poll_piece(cx), Poll::Ready(Ok(true)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: ClientStream> AsyncWrite for WebSocket<S> {
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
        // One message at a time: the next waits until the socket has taken this one.
        ready!(self.poll_room(cx))?;
        let mut count = 0;
        for buf in bufs {
            let room = MESSAGE_BYTES - count;
            let taken = buf.len().min(room);
            self.sending.extend_from_slice(&buf[..taken]);
            count += taken;
        }
        self.send_frames(cx)?;
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Also while nothing is read of who is held back: a ping to who is gone makes its system say so.
        self.poll_ping(cx)?;
        let flushed = self.protocol.poll_flush(cx);
        let taken = self.taken();
        self.pings.note_room(flushed.is_ready(), taken);
        flushed.map_err(into_io)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_close_sent {
            ready!(self.protocol.poll_room(cx)).map_err(into_io)?;
            let (code, reason) = self.wrong.unwrap_or((CloseCode::Normal, ""));
            let frame = CloseFrame { code, reason: reason.into() };
            self.protocol.send(Message::Close(Some(frame)), cx).map_err(into_io)?;
            self.is_close_sent = true;
        }
        ready!(self.protocol.poll_flush(cx)).map_err(into_io)?;
        // The other end says that it closes, too; what it says before is not read any more.
        while let Some(Ok(_)) = ready!(self.protocol.poll_message(cx)) {}
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
