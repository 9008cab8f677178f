//! Making and removing bindings.

use super::bindings::{known, properties_key};
use super::declare::{arguments, check};
use crate::call::{Call, Outcome};
use crate::path::encode_segment;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_auth::{Resource, Right};
use courser_broker::admin::{BindingView, Fault, NewBinding};
use courser_codec::ShortString;
use hyper::StatusCode;
use hyper::header::LOCATION;
use serde_json::Value;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/bindings/{vhost}/e/{exchange}/q/{queue}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: bind,
        doc: "Binds a queue to an exchange.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/bindings/{vhost}/e/{exchange}/e/{destination}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: bind,
        doc: "Binds an exchange to another one.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/bindings/{vhost}/e/{exchange}/q/{queue}/{props}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: unbind,
        doc: "Removes a binding of a queue.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/bindings/{vhost}/e/{exchange}/e/{destination}/{props}",
        needs: Needs::Vhost,
        changes: Changes::Log,
        handler: unbind,
        doc: "Removes a binding between exchanges.",
    },
];

/// Bytes of a body that makes a binding.
const BODY_BYTES_MAX: usize = 5_000;

fn bind(call: &Call) -> Outcome {
    if call.body.len() > BODY_BYTES_MAX {
        return Err(Refusal::bad_request("Payload size limit exceeded"));
    }
    let body = call.object()?;
    let routing_key = body.get("routing_key").map_or(Some(""), Value::as_str);
    let routing_key = routing_key.ok_or_else(|| Refusal::bad_request("routing_key is no text"))?;
    let binding = NewBinding {
        source: short(call.exchange("exchange"))?,
        destination: short(destination(call))?,
        to_queue: call.has("queue"),
        routing_key: short(routing_key.as_bytes())?,
        arguments: arguments(&body)?,
    };
    permit(call, &binding)?;
    let vhost = call.text("vhost")?;
    call.admin().bind(vhost, binding.clone()).map_err(refused)?;
    let made = BindingView {
        vhost: vhost.to_owned(),
        source: binding.source,
        destination: binding.destination,
        to_queue: binding.to_queue,
        routing_key: binding.routing_key,
        arguments: binding.arguments,
    };
    let (destination, key) =
        (encode_segment(&made.destination), encode_segment(properties_key(&made)));
    let location = format!("{destination}/{key}");
    Ok(Reply::done().with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

fn unbind(call: &Call) -> Outcome {
    let BindingView { source, destination, to_queue, routing_key, arguments, .. } = known(call)?;
    let binding = NewBinding { source, destination, to_queue, routing_key, arguments };
    permit(call, &binding)?;
    call.admin().unbind(call.text("vhost")?, binding).map_err(refused)?;
    Ok(Reply::done())
}

fn destination(call: &Call) -> &[u8] {
    if call.has("queue") { call.bytes("queue") } else { call.exchange("destination") }
}

fn short(name: &[u8]) -> Result<ShortString, Refusal> {
    ShortString::new(name).map_err(|_| Refusal::bad_request("a name has 255 bytes at most"))
}

/// Whether the caller may make and remove such a binding.
fn permit(call: &Call, binding: &NewBinding) -> Result<(), Refusal> {
    let source = binding.source.as_bytes();
    let target = match binding.to_queue {
        true => Resource::Queue(binding.destination.as_bytes()),
        false => Resource::Exchange(binding.destination.as_bytes()),
    };
    check(call, Right::Write, target)?;
    if source.is_empty() || !binding.to_queue && binding.destination.as_bytes().is_empty() {
        return Err(Refusal::access_refused());
    }
    check(call, Right::Read, Resource::Exchange(source))?;
    let vhost = call.text("vhost")?;
    let is_topic =
        call.admin().exchange(vhost, source).is_ok_and(|exchange| exchange.kind == "topic");
    if is_topic {
        let key = binding.routing_key.as_bytes();
        let checked = call.caller()?.check_topic(vhost, Right::Read, source, key);
        checked.map_err(|_| Refusal::access_refused())?;
    }
    Ok(())
}

/// What is missing is named.
fn refused(fault: Fault) -> Refusal {
    match fault.code {
        404 => Refusal::missing(fault.explanation),
        _ => fault.into(),
    }
}
