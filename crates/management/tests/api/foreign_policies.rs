//! Policies of RabbitMQ that say what does nothing here, and parameters of components that are not here.

use crate::support::{Answer, Broker};
use courser_broker::admin::Parameter;
use serde_json::{Value, json};

async fn import(broker: &Broker, path: &str, document: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    let body = document.to_string();
    broker.call_with("POST", path, Some("guest:guest"), &headers, body.as_bytes()).await
}

fn policy(name: &str, definition: &Value) -> Value {
    json!({ "vhost": "/", "name": name, "pattern": "^q", "apply-to": "queues", "priority": 0, "definition": definition })
}

/// What a RabbitMQ exports that has been in use for long.
fn sample() -> Value {
    let value = json!({ "pattern": "^q", "apply-to": "queues", "priority": 0, "definition": { "max-in-memory-bytes": 9, "max-length": 50 } });
    json!({
        "policies": [
            policy("mixed", &json!({ "ha-mode": "exactly", "ha-params": 2, "max-length": 5 })),
            policy("mirrors", &json!({ "ha-mode": "all", "ha-sync-mode": "automatic" })),
        ],
        "parameters": [{ "vhost": "/", "component": "operator_policy", "name": "op", "value": value }],
        "queues": [{ "name": "q", "vhost": "/", "durable": true, "arguments": {} }],
    })
}

#[tokio::test]
async fn policies_are_imported_without_the_keys_that_do_nothing_here() {
    let broker = Broker::start().await;
    assert_eq!(import(&broker, "/api/definitions", &sample()).await.status, 204, "as RabbitMQ");
    let policies = broker.get("/api/policies").await.json();
    assert_eq!(policies, json!([policy("mixed", &json!({ "max-length": 5 }))]));
    let operator = broker.get("/api/operator-policies/%2F/op").await.json();
    assert_eq!(operator["definition"], json!({ "max-length": 50 }));
    let queue = broker.get("/api/queues/%2F/q").await.json();
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("mixed"), &json!("op")));
    let plan = import(&broker, "/api/definitions?dry_run=true", &sample()).await.json();
    assert_eq!(
        (&plan["same_count"], &plan["strip_count"], &plan["skipped_count"]),
        (&json!(3), &json!(2), &json!(1)),
        "{plan}"
    );
}

#[tokio::test]
async fn who_asks_for_warnings_is_told_each_policy_and_its_keys() {
    let broker = Broker::start().await;
    let mut document = sample();
    document["queue"] = json!([]);
    let told = import(&broker, "/api/definitions?warnings=true", &document).await;
    assert_eq!(told.status, 200);
    let told = told.json();
    let warnings: Vec<&str> =
        told["warnings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let parts = [
        "not imported: queue",
        "do nothing here: policy 'mixed' in vhost '/' (ha-mode, ha-params), operator policy 'op' in vhost '/' (max-in-memory-bytes)",
        "lower priority: policy 'mirrors' in vhost '/' (ha-mode, ha-sync-mode)",
    ];
    assert_eq!(warnings.len(), parts.len(), "{warnings:#?}");
    for (warning, part) in warnings.iter().zip(parts) {
        assert!(warning.ends_with(part), "{warning}");
    }
    let none = import(&broker, "/api/definitions?warnings=true", &json!({})).await;
    assert_eq!((none.status, none.json()), (200, json!({ "warnings": [] })));
    // Of one vhost, whose name is in no row.
    let mut row = policy("p", &json!({ "federation-upstream-set": "all", "expires": 9 }));
    row.as_object_mut().expect("an object").remove("vhost");
    let document = json!({ "policies": [row] });
    let told = import(&broker, "/api/definitions/%2F?warnings=true", &document).await.json();
    let warning = told["warnings"][0].as_str().expect("a text");
    assert!(warning.ends_with(": policy 'p' (federation-upstream-set)"), "{warning}");
}

#[tokio::test]
async fn keys_that_no_broker_knows_are_refused_and_so_is_a_policy_by_itself() {
    let broker = Broker::start().await;
    let typed = json!({ "policies": [policy("p", &json!({ "ha-mode": "all", "max-lenght": 5 }))] });
    let refused = import(&broker, "/api/definitions", &typed).await;
    let reason = refused.refusal().1.as_str().expect("a text").to_owned();
    assert!(refused.status == 400 && reason.contains("max-lenght is unknown"), "{reason}");
    for (path, key) in [
        ("/api/policies/%2F/p", "federation-upstream"),
        ("/api/operator-policies/%2F/p", "target-group-size"),
    ] {
        let body = json!({ "pattern": "^q", "definition": { "max-length": 5, key: 3 } });
        let refused = broker.send("PUT", path, &body.to_string()).await;
        let reason = refused.refusal().1.as_str().expect("a text").to_owned();
        let part = format!("{key} is RabbitMQ's and does nothing here; there are ");
        assert!(refused.status == 400 && reason.contains(&part), "{reason}");
    }
}

fn parameter(component: &str, name: &str) -> Value {
    json!({ "vhost": "/", "component": component, "name": name, "value": { "a": 1 } })
}

#[tokio::test]
async fn parameters_of_components_that_are_not_here_are_left_out_of_an_import() {
    let broker = Broker::start().await;
    // Notes that RabbitMQ's nodes keep for themselves, and its exports have.
    let foreign = ["exchange-delete-in-progress", "imported_definition_hash_value"];
    let mut rows: Vec<Value> = foreign.map(|component| parameter(component, "n")).to_vec();
    rows.push(parameter("federation-upstream-set", "kept"));
    let queue = json!({ "name": "q", "vhost": "/", "durable": true, "arguments": {} });
    let document = json!({ "parameters": rows, "queues": [queue] });
    let plan = import(&broker, "/api/definitions?dry_run=true", &document).await.json();
    assert_eq!((&plan["refuse_count"], &plan["create_count"]), (&json!(0), &json!(2)), "{plan}");
    let row = json!({ "vhost": "/", "component": foreign[0], "name": "n" });
    let why = "there is no component 'exchange-delete-in-progress' here";
    assert_eq!(plan["skip"][0], json!({ "list": "parameters", "row": row, "because": why }));
    assert_eq!(plan["skipped_count"], 2, "{plan}");
    let told = import(&broker, "/api/definitions?warnings=true", &document).await;
    let warning = "parameters not imported: there are no such components here: 'n' of component \
                   'exchange-delete-in-progress' in vhost '/', 'n' of component 'imported_definition_hash_value' in vhost '/'";
    assert_eq!((told.status, &told.json()["warnings"][0]), (200, &json!(warning)));
    assert_eq!(broker.get("/api/queues/%2F/q").await.status, 200);
    let parameters = broker.get("/api/parameters").await.json();
    assert_eq!(parameters, json!([parameter("federation-upstream-set", "kept")]));
}

#[tokio::test]
async fn a_broker_imports_its_own_export_whatever_parameters_it_has_kept() {
    let broker = Broker::start().await;
    let kept = Parameter {
        vhost: "/".to_owned(),
        component: "a-tool".to_owned(),
        name: "n".to_owned(),
        value: "1".to_owned(),
    };
    broker.admin().set_parameter(&kept).expect("a vhost");
    let document = broker.get("/api/definitions").await.json();
    assert_eq!(document["parameters"][0]["component"], "a-tool");
    assert_eq!(import(&broker, "/api/definitions", &document).await.status, 204);
    assert_eq!(broker.get("/api/parameters/a-tool/%2F/n").await.status, 200, "it stays");
}
