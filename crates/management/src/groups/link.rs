//! Connections to the API of other groups, and to this one itself.

use super::HOME;
use super::inside::{INSIDE, Inside};
use crate::Api;
use crate::call::Call;
use crate::http::current::current;
use crate::path::encode_form;
use crate::refusal::Refusal;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName,
    HeaderValue, IF_MATCH, IF_NONE_MATCH, ORIGIN, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// How long it may take to reach a group.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a group may take to begin its part of an answer: longer than a change may take to be durable.
pub(super) const PART_TIMEOUT: Duration = Duration::from_secs(40);
/// Connections that are kept for the next request, to each group.
const IDLE_MAX: usize = 8;
/// Bytes on their way within this process.
const PIPE_BYTES: usize = 64 << 10;

/// Headers that are said again on each connection, and what only home wants to know.
const NOT_PASSED_ON: [HeaderName; 12] = [
    HOST,
    AUTHORIZATION,
    COOKIE,
    ORIGIN,
    CONNECTION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    TE,
    EXPECT,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    INSIDE,
];

type Sender = SendRequest<Full<Bytes>>;

/// An answer that is to come.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Refusal>> + Send + 'a>>;

/// A question to groups.
#[derive(Clone)]
pub(super) struct Question {
    pub method: Method,
    /// Path and query.
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// A list is wanted row by row.
    pub rows: bool,
    /// How long the answer may take to begin. As long as the client waits, if nothing is said: what a group does alone may
    /// take as long as at home, and a group that is lost ends the connection.
    pub patience: Option<Duration>,
}

impl Question {
    /// What `call` asks, as it stands.
    pub fn of(call: &Call) -> Self {
        let mut headers = call.headers.clone();
        for name in NOT_PASSED_ON {
            headers.remove(name);
        }
        let (method, target, body) = (call.method.clone(), call.target.clone(), call.body.clone());
        Question { method, target, headers, body, rows: false, patience: None }
    }

    /// What `call` asks, for an answer that is put together from several: it is neither packed nor left out.
    pub fn of_part(call: &Call) -> Self {
        let mut question = Question { patience: Some(PART_TIMEOUT), ..Question::of(call) };
        for name in [ACCEPT_ENCODING, IF_NONE_MATCH, IF_MATCH] {
            question.headers.remove(name);
        }
        if question.method == Method::HEAD {
            question.method = Method::GET;
        }
        question
    }

    /// The same, for all members that there are.
    pub fn without_columns(mut self, call: &Call) -> Self {
        let path = self.target.split('?').next().unwrap_or_default();
        let wanted = call.query.iter().filter(|(name, _)| name != "columns");
        let pairs =
            wanted.map(|(name, value)| format!("{}={}", encode_form(name), encode_form(value)));
        let query = pairs.collect::<Vec<String>>().join("&");
        self.target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        self
    }

    fn request(&self, call: &Call, group: u16) -> Result<Request<Full<Bytes>>, Refusal> {
        let version = call.admin().definitions_version().0;
        let inside = Inside::new(call.caller()?, version, group, self.rows, call.peer)?;
        let inside = inside.to_header()?;
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        let unreadable = |_| Refusal::bad_request("The path can't be read");
        *request.uri_mut() = self.target.parse().map_err(unreadable)?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(HOST, HeaderValue::from_static("inside"));
        request.headers_mut().insert(INSIDE, inside);
        Ok(request)
    }
}

/// Connections to groups.
pub(crate) struct Links {
    idle: Arc<Mutex<HashMap<u16, Vec<Sender>>>>,
    /// Never says so: what this process asks itself ends with the connection.
    stops: watch::Sender<bool>,
}

impl Default for Links {
    fn default() -> Self {
        Links { idle: Arc::default(), stops: watch::Sender::new(false) }
    }
}

impl Links {
    /// Has a group answer. What may be a change is passed on only while this node certainly leads home: the group goes by what
    /// home says of the user.
    ///
    /// # Errors
    /// When it can't be reached, or another node may lead home.
    pub(super) fn ask<'a>(
        &'a self,
        call: &'a Call,
        group: u16,
        question: &'a Question,
    ) -> Asking<'a> {
        // It may be asked of this process, whose answer it is a part of.
        Box::pin(self.answer_of(call, group, question))
    }

    async fn answer_of(
        &self,
        call: &Call,
        group: u16,
        question: &Question,
    ) -> Result<Response<Incoming>, Refusal> {
        let can_repeat = question.method == Method::GET || question.method == Method::HEAD;
        if !can_repeat {
            // The user may have been deleted at another node, which leads home by now.
            current(&call.api.admin).await?;
        }
        let until = Instant::now() + REACH_TIMEOUT;
        let mut request = question.request(call, group)?;
        let mut known = self.known(group);
        loop {
            let is_known = known.is_some();
            let mut sender = match known.take() {
                Some(sender) => sender,
                None => self.connect(&call.api, group, until).await?,
            };
            let answering = sender.try_send_request(request);
            let answered = match question.patience {
                Some(patience) => timeout(patience, answering).await,
                None => Ok(answering.await),
            };
            match answered {
                Ok(Ok(answer)) => {
                    self.keep(group, sender);
                    return Ok(answer);
                }
                Ok(Err(mut failed)) => {
                    // A connection that was kept may have ended in the meantime; then there is another try, with a new one.
                    request = match failed.take_message() {
                        Some(request) if is_known => request,
                        None if is_known && can_repeat => question.request(call, group)?,
                        _ => return Err(lost(group, failed.error())),
                    };
                }
                Err(_) => return Err(lost(group, &"it does not answer")),
            }
        }
    }

    /// A connection that is there already.
    fn known(&self, group: u16) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let senders = idle.get_mut(&group)?;
        senders.retain(|sender| !sender.is_closed());
        senders.pop()
    }

    /// Keeps a connection for the next request, when its answer has been read.
    fn keep(&self, group: u16, mut sender: Sender) {
        if group == HOME {
            // It keeps the API alive.
            return;
        }
        let idle = Arc::clone(&self.idle);
        tokio::spawn(async move {
            if sender.ready().await.is_ok() {
                let mut idle = idle.lock();
                let senders = idle.entry(group).or_default();
                if senders.len() < IDLE_MAX {
                    senders.push(sender);
                }
            }
        });
    }

    async fn connect(&self, api: &Arc<Api>, group: u16, until: Instant) -> Result<Sender, Refusal> {
        match timeout_at(until, self.open(api, group)).await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotConnected => {
                Err(unavailable(format!("group {group} can't be reached: {error}")))
            }
            _ => Err(unavailable(format!(
                "group {group} has no leader; what is in its vhosts can be neither shown nor changed until it has one"
            ))),
        }
    }

    async fn open(&self, api: &Arc<Api>, group: u16) -> io::Result<Sender> {
        let stream = match &api.settings.groups {
            Some(groups) if group != HOME => groups.connect(group).await?,
            _ => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                tokio::spawn(Arc::clone(api).serve_inside(theirs, self.stops.subscribe()));
                Box::new(ours)
            }
        };
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(io::Error::other)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(group, %error, "a connection to the API of a group ended");
            }
        });
        sender.ready().await.map_err(io::Error::other)?;
        Ok(sender)
    }
}

/// Nothing is known of a group now.
pub(super) fn unavailable(why: String) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", why)
}

/// A group was lost while it answered.
pub(super) fn lost(group: u16, why: &dyn fmt::Display) -> Refusal {
    unavailable(format!("group {group} was lost while it answered: {why}"))
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").finish_non_exhaustive()
    }
}
