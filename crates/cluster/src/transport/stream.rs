//! The bytes of a connection between nodes, with TLS and without.

use std::io;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A connection between nodes.
pub type Stream = Box<dyn ByteStream>;

/// What becomes of a TCP connection before anything is said.
pub type Securing<'a> = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send + 'a>>;

/// Makes connections between nodes unreadable for others; both ends show a certificate.
pub trait Security: Send + Sync + 'static {
    /// At the end that has connected, to this host.
    fn dialled<'a>(&'a self, stream: TcpStream, host: &'a str) -> Securing<'a>;

    /// At the end that was connected to.
    fn accepted(&self, stream: TcpStream) -> Securing<'_>;
}
