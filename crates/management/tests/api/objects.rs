//! The objects that are shown, with the members that tools rely on.

use crate::support::Broker;
use courser_broker::admin::{ExchangeKind, ExchangeSettings};
use courser_broker::admin::{NewBinding, NewQueue};
use courser_client::{Connection, ConsumeOptions};
use courser_codec::{FieldTable, ShortString};
use serde_json::{Value, json};

/// That the members are there, each of its type: `s` text, `n` number, `b` flag, `o` object, `a` list.
pub fn has(object: &Value, members: &str) {
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
