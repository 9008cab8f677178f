//! A request of each kind that has a body, and what its members do.

use serde_json::{Value, json};

/// How the effect of each member of a request is seen.
pub struct Trial {
    pub method: &'static str,
    pub pattern: &'static str,
    /// A body that is good. `VHOST` and `USER` stand for names.
    pub body: Value,
    /// For each member, a value with which the same request does something else.
    pub other: Value,
}

fn trial(method: &'static str, pattern: &'static str, body: Value, other: Value) -> Trial {
    Trial { method, pattern, body, other }
}

pub fn trials() -> Vec<Trial> {
    let binding = || json!({ "routing_key": "other", "arguments": { "a": 1 } });
    let policy = || json!({ "pattern": "^q$", "definition": { "max-length": 5 } });
    // There is one of priority 4.
    let first = || json!({ "pattern": "^q$", "definition": { "max-length": 5 }, "priority": 5 });
    let others = || {
        json!({
            "pattern": "^x$", "definition": { "max-length": 6 }, "priority": 3, "apply-to": "exchanges",
            "apply_to": "streams", "name": "another",
        })
    };
    // An operator's policy is for queues.
    let of_operators = || {
        let mut other = others();
        other["apply-to"] = json!("quorum_queues");
        other
    };
    let permission = json!({ "configure": "a", "write": "a", "read": "a" });
    let permitted = json!({ "configure": "b", "write": "b", "read": "b" });
    let on_topic = || json!({ "exchange": "amq.topic", "write": "a", "read": "a" });
    let topic = || json!({ "exchange": "x", "write": "b", "read": "b" });
    let get = json!({ "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto" });
    let message = json!({ "routing_key": "k", "properties": {}, "payload": "YQ==", "payload_encoding": "string" });
    // That of the password x, by SHA-256.
    let hash = "cnX2UmJ5xTv2H0pUCIKwq5IoRB2M9BHcpIBSXQPhkUOEDVOy";
    let other_hash = "dnX2UmJ5xTv2H0pUCIKwq5IoRB2M9BHcpIBSXQPhkUOEDVOy";
    vec![
        trial(
            "PUT",
            "/api/queues/{vhost}/{queue}",
            json!({}),
            json!({ "durable": true, "auto_delete": true, "arguments": { "x-max-length": 5 }, "node": "another" }),
        ),
        trial(
            "PUT",
            "/api/exchanges/{vhost}/{exchange}",
            json!({}),
            json!({ "type": "fanout", "durable": true, "auto_delete": true, "internal": true, "arguments": { "a": 1 } }),
        ),
        trial("POST", "/api/bindings/{vhost}/e/{exchange}/q/{queue}", json!({}), binding()),
        trial("POST", "/api/bindings/{vhost}/e/{exchange}/e/{destination}", json!({}), binding()),
        trial(
            "POST",
            "/api/exchanges/{vhost}/{exchange}/publish",
            message,
            json!({ "routing_key": "bound-nowhere", "properties": { "type": "t" }, "payload": "Yg==", "payload_encoding": "base64" }),
        ),
        trial(
            "POST",
            "/api/queues/{vhost}/{queue}/get",
            get,
            json!({ "count": 2, "ackmode": "ack_requeue_false", "encoding": "base64", "truncate": 1 }),
        ),
        trial(
            "POST",
            "/api/queues/{vhost}/{queue}/actions",
            json!({ "action": "sync" }),
            json!({ "action": "other" }),
        ),
        trial(
            "POST",
            "/api/queues/{vhost}/{queue}/move",
            json!({ "to": { "queue": "r" } }),
            json!({
                "to": { "queue": "nowhere" }, "numbers": [], "count": 1, "contains": "one", "header": "none", "offset": 1,
                "dry_run": true,
            }),
        ),
        trial(
            "POST",
            "/api/exchanges/{vhost}/{exchange}/route",
            json!({}),
            json!({ "routing_key": "k", "properties": { "headers": { "CC": ["k"] } } }),
        ),
        trial(
            "POST",
            "/api/access/check",
            json!({ "vhost": "VHOST", "right": "read", "resource": "exchange", "name": "amq.topic", "user": "USER" }),
            json!({
                "vhost": "/", "right": "write", "resource": "queue", "name": "z", "user": "guest", "routing_key": "no",
            }),
        ),
        trial("POST", "/api/policy-preview/{vhost}", first(), others()),
        trial("POST", "/api/operator-policy-preview/{vhost}", first(), of_operators()),
        trial("PUT", "/api/policies/{vhost}/{name}", policy(), others()),
        trial("PUT", "/api/operator-policies/{vhost}/{name}", policy(), of_operators()),
        trial(
            "PUT",
            "/api/users/{user}",
            json!({ "tags": "", "password_hash": hash }),
            json!({
                "password": "both", "password_hash": other_hash, "hashing_algorithm": "rabbit_password_hashing_sha512",
                "tags": "management", "limits": { "max-channels": 5 }, "permissions": { "VHOST": permission },
            }),
        ),
        trial(
            "PUT",
            "/api/users/{user}/tags",
            json!({ "tags": "" }),
            json!({ "tags": "monitoring" }),
        ),
        trial(
            "PUT",
            "/api/users/{user}/password",
            json!({ "password_hash": hash }),
            json!({
                "password": "both", "password_hash": other_hash, "hashing_algorithm": "rabbit_password_hashing_sha512",
            }),
        ),
        trial(
            "POST",
            "/api/users/bulk-delete",
            json!({ "users": [] }),
            json!({ "users": ["USER"] }),
        ),
        trial("PUT", "/api/permissions/{vhost}/{user}", permission, permitted),
        trial("PUT", "/api/topic-permissions/{vhost}/{user}", on_topic(), topic()),
        trial(
            "PUT",
            "/api/topic-permissions/{vhost}/{user}/{exchange}",
            json!({ "write": "a", "read": "a" }),
            topic_of("z"),
        ),
        trial(
            "PUT",
            "/api/user-limits/{user}/{name}",
            json!({ "value": 1 }),
            json!({ "value": 2 }),
        ),
        trial(
            "PUT",
            "/api/vhost-limits/{vhost}/{name}",
            json!({ "value": 10 }),
            json!({ "value": 20 }),
        ),
        trial(
            "PUT",
            "/api/vhosts/{vhost}",
            json!({}),
            json!({
                "description": "d", "tags": "t", "default_queue_type": "quorum", "defaultqueuetype": "stream", "tracing": true,
                "protected_from_deletion": true, "group": 7,
            }),
        ),
        trial(
            "PUT",
            "/api/parameters/{component}/{vhost}/{name}",
            json!({ "value": [1] }),
            json!({ "value": [2] }),
        ),
        trial("PUT", "/api/global-parameters/{name}", json!({ "value": 1 }), json!({ "value": 2 })),
        trial("PUT", "/api/cluster-name", json!({ "name": "one" }), json!({ "name": "two" })),
    ]
}

/// A topic permission on another exchange than the path's is refused.
fn topic_of(exchange: &str) -> Value {
    json!({ "exchange": exchange, "write": "b", "read": "b" })
}
