//! HTTP around the handlers: connections, limits, headers, and which handler a request is for.
//!
//! - [`connection`]: a connection over which requests come.
//! - [`request`]: what a request says, and who sends it.
//! - [`answer`]: runs a handler and hands out what it writes while it is written.
//! - [`turns`]: what a request waits for before that.
//! - [`made`]: what that is, on its way out.
//! - [`long`]: lists that go out while they are made.
//! - [`current`]: answers that wait until it is certain that this node still leads.
//! - [`body`]: bodies of requests and answers.
//! - [`headers`]: what caches and browsers want to know.
//! - [`noting`]: requests for changes in the audit log.
//! - [`websocket`]: connections that become sockets for AMQP.
//! - [`relay`]: requests that another process answers.
//! - [`places`]: how many connections there may be, and which goes when there are too many.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod current;
mod headers;
pub(crate) mod long;
mod made;
mod noting;
pub(crate) mod places;
pub(crate) mod relay;
pub(crate) mod request;
mod turns;
mod websocket;

use crate::Api;
use crate::groups;
use crate::hosts;
use crate::refusal::Refusal;
use crate::routes::{Needs, Verb};
use crate::settings::ClientTls;
use crate::{page, path};
use answer::Answer;
use body::Outgoing;
use connection::Limits;
use current::{is_to_be_current, when_current};
use headers::{Access, Asked};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode, Version};
use noting::Noting;
use request::{Connected, Peer, prepare, wants_gzip};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Where the operator of this machine counts as coming from.
const OPERATOR_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Old addresses of the API's reference.
const REFERENCES: [&str; 4] = ["/api", "/cli", "/stats", "/doc/stats.html"];

impl Api {
    /// Answers the requests of one connection until its end, or until `stopping` says so. Where too
    /// many are open, one that waits is closed.
    pub async fn serve<S>(
        self: Arc<Self>,
        stream: S,
        peer: SocketAddr,
        local: SocketAddr,
        tls: Option<Arc<ClientTls>>,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let connected = Connected { tls, ..Connected::new(peer, local) };
        self.serve_as(stream, connected, stopping).await;
    }

    /// As [`Api::serve`], for a client whose requests a [`crate::Relay`] passes on: it is told for which user it keeps the
    /// client's place.
    pub async fn serve_relayed<S>(
        self: Arc<Self>,
        stream: S,
        peer: SocketAddr,
        local: SocketAddr,
        tls: Option<Arc<ClientTls>>,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let connected = Connected { tls, is_relayed: true, ..Connected::new(peer, local) };
        self.serve_as(stream, connected, stopping).await;
    }

    /// As [`Api::serve`], for a connection that the system vouches for, such as one over a socket of
    /// its own: requests without credentials are the operator's, who may do everything. Nothing stands
    /// before their paths.
    pub async fn serve_operator<S>(self: Arc<Self>, stream: S, stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let here = Connected::new(OPERATOR_ADDRESS, OPERATOR_ADDRESS);
        let connected = Connected { is_operator: true, ..here };
        self.serve_as(stream, connected, stopping).await;
    }

    /// As [`Api::serve`], for a connection from the API of home ([`crate::Groups::connect`]), which has let in who asks, and says who
    /// that is. Nothing stands before its paths.
    pub async fn serve_inside<S>(self: Arc<Self>, stream: S, stopping: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let here = Connected::new(OPERATOR_ADDRESS, OPERATOR_ADDRESS);
        let connected = Connected { is_inside: true, ..here };
        self.serve_as(stream, connected, stopping).await;
    }

    async fn serve_as<S>(
        self: Arc<Self>,
        stream: S,
        connected: Connected,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let peer = connected.address;
        let places = match (connected.is_inside, connected.is_operator) {
            (true, _) => &self.inside,
            (_, true) => &self.operators,
            _ => &self.places,
        };
        let place = places.take(peer);
        let respond = |request| {
            let (connected, stopping) = (connected.clone(), stopping.clone());
            let peer = Peer { connected, keeper: place.keeper(), stopping };
            respond(Arc::clone(&self), peer, request)
        };
        let limits = if connected.is_inside { Limits::INSIDE } else { Limits::USUAL };
        connection::serve(stream, peer, limits, &place, stopping.clone(), respond).await;
    }
}

/// Answers a request, whatever it is.
async fn respond(api: Arc<Api>, peer: Peer, request: Request<Incoming>) -> Response<Outgoing> {
    let asked = Asked::new(request.method(), request.headers(), peer.connected.tls.is_some());
    let mut noting = Noting::new(&api, &peer.connected, &request);
    let is_relayed = peer.connected.is_relayed;
    let is_inside = peer.connected.is_inside || peer.connected.is_operator;
    let checked = if is_inside { Ok(()) } else { check_host(&request, &api) };
    let (answer, access) = match checked {
        Ok(()) => answered(&api, peer, request, &mut noting).await,
        Err(refused) => (answer::refusal(&refused), Access::NONE),
    };
    noting.end(&answer).await;
    let mut answer = asked.finish(answer, access, &api.settings.web);
    if is_relayed {
        relay::say_user(&mut answer);
    }
    answer
}

/// Refuses a request that does not name one host, as HTTP/1.1 wants it (with two, others may read another one than this), and
/// one that names another one than the settings list, if they do.
fn check_host(request: &Request<Incoming>, api: &Api) -> Result<(), Refusal> {
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || hosts == 0 && request.version() >= Version::HTTP_11 {
        return Err(Refusal::bad_request("A request has one Host header"));
    }
    let web = &api.settings.web;
    if web.hosts.is_empty() || hosts::names_this(request.headers(), web) {
        return Ok(());
    }
    Err(Refusal::misdirected())
}

/// The answer to a request, and who may ask what at its path. Who sends it is noted, and how far it comes.
async fn answered<'a>(
    api: &'a Arc<Api>,
    peer: Peer,
    mut request: Request<Incoming>,
    noting: &mut Noting,
) -> (Response<Outgoing>, Access<'a>) {
    let method = request.method().clone();
    let not_found = || (answer::refusal(&Refusal::not_found()), Access::NONE);
    let prefix = request::prefix(api, &peer.connected);
    if let Some(answer) = websocket::answer(api, &peer.connected, prefix, &mut request) {
        return (answer, Access { is_public: false, ..Access::PAGE });
    }
    let Some(path) = request.uri().path().strip_prefix(prefix) else { return not_found() };
    let is_gzip_wanted = wants_gzip(request.headers());
    let looks = matches!(method, Method::GET | Method::HEAD);
    let has_page = looks && api.settings.web.page;
    if has_page && path.is_empty() {
        return (moved(&format!("{prefix}/")), Access::PAGE);
    }
    if has_page && let Some(file) = page::answer(path, request.headers(), is_gzip_wanted) {
        return (answer::file(file), Access::PAGE);
    }
    if REFERENCES.contains(&path.trim_end_matches('/')) {
        return (moved(&format!("{prefix}/api/index.html")), Access::PAGE);
    }
    let found = path::split(path)
        .and_then(|segments| api.routes.find(&segments).map(|resource| (resource, segments)));
    let Some((resource, segments)) = found else { return not_found() };
    let is_public = resource.route(Verb::Get).is_some_and(|route| route.needs == Needs::Nothing);
    let access = Access { allow: &resource.allow, is_public };
    if method == Method::OPTIONS {
        return (answer::empty(StatusCode::OK), access);
    }
    let Some(route) = Verb::of(&method).and_then(|verb| resource.route(verb)).copied() else {
        return (answer::empty(StatusCode::METHOD_NOT_ALLOWED), access);
    };
    noting.is_for(&route);
    let user = &mut noting.user;
    let prepared = prepare(api, peer, request, resource, segments, &route, user).await;
    let answer = match prepared {
        Ok((call, kept)) => {
            noting.begin(&route);
            let answer = Answer { route, is_gzip_wanted };
            let mut answer = groups::answer::answered(call, answer).await;
            answer.body_mut().keeps(kept);
            answer
        }
        Err(refusal) => answer::refusal(&refusal),
    };
    let answer = match is_to_be_current(&route, answer.status()) {
        true => when_current(&api.admin, answer).await,
        false => answer,
    };
    (answer, access)
}

/// Says that something is elsewhere.
fn moved(place: &str) -> Response<Outgoing> {
    let mut moved = answer::empty(StatusCode::MOVED_PERMANENTLY);
    if let Ok(place) = HeaderValue::from_str(place) {
        moved.headers_mut().insert(LOCATION, place);
    }
    moved
}
