//! Looking at messages without a change to them: searching, downloading, and who has those that are
//! handed out.

use super::channels::channel_name;
use super::get;
use super::messages::members;
use super::streams;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_auth::{Resource, Right};
use courser_broker::admin::{MESSAGES_MAX, MessageView, StreamStart, UnackedView};
use courser_codec::ContentHeader;
use hyper::header::CONTENT_DISPOSITION;
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/queues/{vhost}/{queue}/messages",
        Needs::Vhost,
        messages,
        "Messages that wait, without a change to them (offset, count, contains, header, truncate, encoding); of a stream also from `offset` first, last or next, or `timestamp_ms`.",
    ),
    get(
        "/api/queues/{vhost}/{queue}/messages/{offset}",
        Needs::Vhost,
        payload,
        "The payload of a message that waits, as a file.",
    ),
    get(
        "/api/queues/{vhost}/{queue}/unacked",
        Needs::Vhost,
        unacked,
        "Messages that are handed out and not acknowledged, oldest first (page, page_size).",
    ),
];

/// Messages that are shown where nothing is said.
pub(super) const COUNT_DEFAULT: usize = 20;
/// Messages that one request looks at.
pub(super) const LOOKED_AT_MAX: usize = 10_000;
/// Bytes of payloads in one answer, unless the first message alone is larger.
pub(super) const SHOWN_BYTES_MAX: usize = 16 << 20;
/// Unacknowledged messages on a page.
const PAGE_MAX: usize = 500;

/// What is looked for in messages: all of this.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Bytes of the payload.
    contains: Option<Vec<u8>>,
    /// The name of a header, and what it is as text, if that matters.
    header: Option<(String, Option<String>)>,
}

impl Search {
    pub fn new(contains: Option<&str>, header: Option<&str>) -> Self {
        let contains = contains.filter(|text| !text.is_empty());
        let header =
            header.filter(|text| !text.is_empty()).map(|text| match text.split_once(':') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (text.to_owned(), None),
            });
        Search { contains: contains.map(|text| text.as_bytes().to_vec()), header }
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.contains.is_none() && self.header.is_none()
    }

    /// Whether a message has it. Its body has to be whole.
    pub fn finds(&self, message: &MessageView) -> bool {
        let in_body = |text: &Vec<u8>| {
            message.body.windows(text.len()).any(|window| window == text.as_slice())
        };
        self.contains.as_ref().is_none_or(in_body) && self.finds_header(message)
    }

    fn finds_header(&self, message: &MessageView) -> bool {
        let Some((wanted, value)) = &self.header else { return true };
        let headers = ContentHeader::parse(&message.header)
            .ok()
            .and_then(|header| header.properties.headers().ok().flatten()?.to_owned().ok());
        let headers = headers.map(|headers| from_table(&headers));
        let found = headers.as_ref().and_then(|headers| headers.get(wanted));
        let is_value = |found: &Value| match value {
            None => true,
            Some(value) => match found {
                Value::String(text) => text == value,
                other => value == &other.to_string(),
            },
        };
        found.is_some_and(is_value)
    }
}

/// Whether the caller may read from the queue in the path.
pub(super) fn may_read(call: &Call) -> Result<(), Refusal> {
    let read = call.caller()?.check(
        call.text("vhost")?,
        Right::Read,
        Resource::Queue(call.bytes("queue")),
    );
    read.map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))
}

/// What says which messages are shown, and how.
const PARAMETERS: [&str; 7] =
    ["offset", "count", "truncate", "encoding", "contains", "header", "timestamp_ms"];

pub(super) fn number(call: &Call, name: &str, default: usize) -> Result<usize, Refusal> {
    let Some(text) = call.query(name).filter(|text| !text.is_empty()) else { return Ok(default) };
    text.parse().map_err(|_| Refusal::bad_request(json!(["not_int", name])))
}

fn messages(call: &Call) -> Outcome {
    may_read(call)?;
    call.only_query(&PARAMETERS)?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    if call.admin().queue(vhost, queue)?.stream.is_some() {
        return streams::messages(call);
    }
    let (first, count) = (number(call, "offset", 0)?, number(call, "count", COUNT_DEFAULT)?);
    let truncate = number(call, "truncate", usize::MAX)?;
    let count = count.min(MESSAGES_MAX);
    let always_base64 = call.query("encoding") == Some("base64");
    let search = Search::new(call.query("contains"), call.query("header"));
    let fetch = call.api.fetches.begin(SHOWN_BYTES_MAX * 2)?;
    let (mut found, mut shown_bytes, mut looked_at) = (Vec::new(), 0, 0);
    let mut is_end = false;
    while found.len() < count
        && looked_at < LOOKED_AT_MAX
        && shown_bytes < SHOWN_BYTES_MAX
        && !is_end
    {
        let offset = first.saturating_add(looked_at);
        // Who looks for something needs all of each message.
        let (at_once, bytes_max) = match search.is_empty() {
            true => (count - found.len(), truncate),
            false => (MESSAGES_MAX.min(LOOKED_AT_MAX - looked_at), usize::MAX),
        };
        let some = call.admin().peek(vhost, queue, offset, at_once, bytes_max)?;
        is_end = some.is_empty();
        for (nth, mut message) in some.into_iter().enumerate() {
            if found.len() >= count || shown_bytes >= SHOWN_BYTES_MAX {
                break;
            }
            looked_at += 1;
            if search.finds(&message) {
                message.body.truncate(truncate);
                shown_bytes += message.body.len();
                found.push(object(&message, (offset + nth) as u64, always_base64));
            }
        }
    }
    let next = (!is_end).then_some(first.saturating_add(looked_at));
    Ok(fetch.reply(&json!({ "messages": found, "looked_at": looked_at, "next": next })))
}

pub(super) fn object(message: &MessageView, offset: u64, always_base64: bool) -> Value {
    let mut members = members(message, always_base64);
    members.insert("offset".to_owned(), offset.into());
    // A text, as not every reader has so many digits.
    members.insert("number".to_owned(), message.number.to_string().into());
    members.insert("published_ms".to_owned(), message.published_ms.into());
    Value::Object(members)
}

fn payload(call: &Call) -> Outcome {
    may_read(call)?;
    let offset = call.text("offset")?.parse::<usize>().map_err(|_| Refusal::not_found())?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let admin = call.admin();
    let found = match admin.queue(vhost, queue)?.stream {
        None => admin.peek(vhost, queue, offset, 1, usize::MAX)?,
        Some(_) => {
            let start = StreamStart::Offset(offset as u64);
            let page = admin.read_stream(vhost, queue, start, 1, usize::MAX)?;
            page.messages.into_iter().filter(|message| message.number == offset as u64).collect()
        }
    };
    let message = found.into_iter().next().ok_or_else(Refusal::not_found)?;
    if call.query("number").is_some_and(|number| number != message.number.to_string()) {
        // Others have left in the meantime.
        return Err(Refusal::not_found());
    }
    let file = format!("attachment; filename=\"message-{}.bin\"", message.number);
    let reply = Reply::text(message.body, "application/octet-stream");
    Ok(reply.with_header(CONTENT_DISPOSITION, &file))
}

fn unacked(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let (page, size) = (number(call, "page", 1)?.max(1), number(call, "page_size", 100)?);
    let size = size.clamp(1, PAGE_MAX);
    let skip = (page - 1).saturating_mul(size);
    let (total, found) = call.admin().unacked(vhost, queue, skip, size)?;
    let caller = call.caller()?;
    let now_ms = call.api.now_ms();
    // Whose they are is for those to see who see everybody's connections, or have it themselves.
    let shown = found.iter().map(|one| {
        let is_seen = caller.is_monitor() || one.user.as_bytes() == caller.name().as_bytes();
        unacked_object(call, one, is_seen, now_ms)
    });
    let items: Vec<Value> = shown.collect();
    Ok(Reply::json(&json!({
        "filtered_count": total,
        "item_count": items.len(),
        "items": items,
        "page": page,
        "page_count": total.div_ceil(size),
        "page_size": size,
        "total_count": total,
    })))
}

fn unacked_object(call: &Call, one: &UnackedView, is_seen: bool, now_ms: u64) -> Value {
    let mut fields = Fields::new(&call.columns());
    fields
        .put("delivery_tag", one.delivery_tag)
        .put("since_ms", one.since_ms)
        .put("age_ms", one.since_ms.map(|since_ms| now_ms.saturating_sub(since_ms)))
        .put("consumer_tag", one.consumer_tag.as_ref().map(name));
    if is_seen {
        fields.put("user", name(&one.user)).put(
            "channel_details",
            json!({
                "connection_name": one.connection,
                "name": channel_name(&one.connection, one.channel),
                "number": one.channel,
            }),
        );
    }
    if let Some(message) = &one.message {
        let mut members: Map<String, Value> = members(message, false);
        for name in ["payload", "payload_encoding"] {
            members.remove(name);
        }
        for (name, value) in members {
            fields.put(&name, value);
        }
    }
    fields.finish()
}
