//! What a comparison says of each row.

use super::*;

fn plan(wanted: &Value) -> Value {
    let now = json!({
        "users": [{ "name": "me", "tags": ["a", "b"], "password_hash": "x", "limits": {} }],
        "vhosts": [{ "name": "/", "metadata": { "description": "d", "tags": [] }, "limits": {} }],
        "queues": [{ "name": "q", "vhost": "/", "durable": true, "arguments": { "x-queue-type": "classic" } }],
        "bindings": [{ "vhost": "/", "source": "e", "destination": "q", "destination_type": "queue", "routing_key": "k", "arguments": {} }],
    });
    compare(&now, wanted.to_string().as_bytes(), 1).expect("definitions")
}

#[test]
fn what_is_there_is_the_same_however_it_is_written() {
    let plan = plan(&json!({
        "users": [{ "name": "me", "tags": "a, b", "limits": [] }],
        "vhosts": [{ "name": "/", "description": "d" }],
        "queues": [{ "name": "q", "vhost": "/", "durable": "true", "arguments": [] }],
        "bindings": [{ "vhost": "/", "source": "e", "destination": "q", "destination_type": "queue", "routing_key": "k", "arguments": [] }],
    }));
    assert_eq!(plan["same_count"], 4, "{plan}");
}

#[test]
fn what_is_new_what_changes_and_what_stays_is_told_apart() {
    let plan = plan(&json!({
        "users": [{ "name": "me", "tags": ["a"], "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR" }, { "name": "you", "tags": [] }],
        "queues": [
            { "name": "q", "vhost": "/", "durable": false, "arguments": { "x-max-length": 1 } },
            { "name": "amq.gen-1", "vhost": "/" },
            { "name": "lost", "vhost": "nowhere" },
        ],
    }));
    assert_eq!(plan["create"], json!([{ "list": "users", "row": { "name": "you" } }]));
    assert_eq!(plan["change"][0]["after"], json!({ "password_hash": "another", "tags": ["a"] }));
    assert_eq!(
        plan["keep"][0]["after"],
        json!({ "arguments": { "x-max-length": 1 }, "durable": false })
    );
    assert_eq!(plan["refuse"][0]["row"], json!({ "name": "lost", "vhost": "nowhere" }));
    assert_eq!(plan["skipped_count"], 1);
    assert!(!plan.to_string().contains("secret"));
}

#[test]
fn a_limit_of_zero_is_another_than_none() {
    let limits = json!({ "max-connections": 0 });
    let plan = plan(&json!({ "users": [{ "name": "me", "tags": "a,b", "limits": limits }] }));
    assert_eq!(plan["change"][0]["after"], json!({ "limits": limits }), "{plan}");
}

#[test]
fn keys_that_mean_nothing_are_named() {
    let wanted =
        json!({ "queue": [{ "name": "q" }], "queues": [], "rabbit_version": "4", "metadata": {} });
    assert_eq!(plan(&wanted)["unknown_keys"], json!(["queue"]));
}

#[test]
fn what_could_not_be_made_is_refused_with_the_reason() {
    let plan = plan(&json!({
        "users": [{ "name": "bad", "password_hash": "abc", "tags": [] }],
        "permissions": [{ "user": "me", "vhost": "/", "configure": "(", "write": "", "read": "" }],
        "policies": [{ "name": "p", "vhost": "/", "pattern": "x", "definition": { "federation-upstream": "all", "max-lenght": 5 } }],
        "exchanges": [
            { "name": "odd", "vhost": "/", "type": "x-nothing" },
            { "name": "amq.own", "vhost": "/", "type": "x-nothing" },
            { "name": "e", "vhost": "/", "type": "direct" },
        ],
        "queues": [{ "name": "q", "vhost": "/", "arguments": 5 }, { "name": "r", "vhost": "/", "arguments": 5 }],
        "bindings": [
            { "vhost": "/", "source": "gone", "destination": "q", "destination_type": "queue", "routing_key": "", "arguments": {} },
            { "vhost": "/", "source": "e", "destination": "gone", "destination_type": "queue", "routing_key": "", "arguments": {} },
            { "vhost": "/", "source": "amq.topic", "destination": "e", "destination_type": "exchange", "routing_key": "", "arguments": {} },
        ],
    }));
    let refused: Vec<&str> = plan["refuse"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["because"].as_str())
        .collect();
    let parts = [
        "user 'bad'",
        "configure pattern",
        "max-lenght is unknown",
        "unknown exchange type 'x-nothing'",
        "queue 'r'",
    ];
    for part in parts {
        assert!(refused.iter().any(|why| why.contains(part)), "{part}: {refused:#?}");
    }
    assert_eq!(refused.len(), parts.len(), "{refused:#?}");
    assert_eq!(plan["create_count"], 2, "{plan}");
    let skipped: Vec<&str> = rows(&plan, "skip")
        .expect("a list")
        .iter()
        .filter_map(|one| text_of(one, "because"))
        .collect();
    let missing = |what: &str| format!("there is no {what}, neither here nor in the file");
    let own = "its name is one of the broker's own".to_owned();
    assert_eq!(skipped, [own, missing("exchange 'gone'"), missing("queue 'gone'")]);
}

#[test]
fn policies_are_shown_without_what_is_only_rabbitmqs() {
    let policy = |name: &str, definition: Value| json!({ "name": name, "vhost": "/", "pattern": "x", "definition": definition });
    let operator = json!({ "vhost": "/", "component": "operator_policy", "name": "o", "value": policy("o", json!({ "ha-mode": "all", "max-length": 5 })) });
    let plan = plan(&json!({
        "policies": [policy("p", json!({ "federation-upstream-set": "all", "max-length": 5 })), policy("gone", json!({ "ha-mode": "all", "ha-params": [] }))],
        "parameters": [operator],
    }));
    let created: Vec<&Value> =
        rows(&plan, "create").expect("a list").iter().map(|one| &one["row"]["name"]).collect();
    assert_eq!(created, ["p", "o"], "{plan}");
    assert_eq!(plan["refuse_count"], 0, "{plan}");
    let row = json!({ "vhost": "/", "name": "p" });
    let why = "federation-upstream-set is RabbitMQ's and does nothing here";
    assert_eq!(plan["strip"][0], json!({ "list": "policies", "row": row, "because": why }));
    assert_eq!(plan["strip"][1]["list"], "parameters");
    let why = "ha-mode, ha-params are RabbitMQ's and do nothing here";
    assert_eq!((&plan["strip_count"], &plan["skip"][0]["because"]), (&json!(2), &json!(why)));
}

#[test]
fn what_is_no_definitions_is_refused() {
    for text in ["", "[]", "{\"users\": 1}"] {
        assert!(compare(&json!({}), text.as_bytes(), 1).is_err(), "{text}");
    }
}
