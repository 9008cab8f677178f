//! The objects that are shown, with the members that tools rely on.

use crate::support::Broker;
use courser_broker::admin::{ApplyTo, ExchangeKind, ExchangeSettings};
use courser_broker::admin::{NewBinding, NewQueue, Policy, PolicyKind};
use courser_client::{Connection, ConsumeOptions};
use courser_codec::{FieldTable, ShortString};
use serde_json::{Value, json};

/// That the members are there, each of its type: `s` text, `n` number, `b` flag, `o` object, `a` list.
fn has(object: &Value, members: &str) {
    for member in members.split_whitespace() {
        let (name, kind) = member.split_once(':').expect("name and type");
        let value = &object[name];
        let fits = match kind {
            "s" => value.is_string(),
            "n" => value.is_number(),
            "b" => value.is_boolean(),
            "o" => value.is_object(),
            "a" => value.is_array(),
            other => panic!("no type: {other}"),
        };
        assert!(fits, "{name} is {value} in {object}");
    }
}

#[tokio::test]
async fn the_overview_counts_what_there_is() {
    let broker = Broker::start().await;
    broker.admin().declare_queue("/", "q", NewQueue::default()).expect("a queue");
    let overview = broker.get("/api/overview").await.json();
    has(
        &overview,
        "management_version:s rates_mode:s product_name:s product_version:s rabbitmq_version:s \
         cluster_name:s node:s listeners:a contexts:a exchange_types:a message_stats:o \
         churn_rates:o queue_totals:o object_totals:o statistics_db_event_queue:n",
    );
    assert_eq!(overview["object_totals"]["queues"], 1);
    assert_eq!(overview["object_totals"]["exchanges"], 7);
    assert_eq!(overview["churn_rates"]["queue_created"], 1);
    let ports: Vec<u64> = overview["listeners"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["port"].as_u64())
        .collect();
    assert!(ports.contains(&u64::from(broker.http().port())), "{ports:?}");
    assert!(ports.contains(&u64::from(broker.server.addresses()[0].port())), "{ports:?}");
    broker.add_user("inside", "management", &["/"]);
    let less = broker.call("GET", "/api/overview", Some("inside"), "").await.json();
    assert!(less.get("listeners").is_none() && less.get("contexts").is_none(), "{less}");
}

#[tokio::test]
async fn a_node_has_all_that_strict_clients_insist_on() {
    let broker = Broker::start().await;
    let nodes = broker.get("/api/nodes").await.json();
    let node = &nodes[0];
    has(
        node,
        "name:s uptime:n run_queue:n processors:n os_pid:s fd_total:n fd_used:n proc_total:n \
         mem_limit:n mem_used:n mem_alarm:b disk_free:n disk_free_limit:n disk_free_alarm:b \
         rates_mode:s enabled_plugins:a being_drained:b mem_used_details:o partitions:a",
    );
    assert!(node["os_pid"].as_str().is_some_and(|pid| pid.parse::<u32>().is_ok()));
    assert!(node["disk_free"].as_u64().is_some_and(|bytes| bytes > 0));
    let name = node["name"].as_str().expect("a name").replace('@', "%40");
    assert_eq!(broker.get(&format!("/api/nodes/{name}")).await.json()["name"], node["name"]);
    let memory = broker.get(&format!("/api/nodes/{name}/memory")).await.json();
    has(&memory["memory"], "binary:n connection_readers:n total:o strategy:s");
    has(&memory["memory"]["total"], "rss:n allocated:n erlang:n");
}

#[tokio::test]
async fn a_node_says_what_its_log_has_read_written_and_synced() {
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/q", r#"{"durable":true}"#).await;
    let synced = broker.admin().log_figures().syncs();
    let shown = broker.get("/api/nodes").await.json()[0].clone();
    assert!(synced > 0 && shown["io_sync_count"].as_u64() >= Some(synced), "{shown}");
    for name in ["io_sync_avg_time", "io_write_avg_time", "io_write_count", "io_write_bytes"] {
        assert!(shown[name].as_f64() > Some(0.0), "{name}: {shown}");
    }
    has(
        &shown,
        "io_read_count:n io_read_bytes:n io_read_avg_time:n msg_store_write_count:n \
         io_sync_count_details:o io_write_bytes_details:o",
    );
}

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
async fn a_consumer_is_shown_with_the_time_that_it_has_for_a_message() {
    let broker = Broker::start().await;
    let uri = format!("amqp://guest:guest@{}/", broker.server.addresses()[0]);
    let client = Connection::open(&uri).await.expect("a client");
    let channel = client.open_channel().await.expect("a channel");
    let arguments = |arguments| NewQueue { durable: true, arguments, ..NewQueue::default() };
    let mut consumers = Vec::new();
    let quorum = || FieldTable::new().with("x-queue-type", "quorum");
    for (queue, given) in [
        ("classic", FieldTable::new()),
        ("quorum", quorum()),
        ("short", quorum().with("x-consumer-timeout", 60_000_i64)),
    ] {
        broker.admin().declare_queue("/", queue, arguments(given)).expect("a queue");
        consumers.push(channel.consume(queue, ConsumeOptions::default()).await.expect("taken"));
    }
    let own = FieldTable::new().with("x-consumer-timeout", 70_000_i64);
    let options = ConsumeOptions { arguments: own, ..ConsumeOptions::default() };
    consumers.push(channel.consume("short", options).await.expect("taken"));
    let all = broker.get("/api/consumers").await.json();
    let mut shown: Vec<_> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let name = one["queue"]["name"].as_str().expect("a name").to_owned();
            (name, one["consumer_timeout"].as_u64(), one["arguments"].to_string())
        })
        .collect();
    shown.sort();
    let expected = [
        ("classic", 0, "{}"),
        ("quorum", 1_800_000, "{}"),
        ("short", 60_000, "{}"),
        ("short", 70_000, r#"{"x-consumer-timeout":70000}"#),
    ];
    let expected = expected.map(|(queue, ms, own)| (queue.to_owned(), Some(ms), own.to_owned()));
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_client_is_shown_as_connection_channel_and_consumer() {
    let broker = Broker::start().await;
    broker.admin().declare_queue("/", "q", NewQueue::default()).expect("a queue");
    let address = broker.server.addresses()[0];
    let uri = format!("amqp://guest:guest@{address}/");
    let client = Connection::open(&uri).await.expect("a client");
    let channel = client.open_channel().await.expect("a channel");
    let _consumer = channel.consume("q", ConsumeOptions::default()).await.expect("a consumer");
    let connection = broker.get("/api/connections").await.json()[0].clone();
    has(
        &connection,
        "name:s node:s protocol:s user:s vhost:s connected_at:n client_properties:o host:s port:n \
         peer_host:s peer_port:n state:s channels:n recv_oct:n send_oct:n recv_oct_details:o ssl:b \
         timeout:n frame_max:n channel_max:n auth_mechanism:s type:s",
    );
    let name = connection["name"].as_str().expect("a name").replace(' ', "%20").replace('>', "%3E");
    let one = broker.get(&format!("/api/connections/{name}")).await.json();
    assert_eq!(one["name"], connection["name"]);
    let channels = broker.get(&format!("/api/connections/{name}/channels")).await.json();
    has(
        &channels[0],
        "name:s number:n connection_details:o vhost:s user:s state:s consumer_count:n confirm:b \
         prefetch_count:n messages_unacknowledged:n messages_unconfirmed:n transactional:b",
    );
    has(&channels[0]["connection_details"], "name:s peer_host:s peer_port:n");
    let channel = broker.get(&format!("/api/channels/{name}%20(1)")).await.json();
    assert_eq!(channel["consumer_details"].as_array().map(Vec::len), Some(1), "{channel}");
    let consumer = broker.get("/api/consumers").await.json()[0].clone();
    has(
        &consumer,
        "consumer_tag:s active:b ack_required:b prefetch_count:n exclusive:b arguments:o \
         consumer_timeout:n messages_unacknowledged:n queue:o channel_details:o",
    );
    assert!(consumer.get("offset_lag").is_none(), "the queue is no stream: {consumer}");
    assert_eq!(consumer["queue"], json!({ "name": "q", "vhost": "/" }));
    broker.add_user("inside", "management", &["/"]);
    for list in ["connections", "channels", "consumers"] {
        let others = broker.call("GET", &format!("/api/{list}"), Some("inside"), "").await.json();
        assert_eq!(others, json!([]), "{list}");
    }
    let path = format!("/api/connections/{name}");
    assert_eq!(broker.call("GET", &path, Some("inside"), "").await.status, 401);
}

#[tokio::test]
async fn a_channel_is_closed_with_a_reason_and_what_it_held_waits_again() {
    let broker = Broker::start().await;
    broker.admin().declare_queue("/", "q", NewQueue::default()).expect("a queue");
    let uri = format!("amqp://guest:guest@{}/", broker.server.addresses()[0]);
    let client = Connection::open(&uri).await.expect("a client");
    let [held, other] = [client.open_channel().await, client.open_channel().await];
    let (held, other) = (held.expect("a channel"), other.expect("a channel"));
    other.publish("", "q", "one").await.expect("it is sent");
    let mut consumer = held.consume("q", ConsumeOptions::default()).await.expect("a consumer");
    let _delivery = consumer.next().await.expect("no fault").expect("a delivery");
    let channels = broker.get("/api/channels").await.json();
    let name = channels[0]["name"].as_str().expect("a name");
    let path = format!("/api/channels/{}", name.replace(' ', "%20").replace('>', "%3E"));
    broker.add_user("watcher", "monitoring", &["/"]);
    assert_eq!(broker.call("DELETE", &path, Some("watcher"), "").await.status, 401);
    let reason = [("x-reason", "too much")];
    let closed = broker.call_with("DELETE", &path, Some("guest:guest"), &reason, b"").await;
    assert_eq!(closed.status, 204);
    let fault = consumer.next().await.expect_err("the channel is closed").to_string();
    assert!(fault.contains("PRECONDITION_FAILED - too much"), "{fault}");
    assert_eq!(broker.send("DELETE", &path, "").await.status, 404);
    // Its connection goes on, and the queue has the message again.
    let again = other.get("q", true).await.expect("the connection is open");
    assert!(again.is_some_and(|again| again.redelivered()));
}

#[tokio::test]
async fn bindings_are_shown_with_the_keys_that_name_them() {
    let broker = Broker::start().await;
    let admin = broker.admin();
    admin.declare_queue("/", "q", NewQueue::default()).expect("a queue");
    let settings = ExchangeSettings {
        kind: ExchangeKind::Topic,
        durable: false,
        auto_delete: false,
        internal: false,
        arguments: FieldTable::new(),
    };
    admin.declare_exchange("/", "x", &settings).expect("an exchange");
    let binding = |key: &str, arguments| NewBinding {
        source: "x".try_into().expect("short"),
        destination: "q".try_into().expect("short"),
        to_queue: true,
        routing_key: key.try_into().expect("short"),
        arguments,
    };
    admin.bind("/", binding("a.*", FieldTable::new())).expect("a binding");
    admin.bind("/", binding("b", FieldTable::new().with("k", "v"))).expect("a binding");
    let all = broker.get("/api/bindings").await.json();
    let keys: Vec<&str> = all
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["properties_key"].as_str())
        .collect();
    assert_eq!(keys.len(), 3, "the one by name, too: {keys:?}");
    assert_eq!((keys[0], keys[1]), ("q", "a.%2A"));
    assert!(keys[2].starts_with("b~"), "{keys:?}");
    let one = broker.get("/api/bindings/%2F/e/x/q/q/a.%252A").await.json();
    assert_eq!((&one["routing_key"], &one["arguments"]), (&json!("a.*"), &json!({})));
    let plain = broker.get("/api/bindings/%2F/e/x/q/q/a.*").await.json();
    assert_eq!(plain, one, "its routing key as it is names it too");
    let other = broker.get(&format!("/api/bindings/%2F/e/x/q/q/{}", keys[2])).await.json();
    assert_eq!((&other["routing_key"], &other["arguments"]), (&json!("b"), &json!({ "k": "v" })));
    assert_eq!(broker.get("/api/bindings/%2F/e/x/q/q/b").await.status, 404, "it has arguments");
    assert_eq!(broker.get("/api/bindings/%2F/e/amq.default/q/q/q").await.status, 200);
    let binding = NewBinding {
        routing_key: ShortString::new(b"no\xfftext").expect("short"),
        ..binding("", FieldTable::new())
    };
    admin.bind("/", binding).expect("a binding");
    let no_text = "/api/bindings/%2F/e/x/q/q/no%25EF%25BF%25BDtext";
    assert_eq!(broker.get(no_text).await.json()["routing_key"], "no\u{fffd}text");
    assert_eq!(broker.get("/api/bindings/%2F/e/x/q/q/none").await.status, 404);
    let by_name = broker.get("/api/bindings/%2F/e//q/q").await.json();
    assert_eq!(by_name.as_array().map(Vec::len), Some(1));
    let to_queue = broker.get("/api/queues/%2F/q/bindings").await.json();
    assert_eq!(to_queue.as_array().map(Vec::len), Some(4));
}
