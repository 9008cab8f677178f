//! What an import of what a broker has exported itself leaves as it is, there or in a new one.

use crate::direct::{Asked, Direct};
use crate::support::Answer;
use courser_broker::admin::{NewBinding, NewQueue, PolicyKind};
use courser_broker::{ApplyTo, Policy};
use courser_codec::FieldTable;
use serde_json::{Value, json};

const MESSAGES: usize = 50;

/// With a user who may do everything.
fn broker() -> Direct {
    let direct = Direct::new();
    direct.add_user("boss", "administrator");
    let everything = courser_auth::Permission::all();
    direct.broker.admin().set_permission("boss", "/", everything).expect("a permission");
    direct
}

async fn ask(direct: &Direct, method: &str, path: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let asked = Asked { headers: &headers, body: &body, ..Asked::new(method, path) };
    direct.ask(asked.by("boss")).await
}

async fn export(direct: &Direct) -> Value {
    ask(direct, "GET", "/api/definitions", &Value::Null).await.json()
}

async fn import(direct: &Direct, document: &Value) {
    let answer = ask(direct, "POST", "/api/definitions", document).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

async fn plan(direct: &Direct, document: &Value) -> Value {
    ask(direct, "POST", "/api/definitions?dry_run=true", document).await.json()
}

fn policy(name: &str, most: i64, priority: i64) -> Policy {
    Policy {
        name: name.to_owned(),
        pattern: "^q".to_owned(),
        apply_to: ApplyTo::Queues,
        priority,
        definition: FieldTable::new().with("max-length", most),
    }
}

fn declare(direct: &Direct, vhost: &str, name: &str, arguments: FieldTable) {
    let queue = NewQueue { durable: true, arguments, ..NewQueue::default() };
    direct.broker.admin().declare_queue(vhost, name, queue).expect("a queue");
}

/// A queue with messages.
async fn fill(direct: &Direct) {
    declare(direct, "/", "q", FieldTable::new());
    let message = json!({
        "routing_key": "q", "properties": {}, "payload": "x", "payload_encoding": "string",
    });
    for _ in 0..MESSAGES {
        let published =
            ask(direct, "POST", "/api/exchanges/%2F/amq.default/publish", &message).await;
        assert_eq!(published.json()["routed"], true);
    }
}

fn messages(direct: &Direct) -> usize {
    direct.broker.admin().queue("/", b"q").expect("a queue").ready
}

#[tokio::test]
async fn no_queue_drops_what_other_policies_of_the_file_keep() {
    let row = |name: &str, most: usize, priority: i64| {
        json!({
            "vhost": "/", "name": name, "pattern": "^q", "apply-to": "queues", "priority": priority,
            "definition": { "max-length": most },
        })
    };
    let operator = |name: &str, most: usize, priority: i64| json!({ "vhost": "/", "component": "operator_policy", "name": name, "value": row(name, most, priority) });
    let all = [
        json!({ "policies": [row("a", 10, 0), row("b", MESSAGES, 5)] }),
        json!({ "parameters": [operator("a", 10, 0), operator("b", MESSAGES, 5)] }),
    ];
    for document in all {
        let direct = broker();
        fill(&direct).await;
        import(&direct, &document).await;
        assert_eq!(messages(&direct), MESSAGES, "{document}");
        // Each of them is another one now, and none counts before both are.
        for (list, value) in [("policies", ""), ("parameters", "/value")] {
            let Some(rows) = document[list].as_array() else { continue };
            let mut rows = rows.clone();
            for (row, priority) in rows.iter_mut().zip([-5, -3]) {
                row.pointer_mut(value).expect("it is there")["priority"] = priority.into();
            }
            rows.reverse();
            import(&direct, &json!({ list: rows })).await;
            assert_eq!(messages(&direct), MESSAGES, "{list}");
        }
    }
}

#[tokio::test]
async fn policies_that_are_refused_together_are_told_by_the_row() {
    let direct = broker();
    // Each of them has room, and both have not.
    let large = "(?=x)".to_owned() + &"x".repeat(4000);
    let rows: Vec<Value> = (0..21)
        .map(|nth| json!({ "vhost": "/", "name": format!("p{nth}"), "pattern": large, "definition": { "max-length": 5 } }))
        .collect();
    let answer = ask(&direct, "POST", "/api/definitions", &json!({ "policies": rows })).await;
    assert_eq!(answer.status, 400);
    let reason = answer.refusal().1;
    assert!(reason.as_str().is_some_and(|text| text.starts_with("policy 'p20'")), "{reason}");
    let there = direct.broker.admin().policies("/", PolicyKind::User).expect("the vhost");
    assert_eq!(there.len(), 20);
}

#[tokio::test]
async fn policies_of_the_configuration_are_in_no_export() {
    let direct = broker();
    let admin = direct.broker.admin();
    let kinds = [PolicyKind::User, PolicyKind::Operator];
    let configured = kinds.map(|kind| (String::from("/"), kind, policy("p", 2, 0)));
    direct.broker.configure_policies(configured.to_vec()).expect("good policies");
    admin.set_policy("/", PolicyKind::User, policy("p", 1000, 10)).expect("a good policy");
    let own = export(&direct).await;
    assert_eq!(own["policies"].as_array().map(Vec::len), Some(1), "{own}");
    assert_eq!(own["policies"][0]["definition"]["max-length"], 1000);
    assert_eq!(own["parameters"], json!([]));
    import(&direct, &own).await;
    direct.broker.configure_policies(Vec::new()).expect("none");
    let left = kinds.map(|kind| admin.policies("/", kind).expect("the vhost"));
    assert_eq!(left, [vec![policy("p", 1000, 10)], vec![]]);
}

#[tokio::test]
async fn classic_queues_stay_classic_where_their_vhost_has_another_type_by_now() {
    let first = broker();
    first.broker.admin().change_vhost("v", |_| ()).expect("a vhost");
    declare(&first, "v", "logs", FieldTable::new());
    declare(&first, "v", "jobs", FieldTable::new().with("x-max-priority", 5));
    let change = |vhost: &mut courser_broker::VhostSettings| {
        vhost.default_queue_type = Some("quorum".to_owned());
    };
    first.broker.admin().change_vhost("v", change).expect("changed");
    declare(&first, "v", "new", FieldTable::new());
    let own = export(&first).await;
    let planned = plan(&first, &own).await;
    let counts = ["create_count", "change_count", "keep_count", "refuse_count"];
    for count in counts {
        assert_eq!(planned[count], 0, "{count}: {planned}");
    }

    let second = broker();
    let planned = plan(&second, &own).await;
    assert_eq!(planned["refuse_count"], 0, "{planned}");
    import(&second, &own).await;
    for (name, kind) in [("logs", "classic"), ("jobs", "classic"), ("new", "quorum")] {
        let queue = second.broker.admin().queue("v", name.as_bytes()).expect("a queue");
        assert_eq!(queue.queue_type, kind, "{name}");
    }
    let planned = plan(&second, &own).await;
    for count in counts {
        assert_eq!(planned[count], 0, "{count}: {planned}");
    }
}

#[tokio::test]
async fn a_dry_run_says_that_a_queue_of_another_type_stays_as_it_is() {
    let direct = broker();
    declare(&direct, "/", "q", FieldTable::new());
    let row = json!({
        "name": "q", "vhost": "/", "durable": true, "arguments": { "x-queue-type": "quorum" },
    });
    let said_twice = json!({
        "name": "q", "vhost": "/", "durable": true, "type": "classic",
        "arguments": { "x-queue-type": "quorum" },
    });
    for row in [row, said_twice] {
        let planned = plan(&direct, &json!({ "queues": [row] })).await;
        assert_eq!(planned["keep"][0]["before"], json!({ "type": "classic" }), "{planned}");
        assert_eq!(planned["keep"][0]["after"], json!({ "type": "quorum" }), "{planned}");
    }
}

#[tokio::test]
async fn no_binding_is_made_twice_whose_numbers_are_shorter_than_json_has_them() {
    let direct = broker();
    let admin = direct.broker.admin();
    for name in ["q", "other"] {
        declare(&direct, "/", name, FieldTable::new());
    }
    let binding = |queue: &str, region: i32| NewBinding {
        source: "amq.headers".try_into().expect("short"),
        destination: queue.try_into().expect("short"),
        to_queue: true,
        routing_key: "".try_into().expect("short"),
        arguments: FieldTable::new()
            .with("x-match", "all")
            .with("region", region)
            .with("weight", 0.1_f32),
    };
    for (queue, region) in [("q", 5), ("q", 6), ("other", 5)] {
        admin.bind("/", binding(queue, region)).expect("bound");
    }
    let mut own = export(&direct).await;
    let rows = own["bindings"].as_array_mut().expect("a list");
    assert_eq!(rows.len(), 3);
    // One that is really new.
    let mut new = rows[0].clone();
    new["arguments"]["region"] = json!(7);
    rows.push(new);
    import(&direct, &own).await;
    import(&direct, &own).await;
    assert_eq!(export(&direct).await["bindings"].as_array().map(Vec::len), Some(4));
    admin.unbind("/", binding("q", 5)).expect("unbound");
    let left = export(&direct).await["bindings"].to_string();
    assert_eq!(left.matches("\"region\":5").count(), 1, "{left}");
}
