//! Runs a handler on a thread that may be blocked, and hands out what it writes.
//!
//! A short answer goes out whole. A long one goes out while it is written, and waits for its client:
//! what is in memory of it is bounded, whatever is listed.

use super::body::Outgoing;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::{Body, Reply, Writer};
use crate::routes::{Needs, Route, check_vhost};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, EXPIRES, HeaderValue, PRAGMA, WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Bytes up to which an answer goes out whole.
const WHOLE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that wait for the client.
const PIECES_MAX: usize = 2;
/// How long a piece may wait for its place.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a change may take to be durable.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes below which nothing is gained by compressing.
const GZIP_BYTES_MIN: usize = 300;

/// How a request is answered.
pub(super) struct Answer {
    pub route: Route,
    pub is_gzip_wanted: bool,
}

type Sent = oneshot::Sender<Response<Outgoing>>;

impl Answer {
    /// Answers a request.
    pub async fn to(self, call: Call) -> Response<Outgoing> {
        if self.route.needs == Needs::Nothing {
            // These answer from what is at hand, also when everything else is busy.
            let (sender, mut receiver) = oneshot::channel();
            self.run(&call, sender);
            let answered = receiver.try_recv();
            return answered.unwrap_or_else(|_| interrupted());
        }
        let Ok(permit) = Arc::clone(&call.api.answers).acquire_owned().await else {
            return interrupted();
        };
        let (sender, receiver) = oneshot::channel();
        if matches!(call.method, Method::GET | Method::HEAD) {
            tokio::task::spawn_blocking(move || {
                self.run(&call, sender);
                drop(permit);
            });
        } else {
            self.change(call, permit, sender).await;
        }
        receiver.await.unwrap_or_else(|_| interrupted())
    }

    /// Answers a change when it would survive a crash. No thread waits for that.
    async fn change(self, call: Call, permit: OwnedSemaphorePermit, sender: Sent) {
        let handled = tokio::task::spawn_blocking(move || {
            let done = self.handle(&call);
            // Only what is to be handed out keeps its place.
            let keeps = matches!(&done, Ok(reply) if !matches!(reply.body, Body::Empty));
            (self, call, done, keeps.then_some(permit))
        });
        let Ok((answer, call, done, permit)) = handled.await else { return };
        let done = match done {
            Ok(reply) => durable(&call).await.map(|()| reply),
            refused => refused,
        };
        tokio::task::spawn_blocking(move || {
            answer.hand_out(done, sender);
            drop(permit);
        });
    }

    /// Runs the handler, and writes its body.
    fn run(&self, call: &Call, sender: Sent) {
        self.hand_out(self.handle(call), sender);
    }

    fn handle(&self, call: &Call) -> Outcome {
        check_vhost(call, self.route.needs)?;
        (self.route.handler)(call)
    }

    fn hand_out(&self, done: Outcome, sender: Sent) {
        let reply = match done {
            Ok(reply) => reply,
            Err(refused) => return drop(sender.send(refusal(&refused))),
        };
        let mut head = empty(reply.status);
        set_headers(&mut head, &reply);
        let (content_type, bytes) = match reply.body {
            Body::Empty => return drop(sender.send(head)),
            Body::Json(bytes) => ("application/json", bytes),
            Body::Text(bytes, content_type) => (content_type, bytes),
            Body::Written(writer) => {
                set_content_type(&mut head, "application/json");
                return self.write(writer, head, sender);
            }
        };
        set_content_type(&mut head, content_type);
        let (bytes, is_gzip) = match self.is_gzip_wanted && bytes.len() >= GZIP_BYTES_MIN {
            true => gzip(&bytes).map_or((bytes, false), |packed| (packed, true)),
            false => (bytes, false),
        };
        if is_gzip {
            head.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *head.body_mut() = Outgoing::whole(bytes);
        drop(sender.send(head));
    }

    fn write(&self, writer: Writer, mut head: Response<Outgoing>, sender: Sent) {
        if self.is_gzip_wanted {
            head.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let mut pieces = Pieces { waiting: Vec::new(), head: Some((head, sender)), sending: None };
        let written = match self.is_gzip_wanted {
            true => {
                // The encoder starts anew with each write, and JSON is written token by token.
                let encoder = GzEncoder::new(&mut pieces, Compression::fast());
                let mut out = BufWriter::with_capacity(PIECE_BYTES, encoder);
                let written = writer(&mut out);
                // What is left in a buffer whose writing has failed is not written either.
                written
                    .and_then(|()| out.into_inner().map_err(IntoInnerError::into_error))
                    .and_then(|encoder| encoder.finish().map(drop))
            }
            false => writer(&mut pieces),
        };
        pieces.finish(written);
    }
}

/// Takes what is written: whole, as long as that is not too much; then piece by piece.
struct Pieces {
    waiting: Vec<u8>,
    /// What stands before the body, until it is sent.
    head: Option<(Response<Outgoing>, Sent)>,
    sending: Option<mpsc::Sender<io::Result<Bytes>>>,
}

impl Pieces {
    fn send(&mut self, piece: io::Result<Bytes>) -> io::Result<()> {
        if let Some((mut head, sender)) = self.head.take() {
            let (sending, receiver) = mpsc::channel(PIECES_MAX);
            *head.body_mut() = Outgoing::Pieces(receiver);
            self.sending = Some(sending);
            sender.send(head).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        let Some(sending) = &self.sending else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let sent = Handle::current().block_on(sending.send_timeout(piece, PIECE_TIMEOUT));
        sent.map_err(|_| io::ErrorKind::TimedOut.into())
    }

    /// Sends what is left. The client of what is cut off has gone, or is told by its connection's end.
    fn finish(mut self, written: io::Result<()>) {
        match (written, self.head.take()) {
            (Ok(()), Some((mut head, sender))) => {
                *head.body_mut() = Outgoing::whole(self.waiting.into());
                drop(sender.send(head));
            }
            (Err(error), Some((_, sender))) => {
                drop(sender.send(refusal(&Refusal::internal(error))));
            }
            (Ok(()), None) => {
                let last = std::mem::take(&mut self.waiting);
                if !last.is_empty() {
                    drop(self.send(Ok(last.into())));
                }
            }
            (Err(error), None) => drop(self.send(Err(error))),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        let most = if self.head.is_some() { WHOLE_BYTES_MAX } else { PIECE_BYTES };
        if self.waiting.len() > most {
            let piece = std::mem::take(&mut self.waiting);
            self.send(Ok(piece.into()))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until what has been changed so far is durable.
async fn durable(call: &Call) -> Result<(), Refusal> {
    match tokio::time::timeout(DURABLE_TIMEOUT, call.admin().durable()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(fault.into()),
        Err(_) => Err(Refusal::internal("the disk is too slow: whether it is done is not certain")),
    }
}

fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn set_headers(head: &mut Response<Outgoing>, reply: &Reply) {
    let headers = head.headers_mut();
    for (name, value) in &reply.headers {
        headers.insert(name, value.clone());
    }
    if reply.no_store {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        headers.insert(EXPIRES, HeaderValue::from_static("0"));
    }
}

fn set_content_type(head: &mut Response<Outgoing>, content_type: &'static str) {
    head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Outgoing> {
    let mut answer = Response::new(Outgoing::empty());
    *answer.status_mut() = status;
    answer
}

/// The answer that says why nothing is done.
pub(super) fn refusal(refusal: &Refusal) -> Response<Outgoing> {
    let mut answer = empty(refusal.status);
    if refusal.challenge {
        let challenge = HeaderValue::from_static("Basic realm=\"RabbitMQ Management\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if refusal.body.is_some() {
        set_content_type(&mut answer, "application/json");
        *answer.body_mut() = Outgoing::whole(refusal.to_json().into());
    }
    answer
}

/// A handler has panicked, or the broker ends.
fn interrupted() -> Response<Outgoing> {
    refusal(&Refusal::internal("the request could not be finished"))
}
