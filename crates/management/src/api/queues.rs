//! Queues.

use super::{consumers, get, stats};
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name, time};
use crate::list::{paged, state_name};
use crate::rates::{Range, object_in, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::{ClusterNode, ClusterRole};
use courser_broker::admin::{Listing, QueueContents, QueueView};
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/queues", Needs::Login, queues, "The queues that the caller may see."),
    get("/api/queues/detailed", Needs::Login, detailed, "The same, with all that is known."),
    get("/api/queues/{vhost}", Needs::Vhost, queues, "The queues of a vhost."),
    get("/api/queues/{vhost}/{queue}", Needs::Vhost, queue, "A queue."),
];

/// Members of the long form that are null where there is nothing to say.
const NULL_WHEN_UNSET: [&str; 5] = [
    "policy",
    "operator_policy",
    "exclusive_consumer_tag",
    "single_active_consumer_tag",
    "head_message_timestamp",
];

fn queues(call: &Call) -> Outcome {
    list(call, false)
}

fn detailed(call: &Call) -> Outcome {
    list(call, true)
}

fn list(call: &Call, is_detailed: bool) -> Outcome {
    let vhosts = call.vhosts()?;
    let listing = call.admin().queues(None)?;
    let within = Listing::within(listing, |vhost| vhosts.contains(vhost));
    let render = renderer(call, is_detailed)?;
    paged(call, within, render)
}

fn queue(call: &Call) -> Outcome {
    let vhost = call.text("vhost")?;
    let queue = call.admin().queue(vhost, call.bytes("queue"))?;
    let mut fields = Fields::new(&call.columns());
    renderer(call, true)?(&queue, &mut fields);
    if fields.wants("head_message_timestamp") && !call.is_set("disable_stats") {
        let timestamp = call.admin().head_timestamp(vhost, call.bytes("queue"))?;
        fields.put_some("head_message_timestamp", timestamp);
    }
    fields.put("incoming", json!([])).put("deliveries", json!([]));
    let (mut active, mut exclusive, mut details) = (None, None, Vec::new());
    let is_single_active = is_single_active(&queue);
    call.admin().for_each_consumer_of(vhost, call.bytes("queue"), &mut |one| {
        if one.active && is_single_active {
            active.get_or_insert_with(|| name(&one.tag));
        }
        if one.exclusive {
            exclusive.get_or_insert_with(|| name(&one.tag));
        }
        consumers::add(call, &one, &mut details);
    })?;
    fields
        .put_some("single_active_consumer_tag", active)
        .put_some("exclusive_consumer_tag", exclusive)
        .put("consumer_details", details);
    if let Some(owner) = queue.exclusive_owner {
        let caller = call.caller()?;
        let owner = call.admin().connection_of_id(owner);
        let owner = owner.filter(|owner| caller.sees_connections_of(owner.user.as_bytes()));
        fields.put_some(
            "owner_pid_details",
            owner.map(|owner| {
                json!({
                    "name": owner.name,
                    "peer_host": owner.peer.map(|peer| peer.ip().to_string()),
                    "peer_port": owner.peer.map(|peer| peer.port()),
                })
            }),
        );
    }
    Ok(Reply::object(fields))
}

fn is_single_active(queue: &QueueView) -> bool {
    let flag = queue.arguments.get("x-single-active-consumer");
    flag == Some(&courser_codec::FieldValue::Bool(true))
}

fn renderer(
    call: &Call,
    is_detailed: bool,
) -> Result<impl Fn(&QueueView, &mut Fields) + Send + 'static, Refusal> {
    let (call, replicas) = (call.later(), Replicas::of(call));
    let with_stats = !call.is_set("disable_stats");
    let with_totals = with_stats || call.is_set("enable_queue_totals");
    let range = Range::asked(&call, "lengths")?;
    let message_range = Range::asked(&call, "msg_rates")?;
    Ok(move |queue: &QueueView, fields: &mut Fields| {
        definition(&call, queue, &replicas, fields);
        if !queue.is_held && (is_detailed || !with_stats) {
            fields.put_all(&NULL_WHEN_UNSET[..if is_detailed { 5 } else { 2 }], Value::Null);
        }
        fields.put_some("policy", queue.policy.as_deref());
        fields.put_some("operator_policy", queue.operator_policy.as_deref());
        if with_stats {
            lengths(&call, queue, fields, range);
            if !queue.is_held {
                statistics(&call, queue, fields);
                let object = object_in(&queue.vhost, "queue", &name(&queue.name));
                let counters = stats::of_queue(&queue.counts);
                stats::put(&call, fields, &object, &counters, message_range);
            }
        } else if with_totals {
            fields
                .put("messages", messages(queue))
                .put("messages_ready", queue.ready)
                .put("messages_unacknowledged", queue.unacked);
        }
    })
}

/// The nodes that have the queues of this broker, as names. It serves them because its node leads.
struct Replicas {
    members: Vec<String>,
    online: Vec<String>,
}

impl Replicas {
    fn of(call: &Call) -> Self {
        let own = || vec![call.api.settings.node.name.clone()];
        let cluster = call.api.settings.cluster.as_ref();
        let nodes = cluster.map(|it| it.replicas(call.admin().group()));
        let mut voters = nodes.unwrap_or_default();
        voters.retain(|node| node.role != ClusterRole::Learner);
        if voters.is_empty() {
            return Replicas { members: own(), online: own() };
        }
        let names = |nodes: &mut dyn Iterator<Item = &ClusterNode>| {
            nodes.map(|node| format!("courser@{}", node.name)).collect()
        };
        Replicas {
            members: names(&mut voters.iter()),
            online: names(&mut voters.iter().filter(|node| node.is_connected)),
        }
    }
}

fn definition(call: &Call, queue: &QueueView, replicas: &Replicas, fields: &mut Fields) {
    fields
        .put("name", name(&queue.name))
        .put("vhost", queue.vhost.as_str())
        .put("type", queue.queue_type)
        .put("durable", queue.durable)
        .put("auto_delete", queue.auto_delete)
        .put("exclusive", queue.exclusive_owner.is_some())
        .put("node", call.api.settings.node.name.as_str())
        .put("state", state_name(queue.paused, || queue.is_held))
        .put("internal", false)
        .put("internal_owner", false)
        .put_some("delivery_limit", queue.delivery_limit.map(limit))
        .put_with("arguments", || arguments(queue));
    if !queue.is_held {
        let effective = || from_table(&queue.effective_definition);
        fields.put_with("effective_policy_definition", effective);
    }
    if queue.queue_type != "classic" {
        fields
            .put("leader", call.api.settings.node.name.as_str())
            .put_with("members", || json!(replicas.members))
            .put_with("online", || json!(replicas.online));
    }
}

/// A delivery limit as it is shown.
fn limit(limit: u64) -> Value {
    if limit == u64::MAX { "unlimited".into() } else { limit.into() }
}

/// What the messages of a queue amount to. What is not known is left out.
fn amounts(contents: &QueueContents, fields: &mut Fields) {
    let (ready, unacked) = (contents.ready_in_memory, contents.unacked_in_memory);
    let in_memory = contents.in_memory();
    fields
        .put_some("message_bytes", contents.bytes())
        .put_some("message_bytes_ready", contents.ready_bytes)
        .put_some("message_bytes_unacknowledged", contents.unacked_bytes)
        .put_some("message_bytes_persistent", contents.persistent_bytes)
        .put("message_bytes_ram", in_memory.bytes)
        .put("messages_persistent", contents.persistent)
        .put("messages_ram", in_memory.messages)
        .put("messages_ready_ram", ready.messages)
        .put("messages_unacknowledged_ram", unacked.messages);
}

/// All messages of a queue.
fn messages(queue: &QueueView) -> usize {
    queue.ready + queue.unacked + queue.delayed.messages
}

/// What waits for its next try, and how long such messages wait: of a quorum queue.
fn retries(queue: &QueueView, fields: &mut Fields) {
    let printed = queue.delayed_retry.map_or_else(|| "disabled".to_owned(), |it| it.to_string());
    let delayed = queue.delayed;
    fields
        .put("delayed_retry", printed)
        .put("messages_delayed", delayed.messages)
        .put_some("next_delayed_at", delayed.next_ms)
        .put_some("last_delayed_at", delayed.last_ms);
}

/// The arguments, which always say the type.
pub(super) fn arguments(queue: &QueueView) -> Value {
    let mut arguments = from_table(&queue.arguments);
    if let Value::Object(members) = &mut arguments {
        members.entry("x-queue-type").or_insert_with(|| queue.queue_type.into());
    }
    arguments
}

/// What is known of a queue all the time.
fn lengths(call: &Call, queue: &QueueView, fields: &mut Fields, range: Option<Range>) {
    fields.put("consumers", queue.consumers);
    let counters = [
        ("messages", messages(queue) as u64),
        ("messages_ready", queue.ready as u64),
        ("messages_unacknowledged", queue.unacked as u64),
    ];
    let object = object_in(&queue.vhost, "queue", &name(&queue.name));
    put_counters(call, fields, &object, &counters, range);
}

fn statistics(call: &Call, queue: &QueueView, fields: &mut Fields) {
    fields
        .put_some("consumer_capacity", queue.consumer_capacity)
        .put_some("consumer_utilisation", queue.consumer_capacity)
        .put("memory", queue.memory_bytes)
        .put("reductions", 0)
        .put_some("idle_since", (queue.used_ms > 0).then(|| time(queue.used_ms)))
        .put_some("head_message_timestamp", queue.head_timestamp);
    if let Some(contents) = &queue.contents {
        amounts(contents, fields);
    }
    if queue.queue_type == "quorum" {
        retries(queue, fields);
    }
    match queue.queue_type {
        "classic" => fields.put("storage_version", 2),
        _ => fields.put("open_files", json!({ call.api.settings.node.name.as_str(): 0 })),
    };
}
