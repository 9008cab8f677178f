//! TLS to a broker: its certificate is checked against the machine's authorities, or those that are
//! named.

use crate::failure::{CONFIG, Failure, UNAVAILABLE};
use crate::target::Remote;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS on a connection.
///
/// # Errors
/// If the authorities can't be read, or the broker's certificate is not good.
pub async fn connect(remote: &Remote, stream: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
    let roots = match &remote.ca {
        Some(path) => named(path)?,
        None => of_this_machine()?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Failure::error(UNAVAILABLE, error))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(remote.host.clone())
        .map_err(|_| Failure::usage(format!("'{}' is not a host name", remote.host)))?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| {
        Failure::error(
            UNAVAILABLE,
            format!("the TLS handshake with {remote} failed: {error}{}", hint(&error)),
        )
    })
}

fn hint(error: &std::io::Error) -> &'static str {
    if error.to_string().contains("UnknownIssuer") {
        " (give the CA that issued its certificate with --ca)"
    } else {
        ""
    }
}

fn named(path: &Path) -> Result<RootCertStore, Failure> {
    let fail = |why: &dyn std::fmt::Display| {
        Failure::error(CONFIG, format!("can't read CA certificates from {}: {why}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| fail(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| fail(&error))?;
        roots.add(certificate).map_err(|error| fail(&error))?;
    }
    match roots.is_empty() {
        true => Err(fail(&"it contains no certificate")),
        false => Ok(roots),
    }
}

fn of_this_machine() -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    // One that can't be used is no reason to go without all others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(Failure::error(
            CONFIG,
            "the system has no CA certificates: give a file of them with --ca",
        )),
        false => Ok(roots),
    }
}
