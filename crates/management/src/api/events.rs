//! What happens in the broker, as a stream of events (`text/event-stream`) for as long as a client
//! listens.

use super::get;
use super::live::{self, Source};
use crate::Api;
use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::groups::HOME;
use crate::refusal::Refusal;
use crate::routes::{Needs, Route};
use courser_broker::admin::{Event, EventKind, Followed, Follower};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Waker;

pub(crate) const ROUTES: &[Route] = &[get(
    "/api/events",
    Needs::Monitoring,
    events,
    "What happens from now on, as server-sent events; `kind` names beginnings of kinds, `vhost` one vhost, `seconds` an end.",
)];

/// Events that are written at once.
const EVENTS_AT_ONCE: usize = 256;

fn events(call: &Call) -> Outcome {
    let (wanted, follower) = (Wanted::asked(call)?, call.admin().follow());
    let (api, group) = (Arc::clone(&call.api), call.inside.as_ref().map(|inside| inside.group));
    let following = Following { wanted, follower, api, group };
    live::serve(call, "events from now on", following)
}

/// Which events the client wants.
struct Wanted {
    kinds: Vec<String>,
    vhost: Option<String>,
}

impl Wanted {
    fn asked(call: &Call) -> Result<Self, Refusal> {
        let kinds = call.query("kind").unwrap_or_default().split(',');
        let kinds: Vec<String> = kinds.filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
        let begins_one = |kind: &String| EventKind::names().any(|name| name.starts_with(kind));
        if let Some(kind) = kinds.iter().find(|kind| !begins_one(kind)) {
            return Err(Refusal::bad_request(format!("there are no events of the kind '{kind}'")));
        }
        let vhost = call.query("vhost").filter(|vhost| !vhost.is_empty()).map(str::to_owned);
        Ok(Wanted { kinds, vhost })
    }

    fn has(&self, event: &Event) -> bool {
        let name = event.kind.name();
        let is_kind = self.kinds.is_empty() || self.kinds.iter().any(|kind| name.starts_with(kind));
        is_kind && self.vhost.as_ref().is_none_or(|vhost| *vhost == event.vhost)
    }
}

/// The events that one client follows.
struct Following {
    wanted: Wanted,
    follower: Follower,
    api: Arc<Api>,
    /// What it is told is put together with what the other groups tell.
    group: Option<u16>,
}

/// What home tells: the other groups get to know of it, and do the same.
const OF_HOME: [&str; 5] =
    ["user.", "permission.", "topic.permission.", "vhost.created", "vhost.deleted"];

impl Source for Following {
    async fn take(&mut self, waker: &Waker) -> Option<String> {
        loop {
            let followed = self.follower.take_or_wait(EVENTS_AT_ONCE, waker);
            let text = self.written(&followed);
            if !text.is_empty() || followed.events.is_empty() {
                return Some(text);
            }
        }
    }

    fn lets_in(&self, caller: &Caller) -> bool {
        caller.is_monitor()
    }
}

impl Following {
    /// Whether it is for this group to tell of an event.
    fn tells(&self, event: &Event) -> bool {
        let name = event.kind.name();
        let is_of_home = event.vhost.is_empty() && name.starts_with("parameter.")
            || OF_HOME.iter().any(|kind| name.starts_with(kind));
        match self.group {
            None => true,
            Some(HOME) => is_of_home || self.api.is_here(&event.vhost),
            Some(_) => !is_of_home,
        }
    }

    fn written(&self, followed: &Followed) -> String {
        let mut text = String::new();
        if followed.missed > 0 {
            let data = json!({ "missed": followed.missed });
            // Writing to a text can't fail.
            let _ = write!(text, "event: missed\ndata: {data}\n\n");
        }
        let is_wanted = |event: &&Arc<Event>| self.wanted.has(event) && self.tells(event);
        for event in followed.events.iter().filter(is_wanted) {
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
