//! Tracing, RabbitMQ's "firehose": while it is switched on for a vhost, `amq.rabbitmq.trace` gets a
//! copy of every message that a client publishes (`publish.EXCHANGE`) and of every one that is delivered
//! to a client (`deliver.QUEUE`), with what is known about it in the headers.
//!
//! What is traced is noted under the locks of a delivery and posted when none is held ([`WaitingCopies`]). A copy is for
//! those who look on: it is not persistent, and where there is no room for it there is one copy less.

mod waiting;

pub(crate) use waiting::WaitingCopies;

use crate::dead_letter::began_at;
use crate::exchange::Envelope;
use crate::outbox::Outbox;
use crate::posting::{InternalPublish, post};
use crate::queue::Queue;
use crate::routing::cc;
use crate::routing::{Namespace, Route};
use crate::wakes::Wakes;
use crate::work;
use courser_codec::{
    ContentHeader, FieldTable, FieldValue, Properties, ShortStr, ShortString, Table,
};
use courser_store::{KeptBody, MessageRef};
use std::fmt;
use std::sync::Arc;

/// Where copies go.
pub(crate) const EXCHANGE: &str = "amq.rabbitmq.trace";
/// What copies are said to come from, in the place of an Erlang node's name.
const NODE: &str = "courser";

/// A copy of a message, with what is known about it.
pub(crate) struct Traced {
    /// Exchange and routing key.
    address: Vec<u8>,
    header: Vec<u8>,
    body: KeptBody,
}

impl Traced {
    /// A message that a client publishes, and the queues that it goes to.
    pub fn publish(
        vhost: &dyn Namespace,
        outbox: &Outbox,
        channel: u16,
        message: &MessageRef<'_>,
        route: &Route,
    ) -> Option<Self> {
        let names = route.queues.iter().map(|queue| text(queue.name.as_bytes()));
        let queues = FieldValue::Array(names.collect());
        let known = about(vhost, outbox, channel).with("routed_queues", queues);
        Traced::of(vhost, message, "publish.", message.exchange(), known)
    }

    /// A message that a client gets from a queue of this vhost; none if that is a copy itself, or was one before it died.
    pub fn delivery(
        vhost: &dyn Namespace,
        queue: &Queue,
        outbox: &Outbox,
        channel: u16,
        message: &MessageRef<'_>,
        redelivered: bool,
    ) -> Option<Self> {
        let properties = ContentHeader::parse(message.header).ok()?.properties;
        let headers = properties.headers().ok()?;
        // Only the headers of a message that has died are the broker's word.
        let was_copy =
            message.recorded_deaths && headers.is_some_and(|headers| began_at(&headers, EXCHANGE));
        if was_copy || message.exchange() == EXCHANGE.as_bytes() {
            return None;
        }
        let known = about(vhost, outbox, channel).with("redelivered", i32::from(redelivered));
        Traced::of(vhost, message, "deliver.", queue.name.as_bytes(), known)
    }

    fn of(
        vhost: &dyn Namespace,
        message: &MessageRef<'_>,
        what: &str,
        whose: &[u8],
        known: FieldTable,
    ) -> Option<Self> {
        let properties = ContentHeader::parse(message.header).ok()?.properties;
        let keys = cc::keys_of(message, properties).ok()?;
        let keys = FieldValue::Array(keys.into_iter().map(text).collect());
        let mut headers = known
            .with("exchange_name", text(message.exchange()))
            .with("routing_keys", keys)
            .with("properties", FieldValue::Table(printed(&properties.decode().ok()?)?))
            .with("node", NODE);
        let size = message.body.len() as u64;
        let mut header = content_header(size, &headers);
        let header_max_bytes = vhost.shard().header_max_bytes;
        let mut steps = SHORTENED.iter();
        while header.len() > header_max_bytes
            && let Some(step) = steps.next()
        {
            shorten(&mut headers, step);
            header = content_header(size, &headers);
        }
        // The name of a queue or an exchange may be as long as a key altogether.
        let mut key = [what.as_bytes(), whose].concat();
        key.truncate(255);
        let mut address = Vec::new();
        for part in [EXCHANGE.as_bytes(), &key] {
            address.push(part.len() as u8);
            address.extend_from_slice(part);
        }
        let body = KeptBody::of(message);
        Some(Traced { address, header, body })
    }

    /// What it uses, with its place among those that wait.
    fn used_bytes(&self) -> usize {
        2 * size_of::<Self>() + self.address.capacity() + self.header.capacity() + self.body.len()
    }

    /// Publishes the copy, if a queue is bound to get it. Called with the shard's gate held and without
    /// any lock but that of the copies' order.
    fn post(&self, vhost: &dyn Namespace, wakes: &mut Wakes) {
        let (address, header) = (&self.address[..], &self.header[..]);
        let (body, shared_body) = (&self.body[..], self.body.shared());
        let message = MessageRef { address, header, body, shared_body, ..MessageRef::default() };
        let Ok(content) = ContentHeader::parse(header) else { return };
        let keys = [message.routing_key()];
        let envelope = Envelope { keys: &keys, properties: content.properties };
        let Some(route) = vhost.route_internally(EXCHANGE.as_bytes(), &envelope, &[]) else {
            return;
        };
        if route.is_nowhere() {
            return;
        }
        let shard = vhost.shard();
        let copy = InternalPublish::to(&message, Arc::new(route), shard.timers.now_ms());
        // Without room on the disk for a stream there is one copy less.
        drop(post(vhost, &[copy], 0, &[], wakes));
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced")
            .field("address", &self.address.escape_ascii())
            .finish_non_exhaustive()
    }
}

fn content_header(size: u64, headers: &FieldTable) -> Vec<u8> {
    let entries = headers.to_entries();
    let headers = Some(Table::from_entries(&entries));
    let mut header = Vec::new();
    Properties { headers, ..Properties::default() }.encode_header(size, &mut header);
    header
}

/// What makes way, one after the other, where all that is known does not fit a content header: lists, of
/// which the beginning is left, and the message's own headers.
const SHORTENED: [&str; 3] = ["routed_queues", "routing_keys", "properties"];
/// What is left of a list.
const LEFT_OF_LIST: usize = 8;

fn shorten(headers: &mut FieldTable, what: &str) {
    let shorter = match headers.remove(what) {
        Some(FieldValue::Array(mut list)) => {
            list.truncate(LEFT_OF_LIST);
            FieldValue::Array(list)
        }
        Some(FieldValue::Table(mut properties)) => {
            properties.remove("headers");
            FieldValue::Table(properties)
        }
        Some(other) => other,
        None => return,
    };
    if let Ok(name) = ShortString::try_from(what) {
        headers.insert(name, shorter);
    }
    headers.insert(ShortString::from(ShortStr::from_static("shortened")), FieldValue::Bool(true));
}

/// What is known of the client.
fn about(vhost: &dyn Namespace, outbox: &Outbox, channel: u16) -> FieldTable {
    FieldTable::with_capacity(9)
        .with("vhost", vhost.name())
        .with("connection", outbox.connection.name())
        .with("channel", i32::from(channel))
        .with("user", text(outbox.connection.user().as_bytes()))
}

fn text(bytes: &[u8]) -> FieldValue {
    FieldValue::LongStr(bytes.to_vec())
}

/// The properties of a message as a table. None if its headers are malformed.
fn printed(properties: &Properties<'_>) -> Option<FieldTable> {
    let mut table = FieldTable::new();
    let mut put = |name: &str, value: FieldValue| {
        if let Ok(name) = ShortString::try_from(name) {
            table.insert(name, value);
        }
    };
    if let Some(headers) = properties.headers {
        let headers = headers.to_owned().ok()?;
        work::count_values(&headers);
        put("headers", FieldValue::Table(headers));
    }
    let texts: [(&str, Option<ShortStr<'_>>); 10] = [
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
    for (name, value) in texts {
        if let Some(value) = value {
            put(name, text(value.as_bytes()));
        }
    }
    for (name, value) in
        [("delivery_mode", properties.delivery_mode), ("priority", properties.priority)]
    {
        if let Some(value) = value {
            put(name, FieldValue::I32(value.into()));
        }
    }
    if let Some(timestamp) = properties.timestamp {
        put("timestamp", FieldValue::Timestamp(timestamp));
    }
    Some(table)
}
