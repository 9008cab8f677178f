//! Making and deleting queues and exchanges. The caller's permissions count as for a client.

use crate::call::{Call, Members, Outcome};
use crate::json::to_table;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_auth::{Resource, Right};
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewQueue};
use courser_codec::FieldTable;
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/queues/{vhost}/{queue}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: put_queue,
        doc: "Declares a queue.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/queues/{vhost}/{queue}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: delete_queue,
        doc: "Deletes a queue (if-unused, if-empty).",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/queues/{vhost}/{queue}/contents",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: purge,
        doc: "Drops the messages that wait in a queue: all, or the first `count`.",
    },
    Route {
        method: Verb::Put,
        pattern: "/api/exchanges/{vhost}/{exchange}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: put_exchange,
        doc: "Declares an exchange.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/exchanges/{vhost}/{exchange}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: delete_exchange,
        doc: "Deletes an exchange (if-unused).",
    },
];

/// Whether the caller's permissions in the vhost of the path let it do this.
pub(super) fn check(call: &Call, right: Right, what: Resource<'_>) -> Result<(), Refusal> {
    let checked = call.caller()?.check(call.text("vhost")?, right, what);
    checked.map_err(|_| Refusal::access_refused())
}

/// The member `arguments` as a table.
pub(super) fn arguments(body: &Map<String, Value>) -> Result<FieldTable, Refusal> {
    match body.get("arguments") {
        None | Some(Value::Null) => Ok(FieldTable::new()),
        Some(value) => to_table(value)
            .ok_or_else(|| Refusal::bad_request("arguments is no object that a table can hold")),
    }
}

fn put_queue(call: &Call) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.text("queue")?);
    let body = call.object()?;
    let node = &call.api.settings.node.name;
    if let Some(other) = body.text("node")?.filter(|other| other != node) {
        return Err(Refusal::bad_request(format!("Node {other} is not a cluster member")));
    }
    let queue = NewQueue {
        durable: body.flag("durable", false)?,
        auto_delete: body.flag("auto_delete", false)?,
        arguments: arguments(&body)?,
    };
    check(call, Right::Configure, Resource::Queue(name.as_bytes()))?;
    if call.admin().redeclare_queue(vhost, name, queue.clone())? {
        return Ok(Reply::put(false));
    }
    if let Some(dead) = target(&queue.arguments, "x-dead-letter-exchange") {
        check(call, Right::Read, Resource::Queue(name.as_bytes()))?;
        check(call, Right::Write, Resource::Exchange(dead))?;
    }
    call.admin().declare_queue(vhost, name, queue)?;
    Ok(Reply::put(true))
}

/// The exchange that an argument names.
fn target<'a>(arguments: &'a FieldTable, name: &str) -> Option<&'a [u8]> {
    arguments.get(name).and_then(|value| value.as_long_str())
}

fn delete_queue(call: &Call) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.bytes("queue"));
    check(call, Right::Configure, Resource::Queue(name))?;
    let (if_unused, if_empty) = (call.is_set("if-unused"), call.is_set("if-empty"));
    call.admin().delete_queue(vhost, name, if_unused, if_empty)?;
    Ok(Reply::done())
}

fn purge(call: &Call) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.bytes("queue"));
    check(call, Right::Read, Resource::Queue(name))?;
    let Some(count) = call.query("count").filter(|count| !count.is_empty()) else {
        call.admin().purge_queue(vhost, name)?;
        return Ok(Reply::done());
    };
    let count = count.parse().map_err(|_| Refusal::bad_request(json!(["not_int", "count"])))?;
    let purged = call.admin().purge_some(vhost, name, count)?;
    Ok(Reply::json(&json!({ "purged": purged })))
}

fn put_exchange(call: &Call) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.text("exchange")?);
    let body = call.object()?;
    let kind = match body.get("type") {
        None | Some(Value::Null) => "direct",
        Some(_) => body.required_text("type")?,
    };
    let unknown = || Refusal::bad_request(format!("unknown exchange type '{kind}'"));
    let settings = ExchangeSettings {
        kind: ExchangeKind::parse(kind.as_bytes()).ok_or_else(unknown)?,
        durable: body.flag("durable", false)?,
        auto_delete: body.flag("auto_delete", false)?,
        internal: body.flag("internal", false)?,
        arguments: arguments(&body)?,
    };
    let name_bytes = call.exchange("exchange");
    check(call, Right::Configure, Resource::Exchange(name_bytes))?;
    if name_bytes.is_empty() {
        return Err(Refusal::access_refused());
    }
    if call.admin().redeclare_exchange(vhost, name, &settings)? {
        return Ok(Reply::put(false));
    }
    if let Some(alternate) = target(&settings.arguments, "alternate-exchange") {
        check(call, Right::Read, Resource::Exchange(name_bytes))?;
        check(call, Right::Write, Resource::Exchange(alternate))?;
    }
    call.admin().declare_exchange(vhost, name, &settings)?;
    Ok(Reply::put(true))
}

fn delete_exchange(call: &Call) -> Outcome {
    let (vhost, name) = (call.text("vhost")?, call.exchange("exchange"));
    check(call, Right::Configure, Resource::Exchange(name))?;
    call.admin().delete_exchange(vhost, name, call.is_set("if-unused"))?;
    Ok(Reply::done())
}
