//! What happens in the broker, as a stream of events (`text/event-stream`) for as long as somebody
//! listens.

use super::get;
use crate::Api;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use bytes::Bytes;
use courser_auth::{Tag, User};
use courser_broker::admin::{Event, Followed, Follower};
use hyper::StatusCode;
use hyper::header::HeaderName;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

pub(crate) const ROUTES: &[Route] = &[get(
    "/api/events",
    Needs::Monitoring,
    events,
    "What happens from now on, as server-sent events; `kind` names beginnings of kinds, `vhost` one vhost, `seconds` an end.",
)];

/// Events that are written at once.
const EVENTS_AT_ONCE: usize = 256;
/// How often something is sent, so that both sides see that the other one is there.
const PULSE: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells a proxy not to hold anything back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

fn events(call: &Call) -> Outcome {
    let Ok(place) = Arc::clone(&call.api.followers).try_acquire_owned() else {
        let reason = "as many follow the events as may";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason));
    };
    let seconds = call.query("seconds").map(str::parse::<u32>).transpose();
    let seconds = seconds.map_err(|_| Refusal::bad_request("seconds is no whole number"))?;
    let (sender, receiver) = mpsc::channel(1);
    let following = Following {
        api: Arc::clone(&call.api),
        user: Arc::clone(&call.caller()?.user),
        wanted: Wanted::asked(call),
        follower: call.admin().follow(),
        until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into())),
        _place: place,
    };
    Handle::current().spawn(following.run(sender));
    Ok(Reply::live(receiver, "text/event-stream").with_header(UNBUFFERED, "no"))
}

/// Which events somebody wants.
struct Wanted {
    kinds: Vec<String>,
    vhost: Option<String>,
}

impl Wanted {
    fn asked(call: &Call) -> Self {
        let kinds = call.query("kind").unwrap_or_default().split(',');
        let kinds = kinds.filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
        let vhost = call.query("vhost").filter(|vhost| !vhost.is_empty()).map(str::to_owned);
        Wanted { kinds, vhost }
    }

    fn has(&self, event: &Event) -> bool {
        let name = event.kind.name();
        let is_kind = self.kinds.is_empty() || self.kinds.iter().any(|kind| name.starts_with(kind));
        is_kind && self.vhost.as_ref().is_none_or(|vhost| *vhost == event.vhost)
    }
}

/// Somebody who listens.
struct Following {
    api: Arc<Api>,
    user: Arc<User>,
    wanted: Wanted,
    follower: Follower,
    /// When to end by itself.
    until: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

impl Following {
    async fn run(mut self, sender: mpsc::Sender<io::Result<Bytes>>) {
        // Something at once, so that the client knows that it is heard.
        let mut text = ": events from now on\n\n".to_owned();
        loop {
            let piece = Ok(Bytes::from(std::mem::take(&mut text)));
            if sender.send_timeout(piece, SEND_TIMEOUT).await.is_err() {
                return;
            }
            text = tokio::select! {
                followed = next(&mut self.follower) => self.written(&followed),
                () = tokio::time::sleep(PULSE) => String::new(),
                () = sender.closed() => return,
                () = end(self.until) => return,
            };
            if !self.may_listen() {
                return;
            }
            if text.is_empty() {
                text.push_str(": nothing new\n\n");
            }
        }
    }

    /// Whether the user is still who it was, and may see everything.
    fn may_listen(&self) -> bool {
        let directory = self.api.settings.accounts.directory();
        directory.user(&self.user.name).is_some_and(|user| {
            let sees = user.tags.has(Tag::Administrator) || user.tags.has(Tag::Monitoring);
            sees && user.password == self.user.password
        })
    }

    fn written(&self, followed: &Followed) -> String {
        let mut text = String::new();
        if followed.missed > 0 {
            let data = json!({ "missed": followed.missed });
            // Writing to a text can't fail.
            let _ = write!(text, "event: missed\ndata: {data}\n\n");
        }
        for event in followed.events.iter().filter(|event| self.wanted.has(event)) {
            let (kind, data) = (event.kind.name(), shown(event));
            let _ = write!(text, "event: {kind}\ndata: {data}\n\n");
        }
        text
    }
}

fn shown(event: &Event) -> Value {
    let details = event.details.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    json!({
        "at_ms": event.at_ms,
        "kind": event.kind.name(),
        "vhost": event.vhost,
        "name": event.name,
        "details": Value::Object(details.collect::<Map<_, _>>()),
    })
}

async fn end(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next events.
async fn next(follower: &mut Follower) -> Followed {
    poll_fn(|cx| {
        let followed = follower.take_or_wait(EVENTS_AT_ONCE, cx.waker());
        if followed.missed == 0 && followed.events.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(followed)
    })
    .await
}
