//! Requests that another process answers: a node of a cluster passes on what is for the node that leads. Some it answers
//! itself: those that have to be answered whether a node leads or not.

use super::answer::{empty, refusal};
use super::body::Outgoing;
use super::connection::{self, Limits};
use super::places::Places;
use crate::path;
use crate::refusal::Refusal;
use crate::settings::Upgraded;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, watch};

/// Says to a relay which user an answer is for, who has logged in: only the other process knows that. No client sees it.
const USER: HeaderName = HeaderName::from_static("x-courser-user");
/// For whom the connections of the operator of this machine keep their places. No user's name is percent-encoded so.
const OPERATOR: &str = "";

/// A connection to who answers.
pub type RelayStream = Box<dyn RelayIo>;

/// What such a connection is.
pub trait RelayIo: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> RelayIo for S {}

/// An answer of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAnswer {
    /// The status.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
    /// It is for those only whose credentials get them this page of the other process: others get what that answers.
    pub page: Option<Uri>,
}

type Own = dyn Fn(&str, bool) -> Option<OwnAnswer> + Send + Sync;

/// Passes requests on.
pub struct Relay {
    own: Box<Own>,
    passes_on: bool,
    places: Arc<Places>,
    /// For connections of the operator of this machine.
    operators: Arc<Places>,
}

impl Relay {
    /// A relay that asks `own` first, which is told the path, and whether the operator of this machine asks.
    pub fn new(own: impl Fn(&str, bool) -> Option<OwnAnswer> + Send + Sync + 'static) -> Arc<Self> {
        Relay::with(own, true)
    }

    /// One that passes nothing on, and refuses what it does not answer itself.
    pub fn of_own(
        own: impl Fn(&str, bool) -> Option<OwnAnswer> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Relay::with(own, false)
    }

    fn with(
        own: impl Fn(&str, bool) -> Option<OwnAnswer> + Send + Sync + 'static,
        passes_on: bool,
    ) -> Arc<Self> {
        let (places, operators) = Default::default();
        Arc::new(Relay { own: Box::new(own), passes_on, places, operators })
    }

    /// Answers the requests of one connection until its end, or until `stopping` says so. `connect` makes connections to
    /// who answers those that are passed on. What a client and that one say when their connections have become those of
    /// another protocol is for `carry`: their places here are free by then.
    pub async fn serve<S, C, F>(
        &self,
        stream: S,
        peer: SocketAddr,
        is_operator: bool,
        connect: C,
        carry: impl Fn(Upgraded, Upgraded) + Clone + Send + 'static,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        C: Fn() -> F,
        F: Future<Output = io::Result<RelayStream>>,
    {
        let places = if is_operator { &self.operators } else { &self.places };
        let place = places.take(peer);
        // Requests of a connection come one after the other.
        let other: Mutex<Option<SendRequest<Incoming>>> = Mutex::new(None);
        let respond = |mut request| {
            let (other, connect, keeper) = (&other, &connect, place.keeper());
            let upgrade = hyper::upgrade::on(&mut request);
            let carry = carry.clone();
            async move {
                let mut answer = match self.own_answer(&request, is_operator) {
                    Some((answer, None)) => answer,
                    Some((answer, Some(page))) => match ask(connect, request, page).await {
                        passed if passed.status() == StatusCode::OK => answer,
                        refused => refused,
                    },
                    None if !self.passes_on => empty(StatusCode::METHOD_NOT_ALLOWED),
                    None => {
                        let mut answer = pass_on(other, connect, request).await;
                        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                            let other = hyper::upgrade::on(&mut answer);
                            tokio::spawn(upgraded(upgrade, other, carry));
                            *answer.body_mut() = Outgoing::empty();
                        }
                        answer
                    }
                };
                let user = take_user(&mut answer);
                let user = if is_operator { Some(OPERATOR.to_owned()) } else { user };
                answer.body_mut().keeps(user.and_then(|user| keeper.keep(&user)));
                answer
            }
        };
        connection::serve(stream, peer, Limits::USUAL, &place, stopping, respond).await;
    }

    fn own_answer(
        &self,
        request: &Request<Incoming>,
        is_operator: bool,
    ) -> Option<(Response<Outgoing>, Option<Uri>)> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let own = (self.own)(request.uri().path(), is_operator)?;
        let status = StatusCode::from_u16(own.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = empty(status);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(own.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        *answer.body_mut() = Outgoing::whole(own.body.into());
        Some((answer, own.page))
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

/// Says in an answer for which user its connection keeps a place, if it does.
pub(super) fn say_user(answer: &mut Response<Outgoing>) {
    let user = answer.body().kept_for().map(path::encode_segment);
    if let Some(user) = user.and_then(|user| HeaderValue::try_from(user).ok()) {
        answer.headers_mut().insert(USER, user);
    }
}

/// Takes that out of an answer.
fn take_user(answer: &mut Response<Outgoing>) -> Option<String> {
    Some(answer.headers_mut().remove(USER)?.to_str().ok()?.to_owned())
}

/// What the other process answers to the client of this request, asked for this page instead.
async fn ask<C, F>(connect: &C, mut request: Request<Incoming>, page: Uri) -> Response<Outgoing>
where
    C: Fn() -> F,
    F: Future<Output = io::Result<RelayStream>>,
{
    (*request.method_mut(), *request.uri_mut()) = (Method::GET, page);
    let all = std::mem::take(request.headers_mut());
    for name in [HOST, AUTHORIZATION, COOKIE] {
        if let Some(value) = all.get(&name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    // The answer is not read to its end, so the connection is of no more use.
    pass_on(&Mutex::new(None), connect, request).await
}

async fn pass_on<C, F>(
    other: &Mutex<Option<SendRequest<Incoming>>>,
    connect: &C,
    request: Request<Incoming>,
) -> Response<Outgoing>
where
    C: Fn() -> F,
    F: Future<Output = io::Result<RelayStream>>,
{
    let (mut other, mut request) = (other.lock().await, request);
    loop {
        let mut kept = other.take();
        // It may have ended, and may not be done with the answer before.
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let is_kept = kept.is_some();
        let mut sender = match kept {
            Some(sender) => sender,
            None => match begin(connect).await {
                Ok(sender) => sender,
                Err(error) => return unavailable(&error),
            },
        };
        match sender.try_send_request(request).await {
            Ok(answer) => {
                if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                    *other = Some(sender);
                }
                return answer.map(Outgoing::relayed);
            }
            Err(mut failed) => {
                // Nothing of it was sent: the connection has ended since.
                request = match failed.take_message() {
                    Some(unsent) if is_kept => unsent,
                    _ => {
                        let error = failed.into_error();
                        return unavailable(&format_args!("the node that leads was lost: {error}"));
                    }
                };
            }
        }
    }
}

/// Hands over what a client and the other process say when their connections have become those of another protocol.
async fn upgraded(client: OnUpgrade, other: OnUpgrade, carry: impl Fn(Upgraded, Upgraded)) {
    match (client.await, other.await) {
        (Ok(client), Ok(other)) => carry(TokioIo::new(client), TokioIo::new(other)),
        (Err(error), _) | (_, Err(error)) => {
            tracing::debug!(%error, "a connection that changes its protocol was lost");
        }
    }
}

async fn begin<C, F>(connect: &C) -> io::Result<SendRequest<Incoming>>
where
    C: Fn() -> F,
    F: Future<Output = io::Result<RelayStream>>,
{
    let stream = TokioIo::new(connect().await?);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection for requests that are passed on ended");
        }
    });
    sender.ready().await.map_err(io::Error::other)?;
    Ok(sender)
}

fn unavailable(why: &dyn fmt::Display) -> Response<Outgoing> {
    let reason = why.to_string();
    refusal(&Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason))
}
