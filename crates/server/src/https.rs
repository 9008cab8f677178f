//! Asks other programs over HTTPS: what those who know users and those who issue tokens have in common.

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sends requests. It follows no redirects.
pub(crate) type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpsError {
    #[error("TLS can't be used: {0}")]
    Tls(#[from] rustls::Error),
    #[error("no authorities can be read from {}: {why}", .path.display())]
    Authorities { path: PathBuf, why: String },
}

/// Which addresses are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schemes {
    HttpsOnly,
    HttpToo,
}

/// What makes connections that trust the authorities of a file, or those of this machine where there is none.
///
/// # Errors
/// If authorities can't be read.
pub(crate) fn connector(
    authorities_in: &Path,
    schemes: Schemes,
) -> Result<HttpsConnector<HttpConnector>, HttpsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let tls = tls.with_root_certificates(authorities(authorities_in)?).with_no_client_auth();
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    Ok(match schemes {
        Schemes::HttpsOnly => builder.https_only().enable_http1().build(),
        Schemes::HttpToo => builder.https_or_http().enable_http1().build(),
    })
}

/// An error with those that it comes from: the first alone says little.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn authorities(path: &Path) -> Result<RootCertStore, HttpsError> {
    let mut roots = RootCertStore::empty();
    if path.as_os_str().is_empty() {
        // One that can't be used is no reason to go without all others.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    }
    let fail = |why: String| HttpsError::Authorities { path: path.to_owned(), why };
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| fail(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| fail(error.to_string()))?;
        roots.add(certificate).map_err(|error| fail(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(fail("there is no certificate in it".to_owned())),
        false => Ok(roots),
    }
}
