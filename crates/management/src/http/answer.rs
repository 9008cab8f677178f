//! Runs a handler on a thread that may be blocked, and hands out what it writes.
//!
//! A short answer goes out whole. A list goes out while it is made (see [`super::long`]).

use super::body::Outgoing;
use super::connection::Limits;
use super::long::{Long, PIECE_TIMEOUT, gzip};
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::{Body, Reply};
use crate::routes::{Needs, Route, check_vhost};
use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPIRES,
    HeaderValue, PRAGMA, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes up to which a list goes out whole.
const WHOLE_BYTES_MAX: usize = 128 * 1024;
/// How long a change may take to be durable.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes below which nothing is gained by compressing.
const GZIP_BYTES_MIN: usize = 300;

/// How a request is answered.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub route: Route,
    pub is_gzip_wanted: bool,
}

/// What a handler has come to, ready to go out.
enum Made {
    Whole(Response<Outgoing>),
    /// What stands before the body, and the body, of which the beginning is made.
    Long(Response<Outgoing>, Long),
}

impl Answer {
    /// Answers a request.
    pub async fn to(self, call: Call) -> Response<Outgoing> {
        if self.route.needs == Needs::Nothing && call.method != Method::POST {
            // These answer from what is at hand, also when everything else is busy.
            return self.hand_out_whole(self.handle(&call));
        }
        let api = Arc::clone(&call.api);
        let patience = match call.inside {
            None => PIECE_TIMEOUT,
            Some(_) => Limits::INSIDE.write_timeout,
        };
        let Ok(place) = Arc::clone(&api.answers).acquire_owned().await else {
            return interrupted();
        };
        let made = match call.method {
            Method::GET | Method::HEAD => {
                let making = tokio::task::spawn_blocking(move || {
                    let made = self.hand_out(self.handle(&call));
                    drop(place);
                    made
                });
                making.await.ok()
            }
            _ => self.change(call, place).await,
        };
        match made {
            Some(Made::Whole(answer)) => answer,
            Some(Made::Long(mut head, long)) => {
                *head.body_mut() = long.send(Arc::clone(&api.answers), patience);
                head
            }
            None => interrupted(),
        }
    }

    /// Answers a change when it would survive a crash. No thread waits for that.
    async fn change(self, call: Call, place: OwnedSemaphorePermit) -> Option<Made> {
        let handled = tokio::task::spawn_blocking(move || {
            let done = self.handle(&call);
            // Only what is to be handed out keeps its place.
            let keeps = matches!(&done, Ok(reply) if !matches!(reply.body, Body::Empty));
            (self, call, done, keeps.then_some(place))
        });
        let (answer, call, done, place) = handled.await.ok()?;
        let done = match done {
            Ok(reply) => durable(&call).await.map(|()| reply),
            refused => refused,
        };
        let making = tokio::task::spawn_blocking(move || {
            let made = answer.hand_out(done);
            drop(place);
            made
        });
        making.await.ok()
    }

    fn handle(&self, call: &Call) -> Outcome {
        // Where no client says anything, nobody else has told the broker the time lately.
        call.admin().set_time(call.api.now_ms());
        check_vhost(call, self.route.needs)?;
        (self.route.handler)(call)
    }

    /// What has been come to without a handler, and is no list that is made while it goes out.
    pub fn hand_out_whole(&self, done: Outcome) -> Response<Outgoing> {
        match self.hand_out(done) {
            Made::Whole(answer) => answer,
            Made::Long(..) => interrupted(),
        }
    }

    fn hand_out(&self, done: Outcome) -> Made {
        let reply = match done {
            Ok(reply) => reply,
            Err(refused) => return Made::Whole(refusal(&refused)),
        };
        let mut head = empty(reply.status);
        set_headers(&mut head, &reply);
        let (content_type, bytes) = match reply.body {
            Body::Empty => return Made::Whole(head),
            Body::Json(bytes) => ("application/json", bytes),
            Body::Text(bytes, content_type) => (content_type, bytes),
            Body::Live(pieces, content_type) => {
                set_content_type(&mut head, content_type);
                *head.body_mut() = Outgoing::pieces(pieces);
                return Made::Whole(head);
            }
            Body::Rows(rows) => {
                set_content_type(&mut head, "application/json");
                return self.begin(Long::new(rows, self.is_gzip_wanted), head);
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
        Made::Whole(head)
    }

    /// Makes the beginning of a list, which may be all of it.
    fn begin(&self, mut long: Long, mut head: Response<Outgoing>) -> Made {
        if self.is_gzip_wanted {
            head.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        match long.make(WHOLE_BYTES_MAX) {
            Ok(true) => Made::Long(head, long),
            Ok(false) => {
                *head.body_mut() = Outgoing::whole(long.take());
                Made::Whole(head)
            }
            Err(error) => Made::Whole(refusal(&Refusal::internal(error))),
        }
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

fn set_headers(head: &mut Response<Outgoing>, reply: &Reply) {
    let headers = head.headers_mut();
    for (name, value) in &reply.headers {
        // There may be several cookies.
        headers.append(name, value.clone());
    }
    if reply.no_store {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        headers.insert(EXPIRES, HeaderValue::from_static("0"));
    }
}

pub(crate) fn set_content_type(head: &mut Response<Outgoing>, content_type: &'static str) {
    head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
}

/// The answer with a file of the page.
pub(super) fn file(reply: Reply) -> Response<Outgoing> {
    let mut head = empty(reply.status);
    set_headers(&mut head, &reply);
    if let Body::Text(bytes, content_type) = reply.body {
        set_content_type(&mut head, content_type);
        *head.body_mut() = Outgoing::whole(bytes);
    }
    head
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Outgoing> {
    let mut answer = Response::new(Outgoing::empty());
    *answer.status_mut() = status;
    answer
}

/// The answer that says why nothing is done.
pub(crate) fn refusal(refusal: &Refusal) -> Response<Outgoing> {
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

/// What somebody else has answered, as it came.
pub(crate) fn relayed_bytes(head: Response<()>, bytes: Bytes) -> Response<Outgoing> {
    let mut answer = head.map(|()| Outgoing::whole(bytes));
    for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        answer.headers_mut().remove(name);
    }
    answer
}

/// A handler has panicked, or the broker ends.
pub(crate) fn interrupted() -> Response<Outgoing> {
    refusal(&Refusal::internal("the request could not be finished"))
}
