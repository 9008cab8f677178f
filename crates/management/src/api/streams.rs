//! Looking into streams: pages from an offset or a time on, and what comes, as it comes.

use super::get;
use super::live::{self, Source};
use super::peek::{self, Found, number};
use super::search::Search;
use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use crate::routes::{Needs, Route};
use crate::shares::Shares;
use courser_auth::{Resource, Right};
use courser_broker::admin::{Fault, StreamFollower, StreamPage, StreamStart};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::runtime::Handle;

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
/// Bytes of headers and bodies from which on no more are looked at before: as JSON they may be several times as many, and
/// they wait for their client.
const BYTES_AT_ONCE: usize = 256 << 10;
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
pub(super) fn messages(call: &Call, found: Found) -> Outcome {
    Ok(Reply::work(Looking { start: start(call, StreamStart::First)?, is_begun: false, found }))
}

/// A look at the messages of a stream.
struct Looking {
    start: StreamStart,
    is_begun: bool,
    found: Found,
}

impl Work for Looking {
    fn room(&self) -> usize {
        self.found.room()
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        peek::may_read(call)?;
        if !std::mem::replace(&mut self.is_begun, true) {
            make_durable(call);
        }
        let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
        let found = &mut self.found;
        let (count, bytes_max) = found.wants();
        // A page of none says where the stream begins and ends.
        let page = call.admin().read_stream(vhost, queue, self.start, count.max(1), bytes_max)?;
        let StreamPage { messages, mut next, first_offset, next_offset } = page;
        let is_end = messages.is_empty();
        for message in messages {
            let offset = message.number;
            if found.is_enough() || !found.look_at(message, offset)? {
                next = offset;
                break;
            }
        }
        if !is_end && !found.is_enough() {
            self.start = StreamStart::Offset(next);
            return Ok(None);
        }
        let members = format!(
            "\"next\":{next},\"first_offset\":{first_offset},\"next_offset\":{next_offset}"
        );
        Ok(Some(found.reply(&members)))
    }
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

fn tail(call: &Call) -> Outcome {
    peek::may_read(call)?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    // A browser that has lost the connection says what it has seen.
    let seen = call.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let start = match seen {
        Some(seen) => StreamStart::Offset(u64::saturating_add(seen, 1)),
        None => start(call, StreamStart::Next)?,
    };
    let truncate = number(call, "truncate", TRUNCATE_DEFAULT)?.min(TRUNCATE_MAX);
    let tail = Tail {
        follower: call.admin().follow_stream(vhost, queue, start)?,
        search: Search::asked(call.query("contains"), call.query("header"))?,
        truncate,
        always_base64: peek::always_base64(call)?,
        next: None,
    };
    let followed = Followed {
        vhost: vhost.to_owned(),
        queue: queue.to_vec(),
        user: call.user().to_owned(),
        tail: Some(Box::new(tail)),
        portions: Arc::clone(&call.api.portions),
    };
    live::serve(call, "messages as they come", followed)
}

/// A stream that is followed.
struct Followed {
    vhost: String,
    queue: Vec<u8>,
    user: String,
    /// None while it reads, and once it can't be read.
    tail: Option<Box<Tail>>,
    /// Who reads and searches has one of these places.
    portions: Arc<Shares>,
}

/// How far a stream has been read.
struct Tail {
    follower: StreamFollower,
    search: Search,
    truncate: usize,
    always_base64: bool,
    /// The offset to go on from, once something has been read.
    next: Option<u64>,
}

impl Source for Followed {
    async fn take(&mut self, waker: &Waker) -> Option<String> {
        let place = self.portions.take(&self.user, 1).await?;
        let mut tail = self.tail.take()?;
        let reading = tokio::task::spawn_blocking(move || {
            let read = tail.read();
            drop(place);
            // What can't be read ends it, as does the end of the stream.
            read.ok().flatten().map(|read| (tail, read))
        });
        let (tail, (is_end, text)) = reading.await.ok()??;
        let tail = self.tail.insert(tail);
        if is_end {
            tail.follower.wait(waker);
        } else {
            waker.wake_by_ref();
        }
        Some(text)
    }

    fn lets_in(&self, caller: &Caller) -> bool {
        caller.need_login().is_ok()
            && caller.may_enter(&self.vhost)
            && caller.check(&self.vhost, Right::Read, Resource::Queue(&self.queue)).is_ok()
    }
}

impl Tail {
    /// The next messages as events, as far as they are meant, and whether there were none. `None` when the stream is gone.
    fn read(&mut self) -> Result<Option<(bool, String)>, Fault> {
        let bytes_max = if self.search.is_empty() { self.truncate } else { usize::MAX };
        let page = self.follower.take(MESSAGES_AT_ONCE, bytes_max, BYTES_AT_ONCE)?;
        Ok(page.map(|page| (page.messages.is_empty(), self.written(page))))
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
                let id = message.number;
                let data = peek::object(&message, id, self.always_base64);
                let _ = write!(text, "event: message\nid: {id}\ndata: {data}\n\n");
            }
        }
        text
    }
}
