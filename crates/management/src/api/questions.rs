//! Questions about what would happen: where a message would go, what a policy would change, and what a
//! user may do. Nothing is changed by asking.

use super::messages::{properties, short};
use super::{bindings, policy_preview};
use crate::call::{Call, Members, Outcome};
use crate::caller::Caller;
use crate::json::name;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_auth::{Access, Resource, Right};
use courser_broker::admin::{NewMessage, PolicyKind, RouteStep, RouteTrace, RoutedQueue};
use serde_json::{Map, Value, json};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Post,
        pattern: "/api/exchanges/{vhost}/{exchange}/route",
        needs: Needs::Vhost,
        changes: Changes::Nothing,
        handler: route,
        doc: "Where a message would go, and why (routing_key, properties).",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/policy-preview/{vhost}",
        needs: Needs::Policymaker,
        changes: Changes::Nothing,
        handler: preview,
        doc: "What a policy would change (name, pattern, definition, apply-to, priority).",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/operator-policy-preview/{vhost}",
        needs: Needs::Administrator,
        changes: Changes::Nothing,
        handler: preview_operator,
        doc: "What an operator policy would change.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/access/check",
        needs: Needs::Login,
        changes: Changes::Nothing,
        handler: check_access,
        doc: "Whether a user may do something (user, vhost, right, resource, name, routing_key).",
    },
];

/// Bytes of a question where a message would go, whose headers no client could send if they were larger; and of one what a user may
/// do, in which there are names only.
const MESSAGE_BYTES_MAX: usize = 128 << 10;
const NAMES_BYTES_MAX: usize = 8 << 10;
/// Routing keys of a message besides its own: each is compared with each binding on its way.
const MORE_KEYS_MAX: usize = 100;

/// Refuses a question that is larger.
fn bounded(call: &Call, most: usize) -> Result<(), Refusal> {
    match call.body.len() <= most {
        true => Ok(()),
        false => Err(Refusal::bad_request(format!("The body has more than {most} bytes"))),
    }
}

fn route(call: &Call) -> Outcome {
    bounded(call, MESSAGE_BYTES_MAX)?;
    let body = call.object()?;
    let empty = Value::Object(Map::new());
    let message = NewMessage {
        exchange: short(call.exchange("exchange"))?,
        routing_key: short(body.text("routing_key")?.unwrap_or_default().as_bytes())?,
        properties: properties(body.get("properties").unwrap_or(&empty))?,
        body: Default::default(),
    };
    if more_keys(&body) > MORE_KEYS_MAX {
        let reason = format!("CC and BCC name more than {MORE_KEYS_MAX} keys");
        return Err(Refusal::bad_request(reason));
    }
    let vhost = call.text("vhost")?;
    call.admin().exchange(vhost, call.exchange("exchange"))?;
    let trace = call.admin().trace_route(vhost, &message).map_err(|fault| match fault.code {
        403 => Refusal::bad_request(fault.explanation),
        _ => fault.into(),
    })?;
    Ok(Reply::json(&shown(&trace)))
}

/// How many routing keys a message has besides its own.
fn more_keys(body: &Map<String, Value>) -> usize {
    let headers = body.get("properties").and_then(|properties| properties.get("headers"));
    let lists = ["CC", "BCC"].into_iter().filter_map(|name| headers?.get(name)?.as_array());
    lists.map(Vec::len).sum()
}

fn shown(trace: &RouteTrace) -> Value {
    json!({
        "routed": trace.queue_count > 0 || trace.is_delayed,
        "queues": trace.queues.iter().map(queue).collect::<Vec<_>>(),
        "queue_count": trace.queue_count,
        "steps": trace.steps.iter().map(step).collect::<Vec<_>>(),
        "step_count": trace.step_count,
    })
}

fn queue(queue: &RoutedQueue) -> Value {
    let to = queue.dead_letters.as_ref();
    json!({
        "name": name(&queue.name),
        "refuses": queue.refuses,
        "dead_letter_exchange": to.map(|(exchange, _)| name(exchange)),
        "dead_letter_routing_key": to.and_then(|(_, key)| key.as_ref().map(name)),
    })
}

fn step(step: &RouteStep) -> Value {
    let shown = step.bindings.iter().map(|one| {
        let mut object = bindings::object(&one.binding);
        object["loop"] = one.is_loop.into();
        object
    });
    json!({
        "exchange": name(&step.exchange),
        "type": step.kind,
        "alternate_of": step.alternate_of.as_ref().map(name),
        "bindings": shown.collect::<Vec<_>>(),
        "destinations": step.destinations,
        "alternate_exchange": step.alternate.as_ref().map(name),
        "text": told(step),
    })
}

/// What happens at an exchange, in words.
fn told(step: &RouteStep) -> String {
    let exchange = match step.exchange.as_bytes() {
        b"" => "The default exchange".to_owned(),
        _ => format!("The {} exchange '{}'", step.kind, name(&step.exchange)),
    };
    let alternate = step.alternate.as_ref().map(name);
    match (step.delayed_ms, step.destinations, alternate) {
        (Some(delay_ms), ..) => format!("{exchange} keeps it for {delay_ms} ms and routes it then"),
        (None, 0, None) => format!("{exchange} has no destination for it: dropped here"),
        (None, 0, Some(name)) if step.alternate_is_missing => {
            format!(
                "{exchange} has no destination for it, and its alternate exchange '{name}' is not there: dropped here"
            )
        }
        (None, 0, Some(name)) => {
            format!("{exchange} has no destination for it: on to its alternate exchange '{name}'")
        }
        (None, 1, _) => format!("{exchange} sends it to one destination"),
        (None, count, _) => format!("{exchange} sends it to {count} destinations"),
    }
}

fn preview(call: &Call) -> Outcome {
    policy_preview::answered(call, PolicyKind::User)
}

fn preview_operator(call: &Call) -> Outcome {
    policy_preview::answered(call, PolicyKind::Operator)
}

fn check_access(call: &Call) -> Outcome {
    bounded(call, NAMES_BYTES_MAX)?;
    let (caller, body) = (call.caller()?, call.object()?);
    let user = body.text("user")?.unwrap_or(caller.name());
    if user != caller.name() {
        caller.need_administrator()?;
    }
    let vhost = body.required_text("vhost")?;
    let right = match body.required_text("right")? {
        "configure" => Right::Configure,
        "write" => Right::Write,
        "read" => Right::Read,
        other => {
            return Err(Refusal::bad_request(format!(
                "'{other}' is no right: configure, write or read"
            )));
        }
    };
    let of = body.required_text("name")?;
    let what = match body.required_text("resource")? {
        "queue" => Resource::Queue(of.as_bytes()),
        "exchange" if of == "amq.default" => Resource::Exchange(b""),
        "exchange" => Resource::Exchange(of.as_bytes()),
        other => {
            return Err(Refusal::bad_request(format!(
                "'{other}' is no resource: queue or exchange"
            )));
        }
    };
    let because = because(call, user, vhost, right, what, body.text("routing_key")?);
    Ok(Reply::json(&json!({
        "user": user,
        "vhost": vhost,
        "allowed": because.is_none(),
        "because": because.unwrap_or_else(|| format!("{right} access to {what} in vhost '{vhost}' is granted to user '{user}'")),
    })))
}

/// Why something is refused, as a client hears it; none if it is not.
fn because(
    call: &Call,
    user: &str,
    vhost: &str,
    right: Right,
    what: Resource<'_>,
    routing_key: Option<&str>,
) -> Option<String> {
    // A token says itself what its user may, whatever the directory has under that name.
    let own = call.caller.as_ref().filter(|caller| caller.name() == user);
    let grant = own.and_then(|caller| caller.grant.as_ref());
    if grant.is_none() && call.admin().accounts().user(user).is_none() {
        return Some(format!("there is no user '{user}'"));
    }
    // Whether there is one that the caller neither sees nor may enter, it need not know.
    let knows = |caller: &Caller| caller.is_monitor() || caller.may_enter(vhost);
    let knows_vhosts = call.caller.as_ref().is_some_and(knows);
    if knows_vhosts && !call.admin().has_vhost(vhost) {
        return Some(format!("vhost {vhost} not found"));
    }
    let mut access = match grant {
        Some(grant) => Access::granted(grant, vhost),
        None => call.api.settings.accounts.access(user, vhost),
    };
    let mut checked = access.enter().and_then(|()| access.check(right, what));
    // Of exchanges, only those of the type topic look at routing keys.
    if let (Resource::Exchange(exchange), Some(key)) = (what, routing_key)
        && call.admin().exchange(vhost, exchange).is_ok_and(|one| one.kind == "topic")
    {
        checked = checked.and_then(|()| access.check_topic(right, exchange, key.as_bytes()));
    }
    checked.err().map(|refusal| refusal.to_string())
}
