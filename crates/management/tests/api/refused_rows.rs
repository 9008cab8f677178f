//! Rows of definitions that are in order, and that what there is refuses: a start leaves them out and says so, the API refuses
//! them.

use crate::definitions::import;
use crate::support::Broker;
use courser_auth::Hashing;
use courser_broker::admin::{ExchangeKind, ExchangeSettings, NewQueue, VhostSettings};
use courser_management::{ImportError, Imported};
use serde_json::{Value, json};

/// A broker in which clients have made what keeps a file from being made as a whole.
async fn taken() -> Broker {
    let broker = Broker::start().await;
    let admin = broker.admin();
    let durable = || NewQueue { durable: true, ..NewQueue::default() };
    admin.declare_queue("/", "other", durable()).expect("a queue");
    let limit = |settings: &mut VhostSettings| settings.limits.queues_max = Some(1);
    admin.change_vhost("/", limit).expect("a limit");
    let hash = ExchangeSettings {
        kind: ExchangeKind::ConsistentHash,
        durable: true,
        auto_delete: false,
        internal: false,
        arguments: Default::default(),
    };
    admin.declare_exchange("/", "e", &hash).expect("an exchange");
    broker
}

fn at_start(broker: &Broker, file: &Value) -> Result<Imported, ImportError> {
    at_start_of_groups(broker, file, 1)
}

fn at_start_of_groups(broker: &Broker, file: &Value, groups: u16) -> Result<Imported, ImportError> {
    let text = file.to_string();
    courser_management::import(&broker.admin(), text.as_bytes(), Hashing::RabbitSha256, groups)
}

fn queue(name: &str) -> Value {
    json!({ "name": name, "vhost": "/", "durable": true, "arguments": {} })
}

fn binding(source: &str, key: &str) -> Value {
    json!({
        "source": source, "vhost": "/", "destination": "other", "destination_type": "queue",
        "routing_key": key, "arguments": {},
    })
}

fn permission(user: &str, write: &str) -> Value {
    json!({ "user": user, "vhost": "/", "configure": "", "write": write, "read": "" })
}

fn upstream(vhost: &str) -> Value {
    let value = json!({ "uri": "amqp://127.0.0.1" });
    json!({ "component": "federation-upstream", "vhost": vhost, "name": "up", "value": value })
}

/// Rows that are refused, by the list that they are in, and why.
fn refused() -> [(&'static str, Value, &'static str); 5] {
    [
        (
            "topic_permissions",
            json!({ "user": "gone", "vhost": "/", "exchange": "amq.topic", "write": "", "read": "" }),
            "in vhost '/': topic permission of user 'gone': user 'gone' does not exist",
        ),
        (
            "permissions",
            permission("gone", ".*"),
            "in vhost '/': permission of user 'gone': user 'gone' does not exist",
        ),
        (
            "parameters",
            upstream("gone"),
            "in vhost 'gone': Please create virtual host \"gone\" prior to importing definitions.",
        ),
        (
            "queues",
            queue("q"),
            "in vhost '/': queue 'q': cannot declare queue 'q': queue limit in vhost '/' (1) is reached",
        ),
        (
            "bindings",
            binding("e", "orders.#"),
            "in vhost '/': binding to 'other': The binding key must be an integer: <<\"orders.#\">>",
        ),
    ]
}

#[tokio::test]
async fn a_start_leaves_them_out_and_makes_the_rest() {
    let broker = taken().await;
    let mut file = json!({
        "exchanges": [{ "name": "e", "vhost": "/", "type": "topic", "durable": true, "arguments": {} }],
    });
    for (list, row, _) in refused() {
        file[list] = json!([row]);
    }
    file["permissions"].as_array_mut().expect("a list").push(permission("guest", "^w"));
    file["parameters"].as_array_mut().expect("a list").push(upstream("/"));
    file["bindings"].as_array_mut().expect("a list").push(binding("amq.topic", "k"));
    let done = at_start(&broker, &file).expect("it is no reason to stop");
    let whys = refused().map(|(_, _, why)| why).join(", ");
    assert_eq!((done.refused.named(), done.skipped), (whys, 5));

    let admin = broker.admin();
    let permission = admin.accounts().permission("guest", "/").expect("it was there before");
    assert_eq!(permission.write, "^w");
    assert!(admin.parameter("/", "federation-upstream", "up").is_ok());
    let bindings = broker.get("/api/exchanges/%2F/amq.topic/bindings/source").await.json();
    assert_eq!(bindings.as_array().map(Vec::len), Some(1), "{bindings}");
}

#[tokio::test]
async fn the_api_refuses_them() {
    let broker = taken().await;
    for (list, row, why) in refused() {
        let answer = import(&broker, "/api/definitions", &json!({ list: [row] })).await;
        let said = answer.refusal().1.as_str().expect("a text").to_owned();
        assert_eq!(answer.status, 400, "{list}: {said}");
        assert!(why.ends_with(&said), "{said}");
    }
}

#[tokio::test]
async fn a_start_refuses_what_no_broker_takes() {
    let broker = taken().await;
    let wrong = |row: Value, member: &str, value: Value| {
        let mut row = row;
        row[member] = value;
        row
    };
    let policy = json!({
        "vhost": "gone", "name": "p", "pattern": "^(", "definition": { "max-length": 5 },
    });
    for (list, row) in [
        ("users", json!({ "name": "", "password_hash": "", "tags": "" })),
        ("permissions", permission("gone", "(")),
        ("policies", policy),
        ("parameters", wrong(upstream("gone"), "value", json!(1))),
        ("exchanges", json!({ "name": "f", "vhost": "/", "type": "none", "durable": true })),
        ("queues", wrong(queue("q"), "arguments", json!({ "x-max-length": -1 }))),
        ("queues", wrong(queue("q"), "vhost", Value::Null)),
        ("bindings", wrong(binding("e", "orders.#"), "destination_type", json!("none"))),
        ("vhosts", json!({ "name": "" })),
    ] {
        let done = at_start(&broker, &json!({ list: [row] }));
        assert!(done.is_err(), "{list}: {done:?}");
    }
}

#[tokio::test]
async fn a_leader_leaves_out_what_is_in_vhosts_of_other_groups_and_of_none() {
    let broker = Broker::start().await;
    let queue = |vhost: &str| json!({ "name": "q", "vhost": vhost, "durable": true });
    let file = json!({
        "vhosts": [{ "name": "far", "group": 1 }, { "name": "none", "group": 7 }, { "name": "here" }],
        "queues": [queue("far"), queue("none"), queue("here")],
    });
    let done = at_start_of_groups(&broker, &file, 2).expect("it is no reason to stop");
    let said = done.refused.named();
    let whys = [
        "vhost 'none': ",
        ", in vhost 'far': queue 'q': vhost 'far' is not served by this broker",
        ", in vhost 'none': Please create virtual host \"none\"",
    ];
    assert!(whys.iter().all(|why| said.contains(why)), "{said}");
    assert_eq!((done.vhosts, done.topology, done.skipped), (2, 1, 3));
    assert!(broker.admin().queue("here", b"q").is_ok());
}

#[tokio::test]
async fn what_is_said_of_them_is_bounded() {
    let broker = taken().await;
    let name = |nth: usize| format!("{nth}{}", "\u{1}é".repeat(80));
    let queues: Vec<Value> = (0..30).map(|nth| queue(&name(nth))).collect();
    let done = at_start(&broker, &json!({ "queues": queues })).expect("it is no reason to stop");
    assert_eq!(done.skipped, 30);
    let said = done.refused.named();
    assert!(said.ends_with(" and 10 more"), "{said}");
    assert!(said.len() < 20 * 502 + 20, "{}", said.len());
    // As long as a global parameter may be.
    assert!(Value::from(said).to_string().len() < 64 << 10);
}

#[tokio::test]
async fn a_warning_names_no_more_than_the_beginning_of_a_long_key_or_name() {
    let broker = Broker::start().await;
    let long = "é".repeat(100_000);
    let file = json!({ (long.clone()): [], "queues": [queue(&format!("amq.{long}"))] });
    let warnings = at_start(&broker, &file).expect("it is no reason to stop").warnings;
    assert_eq!(warnings.len(), 2);
    for warning in warnings {
        assert!(warning.contains("éé") && warning.len() < 700, "{}", warning.len());
    }
}

#[tokio::test]
async fn operators_see_what_a_start_has_left_out_until_they_have_seen_to_it() {
    let broker = Broker::start().await;
    let path = "/api/global-parameters/imported_definitions_left_out";
    let found = async || {
        let findings = broker.get("/api/attention").await.json();
        let findings = findings.as_array().expect("a list").clone();
        let mut texts = findings.into_iter().filter(|one| one["kind"] == "definitions_left_out");
        texts.next().map(|one| one["text"].as_str().expect("a text").to_owned())
    };
    assert_eq!(found().await, None);
    broker
        .admin()
        .set_own_parameter("imported_definitions_left_out", "\"queue 'q'\"")
        .expect("set");
    assert!(found().await.is_some_and(|text| text.contains("left out: queue 'q'.")));
    let exported = broker.get("/api/definitions").await.json();
    assert_eq!(exported["global_parameters"], json!([]), "{exported}");
    assert_eq!(broker.send("DELETE", path, "").await.status, 204);
    assert_eq!(found().await, None);
}

#[tokio::test]
async fn what_imports_note_needs_no_room_that_other_parameters_leave() {
    let broker = Broker::start().await;
    let admin = broker.admin();
    // Until there is no room for a byte more.
    for len in [64 << 10, 1 << 10, 16, 1] {
        let value = "1".repeat(len);
        let is_full =
            |nth: u32| admin.set_global_parameter(&format!("{len}-{nth}"), &value).is_err();
        assert!((0..1000).any(is_full), "there is a bound");
    }
    for (name, status) in [("imported_by_command_hash_value", 201), ("other", 400)] {
        let path = format!("/api/global-parameters/{name}");
        assert_eq!(broker.send("PUT", &path, r#"{"value": "x"}"#).await.status, status, "{name}");
    }
}
