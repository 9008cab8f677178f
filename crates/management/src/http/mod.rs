//! HTTP around the handlers: connections, limits, headers, and which handler a request is for.
//!
//! - [`answer`]: runs a handler and hands out what it writes while it is written.
//! - [`body`]: bodies of requests and answers.

mod answer;
mod body;

use crate::Api;
use crate::call::Call;
use crate::path;
use crate::refusal::Refusal;
use crate::routes::{Needs, Resource, Verb, check_tags};
use crate::slow::WriteTimeout;
use answer::Answer;
use body::{Outgoing, read};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, ALLOW, HeaderMap, HeaderValue, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// Old addresses of the API's reference.
const REFERENCES: [&str; 4] = ["/api", "/cli", "/stats", "/doc/stats.html"];

impl Api {
    /// Answers the requests of one connection until its end, or until `stopping` says so. Where too
    /// many are open, it is closed at once.
    pub async fn serve<S>(
        self: Arc<Self>,
        stream: S,
        peer: SocketAddr,
        mut stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Ok(_place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::debug!(%peer, "HTTP connection refused: too many");
            return;
        };
        let service = service_fn(|request| {
            let api = Arc::clone(&self);
            async move { Ok::<_, Infallible>(respond(api, peer, request).await) }
        });
        let stream = TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
        let mut connection = std::pin::pin!(http.serve_connection(stream, service));
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = stopped(&mut stopping) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%peer, %error, "HTTP connection ended");
        }
    }
}

/// Waits until the broker stops, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}

/// Answers a request, whatever it is.
async fn respond(
    api: Arc<Api>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Outgoing> {
    let method = request.method().clone();
    let path = request.uri().path();
    if REFERENCES.contains(&path.trim_end_matches('/')) {
        let mut moved = answer::empty(StatusCode::MOVED_PERMANENTLY);
        moved.headers_mut().insert(LOCATION, HeaderValue::from_static("/api/openapi.json"));
        return finished(moved, "OPTIONS, HEAD, GET");
    }
    let found = path::split(path)
        .and_then(|segments| api.routes.find(&segments).map(|resource| (resource, segments)));
    let Some((resource, segments)) = found else {
        return finished(answer::refusal(&Refusal::not_found()), "");
    };
    let allow = resource.allow.as_str();
    if method == Method::OPTIONS {
        return finished(answer::empty(StatusCode::OK), allow);
    }
    let Some(route) = Verb::of(&method).and_then(|verb| resource.route(verb)).copied() else {
        return finished(answer::empty(StatusCode::METHOD_NOT_ALLOWED), allow);
    };
    let is_gzip_wanted = wants_gzip(request.headers());
    let call = match prepare(&api, peer, request, resource, segments, route.needs).await {
        Ok(call) => call,
        Err(refusal) => return finished(answer::refusal(&refusal), allow),
    };
    let answer = Answer { route, is_gzip_wanted };
    finished(answer.to(call).await, allow)
}

/// Reads a request whole, and finds out who sends it.
async fn prepare(
    api: &Arc<Api>,
    peer: SocketAddr,
    request: Request<Incoming>,
    resource: &Resource,
    segments: Vec<Vec<u8>>,
    needs: Needs,
) -> Result<Call, Refusal> {
    let (head, body) = request.into_parts();
    let caller = match needs {
        Needs::Nothing => None,
        _ => {
            let logins = &api.logins;
            let caller = logins.of_headers(&head.headers, peer, &api.admin, api.now_ms()).await?;
            check_tags(&caller, needs)?;
            Some(caller)
        }
    };
    if !accepts_json(&head.headers) {
        return Err(Refusal::empty(StatusCode::NOT_ACCEPTABLE));
    }
    let Some(query) = path::query(head.uri.query().unwrap_or_default()) else {
        return Err(Refusal::bad_request("The query string can't be read"));
    };
    let (body, room) = read(body, &api.bodies).await?;
    Ok(Call {
        api: Arc::clone(api),
        caller,
        method: head.method,
        params: resource.params(segments),
        query,
        headers: head.headers,
        body,
        _room: room,
        peer,
    })
}

/// Whether JSON is among what a client wants; without a word it is.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut wanted = headers.get_all(ACCEPT).iter().peekable();
    if wanted.peek().is_none() {
        return true;
    }
    let lists = wanted.filter_map(|value| value.to_str().ok());
    let mut types = lists.flat_map(|list| list.split(','));
    types.any(|one| {
        let name = one.split(';').next().unwrap_or_default().trim();
        let names = ["application/json", "application/*", "*/*", "text/plain", "text/*"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

fn wants_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        name.eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// The answer with the headers that every one has.
fn finished(mut answer: Response<Outgoing>, allow: &str) -> Response<Outgoing> {
    let headers = answer.headers_mut();
    if let Ok(allow) = HeaderValue::from_str(allow)
        && !allow.is_empty()
    {
        headers.insert(ALLOW, allow);
    }
    let always = [
        ("content-security-policy", "script-src 'self'; object-src 'self'"),
        ("vary", "accept, accept-encoding, origin"),
        ("server", "Courser"),
        ("x-content-type-options", "nosniff"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let unless_set = HeaderValue::from_static("no-cache");
    headers.entry("cache-control").or_insert(unless_set);
    answer
}
