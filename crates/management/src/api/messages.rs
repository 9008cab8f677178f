//! Publishing messages and taking them.

use super::peek::may_read;
use crate::call::{Call, Members, Outcome};
use crate::json::{Fields, from_table, name, text_or_base64, to_table};
use crate::refusal::Refusal;
use crate::reply::{Reply, Work};
use crate::routes::{Changes, Needs, Route, Verb};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use courser_broker::admin::{
    Fault, GetMode, MESSAGES_MAX, MessageView, NewMessage, Published, QueueView,
};
use courser_codec::{ContentHeader, OwnedProperties, Properties, ShortString};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::error::Elapsed;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/exchanges/{vhost}/{exchange}/publish",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: publish,
        doc: "Publishes a message.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/queues/{vhost}/{queue}/get",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: get,
        doc: "Takes messages from a queue.",
    },
];

/// How long a message may take to be as safe as its properties ask for.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer with all messages that one request takes.
const TAKEN_BYTES_MAX: usize = 64 << 20;
/// Bytes of JSON that one byte of a message takes at most: a control character is `\u0001`.
pub(super) const JSON_BYTES: usize = 6;
/// Bytes of a header, as a frame of the usual size holds it.
pub(super) const HEADER_BYTES: usize = 128 << 10;
/// Bytes of a body from which on room is made for it alone.
const LARGE_BYTES: usize = 1 << 20;
/// Bytes of a message in an answer besides its payload, as a rule.
pub(super) const FRAMING_BYTES: usize = 4096;

fn publish(call: &Call) -> Outcome {
    let (vhost, exchange) = (call.text("vhost")?, call.exchange("exchange"));
    let body = call.object()?;
    let wanted = ["routing_key", "properties", "payload", "payload_encoding"];
    let missing: Vec<&str> = wanted.into_iter().filter(|name| !body.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(Refusal::key_missing(&missing));
    }
    if call.admin().exchange(vhost, exchange).is_err() {
        return Err(Refusal::missing("exchange_not_found"));
    }
    let payload = body.required_text("payload")?;
    let payload = match body.required_text("payload_encoding")? {
        "string" => Bytes::copy_from_slice(payload.as_bytes()),
        "base64" => STANDARD
            .decode(payload)
            .map_err(|_| Refusal::bad_request(json!(["not_base64", payload])))?
            .into(),
        other => return Err(Refusal::bad_request(json!(["unsupported_encoding", other]))),
    };
    let message = NewMessage {
        exchange: short(exchange)?,
        routing_key: short(body.required_text("routing_key")?.as_bytes())?,
        properties: properties(&body["properties"])?,
        body: payload,
    };
    let caller = call.caller()?;
    let publishing = match &caller.grant {
        Some(grant) => call.admin().publish_granted(grant, vhost, &message),
        None => call.admin().publish(caller.name(), vhost, &message),
    };
    let publishing = publishing.map_err(refused)?;
    Ok(Reply::awaited(async { published(tokio::time::timeout(CONFIRM_TIMEOUT, publishing).await) }))
}

fn published(published: Result<Result<Published, Fault>, Elapsed>) -> Outcome {
    // Some of its queues may have the message all the same.
    let refused = match published {
        Ok(Ok(Published::Routed)) => return Ok(Reply::json(&json!({ "routed": true }))),
        Ok(Ok(Published::Unroutable)) => return Ok(Reply::json(&json!({ "routed": false }))),
        Ok(Ok(Published::Refused)) => {
            Refusal::bad_request("rejected Unable to publish message. Check queue limits.")
        }
        Ok(Err(fault)) => refused(fault),
        Err(_) => Refusal::bad_request("confirm_timeout Timed out waiting for a confirm."),
    };
    Err(refused.partial())
}

/// What a client would hear, with its code.
fn refused(fault: Fault) -> Refusal {
    match fault.is_of_a_going_broker() {
        true => fault.into(),
        false => Refusal::bad_request(fault.to_string()),
    }
}

pub(super) fn short(text: &[u8]) -> Result<ShortString, Refusal> {
    ShortString::new(text).map_err(|_| Refusal::bad_request("a short string has 255 bytes at most"))
}

/// The properties of a message, by their names in AMQP.
pub(super) fn properties(value: &Value) -> Result<OwnedProperties, Refusal> {
    let empty = Map::new();
    let members = match value {
        Value::Object(members) => members,
        Value::Array(list) if list.is_empty() => &empty,
        _ => return Err(Refusal::bad_request("properties is no object")),
    };
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => short(text.as_bytes()).map(Some),
        Some(_) => Err(Refusal::bad_request(json!(["not_string", name]))),
    };
    let byte = |name: &str| {
        let number = members.integer(name)?.map(u8::try_from).transpose();
        number.map_err(|_| Refusal::bad_request(json!(["not_int", name])))
    };
    let timestamp = members.integer("timestamp")?.map(u64::try_from).transpose();
    let headers = match members.get("headers") {
        None | Some(Value::Null) => None,
        Some(headers) => {
            let table = to_table(headers);
            Some(table.ok_or_else(|| {
                Refusal::bad_request("headers is no object that a table can hold")
            })?)
        }
    };
    Ok(OwnedProperties {
        content_type: text("content_type")?,
        content_encoding: text("content_encoding")?,
        headers,
        delivery_mode: byte("delivery_mode")?,
        priority: byte("priority")?,
        correlation_id: text("correlation_id")?,
        reply_to: text("reply_to")?,
        expiration: text("expiration")?,
        message_id: text("message_id")?,
        timestamp: timestamp.map_err(|_| Refusal::bad_request(json!(["not_int", "timestamp"])))?,
        kind: text("type")?,
        user_id: text("user_id")?,
        app_id: text("app_id")?,
        cluster_id: text("cluster_id")?,
    })
}

/// How messages are taken.
struct Taking {
    count: usize,
    mode: GetMode,
    always_base64: bool,
    truncate: usize,
    waiting: Waiting,
}

/// What waits in a queue when messages of it are asked for: an answer has no more, as a rule.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub messages: usize,
    /// Bytes of their bodies; without a limit where that is not known.
    pub bytes: usize,
}

impl Waiting {
    pub fn of(queue: &QueueView) -> Self {
        let bytes = queue.contents.and_then(|contents| contents.ready_bytes);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        Waiting { messages: queue.ready, bytes }
    }
}

impl Taking {
    fn asked(body: &Map<String, Value>, waiting: Waiting) -> Result<Self, Refusal> {
        let wanted = ["count", "ackmode", "encoding"];
        let missing: Vec<&str> =
            wanted.into_iter().filter(|name| !body.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(Refusal::key_missing(&missing));
        }
        let not_int = |name: &str| Refusal::bad_request(json!(["not_int", name]));
        let size = |name: &'static str| {
            body.integer(name)?.map(usize::try_from).transpose().map_err(|_| not_int(name))
        };
        let mode = match body.required_text("ackmode")? {
            "ack_requeue_true" => GetMode::Requeue { counts: false },
            "reject_requeue_true" => GetMode::Requeue { counts: true },
            "ack_requeue_false" => GetMode::Acknowledge,
            "reject_requeue_false" => GetMode::Reject,
            other => return Err(Refusal::bad_request(json!(["unknown_ackmode", other]))),
        };
        let always_base64 = match body.required_text("encoding")? {
            "auto" => false,
            "base64" => true,
            other => return Err(Refusal::bad_request(json!(["unsupported_encoding", other]))),
        };
        let count = size("count")?.ok_or_else(|| not_int("count"))?;
        let truncate = size("truncate")?.unwrap_or(usize::MAX);
        Ok(Taking { count, mode, always_base64, truncate, waiting })
    }
}

fn get(call: &Call) -> Outcome {
    let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
    let everything = Waiting { messages: usize::MAX, bytes: usize::MAX };
    let taking = Taking::asked(&call.object()?, everything)?;
    may_read(call)?;
    let queue = call.admin().queue(vhost, queue);
    let queue = queue.map_err(|_| Refusal::missing("queue_not_found"))?;
    Ok(Reply::work(Taking { waiting: Waiting::of(&queue), ..taking }))
}

impl Taking {
    /// Bytes of headers and bodies that are taken, unless the first message alone has more.
    fn bytes_max(&self) -> usize {
        let each = self.truncate.saturating_add(FRAMING_BYTES);
        let all = each.saturating_mul(self.count.min(MESSAGES_MAX));
        // Headers may be longer than is usual.
        let waiting = self.waiting.bytes.saturating_add(FRAMING_BYTES * self.most());
        let wanted = all.min(waiting.max(LARGE_BYTES));
        wanted.min((TAKEN_BYTES_MAX - self.overhead()) / JSON_BYTES)
    }

    /// How many messages are expected at most.
    fn most(&self) -> usize {
        self.count.min(MESSAGES_MAX).min(self.waiting.messages)
    }

    /// What the answer has besides those.
    fn overhead(&self) -> usize {
        // The last message may begin below the bound.
        let last = self.truncate.min(self.waiting.bytes).min(LARGE_BYTES) + HEADER_BYTES;
        last * JSON_BYTES + FRAMING_BYTES * self.most()
    }
}

impl Work for Taking {
    /// What the answer has, unless its last message is a large one, or more messages come to the queue meanwhile: fewer
    /// messages are taken than are wanted where theirs would be more.
    fn room(&self) -> usize {
        self.bytes_max().saturating_mul(JSON_BYTES).saturating_add(self.overhead())
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        may_read(call)?;
        let (vhost, queue) = (call.text("vhost")?, call.bytes("queue"));
        let before =
            call.admin().queue(vhost, queue).map_err(|_| Refusal::missing("queue_not_found"))?;
        let taken = call.admin().get(
            vhost,
            queue,
            self.count,
            self.mode,
            self.truncate,
            self.bytes_max(),
        )?;
        let mut text = vec![b'['];
        for (nth, message) in taken.into_iter().enumerate() {
            if nth > 0 {
                text.push(b',');
            }
            make_room(&mut text, &message);
            let shown = object(&message, before.ready.saturating_sub(nth + 1), self);
            serde_json::to_writer(&mut text, &shown).map_err(Refusal::internal)?;
        }
        text.push(b']');
        text.shrink_to_fit();
        Ok(Some(Reply::json_text(text).taken()))
    }
}

fn object(message: &MessageView, left: usize, taking: &Taking) -> Value {
    let mut object = members(message, taking.always_base64);
    object.insert("message_count".to_owned(), left.into());
    Value::Object(object)
}

/// Makes room for a large message as base64: to double what there is would take more.
pub(super) fn make_room(text: &mut Vec<u8>, message: &MessageView) {
    if message.body.len() > LARGE_BYTES {
        text.reserve_exact(message.body.len() / 3 * 4 + LARGE_BYTES);
    }
}

/// A message as an object.
pub(super) fn members(message: &MessageView, always_base64: bool) -> Map<String, Value> {
    let (text, is_text) = match always_base64 {
        true => (STANDARD.encode(&message.body), false),
        false => text_or_base64(&message.body),
    };
    let properties = ContentHeader::parse(&message.header)
        .ok()
        .and_then(|header| header.properties.decode().ok())
        .map_or_else(|| json!([]), |properties| shown(&properties));
    let members = [
        ("payload_bytes", message.body_bytes.into()),
        ("redelivered", message.redelivered.into()),
        ("exchange", name(&message.exchange).into()),
        ("routing_key", name(&message.routing_key).into()),
        ("properties", properties),
        ("payload", text.into()),
        ("payload_encoding", if is_text { "string" } else { "base64" }.into()),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Properties as an object; none at all are an empty list.
pub(super) fn shown(properties: &Properties<'_>) -> Value {
    let mut fields = Fields::default();
    let texts = [
        ("content_type", properties.content_type),
        ("content_encoding", properties.content_encoding),
        ("correlation_id", properties.correlation_id),
        ("reply_to", properties.reply_to),
        ("expiration", properties.expiration),
        ("message_id", properties.message_id),
        ("type", properties.kind),
        ("user_id", properties.user_id),
        ("app_id", properties.app_id),
        ("cluster_id", properties.cluster_id),
    ];
    for (member, value) in texts {
        let text = value.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        fields.put_some(member, text);
    }
    let headers = properties.headers.and_then(|headers| headers.to_owned().ok());
    fields
        .put_some("headers", headers.map(|headers| from_table(&headers)))
        .put_some("delivery_mode", properties.delivery_mode)
        .put_some("priority", properties.priority)
        .put_some("timestamp", properties.timestamp);
    match fields.finish() {
        Value::Object(members) if members.is_empty() => json!([]),
        object => object,
    }
}
