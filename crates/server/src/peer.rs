//! Who is at the other end of a connection.

use courser_management::ClientTls;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Where it comes from.
    pub address: SocketAddr,
    /// What its handshake said, with TLS.
    pub tls: Option<Arc<ClientTls>>,
    /// It has logged in to another broker of the cluster before, and was counted there.
    pub is_counted: bool,
    /// A web page may have had its browser connect, under a name that need not be this machine's.
    pub by_foreign_name: bool,
    /// It is the operator of the machine, for whom the system vouches: it needs no password.
    pub is_operator: bool,
}

impl Peer {
    pub const fn new(address: SocketAddr, tls: Option<Arc<ClientTls>>) -> Self {
        Peer { address, tls, is_counted: false, by_foreign_name: false, is_operator: false }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
