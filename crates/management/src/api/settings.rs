//! Making and changing vhosts, their limits, and policies.

use super::accounts::{erlang, limit_value};
use crate::call::{Call, Members, Outcome};
use crate::json::to_table;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_broker::admin::{ApplyTo, Policy, PolicyError, PolicyKind, VhostLimits, VhostSettings};
use serde_json::{Map, Value};

const POLICY: &str = "/api/policies/{vhost}/{name}";
const OPERATOR_POLICY: &str = "/api/operator-policies/{vhost}/{name}";

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Put,
        pattern: "/api/vhost-limits/{vhost}/{name}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: put_limit,
        doc: "Sets a limit of a vhost.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/vhost-limits/{vhost}/{name}",
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: delete_limit,
        doc: "Lifts a limit of a vhost.",
    },
    Route {
        method: Verb::Put,
        pattern: POLICY,
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: put_policy,
        doc: "Sets a policy.",
    },
    Route {
        method: Verb::Delete,
        pattern: POLICY,
        needs: Needs::Policymaker,
        changes: Changes::Log,
        handler: delete_policy,
        doc: "Removes a policy.",
    },
    Route {
        method: Verb::Put,
        pattern: OPERATOR_POLICY,
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: put_operator_policy,
        doc: "Sets an operator policy.",
    },
    Route {
        method: Verb::Delete,
        pattern: OPERATOR_POLICY,
        needs: Needs::Administrator,
        changes: Changes::Log,
        handler: delete_operator_policy,
        doc: "Removes an operator policy.",
    },
];

/// Whether a request changes policies.
pub(crate) fn changes_policies(route: &Route) -> bool {
    matches!(route.pattern, POLICY | OPERATOR_POLICY) && route.method != Verb::Get
}

/// Whose turn a request waits for, if it changes policies: it matches all names of its vhost with them, so changes of one
/// vhost come one after the other.
pub(crate) fn turn(route: &Route, call: &Call) -> Option<String> {
    changes_policies(route).then(|| String::from_utf8_lossy(call.bytes("vhost")).into_owned())
}

fn put_limit(call: &Call) -> Outcome {
    let name = call.text("name")?;
    let value = limit_value(call, name)?;
    // A negative one stands for none.
    change_limit(call, name, u64::try_from(value).ok())
}

fn delete_limit(call: &Call) -> Outcome {
    change_limit(call, call.text("name")?, None)
}

fn change_limit(call: &Call, name: &str, value: Option<u64>) -> Outcome {
    let vhost = call.text("vhost")?;
    let limit: fn(&mut VhostLimits) -> &mut Option<u64> = match name {
        "max-connections" => |limits| &mut limits.connections_max,
        "max-queues" => |limits| &mut limits.queues_max,
        _ => {
            // What is not there is said first.
            call.admin().vhost(vhost).ok_or_else(|| Refusal::missing("vhost_not_found"))?;
            let shown = erlang(&value.map_or(Value::Null, Value::from));
            let terms = format!("Unrecognised terms [{{<<\"{name}\">>,{shown}}}] in limits");
            return Err(invalid(&terms));
        }
    };
    let change = |settings: &mut VhostSettings| *limit(&mut settings.limits) = value;
    call.admin().change_known_vhost(vhost, change).map_err(|fault| match fault.code {
        404 => Refusal::missing("vhost_not_found"),
        _ => fault.into(),
    })?;
    Ok(Reply::done())
}

fn put_policy(call: &Call) -> Outcome {
    put(call, PolicyKind::User)
}

fn put_operator_policy(call: &Call) -> Outcome {
    put(call, PolicyKind::Operator)
}

fn put(call: &Call, kind: PolicyKind) -> Outcome {
    let vhost = call.text("vhost")?;
    let policy = policy(call.text("name")?, &call.object()?)?;
    Ok(Reply::put(call.admin().set_policy(vhost, kind, policy)?))
}

fn invalid(reason: &str) -> Refusal {
    Refusal::bad_request(format!("Validation failed\n\n{reason}\n"))
}

/// A policy as a body gives it.
pub(crate) fn policy(name: &str, body: &Map<String, Value>) -> Result<Policy, Refusal> {
    super::accounts::need(body, &["pattern", "definition"])?;
    let definition = to_table(&body["definition"]);
    let definition = definition.ok_or_else(|| invalid("definition is no object"))?;
    if definition.is_empty() {
        return Err(invalid("no policy provided"));
    }
    let priority = match body.get("priority") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().ok_or_else(|| {
            invalid(&format!("priority should be a number, actually was {}", erlang(value)))
        })?,
    };
    let apply_to = match body.get("apply-to").or_else(|| body.get("apply_to")) {
        None | Some(Value::Null) => ApplyTo::All,
        Some(value) => value.as_str().and_then(ApplyTo::parse).ok_or_else(|| {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            invalid(&format!(
                "apply-to '{shown}' unrecognised; should be one of: 'queues', 'classic_queues',  \
                 'quorum_queues', 'streams', 'exchanges', or 'all'"
            ))
        })?,
    };
    let pattern = body.required_text("pattern")?.to_owned();
    Ok(Policy { name: name.to_owned(), pattern, apply_to, priority, definition })
}

fn delete_policy(call: &Call) -> Outcome {
    delete(call, PolicyKind::User)
}

fn delete_operator_policy(call: &Call) -> Outcome {
    delete(call, PolicyKind::Operator)
}

fn delete(call: &Call, kind: PolicyKind) -> Outcome {
    let cleared = call.admin().clear_policy(call.text("vhost")?, kind, call.text("name")?);
    match cleared {
        Ok(true) => Ok(Reply::done()),
        Ok(false) | Err(PolicyError::NoVhost(_)) => Err(Refusal::not_found()),
        Err(error) => Err(error.into()),
    }
}
