//! Asks over HTTP and HTTPS, in bounded time and space.

use super::questions::Verdict;
use crate::config::{AuthHttp, AuthHttpMethod};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self};
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the program that knows the users can't be asked: {0}")]
    Io(#[from] io::Error),
    #[error("no authorities can be read from {}: {why}", .path.display())]
    Authorities { path: PathBuf, why: String },
    #[error("{path} can't be asked: {why}")]
    Failed { path: String, why: String },
    #[error("the question was given up")]
    Interrupted,
}

pub(super) struct Client {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    method: AuthHttpMethod,
    timeout: Duration,
}

impl Client {
    pub fn new(settings: &AuthHttp) -> Result<Self, ClientError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.map_err(io::Error::other)?.with_root_certificates(authorities(&settings.ca)?);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Client {
            client: legacy::Client::builder(TokioExecutor::new()).build(connector),
            method: settings.method,
            timeout: Duration::from_millis(settings.timeout_ms),
        })
    }

    /// Asks at `path`, with these parameters.
    pub async fn ask(&self, path: &str, form: Zeroizing<String>) -> Result<Verdict, ClientError> {
        let failed = |why: String| ClientError::Failed { path: path.to_owned(), why };
        let asking = tokio::time::timeout(self.timeout, self.answer(path, form));
        let text = asking
            .await
            .map_err(|_| failed(format!("no answer within {} ms", self.timeout.as_millis())))?;
        let text = text.map_err(&failed)?;
        Verdict::parse(&text)
            .ok_or_else(|| failed("the answer is neither allow nor deny".to_owned()))
    }

    async fn answer(&self, path: &str, form: Zeroizing<String>) -> Result<String, String> {
        let request = match self.method {
            AuthHttpMethod::Post => Request::builder()
                .method(Method::POST)
                .uri(path)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Full::new(Bytes::copy_from_slice(form.as_bytes()))),
            AuthHttpMethod::Get => {
                Request::builder().uri(format!("{path}?{}", *form)).body(Full::default())
            }
        };
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await.map_err(|error| chain(&error))?;
        let status = answer.status();
        if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
            return Err(format!("the status is {status}"));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// An error with those that it comes from: the first alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The authorities of a file, or those of this machine.
fn authorities(path: &Path) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    if path.as_os_str().is_empty() {
        // One that can't be used is no reason to go without all others.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    }
    let fail = |why: String| ClientError::Authorities { path: path.to_owned(), why };
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
