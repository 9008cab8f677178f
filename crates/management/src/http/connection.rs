//! A connection over which requests come, within bounds of time and size.

use super::body::Outgoing;
use super::places::Place;
use crate::slow::WriteTimeout;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// What a client may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long it may take nothing of an answer.
    pub write_timeout: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
}

impl Limits {
    pub const USUAL: Self =
        Limits { write_timeout: Duration::from_secs(30), head_bytes: 64 * 1024, headers: 64 };
    /// What home passes on has headers more, and waits for its client, as long as home lets that.
    pub const INSIDE: Self =
        Limits { write_timeout: Duration::from_secs(3600), head_bytes: 192 * 1024, headers: 72 };
}

/// Answers requests until the connection's end, or until its place is lost or `stopping` says so.
pub(crate) async fn serve<S, F>(
    stream: S,
    peer: SocketAddr,
    limits: Limits,
    place: &Place,
    mut stopping: watch::Receiver<bool>,
    respond: impl Fn(Request<Incoming>) -> F,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Future<Output = Response<Outgoing>>,
{
    let service = service_fn(|request| {
        let answer = respond(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.write_timeout));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.max_buf_size(limits.head_bytes).max_headers(limits.headers);
    let mut connection = std::pin::pin!(http.serve_connection(stream, service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = place.lost() => return,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = connection.as_mut() => served,
                () = place.lost() => return,
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}

/// Waits until the broker stops, or is gone.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}
