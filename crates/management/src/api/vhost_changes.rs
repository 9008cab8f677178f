//! Making and deleting vhosts.

use crate::call::{Call, Members, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route, Verb};
use courser_auth::Permission;
use serde_json::{Map, Value};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        handler: put,
        doc: "Makes a vhost, which the caller may then enter.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhosts/{vhost}",
        needs: Needs::Administrator,
        handler: delete,
        doc: "Deletes a vhost with everything in it.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/vhosts/{vhost}/start/{node}",
        needs: Needs::Administrator,
        handler: start,
        doc: "Starts a vhost on a node: all vhosts run.",
    },
];

fn put(call: &Call) -> Outcome {
    let name = call.text("vhost")?;
    let body = call.object()?;
    check(&body)?;
    let limits = call.admin().vhost(name).map(|vhost| vhost.limits).unwrap_or_default();
    let is_new = call.admin().put_vhost(name, limits)?;
    let user = &call.caller()?.user;
    if is_new && user.is_kept() {
        call.admin().set_permission(&user.name, name, Permission::all())?;
    }
    Ok(Reply::put(is_new))
}

/// Refuses what can't be kept, so that nobody takes it for kept.
fn check(body: &Map<String, Value>) -> Result<(), Refusal> {
    let kind = body.get("default_queue_type").or_else(|| body.get("defaultqueuetype"));
    match kind {
        None | Some(Value::Null) => {}
        Some(Value::String(kind)) if matches!(kind.as_str(), "classic" | "undefined" | "") => {}
        Some(Value::String(kind)) if matches!(kind.as_str(), "quorum" | "stream") => {
            let reason = format!("a vhost's default_queue_type is classic; {kind} is not offered");
            return Err(Refusal::bad_request(reason));
        }
        Some(other) => {
            let kind = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            return Err(Refusal::bad_request(format!("{kind} is not a valid queue type")));
        }
    }
    let is_empty = |name: &str| match body.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    };
    if let Some(name) = ["description", "tags"].into_iter().find(|name| !is_empty(name)) {
        return Err(Refusal::bad_request(format!("{name} of a vhost is not offered")));
    }
    if body.flag("tracing", false)? || body.flag("protected_from_deletion", false)? {
        return Err(Refusal::bad_request("tracing and protected_from_deletion are not offered"));
    }
    Ok(())
}

fn delete(call: &Call) -> Outcome {
    call.admin().delete_vhost(call.text("vhost")?)?;
    Ok(Reply::done())
}

fn start(call: &Call) -> Outcome {
    let (vhost, node) = (call.text("vhost")?, call.text("node")?);
    call.admin().vhost(vhost).ok_or_else(Refusal::not_found)?;
    match node == call.api.settings.node.name {
        true => Ok(Reply::done()),
        false => Err(Refusal::bad_request(format!("Node {node} is not a cluster member"))),
    }
}
