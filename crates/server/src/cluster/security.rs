//! TLS between nodes: each shows its certificate to the other, and both have to be of the cluster's authorities.

use crate::config::Cluster;
use crate::tls::{self, FromFiles, Named, ReadAhead, TlsError};
use arc_swap::ArcSwap;
use courser_cluster::transport::{Secured, Securing, Security, Stream};
use courser_management::{Certificate, CertificateUse};
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Both ends of TLS connections between nodes, each with the newest certificates.
pub(super) struct MutualTls {
    settings: Cluster,
    current: ArcSwap<Ends>,
}

/// Both ends of new connections.
struct Ends {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    certificates: Vec<Certificate>,
}

impl MutualTls {
    /// With the certificates of the settings, if they name some.
    ///
    /// # Errors
    /// The first file that is unreadable or wrong.
    pub fn load(settings: &Cluster) -> Result<Option<Arc<Self>>, TlsError> {
        if !settings.has_tls() {
            return Ok(None);
        }
        let current = ArcSwap::from_pointee(Ends::read(settings)?);
        Ok(Some(Arc::new(MutualTls { settings: settings.clone(), current })))
    }
}

impl FromFiles for MutualTls {
    fn files(&self) -> Vec<PathBuf> {
        let Cluster { tls_certificate, tls_key, tls_ca, .. } = &self.settings;
        [tls_certificate, tls_key, tls_ca].map(PathBuf::clone).into()
    }

    fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(Ends::read(&self.settings)?));
        Ok(())
    }

    fn in_use(&self) -> Vec<Certificate> {
        self.current.load().certificates.clone()
    }
}

impl Ends {
    fn read(settings: &Cluster) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let certificate = Named::new("cluster.tls_certificate", &settings.tls_certificate);
        let key = Named::new("cluster.tls_key", &settings.tls_key);
        let authorities = Named::new("cluster.tls_ca", &settings.tls_ca);
        let (chain, key) = tls::chain_and_key(certificate, key)?;
        let mut shown = vec![tls::facts_of(certificate, &chain[0], CertificateUse::Node, &[])?];
        let mut roots = RootCertStore::empty();
        for authority in tls::certificates(authorities)? {
            shown.push(tls::facts_of(authorities, &authority, CertificateUse::NodeAuthority, &[])?);
            roots.add(authority).map_err(|error| authorities.unusable(&error))?;
        }
        let roots = Arc::new(roots);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| authorities.wrong(error))?;
        let wrong = |error: rustls::Error| certificate.unusable(&error);
        // Nodes are of one build or nearly so: nothing older is needed.
        let versions = &[&rustls::version::TLS13];
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(wrong)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(wrong)?;
        tls::without_resumption(&mut server);
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(wrong)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(wrong)?;
        let (acceptor, connector) = (Arc::new(server).into(), Arc::new(client).into());
        Ok(Ends { acceptor, connector, certificates: shown })
    }
}

impl Security for MutualTls {
    fn dialled<'a>(&'a self, stream: TcpStream, host: &'a str) -> Securing<'a> {
        Box::pin(async move {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            let connector = self.current.load().connector.clone();
            let stream = ReadAhead::new(stream);
            Ok(secured(connector.connect(name, stream).await?.into()))
        })
    }

    fn accepted(&self, stream: TcpStream) -> Securing<'_> {
        let acceptor = self.current.load().acceptor.clone();
        let stream = ReadAhead::new(stream);
        Box::pin(async move { Ok(secured(acceptor.accept(stream).await?.into())) })
    }
}

fn secured(stream: tokio_rustls::TlsStream<ReadAhead>) -> Stream {
    Stream::Secured(Box::new(OfNode(stream)))
}

/// A connection to or from another node.
struct OfNode(tokio_rustls::TlsStream<ReadAhead>);

impl Secured for OfNode {
    fn socket(&self) -> &TcpStream {
        self.0.get_ref().0.socket()
    }

    fn written(&self) -> u64 {
        self.0.get_ref().0.written().load(Ordering::Relaxed)
    }
}

impl AsyncRead for OfNode {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buf)
    }
}

impl AsyncWrite for OfNode {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::HandshakeKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_node_shows_its_certificate_with_every_connection() {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
        let folder = tempfile::tempdir().expect("a folder");
        let [certificate, key] = ["certificate", "key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, issued.cert.pem()).expect("written");
        std::fs::write(&key, issued.signing_key.serialize_pem()).expect("written");
        let settings = Cluster {
            tls_ca: certificate.clone(),
            tls_certificate: certificate,
            tls_key: key,
            ..Cluster::default()
        };
        let ends = Ends::read(&settings).expect("good files");
        for _ in 0..2 {
            let (near, far) = tokio::io::duplex(1 << 16);
            let name = ServerName::try_from("localhost").expect("a name");
            let (dialled, accepted) =
                tokio::join!(ends.connector.connect(name, near), ends.acceptor.accept(far));
            let (mut dialled, mut accepted) = (dialled.expect("it"), accepted.expect("it"));
            // Tickets, if there were any, would come before this.
            accepted.write_all(b"x").await.expect("it is open");
            accepted.flush().await.expect("it is open");
            dialled.read_exact(&mut [0]).await.expect("a byte");
            assert_eq!(dialled.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
        }
    }
}
