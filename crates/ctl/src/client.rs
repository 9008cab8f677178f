//! Requests to a broker's HTTP API, one after the other, over its socket or over the network.

mod stream;
mod websocket;

pub use crate::answer::{Answer, good, permitted};
use crate::failure::{Failure, NO_PERMISSION, TEMPORARY, UNAVAILABLE};
use crate::target::{Remote, Target};
use crate::tls;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// A client of one broker.
pub struct Client {
    runtime: Runtime,
    target: Target,
    connection: Option<SendRequest<Full<Bytes>>>,
    timeout: Duration,
    deadline: Instant,
    /// Whether it is known that the API is there, so that a 404 is about what was asked for.
    is_known: bool,
}

/// A body that is JSON.
pub fn body(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

impl Client {
    /// A client for a broker; everything that is asked of it together may take this long.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(target: Target, timeout: Duration) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::error(UNAVAILABLE, error))?;
        let deadline = Instant::now() + timeout;
        Ok(Client { runtime, target, connection: None, timeout, deadline, is_known: false })
    }

    /// The broker that is asked.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How long everything may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How much of that is left.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether that is over.
    pub fn is_late(&self) -> bool {
        self.left().is_zero()
    }

    /// Asks something that may take this long, and no longer than everything together.
    ///
    /// # Errors
    /// Those of what is asked.
    pub fn within<T>(
        &mut self,
        limit: Duration,
        ask: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let whole = self.deadline;
        self.deadline = whole.min(Instant::now() + limit);
        let answered = ask(self);
        self.deadline = whole;
        answered
    }

    /// Begins to count anew.
    pub fn restart_clock(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }

    /// Has all of the time be over.
    #[cfg(test)]
    pub fn end_clock(&mut self) {
        self.deadline = Instant::now();
    }

    /// What is at a path, as JSON.
    ///
    /// # Errors
    /// If it can't be had.
    pub fn get(&mut self, path: &str) -> Result<Value, Failure> {
        let answer = self.call(Method::GET, path, Bytes::new())?;
        good(answer)?.json()
    }

    /// What is at a path; nothing where that is not there.
    ///
    /// # Errors
    /// If it can't be had.
    pub fn find(&mut self, path: &str) -> Result<Option<Value>, Failure> {
        let answer = self.call(Method::GET, path, Bytes::new())?;
        match answer.status {
            404 => Ok(None),
            _ => good(answer)?.json().map(Some),
        }
    }

    /// Sends a request and reads the answer, whatever that is.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn call(&mut self, method: Method, path: &str, body: Bytes) -> Result<Answer, Failure> {
        self.call_with(method, path, body, &[])
    }

    /// As [`Client::call`], with headers.
    ///
    /// # Errors
    /// If there is no answer, or it comes from something else than a broker's API.
    pub fn call_with(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> Result<Answer, Failure> {
        let answer = self.send(method, path, body, headers)?;
        if answer.is_foreign() {
            return Err(self.no_api());
        }
        // Any server says 404, and so does a broker below another path: what every API has tells them apart.
        if answer.status == 404 && !self.is_known && matches!(self.target, Target::Http(_)) {
            let whoami = self.send(Method::GET, "/api/whoami", Bytes::new(), &[])?;
            if whoami.status == 404 || whoami.is_foreign() {
                return Err(self.no_api());
            }
            self.is_known = true;
        }
        Ok(answer)
    }

    /// What is said where something else answers.
    pub fn no_api(&self) -> Failure {
        let target = &self.target;
        let text = format!(
            "there is no HTTP API of a broker at {target}: check the address, the port and the path prefix \
             (management.path_prefix)"
        );
        Failure::error(UNAVAILABLE, text)
    }

    fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> Result<Answer, Failure> {
        let Client { runtime, target, connection, timeout, deadline, .. } = self;
        let request = || request(target, &method, path, &body, headers);
        let asked = runtime.block_on(async {
            tokio::time::timeout_at(*deadline, ask(target, connection, request)).await
        });
        asked.unwrap_or_else(|_| Err(late(target, *timeout)))
    }

    /// Hands on what a path tells by and by, as JSON, until it ends or `take` wants no more. The time for everything is
    /// only that until it begins.
    ///
    /// # Errors
    /// If it does not begin, or the connection is lost.
    pub fn follow(&mut self, path: &str, take: impl FnMut(&Value) -> bool) -> Result<(), Failure> {
        let Client { runtime, target, timeout, deadline, .. } = self;
        runtime.block_on(async {
            let begin = stream::begin(target, path);
            let begun = tokio::time::timeout_at(*deadline, begin).await;
            stream::read(target, begun.map_err(|_| late(target, *timeout))??, take).await
        })
    }

    /// Who may log in with these: the answer to a login over the same way.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn log_in(&mut self, user: &str, password: &str) -> Result<Answer, Failure> {
        let header = basic(user, password);
        self.call_with(Method::GET, "/api/whoami", Bytes::new(), &[("authorization", &header)])
    }

    /// Waits, but not beyond the deadline.
    pub fn pause(&self, pause: Duration) {
        self.runtime.block_on(async {
            tokio::time::sleep_until(self.deadline.min(Instant::now() + pause)).await;
        });
    }
}

fn late(target: &Target, timeout: Duration) -> Failure {
    let used = timeout.as_millis();
    let text = format!("{target} did not answer in time. Timeout value used: {used}");
    Failure::new(TEMPORARY, format!("Error: {text}"))
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn request(
    target: &Target,
    method: &Method,
    path: &str,
    body: &Bytes,
    headers: &[(&str, &str)],
) -> Result<Request<Full<Bytes>>, Failure> {
    let (prefix, host) = match target {
        Target::Local(_) => ("", "localhost".to_owned()),
        Target::Http(remote) => (&*remote.prefix, format!("{}:{}", remote.host, remote.port)),
    };
    let mut builder = Request::builder().method(method).uri(format!("{prefix}{path}"));
    builder = builder.header("host", host).header("accept", "application/json");
    if !body.is_empty() {
        builder = builder.header("content-type", "application/json");
    }
    let is_said = headers.iter().any(|(name, _)| *name == "authorization");
    if let Target::Http(remote) = target
        && !is_said
    {
        builder = builder.header("authorization", basic(&remote.user, &remote.password));
    }
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Full::new(body.clone())).map_err(|error| Failure::usage(error.to_string()))
}

/// Asks over the connection that is there, or over a new one. One that was closed while it was idle
/// does no harm: nothing of the request had been read.
async fn ask(
    target: &Target,
    connection: &mut Option<SendRequest<Full<Bytes>>>,
    request: impl Fn() -> Result<Request<Full<Bytes>>, Failure>,
) -> Result<Answer, Failure> {
    let lost = |error: &dyn Error| lost(target, error);
    let idle = match connection.take() {
        Some(mut idle) => idle.ready().await.is_ok().then_some(idle),
        None => None,
    };
    let mut sender = match idle {
        Some(idle) => idle,
        None => connect(target).await?,
    };
    let answer = match sender.send_request(request()?).await {
        Err(error) if error.is_canceled() => {
            sender = connect(target).await?;
            sender.send_request(request()?).await
        }
        answered => answered,
    };
    let answer = read(target, answer.map_err(|error| lost(&error))?).await?;
    *connection = Some(sender);
    Ok(answer)
}

/// The whole of an answer.
async fn read(target: &Target, answer: Response<Incoming>) -> Result<Answer, Failure> {
    let status = answer.status().as_u16();
    let content_type = content_type(&answer);
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| lost(target, &*error))?.to_bytes();
    Ok(Answer { status, content_type, body })
}

fn content_type(answer: &Response<Incoming>) -> String {
    let value = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn lost(target: &Target, error: &dyn Error) -> Failure {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    Failure::error(UNAVAILABLE, format!("the connection to {target} was lost: {text}"))
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let fail = |error: &dyn std::fmt::Display| {
        Failure::error(UNAVAILABLE, format!("the broker at {target} can't be reached: {error}"))
    };
    match target {
        Target::Local(path) => match UnixStream::connect(path).await {
            Ok(stream) => handshake(stream).await.map_err(|error| fail(&error)),
            Err(error) => Err(local_failure(path, &error)),
        },
        Target::Http(remote) => {
            let stream = dial(remote).await.map_err(|error| fail(&error))?;
            if !remote.tls {
                return handshake(stream).await.map_err(|error| fail(&error));
            }
            let stream = tls::connect(remote, stream).await?;
            handshake(stream).await.map_err(|error| fail(&error))
        }
    }
}

fn local_failure(path: &std::path::Path, error: &io::Error) -> Failure {
    let socket = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::error(
            NO_PERMISSION,
            format!("only root and the user that the broker runs as may use {socket}"),
        ),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::error(UNAVAILABLE, format!("no broker runs at {socket}: {error}"))
        }
        _ => {
            Failure::error(UNAVAILABLE, format!("the broker at {socket} can't be reached: {error}"))
        }
    }
}

async fn dial(remote: &Remote) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((&*remote.host, remote.port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn handshake<S>(stream: S) -> hyper::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // What goes wrong with it, the sender says.
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
}

/// A name as one segment of a path.
pub fn segment(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_as_one_segment() {
        assert_eq!(segment("/"), "%2F");
        assert_eq!(segment("a b%ä"), "a%20b%25%C3%A4");
        assert_eq!(segment("orders.eu-1_~"), "orders.eu-1_~");
    }
}
