//! Whether the broker works, for probes.

use super::{get, listeners};
use crate::call::{Call, Outcome};
use crate::groups;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use hyper::StatusCode;
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/health/live", Needs::Nothing, live, "The process answers."),
    get("/health/ready", Needs::Nothing, ready, "The broker serves clients, and has no alarm."),
    get("/api/health/checks/alarms", Needs::Login, alarms, "Nothing is short in the cluster."),
    get("/api/health/checks/local-alarms", Needs::Login, local_alarms, "Nothing is short here."),
    get(
        "/api/health/checks/port-listener/{port}",
        Needs::Login,
        port_listener,
        "Something listens on a port.",
    ),
    get(
        "/api/health/checks/protocol-listener/{protocols}",
        Needs::Login,
        protocol_listener,
        "Something listens for one of these protocols.",
    ),
    get("/api/health/checks/virtual-hosts", Needs::Login, passed, "All vhosts run."),
    get(
        "/api/health/checks/node-is-quorum-critical",
        Needs::Login,
        quorum_critical,
        "Nothing hangs on this node alone.",
    ),
    get(
        "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts",
        Needs::Login,
        groups_have_leaders,
        "All quorum queues have leaders.",
    ),
    get(
        "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}",
        Needs::Vhost,
        vhost_has_leader,
        "All quorum queues of a vhost have leaders.",
    ),
    get(
        "/api/health/checks/metadata-store/initialized",
        Needs::Login,
        passed,
        "The definitions have been read.",
    ),
    get(
        "/api/health/checks/metadata-store/initialized/with-data",
        Needs::Login,
        passed,
        "The definitions have been read, and there are some.",
    ),
    get("/api/health/checks/is-in-service", Needs::Nothing, in_service, "The broker is up."),
    get(
        "/api/health/checks/ready-to-serve-clients",
        Needs::Nothing,
        ready_for_clients,
        "The broker takes clients.",
    ),
    get(
        "/api/health/checks/below-node-connection-limit",
        Needs::Nothing,
        below_limit,
        "There is room for more connections.",
    ),
    get(
        "/api/health/checks/reached-target-cluster-size",
        Needs::Nothing,
        in_service,
        "All nodes are there.",
    ),
    get("/api/healthchecks/node", Needs::Login, passed, "An old check; it always passes."),
    get("/api/healthchecks/node/{node}", Needs::Login, passed, "An old check; it always passes."),
    get("/api/aliveness-test/{vhost}", Needs::Vhost, passed, "A vhost can be used."),
];

fn ok() -> Value {
    json!({ "status": "ok" })
}

fn failed(mut details: Value) -> Reply {
    details["status"] = "failed".into();
    Reply::json(&details).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

fn uncached(mut reply: Reply) -> Reply {
    reply.no_store = true;
    reply
}

fn passed(_: &Call) -> Outcome {
    Ok(Reply::json(&ok()))
}

fn live(_: &Call) -> Outcome {
    Ok(uncached(Reply::json(&ok())))
}

fn ready(call: &Call) -> Outcome {
    let cluster = call.api.settings.cluster.as_ref();
    if let Some(reason) = cluster.and_then(|cluster| cluster.why_not_ready()) {
        return Ok(uncached(failed(json!({ "reason": reason }))));
    }
    let alarms = call.admin().alarms();
    Ok(uncached(match (alarms.memory, alarms.disk) {
        (false, false) => Reply::json(&ok()),
        (memory, disk) => failed(json!({ "memory_alarm": memory, "disk_alarm": disk })),
    }))
}

/// Whether each group has a leader: all queues of one have the same.
fn groups_have_leaders(call: &Call) -> Outcome {
    Ok(reply_leaderless(groups::leaderless(call)))
}

fn vhost_has_leader(call: &Call) -> Outcome {
    let group = call.admin().group_of(call.text("vhost")?);
    let mut leaderless = groups::leaderless(call);
    leaderless.retain(|one| Some(*one) == group);
    Ok(reply_leaderless(leaderless))
}

fn reply_leaderless(groups: Vec<u16>) -> Reply {
    match groups.is_empty() {
        true => Reply::json(&ok()),
        false => failed(json!({ "reason": "There are groups without a leader", "groups": groups })),
    }
}

fn quorum_critical(call: &Call) -> Outcome {
    if let Some(cluster) = &call.api.settings.cluster {
        return Ok(match cluster.is_quorum_critical() {
            false => Reply::json(&ok()),
            true => failed(json!({ "reason": crate::QUORUM_CRITICAL })),
        });
    }
    Ok(Reply::json(&json!({ "status": "ok", "reason": "single node cluster" })))
}

fn alarms(call: &Call) -> Outcome {
    let elsewhere = call.api.settings.cluster.as_ref().map(|cluster| cluster.alarms_elsewhere());
    let elsewhere = elsewhere.into_iter().flatten();
    let raised = own_alarms(call);
    let raised = raised
        .into_iter()
        .chain(elsewhere.map(|(name, what)| alarm(&format!("courser@{name}"), what)));
    Ok(reply_alarms(raised.collect(), "There are alarms in effect in the cluster"))
}

fn local_alarms(call: &Call) -> Outcome {
    Ok(reply_alarms(own_alarms(call), crate::LOCAL_ALARMS))
}

fn own_alarms(call: &Call) -> Vec<Value> {
    let alarms = call.admin().alarms();
    let raised = [("memory", alarms.memory), ("disk", alarms.disk)];
    let raised = raised.into_iter().filter(|(_, is_raised)| *is_raised);
    raised.map(|(what, _)| alarm(&call.api.settings.node.name, what)).collect()
}

fn alarm(node: &str, what: &str) -> Value {
    json!({ "node": node, "resource": what })
}

/// Whether anything is short, and what.
pub(crate) fn reply_alarms(list: Vec<Value>, reason: &str) -> Reply {
    match list.is_empty() {
        true => Reply::json(&ok()),
        false => failed(json!({ "reason": reason, "alarms": list })),
    }
}

fn port_listener(call: &Call) -> Outcome {
    let invalid = |_| Refusal::bad_request("Invalid port");
    let port: u16 = call.text("port")?.parse().map_err(invalid)?;
    let ports: Vec<u16> = listeners::active(call).map(|one| one.address.port()).collect();
    if ports.contains(&port) {
        return Ok(Reply::json(&json!({ "status": "ok", "port": port })));
    }
    let reason = "No active listener";
    Ok(failed(json!({ "reason": reason, "missing": port, "ports": ports })))
}

fn protocol_listener(call: &Call) -> Outcome {
    let asked = call.text("protocols")?.split(',');
    let wanted: Vec<String> = asked.map(|name| protocol(name.trim())).collect();
    let known: Vec<&str> = listeners::active(call).map(|one| one.protocol).collect();
    if wanted.iter().any(|name| known.contains(&name.as_str())) {
        return Ok(Reply::json(&json!({ "status": "ok", "protocols": wanted })));
    }
    let reason = "No active listener";
    Ok(failed(json!({ "reason": reason, "missing": wanted, "protocols": known })))
}

/// The name of a protocol as listeners have it.
fn protocol(name: &str) -> String {
    match name.to_lowercase().as_str() {
        "amqp" | "amqp091" | "amqp0.9.1" | "amqp-0-9-1" | "amqp0-9-1" => "amqp".into(),
        "amqps" | "amqp/ssl" | "amqp091s" => "amqp/ssl".into(),
        "http" | "http1.1" | "management" | "ui" => "http".into(),
        "https" | "https1.1" | "management-tls" => "https".into(),
        other => other.into(),
    }
}

fn in_service(_: &Call) -> Outcome {
    Ok(uncached(Reply::json(&ok())))
}

fn ready_for_clients(call: &Call) -> Outcome {
    Ok(uncached(match listeners::are_suspended(call) {
        false => Reply::json(&ok()),
        true => failed(json!({ "reason": "the listeners for clients are suspended" })),
    }))
}

fn below_limit(call: &Call) -> Outcome {
    let most = call.api.settings.node.connections_max;
    let connections = call.admin().connections(None)?.len();
    Ok(uncached(match connections < most {
        true => Reply::json(&ok()),
        false => failed(json!({ "reason": "node connection limit is reached" })),
    }))
}
