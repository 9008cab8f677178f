//! Connections from within the process: pipes in memory, served as sockets are. So what comes through them may do is for
//! the broker to say, as with every other client.

use crate::driver::{self, Shared};
use crate::peer::Peer;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::DuplexStream;
use tokio::sync::watch;

/// Bytes on their way in a pipe, each direction.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;
/// Where they come from: users who may come from this machine only may come from inside the broker.
pub(crate) const INSIDE: Peer =
    Peer::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), None);

/// There can't be one more connection to this broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all {connections_max} connections that limits.connections_max allows are in use")]
pub struct NoPlace {
    /// How many there may be.
    pub connections_max: usize,
}

/// The client's end of a new connection, which operators see by this name.
pub(crate) fn connect(
    shared: &Arc<Shared>,
    name: &str,
    stopping: watch::Receiver<bool>,
) -> Result<DuplexStream, NoPlace> {
    let full = || NoPlace { connections_max: shared.places.most() };
    let place = shared.places.admit_own().ok_or_else(full)?;
    let (brokers, clients) = tokio::io::duplex(PIPE_BYTES);
    let shared = Arc::clone(shared);
    tokio::spawn(driver::serve(brokers, INSIDE, place, name.to_owned(), shared, stopping));
    Ok(clients)
}
