//! What the driver asks of a client's connection besides its bytes.

use crate::tls::TlsStream;
use crate::websocket::WebSocket;
use courser_cluster::transport::Stream as NodeStream;
use courser_management::Upgraded;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Interest};
use tokio::net::TcpStream;

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

    /// Bytes that have gone on, where the stream keeps a part of what it has taken, and takes more when all of that has gone.
    fn passed_on(&self) -> u64 {
        0
    }

    /// Has what the other end has not taken thrown away with the stream. The node that passes the stream on learns of the end
    /// by that: behind what a client does not take it would never come.
    fn throw_away_unsent(&self) {}
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
}

impl ClientStream for NodeStream {
    fn is_written_anywhere(&self) -> bool {
        matches!(self, NodeStream::Plain(_))
    }

    fn has_hung_up(&self) -> bool {
        self.socket().has_hung_up()
    }

    fn throw_away_unsent(&self) {
        // If that fails, the stream has ended.
        let _ = self.socket().set_zero_linger();
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

    fn throw_away_unsent(&self) {
        (**self).throw_away_unsent();
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ClientStream for WebSocket<S> {
    fn passed_on(&self) -> u64 {
        self.taken()
    }
}

/// By way of another node.
impl ClientStream for Upgraded {}

/// A pipe within the process.
impl ClientStream for DuplexStream {}
