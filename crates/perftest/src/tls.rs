//! TLS to the broker: whom to trust, and what to show.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser_client::Uri;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::options::TlsOptions;

/// Why options of TLS can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// They are for `amqps://`.
    #[error("{option} is for TLS: begin --uri with amqps://")]
    NotTls {
        /// The option.
        option: &'static str,
    },
    /// The URI's host can't be in a certificate.
    #[error("--uri: a certificate can't be for the host {0:?}")]
    Host(String),
    /// A file can't be used.
    #[error("{option} {}: {why}", path.display())]
    File {
        /// The option that names it.
        option: &'static str,
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system's authorities can't be found.
    #[error("the system has no CA certificates: give a file of them with --ca")]
    NoAuthorities,
    /// Certificate and key do not work.
    #[error("TLS: {0}")]
    Config(#[from] rustls::Error),
}

/// How to speak TLS with the broker of a run.
pub struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// What the options say.
    ///
    /// # Errors
    /// If a file that they name can't be used.
    pub fn new(options: &TlsOptions, uri: &Uri) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(uri.host.clone()).map_err(|_| TlsError::Host(uri.host.clone()))?;
        let connector = TlsConnector::from(Arc::new(config(options)?));
        Ok(Self { connector, name })
    }

    /// Speaks TLS on a connection.
    ///
    /// # Errors
    /// If the broker's certificate is not good, or it does not like ours.
    pub async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await.map_err(|error| {
            let hint = match error.to_string().contains("UnknownIssuer") {
                true => " (give the CA that issued it with --ca)",
                false => "",
            };
            io::Error::new(error.kind(), format!("the TLS handshake failed: {error}{hint}"))
        })
    }
}

/// The first option that is there.
pub(crate) fn given(options: &TlsOptions) -> Option<&'static str> {
    let all = [
        ("--ca", options.ca.is_some()),
        ("--cert", options.cert.is_some()),
        ("--insecure", options.insecure),
    ];
    all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

fn config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(&provider)))
    } else {
        builder.with_root_certificates(match &options.ca {
            Some(path) => authorities_in(path)?,
            None => authorities_of_the_system()?,
        })
    };
    let (Some(cert), Some(key)) = (&options.cert, &options.key) else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates("--cert", cert)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|why| unusable("--key", key, &why))?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

fn authorities_in(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca", path)? {
        roots.add(certificate).map_err(|why| unusable("--ca", path, &why))?;
    }
    Ok(roots)
}

fn authorities_of_the_system() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    // One that can't be used is no reason to go without all others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(TlsError::NoAuthorities),
        false => Ok(roots),
    }
}

/// The certificates in a file, one at least.
fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| unusable(option, path, &why))?;
    match certificates.is_empty() {
        true => Err(unusable(option, path, &"it contains no certificate")),
        false => Ok(certificates),
    }
}

fn unusable(option: &'static str, path: &Path, why: &dyn Display) -> TlsError {
    TlsError::File { option, path: path.to_owned(), why: why.to_string() }
}

/// Takes whatever certificate there is; who shows it still has to have its key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl AnyCertificate {
    fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
