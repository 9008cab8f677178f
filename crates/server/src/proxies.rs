//! Proxies that say whose connections they pass on (PROXY protocol). The addresses of these proxies are named in the
//! settings: from there every connection has to begin with a header, and from elsewhere none may, so that no client can choose
//! the address that it is taken for.

use crate::config::Network;
use courser_connection::{PROXY_HEADER_BYTES_MAX, ProxiedClient, ProxyHeader, ProxyHeaderError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// How long a proxy may take to send its header, which it has before it connects.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes looked at in one go: nearly always the whole header.
const PEEK_BYTES: usize = 512;
/// Where a client comes from whose address is not known. It is not this machine.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Why a proxy's connection is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error(transparent)]
    Header(#[from] ProxyHeaderError),
    #[error("the connection ended in the middle of the PROXY header")]
    Cut,
    #[error("no PROXY header within {} s", HEADER_TIMEOUT.as_secs())]
    Late,
    #[error("the PROXY header can't be read: {0}")]
    Io(#[from] io::Error),
}

/// The proxies of one kind of listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(Arc<[Network]>);

impl Proxies {
    pub fn new(networks: &[Network]) -> Self {
        Proxies(networks.into())
    }

    /// Whether connections from this address begin with a header.
    pub fn has(&self, address: SocketAddr) -> bool {
        self.0.iter().any(|network| network.contains(address.ip()))
    }
}

/// Reads the header of a proxy at `proxy`, and nothing behind it. Returns where the client is.
pub(crate) async fn client_of(
    stream: &mut TcpStream,
    proxy: SocketAddr,
) -> Result<SocketAddr, ProxyError> {
    let read = tokio::time::timeout(HEADER_TIMEOUT, read_header(stream)).await;
    Ok(match read.map_err(|_| ProxyError::Late)?? {
        ProxiedClient::Proxy => proxy,
        // It is on the proxy's machine, which is this one only if the proxy is here, too.
        ProxiedClient::At(client) if client.ip().to_canonical().is_loopback() => {
            SocketAddr::new(proxy.ip(), client.port())
        }
        ProxiedClient::At(client) => client,
        ProxiedClient::Unknown => NOWHERE,
    })
}

async fn read_header(stream: &mut TcpStream) -> Result<ProxiedClient, ProxyError> {
    let mut read = Vec::new();
    let mut ahead = [0; PEEK_BYTES];
    loop {
        // What is looked at and not taken stays for who serves the client.
        let seen = stream.peek(&mut ahead).await?;
        if seen == 0 {
            return Err(ProxyError::Cut);
        }
        let before = read.len();
        read.extend_from_slice(&ahead[..seen]);
        debug_assert!(before < PROXY_HEADER_BYTES_MAX, "a longer one is an error");
        let header = ProxyHeader::parse(&read)?;
        let taken = header.map_or(seen, |header| header.length - before);
        stream.read_exact(&mut ahead[..taken]).await?;
        if let Some(header) = header {
            return Ok(header.client);
        }
    }
}
