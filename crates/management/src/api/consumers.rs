//! Consumers.

use super::channels::{channel_name, peer};
use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Columns, Fields, name};
use crate::list::{Gathering, Items, Place, paged};
use crate::routes::{Needs, Route};
use courser_broker::admin::ConsumerView;
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/consumers", Needs::Login, consumers, "The consumers that the caller may see."),
    get("/api/consumers/{vhost}", Needs::Vhost, consumers, "The consumers in a vhost."),
];

fn consumers(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let (mut found, mut gathering) = (Vec::new(), Gathering::new(call)?);
    call.for_each_vhost(|vhost| {
        call.admin().for_each_consumer(Some(vhost), &mut |consumer| {
            let is_seen = caller.sees_connections_of(consumer.user.as_bytes());
            if is_seen && gathering.admits(&consumer) {
                found.push(consumer);
            }
        })
    })?;
    let later = call.later();
    let names = |one: &ConsumerView| format!("{} {}", name(&one.tag), name(&one.queue));
    let named = Items::new(found, names).placed(|one| Place::of(&one.vhost));
    let named = named.in_room(gathering.finish()?);
    paged(call, named, move |(_, consumer), fields| {
        render(&later, consumer, fields);
    })
}

/// Consumers that a queue or a channel shows.
const DETAILS_MAX: usize = 500;

/// Adds a consumer to those that a queue or a channel shows, unless they are many already.
pub(super) fn add(call: &Call, consumer: &ConsumerView, details: &mut Vec<Value>) {
    if details.len() < DETAILS_MAX {
        details.push(object(call, consumer));
    }
}

/// A consumer with all of its members.
pub(super) fn object(call: &Call, consumer: &ConsumerView) -> Value {
    let mut fields = Fields::new(&Columns::all());
    render(call, consumer, &mut fields);
    fields.finish()
}

fn render(call: &Call, consumer: &ConsumerView, fields: &mut Fields) {
    let (peer_host, peer_port) = peer(&consumer.connection);
    let mut arguments = json!({});
    if consumer.priority != 0 {
        arguments["x-priority"] = consumer.priority.into();
    }
    if let Some(timeout_ms) = consumer.own_timeout_ms {
        arguments["x-consumer-timeout"] = timeout_ms.into();
    }
    fields
        .put("arguments", arguments)
        .put("ack_required", consumer.ack_required)
        .put("active", consumer.active)
        .put("activity_status", if consumer.active { "up" } else { "waiting" })
        .put("consumer_tag", name(&consumer.tag))
        .put("consumer_timeout", consumer.timeout_ms.unwrap_or(0))
        .put("exclusive", consumer.exclusive)
        .put("prefetch_count", consumer.prefetch)
        .put("messages_unacknowledged", consumer.unacked)
        .put("queue", json!({ "name": name(&consumer.queue), "vhost": consumer.vhost }));
    // Who sees the queue need not see who reads from it.
    if call.caller().is_ok_and(|caller| caller.sees_connections_of(consumer.user.as_bytes())) {
        fields.put(
            "channel_details",
            json!({
                "connection_name": consumer.connection,
                "name": channel_name(&consumer.connection, consumer.channel),
                "node": call.api.settings.node.name,
                "number": consumer.channel,
                "peer_host": peer_host,
                "peer_port": peer_port,
                "user": name(&consumer.user),
            }),
        );
    }
    if let Some(place) = consumer.stream {
        fields.put("offset", place.offset).put("offset_lag", place.lag);
    }
}
