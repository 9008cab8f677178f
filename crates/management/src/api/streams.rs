//! Looking into streams: pages from an offset or a time on, and what comes, as it comes.

use super::get;
use super::live::{self, Source};
use super::peek::{self, COUNT_DEFAULT, LOOKED_AT_MAX, SHOWN_BYTES_MAX, Search, number};
use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_auth::{Resource, Right};
use courser_broker::admin::{Fault, MESSAGES_MAX, StreamFollower, StreamPage, StreamStart};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

pub(crate) const ROUTES: &[Route] = &[get(
    "/api/queues/{vhost}/{queue}/tail",
    Needs::Vhost,
    tail,
    "The messages of a stream as they come, as server-sent events (offset, timestamp_ms, contains, header, truncate, seconds).",
)];

/// How long a page waits for what was published just before.
const DURABLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Messages that are looked at before they are sent.
const MESSAGES_AT_ONCE: usize = 64;
/// Bytes of a payload that are sent where nothing is said, and at most.
const TRUNCATE_DEFAULT: usize = 16 << 10;
const TRUNCATE_MAX: usize = 256 << 10;

/// Where to begin, as the query says it.
fn start(call: &Call, default: StreamStart) -> Result<StreamStart, Refusal> {
    let not_int = |name: &str| Refusal::bad_request(json!(["not_int", name]));
    if let Some(time) = call.query("timestamp_ms").filter(|text| !text.is_empty()) {
        return time.parse().map(StreamStart::Time).map_err(|_| not_int("timestamp_ms"));
    }
    match call.query("offset") {
        None | Some("") => Ok(default),
        Some("first") => Ok(StreamStart::First),
        Some("last") => Ok(StreamStart::Last),
        Some("next") => Ok(StreamStart::Next),
        Some(offset) => offset.parse().map(StreamStart::Offset).map_err(|_| not_int("offset")),
    }
}

/// A page of a stream: see [`peek`] for what a page of another queue is.
pub(super) fn messages(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let mut start = start(call, StreamStart::First)?;
    let count = number(call, "count", COUNT_DEFAULT)?.clamp(1, MESSAGES_MAX);
    let truncate = number(call, "truncate", usize::MAX)?;
    let always_base64 = call.query("encoding") == Some("base64");
    let search = Search::new(call.query("contains"), call.query("header"));
    make_durable(call);
    let (mut found, mut shown_bytes, mut looked_at) = (Vec::new(), 0, 0);
    let page = loop {
        // Who looks for something needs all of each message.
        let (at_once, bytes_max) = match search.is_empty() {
            true => (count - found.len(), truncate),
            false => (MESSAGES_MAX.min(LOOKED_AT_MAX - looked_at), usize::MAX),
        };
        let mut page = call.admin().read_stream(vhost, queue, start, at_once, bytes_max)?;
        let is_end = page.messages.is_empty();
        let mut enough = false;
        for mut message in std::mem::take(&mut page.messages) {
            looked_at += 1;
            page.next = page.next.max(message.number + 1);
            if search.finds(&message) {
                message.body.truncate(truncate);
                shown_bytes += message.body.len();
                found.push(object(&message, always_base64));
            }
            enough = found.len() >= count || shown_bytes >= SHOWN_BYTES_MAX;
            if enough {
                page.next = message.number + 1;
                break;
            }
        }
        if is_end || enough || looked_at >= LOOKED_AT_MAX {
            break page;
        }
        start = StreamStart::Offset(page.next);
    };
    let StreamPage { next, first_offset, next_offset, .. } = page;
    Ok(Reply::json(&json!({
        "messages": found,
        "looked_at": looked_at,
        "next": next,
        "first_offset": first_offset,
        "next_offset": next_offset,
    })))
}

/// Has what has been published so far become durable, as nothing else is shown. A log that is slow is
/// waited for no longer than a moment.
fn make_durable(call: &Call) {
    let durable = call.admin().durable();
    // The timer belongs to the runtime, which has to be entered before it is made. A log that has failed
    // says so when it is read.
    let _ =
        Handle::current().block_on(async { tokio::time::timeout(DURABLE_TIMEOUT, durable).await });
}

/// A message; its offset is one that never changes.
fn object(message: &courser_broker::admin::MessageView, always_base64: bool) -> Value {
    peek::object(message, message.number, always_base64)
}

fn tail(call: &Call) -> Outcome {
    peek::may_read(call)?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    // A browser that has lost the connection says what it has seen.
    let seen = call.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let start = match seen {
        Some(seen) => StreamStart::Offset(u64::saturating_add(seen, 1)),
        None => start(call, StreamStart::Next)?,
    };
    let tail = Tail {
        vhost: vhost.to_owned(),
        queue: queue.to_vec(),
        follower: Arc::new(Mutex::new(call.admin().follow_stream(vhost, queue, start)?)),
        search: Search::new(call.query("contains"), call.query("header")),
        truncate: number(call, "truncate", TRUNCATE_DEFAULT)?.min(TRUNCATE_MAX),
        always_base64: call.query("encoding") == Some("base64"),
        next: None,
        answers: Arc::clone(&call.api.answers),
    };
    live::serve(call, "messages as they come", tail)
}

/// Somebody who follows a stream.
struct Tail {
    vhost: String,
    queue: Vec<u8>,
    follower: Arc<Mutex<StreamFollower>>,
    search: Search,
    truncate: usize,
    always_base64: bool,
    /// The offset to go on from, once something has been read.
    next: Option<u64>,
    /// Who reads from the disk has one of these places.
    answers: Arc<Semaphore>,
}

impl Source for Tail {
    async fn take(&mut self, waker: &Waker) -> Option<String> {
        loop {
            let page = self.read().await?;
            let is_end = page.messages.is_empty();
            let text = self.written(page);
            if !text.is_empty() || is_end {
                self.follower.lock().wait(waker);
                return Some(text);
            }
        }
    }

    fn lets_in(&self, caller: &Caller) -> bool {
        caller.may_still_enter(&self.vhost)
            && caller.check(&self.vhost, Right::Read, Resource::Queue(&self.queue)).is_ok()
    }
}

impl Tail {
    async fn read(&self) -> Option<StreamPage> {
        let bytes_max = if self.search.is_empty() { self.truncate } else { usize::MAX };
        let place = Arc::clone(&self.answers).acquire_owned().await.ok()?;
        let follower = Arc::clone(&self.follower);
        let reading = tokio::task::spawn_blocking(move || -> Result<Option<StreamPage>, Fault> {
            let _place = place;
            follower.lock().take(MESSAGES_AT_ONCE, bytes_max)
        });
        // What can't be read ends it, as does the end of the stream.
        reading.await.ok()?.ok()?
    }

    fn written(&mut self, page: StreamPage) -> String {
        let mut text = String::new();
        let first = page.messages.first().map_or(page.next, |message| message.number);
        let missed = self.next.map_or(0, |expected| first.saturating_sub(expected));
        if missed > 0 {
            // Writing to a text can't fail.
            let _ = write!(text, "event: missed\ndata: {}\n\n", json!({ "missed": missed }));
        }
        self.next = Some(page.next);
        for mut message in page.messages {
            if self.search.finds(&message) {
                message.body.truncate(self.truncate);
                let (id, data) = (message.number, object(&message, self.always_base64));
                let _ = write!(text, "event: message\nid: {id}\ndata: {data}\n\n");
            }
        }
        text
    }
}
