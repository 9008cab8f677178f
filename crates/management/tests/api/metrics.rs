//! Metrics for Prometheus.

use crate::metrics_format::Metrics;
use crate::support::{Broker, any_port, exchange};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser::{Config, HttpListen, Server};
use courser_client::{Connection, ConsumeOptions};
use std::io::Read as _;
use std::net::SocketAddr;

/// Names that RabbitMQ's page of sums has, with their types.
const NAMES: &[(&str, &str, &str)] = &[
    ("gauge", "", "connections channels consumers queues unreachable_cluster_peers_count"),
    ("counter", "", "connections_opened_total connections_closed_total channels_opened_total"),
    ("counter", "", "channels_closed_total queues_declared_total queues_created_total"),
    ("counter", "", "queues_deleted_total"),
    ("gauge", "", "process_open_fds process_max_fds process_resident_memory_bytes"),
    ("gauge", "", "resident_memory_limit_bytes disk_space_available_bytes"),
    ("gauge", "", "disk_space_available_limit_bytes erlang_uptime_seconds"),
    ("untyped", "", "alarms_memory_used_watermark alarms_free_disk_space_watermark"),
    ("untyped", "", "build_info identity_info"),
    ("counter", "io_", "read_ops_total write_ops_total sync_ops_total seek_ops_total"),
    ("counter", "io_", "reopen_ops_total read_bytes_total write_bytes_total"),
    ("counter", "io_", "read_time_seconds_total write_time_seconds_total"),
    ("counter", "io_", "sync_time_seconds_total seek_time_seconds_total"),
    ("counter", "", "schema_db_ram_tx_total schema_db_disk_tx_total msg_store_read_total"),
    ("counter", "", "msg_store_write_total queue_index_read_ops_total"),
    ("counter", "", "queue_index_write_ops_total auth_attempts_total"),
    ("counter", "", "auth_attempts_succeeded_total auth_attempts_failed_total"),
    ("gauge", "global_", "publishers consumers"),
    ("counter", "global_", "messages_received_total messages_received_confirm_total"),
    ("counter", "global_", "messages_routed_total messages_confirmed_total"),
    ("counter", "global_", "messages_unroutable_dropped_total messages_unroutable_returned_total"),
    ("counter", "global_", "messages_delivered_total messages_delivered_consume_auto_ack_total"),
    ("counter", "global_", "messages_delivered_consume_manual_ack_total"),
    ("counter", "global_", "messages_delivered_get_auto_ack_total"),
    ("counter", "global_", "messages_delivered_get_manual_ack_total messages_get_empty_total"),
    ("counter", "global_", "messages_redelivered_total messages_acknowledged_total"),
    ("counter", "global_messages_dead_lettered_", "maxlen_total expired_total rejected_total"),
    ("counter", "global_messages_dead_lettered_", "delivery_limit_total confirmed_total"),
    ("counter", "global_stream_error_", "access_refused_total vhost_access_failure_total"),
    ("histogram", "", "message_size_bytes"),
    ("gauge", "queue_", "messages_ready messages_unacked messages consumers"),
    ("counter", "queue_", "process_reductions_total"),
    ("gauge", "queue_", "messages_delayed process_memory_bytes"),
    ("gauge", "queue_", "messages_ram messages_ram_bytes messages_ready_ram"),
    ("gauge", "queue_", "messages_unacked_ram messages_persistent messages_persistent_bytes"),
    ("gauge", "queue_", "messages_bytes messages_ready_bytes messages_unacked_bytes"),
    ("counter", "queue_", "get_ack_total get_total messages_delivered_ack_total"),
    ("counter", "queue_", "messages_delivered_total messages_redelivered_total"),
    ("counter", "queue_", "messages_acked_total get_empty_total messages_published_total"),
    ("counter", "", "queue_exchange_messages_published_total"),
    ("counter", "exchange_", "messages_published_total messages_confirmed_total"),
    ("counter", "exchange_", "messages_unroutable_returned_total"),
    ("counter", "exchange_", "messages_unroutable_dropped_total"),
    ("counter", "connection_", "incoming_bytes_total outgoing_bytes_total"),
    ("counter", "connection_", "process_reductions_total incoming_packets_total"),
    ("counter", "connection_", "outgoing_packets_total"),
    ("gauge", "connection_", "pending_packets channels"),
    ("gauge", "channel_", "consumers messages_unacked messages_unconfirmed prefetch"),
    ("gauge", "", "consumer_prefetch"),
    ("counter", "channel_", "messages_published_total messages_confirmed_total"),
    ("counter", "channel_", "messages_unroutable_returned_total"),
    ("counter", "channel_", "messages_unroutable_dropped_total get_ack_total get_total"),
    ("counter", "channel_", "messages_delivered_ack_total messages_delivered_total"),
    ("counter", "channel_", "messages_redelivered_total messages_acked_total get_empty_total"),
    ("counter", "channel_", "process_reductions_total"),
    ("counter", "raft_", "commit_index last_written_index snapshot_index term"),
    ("gauge", "raft_", "commit_latency_seconds"),
];

/// The same for what is not counted, or not of all queues together: these have no rows.
const NAMES_WITHOUT_ROWS: &[(&str, &str, &str)] = &[
    ("counter", "queue_", "disk_reads_total disk_writes_total"),
    ("gauge", "queue_", "consumer_capacity consumer_utilisation head_message_timestamp"),
    ("gauge", "", "stream_segments channel_messages_uncommitted channel_acks_uncommitted"),
];

async fn page(broker: &Broker, path: &str) -> Metrics {
    let answer = broker.metrics(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Metrics::parse(std::str::from_utf8(&answer.body).expect("UTF-8"))
}

#[tokio::test]
async fn every_name_that_dashboards_know_is_there_from_the_start() {
    let broker = Broker::start().await;
    let metrics = page(&broker, "/metrics").await;
    for (kind, prefix, names) in NAMES {
        for name in names.split(' ') {
            let name = format!("rabbitmq_{prefix}{name}");
            assert_eq!(metrics.kind(&name), *kind, "{name}");
            let series = if *kind == "histogram" { format!("{name}_bucket") } else { name };
            assert!(metrics.count(&series) > 0, "{series} has no row");
        }
    }
    for (kind, prefix, names) in NAMES_WITHOUT_ROWS {
        for name in names.split(' ') {
            let name = format!("rabbitmq_{prefix}{name}");
            assert_eq!((metrics.kind(&name), metrics.count(&name)), (*kind, 0), "{name}");
        }
    }
    let types = ["classic", "quorum", "stream", "volatile"];
    for protocol in ["amqp091", "amqp10", "local-shovel"] {
        let labels = format!("{{protocol=\"{protocol}\"}}");
        assert_eq!(metrics.value(&format!("rabbitmq_global_messages_received_total{labels}")), 0.0);
        for queue_type in types {
            let labels =
                format!("{{protocol=\"{protocol}\",queue_type=\"rabbit_{queue_type}_queue\"}}");
            let name = "rabbitmq_global_messages_delivered_consume_auto_ack_total";
            assert_eq!(metrics.value(&format!("{name}{labels}")), 0.0);
        }
    }
    for strategy in ["disabled", "at_most_once", "at_least_once"] {
        let series = format!(
            "rabbitmq_global_messages_dead_lettered_expired_total\
             {{queue_type=\"rabbit_quorum_queue\",dead_letter_strategy=\"{strategy}\"}}"
        );
        assert_eq!(metrics.value(&series), 0.0);
    }
    assert_eq!(metrics.types.keys().filter(|name| name.contains("stream_error")).count(), 17);
    for border in
        ["100.0", "1000.0", "10000.0", "100000.0", "1e+06", "1e+07", "5e+07", "1e+08", "+Inf"]
    {
        let labels = format!("{{protocol=\"amqp091\",le=\"{border}\"}}");
        assert_eq!(metrics.value(&format!("rabbitmq_message_size_bytes_bucket{labels}")), 0.0);
    }
    for own in ["journal_syncs", "journal_live_bytes", "memory_used_bytes", "runtime_tasks"] {
        let found = metrics.types.keys().any(|name| {
            name == &format!("courser_{own}") || own == "journal_syncs" && name.contains("sync_dur")
        });
        assert!(found, "{own}");
    }
    assert!(metrics.value("process_start_time_seconds") > 1.5e9);
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn every_page_says_once_which_node_it_is_of() {
    let broker = Broker::start().await;
    for (path, endpoint) in [
        ("/metrics", "aggregated"),
        ("/metrics/", "aggregated"),
        ("/metrics/per-object", "per-object"),
        ("/metrics/detailed", "detailed"),
        ("/metrics/memory-breakdown", "memory-breakdown"),
    ] {
        let metrics = page(&broker, path).await;
        assert_eq!(metrics.count("rabbitmq_identity_info"), 1, "{path}");
        let row = metrics.rows.keys().find(|series| series.starts_with("rabbitmq_identity_info"));
        let row = row.expect("the row");
        assert!(row.contains(&format!("rabbitmq_endpoint=\"{endpoint}\"")), "{row}");
        assert!(row.contains("rabbitmq_cluster=\"courser\""), "{row}");
        assert!(row.contains("rabbitmq_node=\"courser@"), "{row}");
    }
    broker.server.stop().await.expect("it stops");
}

/// A broker with a message that was consumed, one that waits, and one that no queue got.
async fn busy() -> (Broker, Connection) {
    let broker = Broker::start().await;
    let amqp = broker.server.addresses()[0];
    let connection = Connection::open(&format!("amqp://guest:guest@{amqp}/")).await.expect("in");
    let channel = connection.open_channel().await.expect("a channel");
    for path in ["/api/queues/%2F/a%22b", "/api/queues/%2F/work"] {
        assert_eq!(broker.send("PUT", path, "{}").await.status, 201);
    }
    channel.confirm_select().await.expect("confirms");
    for (key, body) in [("work", vec![0_u8; 50]), ("none", vec![0; 5000]), ("a\"b", vec![0; 500])] {
        let confirmed = channel.publish("", key, &body).await.expect("published");
        confirmed.await.expect("confirmed");
    }
    let options = ConsumeOptions { auto_ack: true, ..ConsumeOptions::default() };
    let mut consumer = channel.consume("work", options).await.expect("a consumer");
    consumer.next().await.expect("a delivery");
    // The channel goes with its handle.
    std::mem::forget((channel, consumer));
    (broker, connection)
}

#[tokio::test]
async fn what_has_happened_is_counted() {
    let (broker, connection) = busy().await;
    let metrics = page(&broker, "/metrics").await;
    let ours = "{protocol=\"amqp091\"}";
    let of_type = "{protocol=\"amqp091\",queue_type=\"rabbit_classic_queue\"}";
    for (series, expected) in [
        (format!("rabbitmq_global_messages_received_total{ours}"), 3.0),
        (format!("rabbitmq_global_messages_received_confirm_total{ours}"), 3.0),
        (format!("rabbitmq_global_messages_confirmed_total{ours}"), 3.0),
        (format!("rabbitmq_global_messages_routed_total{ours}"), 2.0),
        (format!("rabbitmq_global_messages_unroutable_dropped_total{ours}"), 1.0),
        (format!("rabbitmq_global_publishers{ours}"), 1.0),
        (format!("rabbitmq_global_consumers{ours}"), 1.0),
        (format!("rabbitmq_global_messages_delivered_total{of_type}"), 1.0),
        (format!("rabbitmq_global_messages_delivered_consume_auto_ack_total{of_type}"), 1.0),
        ("rabbitmq_message_size_bytes_bucket{protocol=\"amqp091\",le=\"100.0\"}".into(), 1.0),
        ("rabbitmq_message_size_bytes_bucket{protocol=\"amqp091\",le=\"1000.0\"}".into(), 2.0),
        ("rabbitmq_message_size_bytes_bucket{protocol=\"amqp091\",le=\"+Inf\"}".into(), 3.0),
        ("rabbitmq_message_size_bytes_sum{protocol=\"amqp091\"}".into(), 5550.0),
        ("rabbitmq_queue_messages_ready".into(), 1.0),
        ("rabbitmq_queue_messages_delivered_total".into(), 1.0),
        ("rabbitmq_connections".into(), 1.0),
        ("rabbitmq_channels".into(), 1.0),
        ("rabbitmq_queues_created_total".into(), 2.0),
        ("rabbitmq_auth_attempts_succeeded_total{protocol=\"amqp091\"}".into(), 1.0),
        ("rabbitmq_auth_attempts_succeeded_total{protocol=\"http\"}".into(), 2.0),
    ] {
        assert_eq!(metrics.value(&series), expected, "{series}");
    }
    let node = broker.get("/api/nodes").await.json()[0]["name"].clone();
    let path = format!("/api/auth/attempts/{}", node.as_str().expect("a name"));
    let attempts = broker.get(&path).await.json();
    let over_amqp = (&attempts[0]["protocol"], &attempts[0]["auth_attempts_succeeded"]);
    assert_eq!(over_amqp, (&"amqp091".into(), &1.into()), "{attempts}");
    assert_eq!(broker.send("DELETE", &path, "").await.status, 204);
    let attempts = broker.get(&path).await.json();
    let over_amqp = (&attempts[0]["auth_attempts"], &attempts[1]["auth_attempts"]);
    assert_eq!(over_amqp, (&0.into(), &1.into()), "{attempts}");
    for some in ["rabbitmq_connection_incoming_bytes_total", "rabbitmq_io_sync_ops_total"] {
        assert!(metrics.value(some) > 0.0, "{some}");
    }
    let received = metrics.value("rabbitmq_connection_incoming_bytes_total");
    connection.close().await.expect("closed");
    let after = page(&broker, "/metrics").await;
    assert!(after.value("rabbitmq_connection_incoming_bytes_total") >= received, "it never falls");
    assert_eq!(after.value("rabbitmq_queue_messages_delivered_total"), 1.0);
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn no_page_has_a_row_that_is_not_a_number() {
    let (broker, _connection) = busy().await;
    let detailed = "/metrics/detailed?family=queue_metrics&family=channel_metrics&\
                    family=exchange_metrics";
    for path in ["/metrics", "/metrics/per-object", detailed, "/metrics/memory-breakdown"] {
        let metrics = page(&broker, path).await;
        let not_a_number = metrics.rows.iter().find(|(_, value)| value.is_nan());
        assert_eq!(not_a_number, None, "{path}");
    }
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn bytes_of_messages_are_told_by_queue_and_of_all_queues() {
    let (broker, _connection) = busy().await;
    let publish = r#"{"routing_key": "work2", "payload": "12345", "payload_encoding": "string",
                      "properties": {"delivery_mode": 2, "timestamp": 99}}"#;
    assert_eq!(
        broker.send("PUT", "/api/queues/%2F/work2", r#"{"durable":true}"#).await.status,
        201
    );
    let published = broker.send("POST", "/api/exchanges/%2F/amq.default/publish", publish).await;
    assert_eq!(published.status, 200);
    let all = page(&broker, "/metrics").await;
    let each = page(&broker, "/metrics/per-object").await;
    for (name, of_all, of_one, of_other) in [
        ("messages_bytes", 505.0, 500.0, 5.0),
        ("messages_ready_bytes", 505.0, 500.0, 5.0),
        ("messages_unacked_bytes", 0.0, 0.0, 0.0),
        ("messages_ram", 1.0, 1.0, 0.0),
        ("messages_ready_ram", 1.0, 1.0, 0.0),
        ("messages_unacked_ram", 0.0, 0.0, 0.0),
        ("messages_ram_bytes", 500.0, 500.0, 0.0),
        ("messages_persistent", 1.0, 0.0, 1.0),
        ("messages_persistent_bytes", 5.0, 0.0, 5.0),
    ] {
        let name = format!("rabbitmq_queue_{name}");
        let of = |queue| each.value(&format!("{name}{{vhost=\"/\",queue=\"{queue}\"}}"));
        assert_eq!(
            (all.value(&name), of("a\\\"b"), of("work2")),
            (of_all, of_one, of_other),
            "{name}"
        );
    }
    let memory = "rabbitmq_queue_process_memory_bytes";
    let of_one = each.value(&format!("{memory}{{vhost=\"/\",queue=\"a\\\"b\"}}"));
    assert!(of_one >= 500.0 && all.value(memory) > of_one, "{of_one}");
    assert_eq!(each.count("rabbitmq_queue_head_message_timestamp"), 0, "none is in memory");
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn queues_channels_and_connections_have_rows_of_their_own() {
    let (broker, _connection) = busy().await;
    let metrics = page(&broker, "/metrics/per-object").await;
    let ready = |queue: &str| {
        metrics.value(&format!("rabbitmq_queue_messages_ready{{vhost=\"/\",queue=\"{queue}\"}}"))
    };
    assert_eq!((ready("work"), ready("a\\\"b")), (0.0, 1.0));
    let info =
        "{vhost=\"/\",queue=\"work\",queue_type=\"rabbit_classic_queue\",membership=\"leader\"}";
    assert_eq!(metrics.value(&format!("rabbitmq_queue_info{info}")), 1.0);
    assert_eq!(metrics.count("rabbitmq_channel_consumers"), 1);
    assert_eq!(metrics.count("rabbitmq_connection_channels"), 1);
    assert_eq!(metrics.count("rabbitmq_queue_messages_bytes"), 2);
    let published = "rabbitmq_exchange_messages_published_total{vhost=\"/\",exchange=\"\"}";
    assert_eq!(metrics.value(published), 3.0);
    assert_eq!(metrics.value("rabbitmq_connections"), 1.0);
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn only_the_families_vhosts_and_queues_that_are_asked_for_are_told() {
    let (broker, _connection) = busy().await;
    let none = page(&broker, "/metrics/detailed").await;
    assert!(!none.types.keys().any(|name| name.contains("detailed")), "{:?}", none.types);
    let path = "/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count\
                &family=exchange_bindings&family=vhost_status&family=nonsense&queue=%5Ew";
    let some = page(&broker, path).await;
    let work = "{vhost=\"/\",queue=\"work\"}";
    assert_eq!(some.value(&format!("rabbitmq_detailed_queue_consumers{work}")), 1.0);
    assert_eq!(some.count("rabbitmq_detailed_queue_messages"), 1, "the other one has no w");
    assert_eq!(some.value("rabbitmq_cluster_vhost_status{vhost=\"/\"}"), 1.0);
    let topic = "{vhost=\"/\",exchange=\"amq.topic\",type=\"topic\"}";
    assert_eq!(some.value(&format!("rabbitmq_cluster_exchange_bindings{topic}")), 0.0);
    let elsewhere = page(&broker, "/metrics/detailed?family=queue_metrics&vhost=nope").await;
    assert_eq!(elsewhere.count("rabbitmq_detailed_queue_consumers"), 0);
    let refused = broker.metrics("/metrics/detailed?family=queue_metrics&queue=%28").await;
    let text = String::from_utf8_lossy(&refused.body);
    assert_eq!(refused.status, 400);
    assert!(text.starts_with("Invalid 'queue' regex at position 1: "), "{text}");
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let broker = Broker::start().await;
    let other = broker.metrics("/metrics/other").await;
    assert_eq!((other.status, &*other.body), (404, &b"Unknown Registry"[..]));
    let address = broker.server.metrics_addresses()[0];
    assert_eq!(broker.call_at(address, "POST", "/metrics", None, &[], &[]).await.status, 405);
    assert_eq!(broker.call_at(address, "HEAD", "/metrics", None, &[], &[]).await.status, 200);
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn pages_are_compressed_where_that_is_asked_for() {
    let broker = Broker::start().await;
    let address = broker.server.metrics_addresses()[0];
    let gzip = [("accept-encoding", "gzip")];
    let answer = broker.call_at(address, "GET", "/metrics", None, &gzip, &[]).await;
    assert_eq!(answer.headers["content-encoding"], "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*answer.body).read_to_string(&mut text).expect("gzip");
    Metrics::parse(&text);
    broker.server.stop().await.expect("it stops");
}

#[tokio::test]
async fn where_logins_are_wanted_only_those_who_may_see_everything_get_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = Config {
        listen: vec![any_port()],
        data_dir: folder.path().join("data"),
        ..Config::default()
    };
    config.management.listen = HttpListen::At(vec![any_port()]);
    config.metrics.listen = HttpListen::At(vec![any_port()]);
    config.metrics.authentication = true;
    config.management.hosts = vec!["mq.example".to_owned()];
    let server = Server::start(config).await.expect("a broker");
    let broker = Broker::of(server, folder);
    broker.add_user("watcher", "monitoring", &[]);
    broker.add_user("manager", "management", &[]);
    let address = broker.server.metrics_addresses()[0];
    for (login, expected) in [
        (None, 401),
        (Some("watcher:wrong"), 401),
        (Some("manager:manager"), 401),
        (Some("watcher:watcher"), 200),
        (Some("guest:guest"), 200),
    ] {
        let answer = broker.call_at(address, "GET", "/metrics", login, &[], &[]).await;
        assert_eq!(answer.status, expected, "{login:?}");
    }
    // With names that others can have resolve to this machine, guest is refused as the API does.
    for (login, host, expected) in [
        ("guest:guest", "evil.example", 401),
        ("guest:guest", "mq.example", 200),
        ("watcher:watcher", "evil.example", 200),
    ] {
        let status = status_by_name(address, login, host).await;
        assert_eq!(status, expected, "{login} by {host}");
    }
    broker.server.stop().await.expect("it stops");
}

/// The status of a page of metrics that is asked for by the name of a host.
async fn status_by_name(address: SocketAddr, login: &str, host: &str) -> u16 {
    let login = STANDARD.encode(login);
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Basic {login}\r\n\r\n"
    );
    exchange(address, request.into_bytes(), false).await.status
}
