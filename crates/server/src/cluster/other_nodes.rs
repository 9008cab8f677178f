//! How a node that does not lead reaches the one that does, for its clients.

use super::group::Group;
use super::roster::Roster;
use crate::driver::ClientStream;
use courser_cluster::NodeId;
use courser_cluster::transport::{DialError, Endpoint, Purpose};
use courser_management::Later;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection to another node, for one of a client.
pub(crate) type Tunnel = Box<dyn ClientStream>;

/// The other nodes.
pub(crate) trait OtherNodes: Send + Sync {
    /// Connects to a node, for what the note says.
    fn dial(&self, node: NodeId, note: &str) -> Later<io::Result<Tunnel>>;

    /// Asks a node something.
    fn ask(&self, node: NodeId, question: String) -> Later<Result<String, DialError>>;
}

/// Those whose addresses are known.
pub(super) struct ByAddress {
    pub endpoint: Arc<Endpoint>,
    pub roster: Arc<Roster>,
}

impl ByAddress {
    fn address(&self, node: NodeId) -> Option<String> {
        self.roster.node(node).map(|node| node.address)
    }
}

impl OtherNodes for ByAddress {
    fn dial(&self, node: NodeId, note: &str) -> Later<io::Result<Tunnel>> {
        let (endpoint, address, note) =
            (Arc::clone(&self.endpoint), self.address(node), note.to_owned());
        Box::pin(async move {
            let unknown = || io::Error::new(io::ErrorKind::NotFound, "its address is not known");
            let address = address.ok_or_else(unknown)?;
            let dialled = endpoint.dial(&address, Purpose::Tunnel, &note).await;
            Ok(Box::new(dialled.map_err(io::Error::other)?.stream) as _)
        })
    }

    fn ask(&self, node: NodeId, question: String) -> Later<Result<String, DialError>> {
        let (endpoint, address) = (Arc::clone(&self.endpoint), self.address(node));
        Box::pin(async move {
            let unknown = || DialError::Refused("its address is not known".into());
            endpoint.ask(&address.ok_or_else(unknown)?, &question).await
        })
    }
}

/// A connection to the node that leads a group. It ends with the lead: a node that is gone may never say so.
pub(super) struct WhileLed {
    tunnel: Tunnel,
    /// Nothing once the node leads no more.
    serves_no_more: Option<Later<()>>,
}

impl WhileLed {
    pub fn new(tunnel: Tunnel, group: &Arc<Group>, node: NodeId) -> Self {
        let group = Arc::clone(group);
        let serves_no_more = Box::pin(async move { group.serves_no_more(node).await });
        WhileLed { tunnel, serves_no_more: Some(serves_no_more) }
    }

    /// The connection, as long as it is of use.
    fn tunnel(&mut self, cx: &mut Context<'_>) -> io::Result<Pin<&mut Tunnel>> {
        let ended = self.serves_no_more.as_mut().map(|ended| ended.as_mut().poll(cx).is_ready());
        if ended.unwrap_or(true) {
            self.serves_no_more = None;
            let why = "the node does not lead any more";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
        }
        Ok(Pin::new(&mut self.tunnel))
    }
}

impl AsyncRead for WhileLed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.tunnel(cx)?.poll_read(cx, buf)
    }
}

impl AsyncWrite for WhileLed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.tunnel(cx)?.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.tunnel(cx)?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tunnel.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tunnel(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tunnel(cx)?.poll_shutdown(cx)
    }
}
