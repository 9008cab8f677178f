//! Handshakes, each with the newest certificates.

use super::facts::RevocationList;
use super::identity::{self, Loaded, TlsError};
use super::peer::client_of;
use super::stream::{ReadAhead, TlsStream};
use super::watch::FromFiles;
use crate::config::Tls;
use arc_swap::ArcSwap;
use courser_management::{Certificate, ClientTls};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Makes a TLS connection of a TCP one.
pub(crate) struct Acceptor {
    settings: Tls,
    /// What new connections are met with.
    current: ArcSwap<Loaded>,
}

impl Acceptor {
    /// An acceptor with what the files of `settings` hold.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(settings: &Tls) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(identity::load(settings)?);
        Ok(Acceptor { settings: settings.clone(), current })
    }

    /// Does the handshake, in the time that there is for it.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<(TlsStream, Arc<ClientTls>)> {
        let config = Arc::clone(&self.current.load().config);
        let handshake = TlsAcceptor::from(config).accept(ReadAhead::new(stream));
        let limit = Duration::from_millis(self.settings.handshake_timeout_ms);
        let accepted = tokio::time::timeout(limit, handshake).await;
        let stream = accepted.map_err(|_| {
            let took = format!("no handshake within {} ms", self.settings.handshake_timeout_ms);
            io::Error::new(io::ErrorKind::TimedOut, took)
        })??;
        let (socket, connection) = stream.get_ref();
        let taken = Arc::clone(socket.written());
        let client = Arc::new(client_of(connection, &self.settings, taken));
        Ok((TlsStream::new(stream), client))
    }
}

impl FromFiles for Acceptor {
    fn files(&self) -> Vec<PathBuf> {
        identity::files(&self.settings)
    }

    fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(identity::load(&self.settings)?));
        Ok(())
    }

    fn in_use(&self) -> Vec<Certificate> {
        self.current.load().certificates.clone()
    }

    fn lists(&self) -> Vec<RevocationList> {
        self.current.load().lists.clone()
    }
}
