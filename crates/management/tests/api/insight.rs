//! Looking into queues and asking what would happen.

use crate::direct::{Asked, Direct, OF_TOKEN};
use crate::support::{Answer, Broker, PATIENCE};
use courser_auth::Permission;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

async fn publish(broker: &Broker, key: &str, payload: &str, headers: Value) {
    let message = json!({
        "routing_key": key, "properties": { "headers": headers }, "payload": payload,
        "payload_encoding": "string",
    });
    let answer = broker.send("POST", "/api/exchanges/%2F//publish", &message.to_string()).await;
    assert_eq!(answer.json(), json!({ "routed": true }));
}

async fn with_orders() -> Broker {
    let broker = Broker::start().await;
    for queue in ["q", "to"] {
        let path = format!("/api/queues/%2F/{queue}");
        assert_eq!(broker.send("PUT", &path, "{}").await.status, 201);
    }
    for nth in 0..5 {
        let color = if nth % 2 == 0 { "red" } else { "blue" };
        publish(&broker, "q", &format!("order {nth}"), json!({ "color": color, "nth": nth })).await;
    }
    broker
}

async fn post(broker: &Broker, path: &str, body: Value) -> Answer {
    broker.send("POST", path, &body.to_string()).await
}

fn payloads(answer: &Value) -> Vec<&str> {
    let messages = answer["messages"].as_array().expect("messages");
    messages.iter().map(|one| one["payload"].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn messages_are_looked_at_and_searched_without_a_change() {
    let broker = with_orders().await;
    let messages = "/api/queues/%2F/q/messages";
    for (query, expected, next) in [
        ("", vec!["order 0", "order 1", "order 2", "order 3", "order 4"], Value::Null),
        ("?offset=1&count=2", vec!["order 1", "order 2"], json!(3)),
        ("?contains=3", vec!["order 3"], Value::Null),
        ("?header=color:blue", vec!["order 1", "order 3"], Value::Null),
        ("?header=nth:4", vec!["order 4"], Value::Null),
        ("?header=none", vec![], Value::Null),
        ("?header=color:red&count=1", vec!["order 0"], json!(1)),
        ("?count=1&truncate=2", vec!["or"], json!(1)),
    ] {
        let answer = broker.get(&format!("{messages}{query}")).await.json();
        assert_eq!((payloads(&answer), &answer["next"]), (expected, &next), "{query}");
    }
    let first = &broker.get(messages).await.json()["messages"][0];
    assert_eq!((&first["redelivered"], &first["offset"]), (&json!(false), &json!(0)));
    let number = first["number"].as_str().expect("a number");
    let file = broker.get(&format!("{messages}/0?number={number}")).await;
    assert_eq!((file.body.as_slice(), file.status), (&b"order 0"[..], 200));
    assert!(file.headers["content-disposition"].starts_with("attachment; "));
    for gone in ["/0?number=12345", "/99", "/x"] {
        assert_eq!(broker.get(&format!("{messages}{gone}")).await.status, 404, "{gone}");
    }
    let stats = broker.get("/api/queues/%2F/q").await.json();
    assert_eq!(
        (&stats["messages_ready"], &stats["message_stats"]["get"]),
        (&json!(5), &Value::Null)
    );
}

#[tokio::test]
async fn who_may_not_read_a_queue_sees_none_of_its_messages() {
    let broker = with_orders().await;
    broker.add_user("small", "management", &[]);
    let permission =
        Permission { configure: String::new(), write: ".*".into(), read: "^other".into() };
    broker.admin().set_permission("small", "/", permission).expect("a permission");
    for of_queue in ["messages", "messages/0", "unacked", "diagnosis", "tail"] {
        let path = format!("/api/queues/%2F/q/{of_queue}");
        let answer = broker.call("GET", &path, Some("small"), "").await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer
                .refusal()
                .1
                .as_str()
                .is_some_and(|text| text.contains("read access to queue 'q'"))
        );
    }
    let body = json!({ "to": { "queue": "to" } }).to_string();
    assert_eq!(
        broker.call("POST", "/api/queues/%2F/q/move", Some("small"), &body).await.status,
        401
    );
}

#[tokio::test]
async fn messages_are_moved_as_the_body_says() {
    let broker = with_orders().await;
    let path = "/api/queues/%2F/q/move";
    let to = json!({ "queue": "to" });
    let trial = json!({ "to": to, "header": "color:red", "dry_run": true });
    assert_eq!(post(&broker, path, trial).await.json()["moved"], 3);
    let moved = post(&broker, path, json!({ "to": to, "header": "color:red", "count": 2 })).await;
    assert_eq!(moved.json()["moved"], 2);
    let left = broker.get("/api/queues/%2F/q/messages").await.json();
    assert_eq!(payloads(&left), ["order 1", "order 3", "order 4"]);
    let number = &left["messages"][1]["number"];
    let by_number = json!({ "to": { "exchange": "", "routing_key": "to" }, "numbers": [number] });
    assert_eq!(post(&broker, path, by_number).await.json()["moved"], 1);
    let there = broker.get("/api/queues/%2F/to/messages").await.json();
    assert_eq!(payloads(&there), ["order 0", "order 2", "order 3"]);
    let nowhere = post(&broker, path, json!({ "to": "origin" })).await.json();
    assert_eq!((&nowhere["moved"], &nowhere["without_place"]), (&json!(0), &json!(2)));
    for (body, status) in [
        (json!({}), 400),
        (json!({ "to": "somewhere" }), 400),
        (json!({ "to": { "queue": "to", "exchange": "" } }), 400),
        (json!({ "to": to, "numbers": "all" }), 400),
        (json!({ "to": { "queue": "none" } }), 404),
        (json!({ "to": { "queue": "q" } }), 400),
    ] {
        assert_eq!(post(&broker, path, body.clone()).await.status, status, "{body}");
    }
    let purged = broker.send("DELETE", "/api/queues/%2F/to/contents?count=2", "").await;
    assert_eq!(purged.json(), json!({ "purged": 2 }));
}

#[tokio::test]
async fn what_a_request_does_not_know_is_refused_before_anything_is_done() {
    let broker = with_orders().await;
    let queue = "/api/queues/%2F/q";
    let trial = json!({ "to": { "queue": "to" }, "dryrun": true });
    let refused = post(&broker, &format!("{queue}/move"), trial).await;
    assert_eq!(refused.status, 400);
    let text = "there is no member 'dryrun' here, only to, numbers, count, contains, header, offset, dry_run";
    assert_eq!(refused.refusal().1, text);
    for (method, path) in [
        ("DELETE", "contents?contains=order"),
        ("DELETE", "contents?cont=1"),
        ("DELETE", "contents?count=1&contains=order"),
        ("GET", "messages?cont=order"),
    ] {
        let refused = broker.send(method, &format!("{queue}/{path}"), "").await;
        assert_eq!(refused.status, 400, "{path}");
    }
    let route = post(&broker, "/api/exchanges/%2F/amq.topic/route", json!({ "routingkey": "a" }));
    assert_eq!(route.await.status, 400);
    assert_eq!(payloads(&broker.get(&format!("{queue}/messages?_=1")).await.json()).len(), 5);
    let purged = broker.send("DELETE", &format!("{queue}/contents?count=1&_=1"), "").await;
    assert_eq!(purged.json(), json!({ "purged": 1 }));
}

#[tokio::test]
async fn a_route_is_told_step_by_step() {
    let broker = with_orders().await;
    let path = "/api/exchanges/%2F/amq.topic/route";
    let bind = json!({ "routing_key": "order.*" });
    assert_eq!(post(&broker, "/api/bindings/%2F/e/amq.topic/q/q", bind).await.status, 201);
    let told = post(&broker, path, json!({ "routing_key": "order.new" })).await.json();
    assert_eq!((&told["routed"], &told["queues"][0]["name"]), (&json!(true), &json!("q")));
    let step = &told["steps"][0];
    assert_eq!(step["bindings"][0]["routing_key"], "order.*");
    assert_eq!(step["text"], "The topic exchange 'amq.topic' sends it to one destination");
    let told = post(&broker, path, json!({ "routing_key": "none" })).await.json();
    assert_eq!(told["routed"], false);
    let text = "The topic exchange 'amq.topic' has no destination for it: dropped here";
    assert_eq!(told["steps"][0]["text"], text);
    assert_eq!(post(&broker, "/api/exchanges/%2F/none/route", json!({})).await.status, 404);
}

#[tokio::test]
async fn a_question_is_no_larger_than_what_it_asks_about() {
    let broker = with_orders().await;
    let route = "/api/exchanges/%2F/amq.topic/route";
    let keys = |count: usize| json!({ "properties": { "headers": { "CC": vec!["k"; count] } } });
    let header = |bytes: usize| json!({ "properties": { "headers": { "h": "x".repeat(bytes) } } });
    let access = |bytes: usize| {
        let name = "x".repeat(bytes);
        json!({ "vhost": "/", "right": "read", "resource": "queue", "name": name })
    };
    for (path, body, status) in [
        (route, keys(100), 200),
        (route, keys(101), 400),
        (route, header(127 << 10), 200),
        (route, header(128 << 10), 400),
        ("/api/access/check", access(7 << 10), 200),
        ("/api/access/check", access(8 << 10), 400),
    ] {
        assert_eq!(post(&broker, path, body).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_queue_says_why_it_stands_still() {
    let broker = with_orders().await;
    let found = broker.get("/api/queues/%2F/q/diagnosis").await.json();
    assert_eq!(
        (&found[0]["kind"], found.as_array().map(Vec::len)),
        (&json!("no_consumer"), Some(1))
    );
    assert_eq!(broker.get("/api/queues/%2F/to/diagnosis").await.json(), json!([]));
    let attention = broker.get("/api/attention").await.json();
    let about = json!({ "vhost": "/", "queue": "q" });
    assert!(attention.as_array().expect("a list").iter().any(|one| one["object"] == about));
    let full = json!({ "arguments": { "x-max-length": 1, "x-overflow": "reject-publish" } });
    broker.send("PUT", "/api/queues/%2F/full", &full.to_string()).await;
    publish(&broker, "full", "x", json!({})).await;
    let found = broker.get("/api/queues/%2F/full/diagnosis").await.json();
    assert_eq!(found[0]["kind"], "full");
}

/// Gives the segments of the log another ending.
fn rename_log(folder: &Path, from: &str, to: &str) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rename_log(&path, from, to);
        } else if path.extension().is_some_and(|ending| ending == from) {
            std::fs::rename(&path, path.with_extension(to)).expect("renamed");
        }
    }
}

#[tokio::test]
async fn a_queue_that_can_not_read_says_so_until_it_can() {
    let broker = Broker::start().await;
    let queue = "/api/queues/%2F/q";
    broker.send("PUT", queue, r#"{"durable":true}"#).await;
    let lasting = json!({
        "routing_key": "q", "properties": { "delivery_mode": 2 }, "payload": "x",
        "payload_encoding": "string",
    });
    assert_eq!(post(&broker, "/api/exchanges/%2F//publish", lasting).await.status, 200);
    // Answered when it is on the disk, and so is what came before it.
    broker.send("PUT", "/api/queues/%2F/other", r#"{"durable":true}"#).await;
    rename_log(broker.folder.path(), "log", "gone");
    let get = json!({ "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto" });
    assert_eq!(post(&broker, &format!("{queue}/get"), get.clone()).await.status, 500);
    assert_eq!(broker.get(queue).await.json()["messages_ready"], 1);
    let about = json!({ "vhost": "/", "queue": "q" });
    let attention = broker.get("/api/attention").await.json();
    let first = &attention[0];
    assert_eq!((&first["kind"], &first["object"]), (&json!("unread"), &about), "{attention}");
    assert!(first["since_ms"].is_u64(), "{first}");
    let diagnosis = broker.get(&format!("{queue}/diagnosis")).await.json();
    assert_eq!(diagnosis[0]["kind"], "unread", "{diagnosis}");
    rename_log(broker.folder.path(), "gone", "log");
    let begun = std::time::Instant::now();
    while broker.get("/api/attention").await.json()[0]["kind"] == "unread" {
        assert!(begun.elapsed() < 2 * PATIENCE, "it can be read, and is not");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let got = post(&broker, &format!("{queue}/get"), get).await.json();
    assert_eq!(got[0]["payload"], "x", "{got}");
}

#[tokio::test]
async fn that_nothing_due_is_done_is_said_until_it_is() {
    let direct = Direct::new();
    direct.add_user("root", "administrator");
    let broker = &direct.broker;
    let asked = || direct.ask(Asked::new("GET", "/api/attention").by("root"));
    assert_eq!(asked().await.json(), json!([]));
    broker.note_unserved(Some(1234));
    let attention = asked().await.json();
    let first = &attention[0];
    let told = (&first["kind"], &first["severity"], &first["since_ms"]);
    assert_eq!(told, (&json!("timers_unserved"), &json!("critical"), &json!(1234)), "{attention}");
    broker.note_unserved(None);
    assert_eq!(asked().await.json(), json!([]));
}

/// Has the disk change a byte of a message, wherever it is.
fn damage(folder: &Path, payload: &str) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            damage(&path, payload);
        } else if path.extension().is_some_and(|ending| ending == "log") {
            let bytes = std::fs::read(&path).expect("a file");
            let found = bytes.windows(payload.len()).position(|part| part == payload.as_bytes());
            if let Some(at) = found {
                let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
                file.write_all_at(b"#", at as u64).expect("written");
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_message_is_passed_and_those_behind_it_are_listed_once() {
    let broker = Broker::start().await;
    let queue = "/api/queues/%2F/q";
    broker.send("PUT", queue, r#"{"durable":true}"#).await;
    for payload in ["the first", "a damaged one", "the last"] {
        let message = json!({
            "routing_key": "q", "properties": { "delivery_mode": 2 }, "payload": payload,
            "payload_encoding": "string",
        });
        assert_eq!(post(&broker, "/api/exchanges/%2F//publish", message).await.status, 200);
    }
    // Answered when it is on the disk, and so is what came before it.
    broker.send("PUT", "/api/queues/%2F/other", r#"{"durable":true}"#).await;
    damage(broker.folder.path(), "a damaged one");
    let all = broker.get(&format!("{queue}/messages")).await.json();
    assert_eq!(payloads(&all), ["the first", "the last"], "{all}");
    assert_eq!(all["messages"][1]["offset"], 2);
    assert_eq!((&all["looked_at"], &all["next"]), (&json!(3), &Value::Null));
    let one = broker.get(&format!("{queue}/messages?offset=1&count=1")).await.json();
    assert_eq!((payloads(&one), &one["next"]), (vec!["the last"], &json!(3)), "{one}");
    assert_eq!(broker.get(&format!("{queue}/messages/1")).await.status, 404);
    let found = broker.get(&format!("{queue}/messages?contains=last")).await.json();
    assert_eq!(payloads(&found), ["the last"], "{found}");
}

#[tokio::test]
async fn what_a_token_permits_is_told_by_the_token_and_not_by_an_account_of_its_name() {
    let direct = Direct::new();
    let cookie = direct.log_in(OF_TOKEN).await;
    direct.add_user(OF_TOKEN, "management");
    let headers = [("cookie", cookie.as_str()), ("x-courser-csrf", "1")];
    let body = json!({ "vhost": "/", "right": "read", "resource": "queue", "name": "q" });
    let body = body.to_string();
    let asked = Asked { body: &body, ..Asked::new("POST", "/api/access/check") };
    let answer = direct.ask(Asked { headers: &headers, ..asked }).await.json();
    assert_eq!(answer["allowed"], true, "{answer}");
    let answer = direct.ask(asked.by(OF_TOKEN)).await.json();
    assert_eq!(answer["allowed"], false, "the account has no permissions: {answer}");
}

#[tokio::test]
async fn policies_and_permissions_are_tried_out() {
    let broker = with_orders().await;
    let policy = json!({ "pattern": "^q$", "definition": { "max-length": 3 }, "name": "short" });
    let preview = post(&broker, "/api/policy-preview/%2F", policy).await.json();
    assert_eq!((&preview["matching_queues"], &preview["changed_queues"]), (&json!(1), &json!(1)));
    let queue = &preview["queues"][0];
    assert_eq!((&queue["policy_before"], &queue["policy_after"]), (&Value::Null, &json!("short")));
    assert_eq!(queue["after"]["x-max-length"], 3);
    let wrong = json!({ "pattern": "(", "definition": { "max-length": 3 } });
    assert_eq!(post(&broker, "/api/policy-preview/%2F", wrong).await.status, 400);

    broker.add_user("small", "management", &[]);
    let permission =
        Permission { configure: String::new(), write: "^to".into(), read: ".*".into() };
    broker.admin().set_permission("small", "/", permission).expect("a permission");
    for (user, vhost, right, name, allowed) in [
        ("small", "/", "write", "to", true),
        ("small", "/", "write", "q", false),
        ("small", "none", "read", "q", false),
        ("stranger", "/", "read", "q", false),
    ] {
        let body = json!({ "user": user, "vhost": vhost, "right": right, "resource": "queue", "name": name });
        let answer = post(&broker, "/api/access/check", body.clone()).await.json();
        assert_eq!(answer["allowed"], allowed, "{body}: {answer}");
        assert!(answer["because"].is_string());
    }
    let others =
        json!({ "user": "guest", "vhost": "/", "right": "read", "resource": "queue", "name": "q" });
    let answer = broker.call("POST", "/api/access/check", Some("small"), &others.to_string()).await;
    assert_eq!(answer.status, 401, "only an administrator asks for others");
}

#[tokio::test]
async fn what_is_due_and_not_done_is_told_until_it_is() {
    let direct = Direct::new();
    direct.add_user("root", "administrator");
    let told = || async {
        let attention = direct.ask(Asked::new("GET", "/api/attention").by("root")).await.json();
        let all = attention.as_array().expect("a list").iter();
        let unserved = all.filter(|one| one["kind"] == "timers_unserved");
        unserved.map(|one| (one["severity"].clone(), one["since_ms"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(told().await, []);
    direct.broker.note_unserved(Some(1_700_000_000_000));
    assert_eq!(told().await, [(json!("critical"), json!(1_700_000_000_000_u64))]);
    direct.broker.note_unserved(None);
    assert_eq!(told().await, []);
}
