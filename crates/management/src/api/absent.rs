//! What RabbitMQ has and this broker has not: lists are empty, and changes are refused with the reason.

use super::declare::check;
use super::{connections, get};
use crate::call::{Call, Members, Outcome};
use crate::cluster::ClusterRole;
use crate::list::{Items, paged};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Handler, Needs, Route, Verb};
use courser_auth::{Resource, Right};
use serde_json::json;

const fn refused(method: Verb, pattern: &'static str, handler: Handler) -> Route {
    let doc = "Refused: every node of a cluster has a replica of every durable queue.";
    let (needs, changes) = (Needs::Administrator, Changes::Memory);
    Route { method, pattern, needs, changes, handler, doc }
}

pub(crate) const ROUTES: &[Route] = &[
    get("/api/shovels", Needs::Login, connections::none, "Shovels: there is none."),
    get("/api/shovels/{vhost}", Needs::Vhost, connections::none, "Shovels: there is none."),
    get("/api/shovels/vhost/{vhost}/{name}", Needs::Vhost, nothing, "There is none."),
    get("/api/federation-links", Needs::Login, connections::none, "Links: there is none."),
    get("/api/federation-links/{vhost}", Needs::Vhost, connections::none, "There is none."),
    get("/api/federation-links/state/down", Needs::Login, connections::none, "There is none."),
    get(
        "/api/federation-links/{vhost}/state/down",
        Needs::Vhost,
        connections::none,
        "There is none.",
    ),
    get("/api/traces", Needs::Administrator, connections::none, "Trace files: there is none."),
    get("/api/traces/{vhost}", Needs::Administrator, traces, "There is none."),
    get("/api/trace-files", Needs::Administrator, connections::none, "There is none."),
    get(
        "/api/users/{user}/queues",
        Needs::Administrator,
        queues_of_user,
        "Queues that a user has declared: none, as the broker does not record this.",
    ),
    Route {
        method: Verb::Post,
        pattern: "/api/queues/{vhost}/{queue}/actions",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: action,
        doc: "Refused: no action is known.",
    },
    get(
        "/api/queues/quorum/{vhost}/{queue}/status",
        Needs::Vhost,
        quorum_status,
        "Where the replicas of a quorum queue are: on every member of the cluster.",
    ),
    refused(Verb::Post, "/api/queues/quorum/{vhost}/{queue}/replicas/add", no_replicas),
    refused(Verb::Delete, "/api/queues/quorum/{vhost}/{queue}/replicas/delete", no_replicas),
    refused(Verb::Post, "/api/queues/quorum/replicas/on/{node}/grow", no_replicas),
    refused(Verb::Delete, "/api/queues/quorum/replicas/on/{node}/shrink", no_replicas),
];

fn nothing(_: &Call) -> Outcome {
    Err(Refusal::not_found())
}

fn traces(call: &Call) -> Outcome {
    let vhost = call.admin().vhost(call.text("vhost")?);
    vhost.map(|_| Reply::json(&json!([]))).ok_or_else(Refusal::not_found)
}

fn queues_of_user(call: &Call) -> Outcome {
    let user = call.text("user")?;
    if call.admin().accounts().user(user).is_none() {
        return Err(Refusal::not_found());
    }
    paged(call, Items::<String>::unnamed(Vec::new()), |_, _| {})
}

fn action(call: &Call) -> Outcome {
    call.admin().queue(call.text("vhost")?, call.bytes("queue"))?;
    let body = call.object()?;
    Err(Refusal::bad_request(json!(["unknown", body.required_text("action")?])))
}

fn quorum_status(call: &Call) -> Outcome {
    let queue = call.admin().queue(call.text("vhost")?, call.bytes("queue"))?;
    check(call, Right::Read, Resource::Queue(call.bytes("queue")))?;
    if queue.queue_type != "quorum" {
        return Err(Refusal::bad_request("not_a_quorum_queue"));
    }
    let replica = |node: &str, state: &str, membership: &str| json!({ "Node Name": node, "Raft State": state, "Membership": membership });
    let Some(cluster) = &call.api.settings.cluster else {
        let node = call.api.settings.node.name.as_str();
        return Ok(Reply::json(&[replica(node, "leader", "voter")]));
    };
    let replicas = cluster.replicas(call.admin().group()).into_iter().map(|one| {
        let (state, membership) = match one.role {
            ClusterRole::Leader => ("leader", "voter"),
            ClusterRole::Follower => ("follower", "voter"),
            ClusterRole::Learner => ("follower", "promotable"),
        };
        let state = if one.is_connected { state } else { "nodedown" };
        replica(&format!("courser@{}", one.name), state, membership)
    });
    Ok(Reply::json(&replicas.collect::<Vec<_>>()))
}

fn no_replicas(_: &Call) -> Outcome {
    Err(Refusal::bad_request(
        "The replicas of a single queue can't be changed: every node of a cluster has one",
    ))
}
