//! What a request may say besides its path: the members of its body, and the parameters of its query. What is in none of
//! these tables is refused: who mistypes a word would get something else than he asked for.

use crate::refusal::Refusal;
use crate::routes::Verb::{self, Delete, Get, Post, Put};
use serde_json::{Map, Value};

/// What the body of a route may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    method: Verb,
    pattern: &'static str,
    /// Members that have an effect.
    pub members: &'static [&'static str],
    /// Members that RabbitMQ's tools send as well, and programs that put back what they got. They change nothing.
    pub beside: &'static [&'static str],
}

const fn body(
    method: Verb,
    pattern: &'static str,
    members: &'static [&'static str],
    beside: &'static [&'static str],
) -> Body {
    Body { method, pattern, members, beside }
}

/// A body of a request that reads none.
pub(crate) static NOTHING: Body = body(Get, "", &[], &[]);

/// What a queue is shown with that no declaration has, here and by RabbitMQ of any version: clients with types send
/// them all.
const OF_QUEUE: &[&str] = &[
    "vhost",
    "name",
    "exclusive",
    "type",
    "queue_type",
    "queuetype",
    "idle_since",
    "disk_reads",
    "disk_writes",
    "message_bytes",
    "message_bytes_dlx",
    "message_bytes_paged_out",
    "message_bytes_persistent",
    "message_bytes_ram",
    "message_bytes_ready",
    "message_bytes_unacknowledged",
    "messages_dlx",
    "messages_paged_out",
    "messages_persistent",
    "messages_ram",
    "messages_ready_ram",
    "messages_unacknowledged_ram",
    "messages_delayed",
    "next_delayed_at",
    "last_delayed_at",
    "delayed_retry",
    "backing_queue_status",
    "garbage_collection",
    "reductions_details",
    "recoverable_slaves",
    "slave_nodes",
    "synchronised_slave_nodes",
    "delivery_limit",
    "state",
    "internal",
    "internal_owner",
    "policy",
    "operator_policy",
    "effective_policy_definition",
    "exclusive_consumer_tag",
    "single_active_consumer_tag",
    "owner_pid_details",
    "head_message_timestamp",
    "consumers",
    "consumer_capacity",
    "consumer_utilisation",
    "consumer_details",
    "memory",
    "reductions",
    "messages",
    "messages_details",
    "messages_ready",
    "messages_ready_details",
    "messages_unacknowledged",
    "messages_unacknowledged_details",
    "message_stats",
    "storage_version",
    "leader",
    "members",
    "online",
    "open_files",
    "incoming",
    "deliveries",
];
const OF_EXCHANGE: &[&str] = &[
    "vhost",
    "name",
    "user_who_performed_action",
    "policy",
    "message_stats",
    "message_stats_in",
    "message_stats_out",
    "incoming",
    "outgoing",
];
const OF_BINDING: &[&str] =
    &["vhost", "source", "destination", "destination_type", "properties_key"];
const OF_VHOST: &[&str] = &[
    "vhost",
    "name",
    "metadata",
    "cluster_state",
    "message_stats",
    "messages",
    "messages_details",
    "messages_ready",
    "messages_ready_details",
    "messages_unacknowledged",
    "messages_unacknowledged_details",
    "recv_oct",
    "recv_oct_details",
    "send_oct",
    "send_oct_details",
];

const QUEUE: &[&str] = &["durable", "auto_delete", "arguments", "node"];
const EXCHANGE: &[&str] = &["type", "durable", "auto_delete", "internal", "arguments"];
const BINDING: &[&str] = &["routing_key", "arguments"];
const POLICY: &[&str] = &["pattern", "definition", "priority", "apply-to", "apply_to"];
const PREVIEW: &[&str] = &["name", "pattern", "definition", "priority", "apply-to", "apply_to"];
const PERMISSION: &[&str] = &["configure", "write", "read"];
const TOPIC_PERMISSION: &[&str] = &["exchange", "write", "read"];
const USER: &[&str] =
    &["password", "password_hash", "hashing_algorithm", "tags", "limits", "permissions"];
const PASSWORD: &[&str] = &["password", "password_hash", "hashing_algorithm"];
const VHOST: &[&str] = &[
    "description",
    "tags",
    "default_queue_type",
    "defaultqueuetype",
    "tracing",
    "protected_from_deletion",
    "group",
];
/// Who a permission is of, as it is shown and as RabbitMQ's page sends it.
const WHOSE: &[&str] = &["vhost", "user", "username"];
const NAMED: &[&str] = &["vhost", "name"];

/// Those that read their body.
pub(crate) const BODIES: &[Body] = &[
    body(Put, "/api/queues/{vhost}/{queue}", QUEUE, OF_QUEUE),
    body(Put, "/api/exchanges/{vhost}/{exchange}", EXCHANGE, OF_EXCHANGE),
    body(Post, "/api/bindings/{vhost}/e/{exchange}/q/{queue}", BINDING, OF_BINDING),
    body(Post, "/api/bindings/{vhost}/e/{exchange}/e/{destination}", BINDING, OF_BINDING),
    body(
        Post,
        "/api/exchanges/{vhost}/{exchange}/publish",
        &["routing_key", "properties", "payload", "payload_encoding"],
        &["vhost", "name", "exchange", "delivery_mode", "headers", "props"],
    ),
    body(
        Post,
        "/api/queues/{vhost}/{queue}/get",
        &["count", "ackmode", "encoding", "truncate"],
        &["vhost", "name", "queue", "requeue", "payload_file"],
    ),
    body(Post, "/api/queues/{vhost}/{queue}/actions", &["action"], NAMED),
    body(
        Post,
        "/api/queues/{vhost}/{queue}/move",
        &["to", "numbers", "count", "contains", "header", "offset", "dry_run"],
        &[],
    ),
    body(Post, "/api/exchanges/{vhost}/{exchange}/route", &["routing_key", "properties"], &[]),
    body(
        Post,
        "/api/access/check",
        &["user", "vhost", "right", "resource", "name", "routing_key"],
        &[],
    ),
    body(Post, "/api/policy-preview/{vhost}", PREVIEW, &["vhost"]),
    body(Post, "/api/operator-policy-preview/{vhost}", PREVIEW, &["vhost"]),
    body(Put, "/api/policies/{vhost}/{name}", POLICY, NAMED),
    body(Put, "/api/operator-policies/{vhost}/{name}", POLICY, NAMED),
    body(Put, "/api/users/{user}", USER, &["name", "username", "password_confirm", "vhost"]),
    body(Put, "/api/users/{user}/tags", &["tags"], &["name"]),
    body(Put, "/api/users/{user}/password", PASSWORD, &["name"]),
    body(Post, "/api/users/bulk-delete", &["users"], &[]),
    body(Put, "/api/permissions/{vhost}/{user}", PERMISSION, WHOSE),
    body(Put, "/api/topic-permissions/{vhost}/{user}", TOPIC_PERMISSION, WHOSE),
    body(Put, "/api/topic-permissions/{vhost}/{user}/{exchange}", TOPIC_PERMISSION, WHOSE),
    body(Put, "/api/user-limits/{user}/{name}", &["value"], &["user", "name"]),
    body(Put, "/api/vhost-limits/{vhost}/{name}", &["value"], NAMED),
    body(Put, "/api/vhosts/{vhost}", VHOST, OF_VHOST),
    body(
        Put,
        "/api/parameters/{component}/{vhost}/{name}",
        &["value"],
        &["component", "vhost", "name"],
    ),
    body(Put, "/api/global-parameters/{name}", &["value"], &["name"]),
    body(Put, "/api/cluster-name", &["name"], &[]),
    body(Put, "/api/nodes/{node}/log-level", &["level", "target"], &[]),
    body(Put, "/api/nodes/{node}/memory-limit", &["bytes", "fraction"], &[]),
    body(Post, "/api/cluster/nodes", &["address"], &[]),
    body(Put, "/api/cluster/leader", &["node", "group"], &[]),
    body(Put, "/api/cluster/moves/{vhost}", &["group"], &[]),
    body(Put, "/api/cluster/drain/{node}", &["group", "pause_ms"], &[]),
    body(Post, "/api/oauth/login", &["page"], &[]),
];

/// What every request to read may have in its query, as RabbitMQ's tools send it with requests of all kinds. The last
/// two change nothing anywhere.
pub(crate) const OF_EVERY_GET: &[&str] = &[
    "page",
    "page_size",
    "name",
    "use_regex",
    "sort",
    "sort_reverse",
    "columns",
    "type",
    "state",
    "has",
    "disable_stats",
    "enable_queue_totals",
    "lengths_age",
    "lengths_incr",
    "msg_rates_age",
    "msg_rates_incr",
    "data_rates_age",
    "data_rates_incr",
    "node_stats_age",
    "node_stats_incr",
    "memory",
    "binary",
    "pagination",
];

/// Parameters of queries that say yes or no, in whichever query; without a value they say yes. Another value would count as no,
/// and a mistyped yes be lost.
pub(crate) const FLAGS: &[&str] = &[
    "use_regex",
    "sort_reverse",
    "disable_stats",
    "enable_queue_totals",
    "memory",
    "binary",
    "pagination",
    "for_rabbitmq",
    "dry_run",
    "warnings",
    "if-unused",
    "if-empty",
];

/// What a query may have besides.
pub(crate) const QUERIES: &[(Verb, &str, &[&str])] = &[
    (Get, "/api/definitions", &["download", "for_rabbitmq"]),
    (Get, "/api/all-configuration", &["download", "for_rabbitmq"]),
    (Get, "/api/definitions/{vhost}", &["download", "for_rabbitmq"]),
    (Post, "/api/definitions", &["dry_run", "warnings"]),
    (Post, "/api/definitions/{vhost}", &["dry_run", "warnings"]),
    (Get, "/api/events", &["kind", "vhost", "seconds"]),
    (Get, "/api/log", &["count", "level", "contains"]),
    (Get, "/api/log/stream", &["count", "level", "contains", "seconds"]),
    (Get, "/api/audit", &["count", "user", "method", "contains", "since_ms", "result", "search"]),
    (Get, "/api/queues/{vhost}/{queue}/messages", MESSAGES),
    (Get, "/api/queues/{vhost}/{queue}/messages/{offset}", &["number"]),
    (
        Get,
        "/api/queues/{vhost}/{queue}/tail",
        &["offset", "truncate", "encoding", "contains", "header", "timestamp_ms", "seconds"],
    ),
    (Delete, "/api/queues/{vhost}/{queue}", &["if-unused", "if-empty"]),
    (Delete, "/api/queues/{vhost}/{queue}/contents", &["count"]),
    (Delete, "/api/exchanges/{vhost}/{exchange}", &["if-unused"]),
];

const MESSAGES: &[&str] =
    &["offset", "count", "truncate", "encoding", "contains", "header", "timestamp_ms"];

/// What the body of a route may have, if it is read.
pub(crate) fn body_of(method: Verb, pattern: &str) -> Option<&'static Body> {
    BODIES.iter().find(|body| body.method == method && body.pattern == pattern)
}

/// What the query of a route may have besides what each may.
pub(crate) fn query_of(method: Verb, pattern: &str) -> &'static [&'static str] {
    let own = QUERIES.iter().find(|(known, of, _)| *known == method && *of == pattern);
    own.map_or(&[], |(.., names)| names)
}

impl Body {
    /// Refuses members that the request does not know. Those that begin with `_` are notes, and null says nothing.
    pub fn check(&self, members: &Map<String, Value>) -> Result<(), Refusal> {
        let said = members.iter().filter(|(_, value)| !value.is_null());
        let names = said.map(|(name, _)| name.as_str());
        only(names.filter(|name| !self.beside.contains(name)), "member", &[self.members])
    }
}

/// Refuses parameters that a request does not know, and flags that are none. Those that begin with `_` are for caches.
pub(crate) fn check_query(
    method: Verb,
    pattern: &str,
    query: &[(String, String)],
) -> Result<(), Refusal> {
    let usual = if method == Get { OF_EVERY_GET } else { &[] };
    let names = query.iter().map(|(name, _)| name.as_str());
    only(names, "parameter", &[query_of(method, pattern), usual])?;
    let is_flag = |value: &str| matches!(value, "" | "true" | "false");
    let mut flags = query.iter().filter(|(name, _)| FLAGS.contains(&name.as_str()));
    match flags.find(|(_, value)| !is_flag(value)) {
        None => Ok(()),
        Some((name, _)) => Err(Refusal::bad_request(format!("{name} is either true or false"))),
    }
}

fn only<'n>(
    mut names: impl Iterator<Item = &'n str>,
    what: &str,
    known: &[&[&str]],
) -> Result<(), Refusal> {
    let is_known = |name: &str| known.iter().any(|names| names.contains(&name));
    match names.find(|name| !name.starts_with('_') && !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let known = known.concat();
            let rest = match known.is_empty() {
                true => String::new(),
                false => format!(", only {}", known.join(", ")),
            };
            Err(Refusal::bad_request(format!("there is no {what} '{name}' here{rest}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TABLE;

    #[test]
    fn every_line_is_of_a_route() {
        let is_there = |method: Verb, pattern: &str| {
            TABLE
                .iter()
                .copied()
                .flatten()
                .any(|route| route.method == method && route.pattern == pattern)
        };
        for Body { method, pattern, .. } in BODIES {
            assert!(is_there(*method, pattern), "{method:?} {pattern}");
        }
        for (method, pattern, _) in QUERIES {
            assert!(is_there(*method, pattern), "{method:?} {pattern}");
        }
        let own = QUERIES.iter().flat_map(|(.., names)| names.iter());
        let known: Vec<&str> = own.chain(OF_EVERY_GET).copied().collect();
        assert!(FLAGS.iter().all(|flag| known.contains(flag)));
    }
}
