//! Looking at messages without a change to them: searching, downloading, and who has those that are
//! handed out.

use super::channels::channel_name;
use super::get;
use super::messages::{FRAMING_BYTES, HEADER_BYTES, JSON_BYTES, Waiting, make_room, members};
use super::search::{SEARCHED_BYTES_MAX, Search};
use super::streams;
use crate::call::{Call, Outcome};
use crate::json::{Fields, name};
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use crate::routes::{Needs, Route};
use courser_auth::{Resource, Right};
use courser_broker::admin::{MESSAGES_MAX, MessageView, StreamStart, UnackedView};
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
const COUNT_DEFAULT: usize = 20;
/// Messages that one request looks at.
const LOOKED_AT_MAX: usize = 10_000;
/// Bytes of messages in one answer from which on no more are looked at, and those that it has at most.
const SHOWN_BYTES_MAX: usize = 16 << 20;
const ROOM_BYTES: usize = 2 * SHOWN_BYTES_MAX;
/// Bytes of a payload that are shown of a message that would need more than that alone.
const PART_BYTES: usize = (ROOM_BYTES - SHOWN_BYTES_MAX) / JSON_BYTES;
/// Unacknowledged messages on a page, and bytes that it needs as a rule.
const PAGE_MAX: usize = 500;
const UNACKED_BYTES_MAX: usize = 16 << 20;

/// Whether the caller may read from the queue in the path. Asked before each portion too.
pub(super) fn may_read(call: &Call) -> Result<(), Refusal> {
    let read = call.caller()?.check(
        call.text("vhost")?,
        Right::Read,
        Resource::Queue(call.bytes("queue")),
    );
    read.map_err(|reason| Refusal::not_authorised(format!("ACCESS_REFUSED - {reason}")))
}

pub(super) fn number(call: &Call, name: &str, default: usize) -> Result<usize, Refusal> {
    let Some(text) = call.query(name).filter(|text| !text.is_empty()) else { return Ok(default) };
    text.parse().map_err(|_| Refusal::bad_request(json!(["not_int", name])))
}

/// Whether payloads are wanted as base64 even where they are text (`encoding`).
pub(super) fn always_base64(call: &Call) -> Result<bool, Refusal> {
    match call.query("encoding") {
        None | Some("" | "auto") => Ok(false),
        Some("base64") => Ok(true),
        Some(other) => Err(Refusal::bad_request(json!(["unsupported_encoding", other]))),
    }
}

fn messages(call: &Call) -> Outcome {
    may_read(call)?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let mut found = Found::asked(call)?;
    let queue = call.admin().queue(vhost, queue)?;
    if queue.stream.is_some() {
        return streams::messages(call, found);
    }
    found.expect(Waiting::of(&queue));
    let first = number(call, "offset", 0)?;
    Ok(Reply::work(Looking { first, found }))
}

/// What stands before the messages of an answer.
const BEFORE: &[u8] = b"{\"messages\":[";
/// Bytes of what stands behind them, at most.
const END_BYTES: usize = 256;

/// Messages that are shown, as far as they are found.
pub(super) struct Found {
    /// How many are wanted.
    count: usize,
    truncate: usize,
    always_base64: bool,
    search: Search,
    /// The answer up to the last one that is found.
    text: Vec<u8>,
    len: usize,
    /// The next one does not fit in.
    is_full: bool,
    looked_at: usize,
    searched_bytes: usize,
    /// Bytes that the messages have in the answer, as a rule.
    room: usize,
}

impl Found {
    /// None yet of those that a query asks for.
    fn asked(call: &Call) -> Result<Self, Refusal> {
        Ok(Found {
            count: number(call, "count", COUNT_DEFAULT)?.min(MESSAGES_MAX),
            truncate: number(call, "truncate", usize::MAX)?,
            always_base64: always_base64(call)?,
            search: Search::asked(call.query("contains"), call.query("header"))?,
            text: Vec::new(),
            len: 0,
            is_full: false,
            looked_at: 0,
            searched_bytes: 0,
            room: ROOM_BYTES,
        })
    }

    /// Wants room for what waits in the queue only. Headers may be longer than is usual.
    fn expect(&mut self, waiting: Waiting) {
        let count = self.count.min(waiting.messages);
        let bodies = self.truncate.saturating_mul(count).min(waiting.bytes);
        let bytes = bodies.saturating_add(FRAMING_BYTES * count + HEADER_BYTES);
        self.room = bytes.saturating_mul(JSON_BYTES).min(ROOM_BYTES);
    }

    /// How many messages are to be read now, and how many bytes of each body.
    pub fn wants(&self) -> (usize, usize) {
        // Who looks for something needs all of each message.
        match self.search.is_empty() {
            true => (self.count - self.len, self.truncate),
            false => (MESSAGES_MAX.min(LOOKED_AT_MAX - self.looked_at), usize::MAX),
        }
    }

    /// Whether no more is looked at in this request.
    pub fn is_enough(&self) -> bool {
        self.len >= self.count
            || self.is_full
            || self.text.len() >= SHOWN_BYTES_MAX
            || self.looked_at >= LOOKED_AT_MAX
            || self.searched_bytes >= SEARCHED_BYTES_MAX
    }

    /// Looks at a message, and keeps it if it is meant. Returns false if it is, and does not fit in: then nothing has
    /// been looked at.
    pub fn look_at(&mut self, mut message: MessageView, offset: u64) -> Result<bool, Refusal> {
        let searched_bytes = message.body.len() + message.header.len();
        if self.search.finds(&message) {
            message.body.truncate(self.truncate);
            let before = self.text.len();
            self.write(&message, offset)?;
            if self.text.len() > ROOM_BYTES {
                self.text.truncate(before);
                self.text.shrink_to_fit();
                if self.len > 0 {
                    self.is_full = true;
                    return Ok(false);
                }
                message.body.truncate(PART_BYTES);
                self.write(&message, offset)?;
            }
            self.len += 1;
        }
        self.looked_at += 1;
        self.searched_bytes += searched_bytes;
        Ok(true)
    }

    /// Passes a message that is lost.
    fn pass(&mut self) -> bool {
        self.looked_at += 1;
        true
    }

    fn write(&mut self, message: &MessageView, offset: u64) -> Result<(), Refusal> {
        self.text.extend_from_slice(if self.len == 0 { BEFORE } else { b"," });
        make_room(&mut self.text, message);
        let object = object(message, offset, self.always_base64);
        serde_json::to_writer(&mut self.text, &object).map_err(Refusal::internal)
    }

    /// Bytes that the answer has at most, as a rule.
    pub fn room(&self) -> usize {
        self.room + END_BYTES
    }

    /// The answer, with what else it says: JSON texts of members.
    pub fn reply(&mut self, members: &str) -> Reply {
        let mut text = std::mem::take(&mut self.text);
        if self.len == 0 {
            text.extend_from_slice(BEFORE);
        }
        let looked_at = self.looked_at;
        text.extend_from_slice(format!("],\"looked_at\":{looked_at},{members}}}").as_bytes());
        text.shrink_to_fit();
        Reply::json_text(text)
    }
}

/// A look at messages that wait.
struct Looking {
    first: usize,
    found: Found,
}

impl Work for Looking {
    fn room(&self) -> usize {
        self.found.room()
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        may_read(call)?;
        let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
        let found = &mut self.found;
        let offset = self.first.saturating_add(found.looked_at);
        let (count, bytes_max) = found.wants();
        let some = call.admin().peek(vhost, queue, offset, count, bytes_max)?;
        let is_end = some.is_empty() && count > 0;
        for (nth, message) in some.into_iter().enumerate() {
            let goes_on = !found.is_enough()
                && match message {
                    Some(message) => found.look_at(message, (offset + nth) as u64)?,
                    None => found.pass(),
                };
            if !goes_on {
                break;
            }
        }
        if !is_end && !found.is_enough() {
            return Ok(None);
        }
        let next = match is_end {
            true => "null".to_owned(),
            false => self.first.saturating_add(found.looked_at).to_string(),
        };
        Ok(Some(found.reply(&format!("\"next\":{next}"))))
    }
}

pub(super) fn object(message: &MessageView, offset: u64, always_base64: bool) -> Value {
    let mut members = members(message, always_base64);
    members.insert("offset".to_owned(), offset.into());
    // A text, as not every reader has so many digits.
    members.insert("number".to_owned(), message.number.to_string().into());
    members.insert("published_ms".to_owned(), message.published_ms.into());
    Value::Object(members)
}

/// The message in the path, with so many bytes of its body.
fn one(call: &Call, bytes_max: usize) -> Result<MessageView, Refusal> {
    let offset = call.text("offset")?.parse::<usize>().map_err(|_| Refusal::not_found())?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let admin = call.admin();
    let found: Option<MessageView> = match admin.queue(vhost, queue)?.stream {
        None => admin.peek(vhost, queue, offset, 1, bytes_max)?.into_iter().flatten().next(),
        Some(_) => {
            let start = StreamStart::Offset(offset as u64);
            let page = admin.read_stream(vhost, queue, start, 1, bytes_max)?;
            page.messages.into_iter().find(|message| message.number == offset as u64)
        }
    };
    let message = found.ok_or_else(Refusal::not_found)?;
    if call.query("number").is_some_and(|number| number != message.number.to_string()) {
        // Others have left in the meantime.
        return Err(Refusal::not_found());
    }
    Ok(message)
}

fn payload(call: &Call) -> Outcome {
    may_read(call)?;
    Ok(Reply::once(one(call, 0)?.body_bytes, whole_payload))
}

fn whole_payload(call: &Call) -> Outcome {
    may_read(call)?;
    let message = one(call, usize::MAX)?;
    let file = format!("attachment; filename=\"message-{}.bin\"", message.number);
    let reply = Reply::text(message.body, "application/octet-stream");
    Ok(reply.with_header(CONTENT_DISPOSITION, &file))
}

fn unacked(call: &Call) -> Outcome {
    may_read(call)?;
    Ok(Reply::once(UNACKED_BYTES_MAX, unacked_page))
}

fn unacked_page(call: &Call) -> Outcome {
    may_read(call)?;
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let (page, size) = (number(call, "page", 1)?.max(1), number(call, "page_size", 100)?);
    let size = size.clamp(1, PAGE_MAX);
    let skip = (page - 1).saturating_mul(size);
    let (total, found) = call.admin().unacked(vhost, queue, skip, size)?;
    let caller = call.caller()?;
    let now_ms = call.api.now_ms();
    // Whose they are is for those to see who see everybody's connections, or have it themselves.
    let shown = found.iter().map(|one| {
        let is_seen = caller.sees_connections_of(one.user.as_bytes());
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
