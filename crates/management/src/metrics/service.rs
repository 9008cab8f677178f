//! Requests for pages, and the answers. What a page has in memory until its client has taken it counts as what lists have.

use super::pages::{Endpoint, page};
use super::query::Query;
use super::table::Page;
use super::text::{CONTENT_TYPE, Text};
use super::{Exporter, Exporters};
use crate::hosts::names_this;
use crate::http::answer::{empty, refusal};
use crate::http::body::Outgoing;
use crate::http::connection::{self, Limits};
use crate::http::long::{Long, PIECE_TIMEOUT};
use crate::http::places::Keeper;
use crate::http::request::{named_by, wants_gzip};
use crate::name_search::TOO_LONG;
use crate::refusal::Refusal;
use crate::reply::Rows;
use courser_auth::network;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue,
    RETRY_AFTER,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Bytes up to which a page goes out whole.
const WHOLE_BYTES_MAX: usize = 256 * 1024;
/// When a page that finds no room may be asked for again.
const RETRY_SECONDS: &str = "10";

impl Exporter {
    /// Answers the requests of one connection until its end, or until `stopping` says so. Where too
    /// many are open, one that waits is closed.
    pub async fn serve<S>(
        self: Arc<Self>,
        stream: S,
        peer: SocketAddr,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let alone = Arc::clone(&self);
        self.serve_with(move || vec![Arc::clone(&alone)], stream, peer, stopping).await;
    }

    /// The same for a node on which there are several brokers, each of a group of the cluster. `all` says which there are now, this
    /// one among them, the one first that answers for the node.
    pub async fn serve_with<S>(
        self: Arc<Self>,
        all: impl Fn() -> Vec<Arc<Exporter>> + Send + Sync,
        stream: S,
        peer: SocketAddr,
        stopping: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let place = self.places.take(peer);
        let respond = |request| {
            let exporters = Exporters::new(all());
            let keeper = place.keeper();
            async move {
                match exporters {
                    Some(exporters) => respond(exporters, peer, keeper, request).await,
                    None => none_left(),
                }
            }
        };
        connection::serve(stream, peer, Limits::USUAL, &place, stopping, respond).await;
    }

    /// Lets in who asks, and says who that is: a user, or a network where no login is wanted.
    async fn login(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<String, Refusal> {
        let api = &self.api;
        if !self.wants_login {
            // A page in a browser of this machine, with its own name for it, would read what it can't reach otherwise.
            if peer.ip().to_canonical().is_loopback() && !names_this(headers, &api.settings.web) {
                return Err(Refusal::misdirected());
            }
            return Ok(network(peer.ip()).to_string());
        }
        let caller = api.logins.of_headers(headers, peer, &api.admin).await?;
        named_by(api, headers, &caller)?;
        caller.need_monitor()?;
        Ok(caller.name().to_owned())
    }
}

async fn respond(
    exporters: Exporters,
    peer: SocketAddr,
    keeper: Keeper,
    request: Request<Incoming>,
) -> Response<Outgoing> {
    let path = request.uri().path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(endpoint) = Endpoint::ALL.into_iter().find(|one| one.path() == path) else {
        return plain(StatusCode::NOT_FOUND, "Unknown Registry");
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("HEAD, GET"));
        return answer;
    }
    let asker = match exporters.first().login(request.headers(), peer).await {
        Ok(asker) => asker,
        Err(refused) => return refusal(&refused),
    };
    let _kept = keeper.keep(&asker);
    let asked = match endpoint {
        Endpoint::Detailed => request.uri().query().map(str::to_owned),
        _ => None,
    };
    scrape(exporters, endpoint, asked, asker, wants_gzip(request.headers())).await
}

/// Makes the beginning of a page, which may be all of it; what is left is made as it is read.
async fn scrape(
    exporters: Exporters,
    endpoint: Endpoint,
    asked: Option<String>,
    asker: String,
    is_gzip: bool,
) -> Response<Outgoing> {
    let (pages, api) = (Arc::clone(&exporters.first().pages), Arc::clone(&exporters.first().api));
    let Some(place) = pages.take(&asker, 1).await else { return interrupted() };
    let making = tokio::task::spawn_blocking(move || {
        // Compiling an expression takes its time as well.
        let query = match endpoint {
            Endpoint::Detailed => Query::parse(&asked.unwrap_or_default())?,
            _ => Query::everything(),
        };
        let rows = Scrape {
            started: Instant::now(),
            page: page(&exporters, endpoint, query.clone()),
            query,
            exporter: Arc::clone(exporters.first()),
            endpoint,
            bytes: 0,
        };
        let mut long = Long::new(Box::new(rows), is_gzip);
        let has_more = long.make(WHOLE_BYTES_MAX).map_err(|why| why.to_string())?;
        drop(place);
        Ok((long, has_more))
    });
    let (mut long, has_more) = match making.await {
        Ok(Ok(made)) => made,
        Ok(Err::<_, String>(why)) => return plain(StatusCode::BAD_REQUEST, &why),
        Err(_) => return interrupted(),
    };
    let bytes = if has_more { long.waiting_bytes() } else { long.made_bytes() };
    let fetch = match api.fetches.of_scrape(&api.admin, &asker, bytes) {
        Ok(fetch) => fetch,
        Err(refused) => return busy(&refused),
    };
    let mut answer = empty(StatusCode::OK);
    answer.headers_mut().insert(CONTENT_TYPE_HEADER, HeaderValue::from_static(CONTENT_TYPE));
    if is_gzip {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    *answer.body_mut() = if has_more {
        long.hold(fetch);
        long.send(pages, asker, None, None, PIECE_TIMEOUT)
    } else {
        Outgoing::whole(fetch.hold(long.take()))
    };
    answer
}

/// A page that is being written.
struct Scrape {
    exporter: Arc<Exporter>,
    endpoint: Endpoint,
    query: Query,
    page: Page,
    started: Instant,
    bytes: u64,
}

impl Rows for Scrape {
    fn bytes(&self) -> usize {
        self.page.bytes()
    }

    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let mut text = Text::default();
        let has_more = self.page.write_some(&mut text);
        if self.query.has_given_up() {
            return Err(io::Error::other(TOO_LONG));
        }
        out.extend_from_slice(text.0.as_bytes());
        self.bytes += text.0.len() as u64;
        if !has_more {
            self.exporter.telemetry.note(self.endpoint, self.started.elapsed(), self.bytes);
        }
        Ok(has_more)
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Outgoing> {
    let mut answer = empty(status);
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE_HEADER, kind);
    *answer.body_mut() = Outgoing::whole(text.to_owned().into());
    answer
}

/// There is no room for the page: the next scrape may find some.
fn busy(refused: &Refusal) -> Response<Outgoing> {
    let mut answer = refusal(refused);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    answer
}

/// The brokers have ended, and this connection does.
fn none_left() -> Response<Outgoing> {
    let reason = "this node does not lead any more";
    let refused = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason);
    let mut answer = refusal(&refused);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Making the page has panicked, or the broker ends.
fn interrupted() -> Response<Outgoing> {
    refusal(&Refusal::internal("the page could not be finished"))
}
