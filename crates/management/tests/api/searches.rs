//! Searching in messages: its bounds, and that a search is no reason for others to wait.

use crate::support::{Broker, follow, until};
use serde_json::{Value, json};

/// A stream or another queue with messages of these bodies.
async fn with(broker: &Broker, queue: &str, kind: &str, bodies: &[&str]) {
    let body = json!({ "durable": true, "arguments": { "x-queue-type": kind } }).to_string();
    let path = format!("/api/queues/%2F/{queue}");
    assert_eq!(broker.send("PUT", &path, &body).await.status, 201);
    for body in bodies {
        let message = json!({
            "routing_key": queue, "properties": { "headers": { "nth": 7 } }, "payload": body,
            "payload_encoding": "string",
        });
        let path = "/api/exchanges/%2F/amq.default/publish";
        assert_eq!(broker.send("POST", path, &message.to_string()).await.status, 200);
    }
}

#[tokio::test]
async fn patterns_longer_than_any_search_takes_are_refused() {
    let broker = Broker::start().await;
    with(&broker, "s", "stream", &["x"]).await;
    with(&broker, "q", "classic", &["x"]).await;
    let (most, more) = ("a".repeat(4096), "a".repeat(4097));
    for name in ["contains", "header"] {
        for path in ["q/messages", "s/messages", "s/tail"] {
            let ask = |text: &str| format!("/api/queues/%2F/{path}?seconds=0&{name}={text}");
            let ask = |text: &str| match path {
                "s/tail" => ask(text),
                _ => ask(text).replace("seconds=0&", ""),
            };
            assert_eq!(broker.get(&ask(&most)).await.status, 200, "{path} {name}");
            let refused = broker.get(&ask(&more)).await;
            let expected = json!(format!("{name} has 4097 bytes, 4096 at most"));
            assert_eq!((refused.status, refused.refusal().1), (400, expected), "{path}");
        }
        let body = json!({ "to": "origin", "dry_run": true, name: more }).to_string();
        assert_eq!(broker.send("POST", "/api/queues/%2F/q/move", &body).await.status, 400);
    }
}

#[tokio::test]
async fn a_move_that_looks_at_some_only_says_where_another_one_goes_on() {
    let broker = Broker::start().await;
    with(&broker, "from", "classic", &["a1", "b2", "a3", "b4"]).await;
    with(&broker, "to", "classic", &[]).await;
    let go = async |offset: usize| -> Value {
        let body =
            json!({ "to": { "queue": "to" }, "contains": "b", "offset": offset, "count": 1 });
        broker.send("POST", "/api/queues/%2F/from/move", &body.to_string()).await.json()
    };
    let first = go(2).await;
    assert_eq!((&first["moved"], &first["looked_at"]), (&json!(1), &json!(2)));
    assert_eq!((&first["partial"], &first["next"]), (&json!(false), &Value::Null));
    let second = go(3).await;
    assert_eq!(
        (&second["moved"], &second["looked_at"]),
        (&json!(0), &json!(0)),
        "it is behind the end"
    );
    let left = broker.get("/api/queues/%2F/from/messages").await.json();
    let left: Vec<&Value> = left["messages"].as_array().expect("a list").iter().collect();
    let payloads: Vec<&Value> = left.iter().map(|one| &one["payload"]).collect();
    assert_eq!(payloads, ["a1", "b2", "a3"]);
}

#[tokio::test]
async fn a_header_is_found_by_its_name_and_by_its_value() {
    let broker = Broker::start().await;
    with(&broker, "q", "classic", &["x"]).await;
    for (header, found) in [("nth", 1), ("nth:7", 1), ("nth:8", 0), ("7", 0), ("other", 0)] {
        let path = format!("/api/queues/%2F/q/messages?header={header}");
        let list = broker.get(&path).await.json();
        assert_eq!(list["messages"].as_array().map(Vec::len), Some(found), "{header}");
    }
}

#[tokio::test]
async fn who_follows_a_stream_gets_what_is_found_behind_much_that_is_not() {
    let broker = Broker::start().await;
    let mut bodies = vec!["x"; 150];
    bodies.push("wanted");
    with(&broker, "s", "stream", &bodies).await;
    let path = "/api/queues/%2F/s/tail?offset=first&contains=want";
    let mut tail = follow(&broker, "guest", path, &[]).await;
    let text = until(&mut tail, "wanted").await;
    assert!(text.contains("id: 150\n"), "{text}");
}
