//! Asks over HTTP and HTTPS, in bounded time and space.

use super::questions::Verdict;
use crate::config::{AuthHttp, AuthHttpMethod};
use crate::https::{self, HttpsClient, HttpsError, Schemes, chain};
use bytes::Bytes;
use courser_store::critical::{self, Work};
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use std::io;
use std::time::Duration;
use zeroize::Zeroizing;

/// How many hosts there may be: the four paths need not be at one.
const HOSTS_MAX: usize = 4;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the program that knows the users can't be asked: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Https(#[from] HttpsError),
    #[error("{path} can't be asked: {why}")]
    Failed { path: String, why: String },
    #[error("the question was given up")]
    Interrupted,
}

pub(super) struct Client {
    client: HttpsClient,
    method: AuthHttpMethod,
    timeout: Duration,
}

impl Client {
    /// It keeps as many connections for later questions as there may be questions, `sockets`, at most.
    pub fn new(settings: &AuthHttp, sockets: usize) -> Result<Self, ClientError> {
        let connector = https::connector(&settings.ca, Schemes::HttpToo)?;
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host((sockets / HOSTS_MAX).max(1));
        Ok(Client {
            client: builder.build(connector),
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
        critical::check(Work::Socket);
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
