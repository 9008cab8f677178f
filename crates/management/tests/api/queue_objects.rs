//! Queues that are shown, with the members that tools rely on.

use crate::objects::has;
use crate::support::Broker;
use courser_broker::admin::{ApplyTo, NewQueue, Policy, PolicyKind};
use courser_client::{Connection, ConsumeOptions, QueueOptions};
use courser_codec::FieldTable;
use serde_json::{Value, json};

#[tokio::test]
async fn a_quorum_queue_tells_what_waits_for_another_try_and_until_when() {
    let broker = Broker::start().await;
    let declare = async |arguments: Value| {
        let body = json!({ "durable": true, "arguments": arguments }).to_string();
        broker.send("PUT", "/api/queues/%2F/q", &body).await.status
    };
    let of_all = json!({
        "x-queue-type": "quorum", "x-delayed-retry-type": "all",
        "x-delayed-retry-min": 3_600_000, "x-delayed-retry-max": 7_200_000,
    });
    assert_eq!(declare(of_all).await, 201);
    let queue = async || broker.get("/api/queues/%2F/q").await.json();
    let idle = queue().await;
    assert_eq!(idle["delayed_retry"], "all (min: 3600000ms, max: 7200000ms)");
    assert_eq!((&idle["messages_delayed"], idle.get("next_delayed_at")), (&json!(0), None));
    let message =
        r#"{"routing_key":"q","payload":"abc","payload_encoding":"string","properties":{}}"#;
    let path = "/api/exchanges/%2F/amq.default/publish";
    assert_eq!(broker.send("POST", path, message).await.status, 200);
    let get = r#"{"count":1,"ackmode":"reject_requeue_true","encoding":"auto"}"#;
    assert_eq!(broker.send("POST", "/api/queues/%2F/q/get", get).await.status, 200);
    let waiting = queue().await;
    let expected = json!({
        "messages": 1, "messages_ready": 0, "messages_unacknowledged": 0, "messages_delayed": 1,
        "message_bytes_ready": 3,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&waiting[name], value, "{name} of {waiting}");
    }
    let hour_ahead = waiting["next_delayed_at"].as_u64().expect("a time");
    assert!(hour_ahead > 1_700_000_000_000, "{waiting}");
    assert_eq!(waiting["last_delayed_at"], hour_ahead);
    let overview = broker.get("/api/overview").await.json();
    assert_eq!(overview["queue_totals"]["messages"], 1, "{overview}");
    let vhost = broker.get("/api/vhosts/%2F").await.json();
    assert_eq!(vhost["messages"], 1, "{vhost}");
    let metrics = broker.metrics("/metrics").await;
    let text = String::from_utf8_lossy(&metrics.body);
    for row in ["queue_messages 1", "queue_messages_delayed 1", "queue_messages_ready 0"] {
        assert!(text.lines().any(|line| line == format!("rabbitmq_{row}")), "{row} in {text}");
    }
    assert_eq!(broker.send("PUT", "/api/queues/%2F/a", r#"{"durable":true}"#).await.status, 201);
    let sorted = "/api/queues?sort=messages_delayed&sort_reverse=true&columns=name";
    assert_eq!(broker.get(sorted).await.json(), json!([{ "name": "q" }, { "name": "a" }]));
    assert!(broker.get("/api/queues/%2F/a").await.json().get("delayed_retry").is_none());
}

#[tokio::test]
async fn a_queue_tells_how_large_its_messages_are_and_where_they_lie() {
    let broker = Broker::start().await;
    assert_eq!(broker.send("PUT", "/api/queues/%2F/q", r#"{"durable":true}"#).await.status, 201);
    let queue = || async { broker.get("/api/queues/%2F/q").await.json() };
    let empty = queue().await;
    assert_eq!(
        (&empty["message_bytes"], &empty["head_message_timestamp"]),
        (&json!(0), &Value::Null)
    );
    for (mode, payload, timestamp) in [(2, "12345", 77), (1, "123", 88)] {
        let message = json!({
            "routing_key": "q", "payload": payload, "payload_encoding": "string",
            "properties": { "delivery_mode": mode, "timestamp": timestamp },
        });
        let path = "/api/exchanges/%2F/amq.default/publish";
        assert_eq!(broker.send("POST", path, &message.to_string()).await.status, 200);
    }
    let full = queue().await;
    let expected = json!({
        "message_bytes": 8, "message_bytes_ready": 8, "message_bytes_unacknowledged": 0,
        "message_bytes_ram": 3, "message_bytes_persistent": 5, "messages_persistent": 1,
        "messages_ram": 1, "messages_ready_ram": 1, "messages_unacknowledged_ram": 0,
        "head_message_timestamp": 77,
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&full[name], value, "{name} of {full}");
    }
    let grows = full["memory"].as_u64() > empty["memory"].as_u64();
    assert!(grows && empty["memory"].as_u64() > Some(0), "{empty} {full}");
    let idle_since = full["idle_since"].as_str().expect("a time");
    assert!(idle_since.starts_with("20") && idle_since.ends_with("+00:00"), "{idle_since}");
    let listed =
        broker.get("/api/queues?columns=message_bytes,head_message_timestamp").await.json();
    assert_eq!(listed, json!([{ "message_bytes": 8 }]), "the head is in the log");
    let stream = r#"{"durable":true,"arguments":{"x-queue-type":"stream"}}"#;
    assert_eq!(broker.send("PUT", "/api/queues/%2F/s", stream).await.status, 201);
    let stream = broker.get("/api/queues/%2F/s").await.json();
    assert!(stream.get("message_bytes").is_none() && stream["memory"].is_u64(), "{stream}");
    for (column, order) in [("message_bytes", ["s", "q"]), ("messages_persistent", ["s", "q"])] {
        let sorted = broker.get(&format!("/api/queues?columns=name&sort={column}")).await.json();
        assert_eq!([&sorted[0]["name"], &sorted[1]["name"]], order, "{column}");
    }
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn a_queue_tells_its_members_its_delivery_limit_and_how_free_its_consumers_are() {
    let broker = Broker::start().await;
    for (name, limit) in
        [("a", ""), ("b", r#","x-delivery-limit":5"#), ("c", r#","x-delivery-limit":-1"#)]
    {
        let queue = format!(r#"{{"durable":true,"arguments":{{"x-queue-type":"quorum"{limit}}}}}"#);
        assert_eq!(
            broker.send("PUT", &format!("/api/queues/%2F/{name}"), &queue).await.status,
            201
        );
    }
    let node = broker.get("/api/overview").await.json()["node"].clone();
    for path in ["/api/queues/%2F?disable_stats=true", "/api/queues"] {
        let listed = broker.get(path).await.json();
        let of = |column: &str| -> Vec<Value> {
            (0..3).map(|nth| listed[nth][column].clone()).collect()
        };
        assert_eq!(of("delivery_limit"), [json!(20), json!(5), json!("unlimited")], "{path}");
        assert_eq!(of("leader"), vec![node.clone(); 3], "{path}");
        assert_eq!((of("members"), of("online")), (vec![json!([node]); 3], vec![json!([node]); 3]));
    }
    let sorted = broker.get("/api/queues?columns=name&sort=delivery_limit").await.json();
    assert_eq!(sorted, json!([{ "name": "b" }, { "name": "a" }, { "name": "c" }]));
    let uri = format!("amqp://guest:guest@{}/", broker.server.addresses()[0]);
    let client = Connection::open(&uri).await.expect("a client");
    let channel = client.open_channel().await.expect("a channel");
    let _consumer = channel.consume("b", ConsumeOptions::default()).await.expect("taken");
    for path in ["/api/queues/%2F/b", "/api/queues/%2F/a"] {
        let queue = broker.get(path).await.json();
        let free = if path.ends_with('b') { 1.0 } else { 0.0 };
        assert_eq!(queue["consumer_capacity"], free, "{path}");
        assert_eq!(queue["consumer_utilisation"], free, "{path}");
    }
    let sorted =
        broker.get("/api/queues?columns=name&sort=consumer_capacity&sort_reverse=true").await;
    assert_eq!(sorted.json()[0], json!({ "name": "b" }));
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn a_queue_is_shown_with_its_messages_policies_and_consumers() {
    let broker = Broker::start().await;
    let arguments = FieldTable::new().with("x-max-length", 7_i64);
    let queue = NewQueue { durable: true, arguments, ..NewQueue::default() };
    broker.admin().declare_queue("/", "q", queue).expect("a queue");
    let policy = Policy {
        name: "p".into(),
        pattern: "^q".into(),
        apply_to: ApplyTo::Queues,
        priority: 3,
        definition: FieldTable::new().with("max-length", 5_i64),
    };
    broker.admin().set_policy("/", PolicyKind::User, policy).expect("a policy");
    let listed = broker.get("/api/queues/%2F").await.json()[0].clone();
    has(
        &listed,
        "name:s vhost:s type:s durable:b auto_delete:b exclusive:b arguments:o node:s state:s \
         messages:n messages_ready:n messages_unacknowledged:n messages_details:o consumers:n \
         effective_policy_definition:o",
    );
    assert_eq!(listed["arguments"], json!({ "x-max-length": 7, "x-queue-type": "classic" }));
    assert_eq!((&listed["policy"], &listed["type"]), (&json!("p"), &json!("classic")));
    assert_eq!(listed["effective_policy_definition"], json!({ "max-length": 5 }));
    assert!(listed.get("operator_policy").is_none() && listed.get("garbage_collection").is_none());
    let single = broker.get("/api/queues/%2F/q").await.json();
    assert_eq!(single["operator_policy"], Value::Null);
    has(&single, "consumer_details:a incoming:a deliveries:a");
    let less = broker.get("/api/queues/%2F?disable_stats=true").await.json()[0].clone();
    assert!(less.get("messages").is_none(), "{less}");
    assert!(less.get("leader").is_none() && less.get("delivery_limit").is_none(), "{less}");
    let totals = "/api/queues/%2F?disable_stats=true&enable_queue_totals=true";
    assert_eq!(broker.get(totals).await.json()[0]["messages"], 0);
    let policy = broker.get("/api/policies/%2F/p").await.json();
    let expected = json!({
        "vhost": "/", "name": "p", "pattern": "^q", "apply-to": "queues",
        "definition": { "max-length": 5 }, "priority": 3,
    });
    assert_eq!(policy, expected);
}

#[tokio::test]
async fn who_reads_from_a_queue_is_shown_to_those_who_see_its_connection() {
    let broker = Broker::start().await;
    broker.add_user("app", "management", &["/"]);
    broker.add_user("other", "management", &["/"]);
    broker.add_user("watcher", "monitoring", &["/"]);
    let uri = format!("amqp://app:app@{}/", broker.server.addresses()[0]);
    let client = Connection::open(&uri).await.expect("a client");
    let channel = client.open_channel().await.expect("a channel");
    let exclusive = QueueOptions { exclusive: true, ..QueueOptions::default() };
    channel.queue_declare("q", exclusive).await.expect("a queue");
    let _consumer = channel.consume("q", ConsumeOptions::default()).await.expect("taken");
    for (user, sees) in [("app", true), ("other", false), ("watcher", true), ("guest", true)] {
        let queue = broker.call("GET", "/api/queues/%2F/q", Some(user), "").await.json();
        let consumers = queue["consumer_details"].as_array().expect("a list");
        assert_eq!(consumers.len(), 1, "{user}: {queue}");
        assert_eq!(consumers[0]["active"], true, "{user}");
        let details = consumers[0].get("channel_details").map(|of| of["user"].clone());
        assert_eq!(details, sees.then(|| json!("app")), "{user}");
        assert_eq!(queue.get("owner_pid_details").is_some(), sees, "{user}");
    }
    broker.server.stop().await.expect("it stops");
}
