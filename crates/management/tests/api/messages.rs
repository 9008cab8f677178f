//! Publishing and taking messages, and closing connections.

use crate::direct::Asked;
use crate::rooms;
use crate::support::{Answer, Broker, any_port};
use courser::{Config, HttpListen, Server};
use courser_client::Connection;
use serde_json::{Value, json};

async fn publish(broker: &Broker, exchange: &str, key: &str, body: Value) -> Answer {
    let mut message = json!({
        "routing_key": key, "properties": {}, "payload": "hello", "payload_encoding": "string",
    });
    for (name, value) in body.as_object().expect("an object") {
        message[name] = value.clone();
    }
    let path = format!("/api/exchanges/%2F/{exchange}/publish");
    broker.send("POST", &path, &message.to_string()).await
}

async fn get(broker: &Broker, mode: &str, more: Value) -> Value {
    let mut body = json!({ "count": "9", "ackmode": mode, "encoding": "auto", "queue": "q" });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    let answer = broker.send("POST", "/api/queues/%2F/q/get", &body.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn with_queue(arguments: Value) -> Broker {
    let broker = Broker::start().await;
    let body = json!({ "durable": true, "arguments": arguments }).to_string();
    assert_eq!(broker.send("PUT", "/api/queues/%2F/q", &body).await.status, 201);
    broker
}

#[tokio::test]
async fn a_message_is_published_and_taken_with_its_properties() {
    let broker = with_queue(json!({})).await;
    let properties = json!({
        "delivery_mode": 2, "content_type": "text/plain", "priority": "3", "type": "greeting",
        "headers": { "a": 1, "b": ["x"] },
    });
    // The default exchange has an empty segment, or its other name.
    for exchange in ["", "amq.default"] {
        let answer = publish(&broker, exchange, "q", json!({ "properties": properties })).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "routed": true })));
    }
    let taken = get(&broker, "ack_requeue_false", json!({})).await;
    let expected = json!({
        "payload_bytes": 5, "redelivered": false, "exchange": "", "routing_key": "q",
        "message_count": 1, "payload": "hello", "payload_encoding": "string",
        "properties": {
            "delivery_mode": 2, "content_type": "text/plain", "priority": 3, "type": "greeting",
            "headers": { "a": 1, "b": ["x"] },
        },
    });
    assert_eq!(taken[0], expected);
    assert_eq!((taken.as_array().map(Vec::len), &taken[1]["message_count"]), (Some(2), &json!(0)));
    assert_eq!(get(&broker, "ack_requeue_false", json!({})).await, json!([]));
}

#[tokio::test]
async fn a_message_that_is_put_back_is_there_again() {
    let broker = with_queue(json!({})).await;
    publish(&broker, "", "q", json!({ "payload": "/w==", "payload_encoding": "base64" })).await;
    let first = get(&broker, "ack_requeue_true", json!({})).await;
    assert_eq!((&first[0]["payload"], &first[0]["redelivered"]), (&json!("/w=="), &json!(false)));
    assert_eq!(first[0]["payload_encoding"], "base64");
    assert_eq!(first[0]["properties"], json!([]));
    let again = get(&broker, "reject_requeue_false", json!({})).await;
    assert_eq!(again[0]["redelivered"], true);
    assert_eq!(get(&broker, "ack_requeue_false", json!({})).await, json!([]));
}

#[tokio::test]
async fn only_a_message_that_is_rejected_comes_closer_to_its_delivery_limit() {
    let broker = with_queue(json!({ "x-delivery-limit": 1 })).await;
    publish(&broker, "", "q", json!({})).await;
    let mut found = Vec::new();
    for mode in ["ack_requeue_true", "ack_requeue_true", "reject_requeue_true"].repeat(3) {
        found.push(get(&broker, mode, json!({})).await.as_array().map_or(0, Vec::len));
    }
    assert_eq!(found, [1, 1, 1, 1, 1, 1, 0, 0, 0]);
}

#[tokio::test]
async fn payloads_can_be_cut_off() {
    let broker = with_queue(json!({})).await;
    publish(&broker, "", "q", json!({})).await;
    let cut = get(&broker, "ack_requeue_true", json!({ "truncate": 2 })).await;
    assert_eq!((&cut[0]["payload"], &cut[0]["payload_bytes"]), (&json!("he"), &json!(5)));
}

#[tokio::test]
async fn a_message_for_no_queue_is_not_routed_and_a_refused_one_is_an_error() {
    let broker = with_queue(json!({ "x-max-length": 1, "x-overflow": "reject-publish" })).await;
    let answer = publish(&broker, "amq.direct", "unbound", json!({})).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "routed": false })));
    assert_eq!(publish(&broker, "", "q", json!({})).await.status, 200);
    let full = publish(&broker, "", "q", json!({})).await;
    let reason = json!("rejected Unable to publish message. Check queue limits.");
    assert_eq!((full.status, full.refusal().1), (400, reason));
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_said() {
    let broker = with_queue(json!({})).await;
    for (body, reason) in [
        (json!({ "properties": { "priority": "high" } }), json!(["not_int", "priority"])),
        (json!({ "properties": { "content_type": 1 } }), json!(["not_string", "content_type"])),
        (json!({ "payload_encoding": "zz" }), json!(["unsupported_encoding", "zz"])),
        (json!({ "payload": "!", "payload_encoding": "base64" }), json!(["not_base64", "!"])),
    ] {
        let answer = publish(&broker, "amq.direct", "q", body.clone()).await;
        assert_eq!((answer.status, answer.refusal().1), (400, reason), "{body}");
    }
    let missing = broker.send("POST", "/api/exchanges/%2F/amq.direct/publish", "{}").await;
    let reason = "[{key_missing,routing_key},{key_missing,properties},{key_missing,payload},{key_missing,payload_encoding}]";
    assert_eq!((missing.status, missing.refusal().1), (400, json!(reason)));
    let nowhere = publish(&broker, "none", "q", json!({})).await;
    assert_eq!((nowhere.status, nowhere.refusal().1), (404, json!("exchange_not_found")));
    let old = r#"{"count":1,"requeue":true,"encoding":"auto"}"#;
    let old = broker.send("POST", "/api/queues/%2F/q/get", old).await;
    assert_eq!((old.status, old.refusal().1), (400, json!("[{key_missing,ackmode}]")));
    let body = r#"{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}"#;
    let none = broker.send("POST", "/api/queues/%2F/none/get", body).await;
    assert_eq!((none.status, none.refusal().1), (404, json!("queue_not_found")));
}

#[tokio::test]
async fn a_purged_queue_is_empty() {
    let broker = with_queue(json!({})).await;
    publish(&broker, "", "q", json!({})).await;
    for mistyped in ["if-empty=1", "if_empty=true", "ifempty", "if-unused=yes"] {
        let kept = broker.send("DELETE", &format!("/api/queues/%2F/q?{mistyped}"), "").await;
        assert_eq!(kept.status, 400, "{mistyped}: {kept:?}");
    }
    let kept = broker.send("DELETE", "/api/queues/%2F/q?if-empty=true", "").await;
    assert_eq!((kept.status, kept.refusal().1), (400, json!("queue 'q' in vhost '/' not empty")));
    assert_eq!(broker.send("DELETE", "/api/queues/%2F/q/contents", "").await.status, 204);
    assert_eq!(broker.get("/api/queues/%2F/q").await.json()["messages"], 0);
}

#[tokio::test]
async fn a_publisher_over_http_leaves_no_connection_behind() {
    let broker = with_queue(json!({})).await;
    publish(&broker, "", "q", json!({})).await;
    assert_eq!(broker.get("/api/connections").await.json(), json!([]));
}

#[tokio::test]
async fn a_closed_connection_hears_the_reason() {
    let broker = Broker::start().await;
    broker.add_user("other", "management", &["/"]);
    let uri = format!("amqp://guest:guest@{}/", broker.server.addresses()[0]);
    let client = Connection::open(&uri).await.expect("a client");
    let name = broker.get("/api/connections").await.json()[0]["name"].clone();
    let name = name.as_str().expect("a name").replace(' ', "%20").replace('>', "%3E");
    let path = format!("/api/connections/{name}");
    assert_eq!(broker.call("DELETE", &path, Some("other"), "").await.status, 401);
    let headers = [("x-reason", "spring cleaning")];
    let answer = broker.call_with("DELETE", &path, Some("guest:guest"), &headers, b"").await;
    assert_eq!(answer.status, 204);
    let error = loop {
        match client.open_channel().await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.reply_code(), Some(320), "{error}");
    assert!(error.to_string().contains("spring cleaning"), "{error}");
}

#[tokio::test]
async fn messages_are_counted_and_rates_are_made_for_who_asks_twice() {
    let broker = with_queue(json!({})).await;
    let never = broker.get("/api/queues/%2F/q").await.json();
    assert!(never.get("message_stats").is_none(), "{never}");
    publish(&broker, "amq.fanout", "", json!({})).await;
    publish(&broker, "", "q", json!({})).await;
    let before = broker.get("/api/queues/%2F/q").await.json();
    let stats = &before["message_stats"];
    assert_eq!((&stats["publish"], &stats["publish_details"]["rate"]), (&json!(1), &json!(0.0)));
    assert!(stats.get("deliver_get").is_none(), "nothing was delivered: {stats}");
    get(&broker, "ack_requeue_false", json!({})).await;
    // Samples are a second apart at least.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    publish(&broker, "", "q", json!({})).await;
    let after = broker.get("/api/queues/%2F/q?msg_rates_age=10&msg_rates_incr=5").await.json();
    let publish = &after["message_stats"]["publish_details"];
    assert!(publish["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{after}");
    assert_eq!(publish["samples"].as_array().map(Vec::len), Some(3), "{after}");
    let overview = broker.get("/api/overview").await.json();
    let stats = &overview["message_stats"];
    assert_eq!((&stats["publish"], &stats["drop_unroutable"]), (&json!(3), &json!(0)));
    assert_eq!(stats["return_unroutable"], 1);
    let exchange = broker.get("/api/exchanges/%2F/amq.fanout").await.json();
    let expected = (&json!(1), &json!(0));
    let stats = &exchange["message_stats"];
    assert_eq!((&stats["publish_in"], &stats["publish_out"]), expected);
    let bad = broker.get("/api/queues?msg_rates_age=60000&msg_rates_incr=1").await;
    assert_eq!(
        (bad.status, bad.refusal().1),
        (400, json!("Invalid range parameters: age 60000, incr 1"))
    );
}

#[tokio::test]
async fn a_payload_larger_than_the_share_of_its_user_is_downloaded() {
    const BYTES: usize = 70 << 20;
    let direct = rooms::world(&["user"]);
    rooms::publish(&direct, 1, BYTES).await;
    let path = "/api/queues/%2F/q/messages/0";
    let answer = direct.ask(Asked::new("GET", path).by("user")).await;
    assert_eq!((answer.status, answer.body.len()), (200, BYTES));
}

#[tokio::test]
async fn a_message_is_no_larger_than_one_of_a_client_may_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = Config { data_dir: folder.path().join("data"), ..Config::default() };
    config.listen = vec![any_port()];
    config.management.listen = HttpListen::At(vec![any_port()]);
    config.metrics.listen = HttpListen::none();
    config.amqp.max_message_bytes = 65_536;
    let broker = Broker::of(Server::start(config).await.expect("a broker"), folder);
    assert_eq!(broker.send("PUT", "/api/queues/%2F/q", "{}").await.status, 201);
    for (bytes, status) in [(65_536, 200), (65_537, 400)] {
        let body = json!({ "payload": "x".repeat(bytes) });
        let answer = publish(&broker, "", "q", body).await;
        assert_eq!(answer.status, status, "{bytes}: {answer:?}");
        if status == 400 {
            let reason = "message size 65537 is larger than configured max size 65536";
            let (_, told) = answer.refusal();
            assert!(told.as_str().is_some_and(|told| told.ends_with(reason)), "{told}");
        }
    }
    assert_eq!(broker.admin().queue("/", b"q").expect("a queue").ready, 1);
}
