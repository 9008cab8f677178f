//! What an import of what a broker has exported itself leaves as it is, there or in a new one.

use crate::direct::{Asked, Direct};
use crate::support::Answer;
use courser_broker::admin::{NewQueue, PolicyKind};
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
