//! Settings of nodes that can't be applied by the node that comes to lead.

use crate::cluster::{Three, connect, get};
use crate::support::wait_until;
use courser::{Config, Inherited, Node, StartError};
use courser_client::{ExchangeKind, ExchangeOptions, QueueOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Stops the node that leads, once another one has taken over starts it again, and returns that one.
async fn move_lead(three: &mut Three) -> usize {
    let leader = three.wait_for_leader().await;
    let gone = three.nodes[leader].take().expect("the leader");
    gone.stop().await.expect("a clean stop");
    three.wait_for_leader().await;
    let config = three.configs[leader].clone();
    let back = Node::start_on(config, Inherited::default()).await.expect("a node");
    three.nodes[leader] = Some(back);
    three.wait_for_leader().await
}

/// The names of the vhosts, as the node that leads says them.
async fn vhosts(node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    wait_until("an answer", async || {
        let (status, body) = get(node.addresses().http[0], "/api/vhosts").await;
        let rows: Vec<Value> = serde_json::from_str(&body).unwrap_or_default();
        found = rows.iter().filter_map(|row| Some(row["name"].as_str()?.to_owned())).collect();
        status == 200
    })
    .await;
    found
}

/// A policy for each of two vhosts, of which the file makes one.
fn change(config: &mut Config, file: &Path) {
    config.management.load_definitions = file.to_owned();
    let policies = r#"[
        {"name": "lost", "vhost": "shop", "pattern": ".*", "definition": {"max-length": 1}},
        {"name": "kept", "pattern": ".*", "definition": {"max-length": 1}}
    ]"#;
    config.policies = serde_json::from_str(policies).expect("policies");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_to_lead_serves_without_what_it_cannot_apply_of_its_settings() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("definitions.json");
    fs::write(&file, r#"{"vhosts": [{"name": "shop"}]}"#).expect("a file");
    let mut three = Three::start_with(|config| change(config, &file)).await;
    let leader = three.wait_for_leader().await;
    assert_eq!(vhosts(three.node(leader)).await, ["/", "shop"]);

    let deleted = crate::cluster_members::change(three.node(leader), "DELETE /api/vhosts/shop", "");
    assert_eq!(deleted.await.0, 204);
    let leader = move_lead(&mut three).await;
    assert_eq!(vhosts(three.node(leader)).await, ["/"], "the file is the same");

    let without_vhost = r#"{"queues": [{"name": "q", "durable": true, "arguments": {}}]}"#;
    fs::write(&file, without_vhost).expect("a file");
    let leader = move_lead(&mut three).await;
    assert_eq!(vhosts(three.node(leader)).await, ["/"]);
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare("q", QueueOptions::durable()).await.expect("a queue");
    let (_, queue) = get(three.node(leader).addresses().http[0], "/api/queues/%2F/q").await;
    let queue: Value = serde_json::from_str(&queue).expect("JSON");
    assert_eq!(queue["policy"], "kept", "{queue}");
    let needs_attention = async |node: &Node| {
        let findings = list(node, "/api/attention").await;
        findings.iter().any(|one| one["kind"] == "settings_not_applied")
    };
    assert!(needs_attention(three.node(leader)).await, "a row of the file can't be made");
    fs::write(&file, "{}").expect("a file");
    let leader = move_lead(&mut three).await;
    assert!(!needs_attention(three.node(leader)).await, "all is in order");

    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_no_node_could_apply_are_refused_before_it_leads() {
    let files = tempfile::tempdir().expect("a folder");
    let (file, none) = (files.path().join("definitions.json"), files.path().join("none.json"));
    fs::write(&file, r#"{"vhosts": [{"name": "shop"}]}"#).expect("a file");
    let mut three = Three::start_with(|config| change(config, &file)).await;
    let leader = three.wait_for_leader().await;
    vhosts(three.node(leader)).await;
    for index in 0..3 {
        let mut config = three.configs[index].clone();
        config.management.load_definitions.clone_from(&none);
        let reloaded = three.node(index).reload(&config).await;
        assert!(matches!(reloaded, Err(StartError::Definitions { .. })), "{reloaded:?}");
        let mut config = three.configs[index].clone();
        config.amqp.frame_max = 1;
        assert!(three.node(index).reload(&config).await.is_err());
        three.node(index).reload(&three.configs[index]).await.expect("good settings");
    }
    fs::write(&file, "{").expect("a file");
    let stopped = three.nodes[leader].take().expect("a node");
    stopped.stop().await.expect("a clean stop");
    let config = three.configs[leader].clone();
    let started = Node::start_on(config, Inherited::default()).await.map(drop);
    assert!(matches!(started, Err(StartError::Definitions { .. })), "{started:?}");
    three.stop().await;
}

/// What an answer to `path` has, as soon as there is one.
async fn list(node: &Node, path: &str) -> Vec<Value> {
    let mut found = Vec::new();
    wait_until("an answer", async || {
        let (status, body) = get(node.addresses().http[0], path).await;
        found = serde_json::from_str(&body).unwrap_or_default();
        status == 200
    })
    .await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_has_made_keeps_no_leader_from_importing_the_rest_once() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("definitions.json");
    let user = |name: &str| json!({ "name": name, "password": name, "tags": "administrator" });
    let binding = |source: &str, key: &str| {
        json!({
            "source": source, "vhost": "/", "destination": "q", "destination_type": "queue",
            "routing_key": key, "arguments": {},
        })
    };
    let mut definitions = json!({
        "users": [user("guest")],
        "permissions": [{ "user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*" }],
        "exchanges": [{ "name": "e", "vhost": "/", "type": "topic", "durable": true, "arguments": {} }],
        "queues": [{ "name": "q", "vhost": "/", "durable": true, "arguments": {} }],
        "bindings": [binding("e", "orders.#")],
    });
    fs::write(&file, definitions.to_string()).expect("a file");
    let load = |config: &mut Config| config.management.load_definitions.clone_from(&file);
    let mut three = Three::start_with(load).await;
    let leader = three.wait_for_leader().await;
    let connection = connect(three.node(leader)).await;
    let channel = connection.open_channel().await.expect("a channel");
    channel.exchange_delete("e", false).await.expect("deleted");
    let options = ExchangeOptions { durable: true, ..ExchangeOptions::default() };
    let kind = ExchangeKind::Other("x-consistent-hash".into());
    channel.exchange_declare("e", kind, options).await.expect("declared");

    definitions["users"] = json!([user("guest"), user("late")]);
    definitions["bindings"] = json!([binding("e", "orders.#"), binding("amq.topic", "all.#")]);
    fs::write(&file, definitions.to_string()).expect("a file");
    let leader = move_lead(&mut three).await;
    let bindings = list(three.node(leader), "/api/exchanges/%2F/amq.topic/bindings/source").await;
    assert_eq!(bindings.len(), 1, "it is behind the row that is refused");
    let deleted = crate::cluster_members::change(three.node(leader), "DELETE /api/users/late", "");
    assert_eq!(deleted.await.0, 204);

    let leader = move_lead(&mut three).await;
    let users = list(three.node(leader), "/api/users").await;
    let names: Vec<&Value> = users.iter().map(|user| &user["name"]).collect();
    assert_eq!(names, ["guest"], "the file is the same");
    let findings = list(three.node(leader), "/api/attention").await;
    let finding = findings.iter().find(|one| one["kind"] == "definitions_left_out");
    let why = "in vhost '/': binding to 'q': The binding key must be an integer";
    let said = finding.and_then(|finding| finding["text"].as_str());
    assert!(said.is_some_and(|text| text.contains(why)), "{findings:?}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_does_not_come_back_with_another_leader() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let node = three.node(leader);
    let deleted = crate::cluster_members::change(node, "DELETE /api/users/guest", "").await;
    assert_eq!(deleted.0, 204, "{}", deleted.1);
    let leader = move_lead(&mut three).await;
    let mut status = 0;
    wait_until("an answer", async || {
        status = get(three.node(leader).addresses().http[0], "/api/overview").await.0;
        status != 503
    })
    .await;
    assert_eq!(status, 401);
    three.stop().await;
}
