//! The cluster that the broker is a node of: its members, and what an operator does to them.

use super::get;
use crate::call::{Call, Members, Outcome};
use crate::cluster::{Cluster, ClusterError, Drained, VhostMove};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Handler, Needs, Route, Verb};
use hyper::StatusCode;
use serde_json::json;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/cluster", Needs::Monitoring, status, "The members of the cluster, and who leads."),
    change(Verb::Post, "/api/cluster/nodes", add, "Takes a node in, by its address."),
    change(Verb::Delete, "/api/cluster/nodes/{node}", remove, "Removes a member."),
    step_in(
        Verb::Put,
        "/api/cluster/drain/{node}",
        drain,
        "Has a node give up its clients, group by group.",
    ),
    get("/api/cluster/drain/{node}", Needs::Monitoring, drained, "How far a node's drain is."),
    step_in(Verb::Delete, "/api/cluster/drain/{node}", resume, "Has it take clients again."),
    step_in(
        Verb::Put,
        "/api/cluster/leader",
        transfer,
        "Has another member lead, or lead the group of this number.",
    ),
    change(Verb::Put, "/api/cluster/moves/{vhost}", move_vhost, "Moves a vhost to another group."),
    get("/api/cluster/moves/{vhost}", Needs::Monitoring, moved, "How far the move of a vhost is."),
];

/// Connections that a drained node closes at a time, and the pause between, unless the request says otherwise.
const GROUP: u64 = 100;
const PAUSE_MS: u64 = 1000;

const fn change(method: Verb, pattern: &'static str, handler: Handler, doc: &'static str) -> Route {
    let (needs, changes) = (Needs::Administrator, Changes::Log);
    Route { method, pattern, needs, changes, handler, doc }
}

/// Of what no log says: which node leads, and whether one takes clients. It is done where no log gets on, too.
const fn step_in(
    method: Verb,
    pattern: &'static str,
    handler: Handler,
    doc: &'static str,
) -> Route {
    Route { changes: Changes::Memory, ..change(method, pattern, handler, doc) }
}

fn cluster(call: &Call) -> Result<&dyn Cluster, Refusal> {
    let cluster = call.api.settings.cluster.as_deref();
    cluster.ok_or_else(|| Refusal::missing("this broker is not a node of a cluster"))
}

fn status(call: &Call) -> Outcome {
    Ok(Reply::json(&cluster(call)?.status()))
}

fn add(call: &Call) -> Outcome {
    let body = call.object()?;
    let added = cluster(call)?.add(body.required_text("address")?)?;
    Ok(Reply::json(&added).with_status(StatusCode::CREATED))
}

fn remove(call: &Call) -> Outcome {
    let not_voting = cluster(call)?.remove(call.text("node")?)?;
    Ok(match not_voting.is_empty() {
        true => Reply::done(),
        false => Reply::json(&json!({ "not_voting": not_voting })),
    })
}

fn transfer(call: &Call) -> Outcome {
    let body = call.object()?;
    let group = body.integer("group")?.unwrap_or_default();
    let group = u16::try_from(group).map_err(|_| Refusal::bad_request("there is no such group"))?;
    let to = body.text("node")?;
    let leader = cluster(call)?.transfer_leader(group, to)?;
    Ok(Reply::json(&json!({ "leader": leader })))
}

fn move_vhost(call: &Call) -> Outcome {
    let body = call.object()?;
    let group = body.integer("group")?.and_then(|group| u16::try_from(group).ok());
    let group = group.ok_or_else(|| Refusal::bad_request("group must be the number of a group"))?;
    cluster(call)?.move_vhost(call.text("vhost")?, group)?;
    Ok(Reply::json(&json!({ "state": "running" })).with_status(StatusCode::ACCEPTED))
}

fn moved(call: &Call) -> Outcome {
    Ok(Reply::json(&match cluster(call)?.moved(call.text("vhost")?)? {
        VhostMove::Running => json!({ "state": "running" }),
        VhostMove::Done(messages) => json!({ "state": "done", "messages": messages }),
        VhostMove::Failed(reason) => json!({ "state": "failed", "reason": reason }),
    }))
}

fn drained(call: &Call) -> Outcome {
    let Drained { draining, clients } = cluster(call)?.drained(call.text("node")?)?;
    Ok(Reply::json(&json!({ "draining": draining, "clients": clients })))
}

fn drain(call: &Call) -> Outcome {
    let body = call.object()?;
    let number = |name: &str, default: u64| {
        let given = body.integer(name)?.map_or(Ok(default), u64::try_from);
        given.map_err(|_| Refusal::bad_request(format!("{name} must not be negative")))
    };
    let (group, pause_ms) = (number("group", GROUP)?, number("pause_ms", PAUSE_MS)?);
    let group = usize::try_from(group).unwrap_or(usize::MAX);
    let clients = cluster(call)?.drain(call.text("node")?, group, pause_ms)?;
    Ok(Reply::json(&json!({ "clients": clients })))
}

fn resume(call: &Call) -> Outcome {
    cluster(call)?.resume(call.text("node")?)?;
    Ok(Reply::done())
}

impl From<ClusterError> for Refusal {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::NotFound(why) => Refusal::missing(why),
            ClusterError::Refused(why) => Refusal::bad_request(why),
            ClusterError::Unavailable(why) => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", why)
            }
        }
    }
}
