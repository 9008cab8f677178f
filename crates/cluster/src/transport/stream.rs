//! The bytes of a connection between nodes, with TLS and without.

use courser_store::critical::{self, Work};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A connection between nodes.
pub enum Stream {
    /// Anyone who sees the network can read it.
    Plain(TcpStream),
    /// Only its two ends can read it.
    Secured(Box<dyn Secured>),
}

/// A connection that is secured on its way.
pub trait Secured: ByteStream {
    /// The connection below.
    fn socket(&self) -> &TcpStream;

    /// Bytes that the connection below has taken.
    fn written(&self) -> u64;
}

impl Stream {
    /// Has the current runtime, instead of the one on which it was made, wait for its bytes; not where it is secured, when
    /// both do.
    ///
    /// # Errors
    /// When the runtime can't.
    pub(super) fn here(self) -> io::Result<Self> {
        match self {
            Stream::Plain(stream) => Ok(Stream::Plain(TcpStream::from_std(stream.into_std()?)?)),
            secured => Ok(secured),
        }
    }

    /// The connection, below what secures it.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Secured(stream) => stream.socket(),
        }
    }

    /// Bytes that have gone on, of what a secured connection was given: it keeps some of that.
    pub fn passed_on(&self) -> u64 {
        match self {
            Stream::Plain(_) => 0,
            Stream::Secured(stream) => stream.written(),
        }
    }

    fn inner(self: Pin<&mut Self>) -> Pin<&mut dyn ByteStream> {
        critical::check(Work::Socket);
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream),
            Stream::Secured(stream) => Pin::new(&mut **stream as &mut dyn ByteStream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(context, out)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Secured(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(context)
    }
}

/// What becomes of a TCP connection before anything is said.
pub type Securing<'a> = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send + 'a>>;

/// Makes connections between nodes unreadable for others; both ends show a certificate.
pub trait Security: Send + Sync + 'static {
    /// At the end that has connected, to this host.
    fn dialled<'a>(&'a self, stream: TcpStream, host: &'a str) -> Securing<'a>;

    /// At the end that was connected to.
    fn accepted(&self, stream: TcpStream) -> Securing<'_>;
}
