//! A connection over which requests come, within bounds of time and size.

use super::body::Outgoing;
use super::places::Place;
use crate::slow::WriteTimeout;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an answer that goes out may take after the broker has stopped: it holds the broker in memory.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

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
    let stream = WriteTimeout::new(stream, limits.write_timeout);
    let lift = stream.lift();
    let service = service_fn(|request| {
        let (answer, lift) = (respond(request), &lift);
        async move {
            let answer = answer.await;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                // Who speaks the other protocol has limits of its own.
                lift.store(true, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let stream = TokioIo::new(stream);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.max_buf_size(limits.head_bytes).max_headers(limits.headers);
    let mut connection = std::pin::pin!(http.serve_connection(stream, service).with_upgrades());
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        () = place.lost() => return,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                served = connection.as_mut() => served,
                () = place.lost() => return,
                () = tokio::time::sleep(LAST_ANSWER_TIMEOUT) => {
                    return tracing::debug!(%peer, "HTTP connection ended: the broker has stopped");
                }
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

#[cfg(test)]
mod tests {
    use super::super::answer::empty;
    use super::super::places::Places;
    use super::*;
    use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
    use std::io;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    /// What comes of it if more is written than a client takes, once its connection has become one of another protocol.
    async fn written_for_an_hour() -> Option<io::Result<()>> {
        let (mut client, stream) = tokio::io::duplex(64);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let place = Arc::<Places>::default().take(peer);
        let (_stop, stopping) = watch::channel(false);
        let (sender, upgraded) = tokio::sync::oneshot::channel();
        let sender = std::sync::Mutex::new(Some(sender));
        tokio::spawn(async move {
            let respond = |mut request| {
                let sender = sender.lock().expect("no panic").take().expect("one request");
                let upgrade = hyper::upgrade::on(&mut request);
                tokio::spawn(async move { drop(sender.send(upgrade.await)) });
                let mut answer = empty(StatusCode::SWITCHING_PROTOCOLS);
                answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("other"));
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                async move { answer }
            };
            serve(stream, peer, Limits::USUAL, &place, stopping, respond).await;
        });
        let head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n";
        client.write_all(head).await.expect("it is taken");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(client.read_u8().await.expect("an answer"));
        }
        let mut upgraded = TokioIo::new(upgraded.await.expect("it is told").expect("a stream"));
        let writing = timeout(Duration::from_secs(3600), upgraded.write_all(&[7; 100_000]));
        let written = writing.await.ok();
        drop(client);
        written
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_goes_on_ends_soon_after_the_broker() {
        let (mut client, stream) = tokio::io::duplex(1 << 10);
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let place = Arc::<Places>::default().take(peer);
        let (stop, stopping) = watch::channel(false);
        let (pieces, receiver) = tokio::sync::mpsc::channel(1);
        let receiver = std::sync::Mutex::new(Some(receiver));
        let serving = tokio::spawn(async move {
            let respond = |_| {
                let receiver = receiver.lock().expect("no panic").take().expect("one request");
                async move { Response::new(Outgoing::pieces(receiver)) }
            };
            serve(stream, peer, Limits::USUAL, &place, stopping, respond).await;
        });
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("it is taken");
        client.read_u8().await.expect("an answer begins");
        stop.send_replace(true);
        // Time stands still but for what is waited for.
        let ended = timeout(Duration::from_millis(5001), serving).await;
        ended.expect("it does not wait for the rest").expect("no panic");
        // What makes the rest ends with it.
        assert!(pieces.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_of_another_protocol_is_left_to_who_speaks_it() {
        let written = written_for_an_hour().await;
        assert!(written.is_none(), "{written:?}");
    }
}
