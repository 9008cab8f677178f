//! Metrics of a node that leads several groups.

use super::support::World;
use crate::support::exchange_over;
use courser_management::{Api, Exporter, ServerFigures};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// What is of the process, which both are in, or has nothing to do with what brokers have.
const OTHER: [&str; 9] = [
    "courser_memory_limit_bytes",
    "rabbitmq_resident_memory_limit_bytes",
    "courser_process_",
    "courser_runtime_",
    "process_",
    "telemetry_",
    "rabbitmq_process_",
    "rabbitmq_disk_space_available_bytes",
    "courser_memory_used_bytes",
];

/// The exporters of brokers in one process.
fn exporters(apis: &[Arc<Api>]) -> Vec<Arc<Exporter>> {
    let ledger = Arc::default();
    let exporter = |api: &Arc<Api>| {
        Exporter::new(Arc::clone(api), Arc::clone(&ledger), ServerFigures::default, false)
    };
    apis.iter().map(exporter).collect()
}

async fn page(apis: &[Arc<Api>], path: &str) -> String {
    page_of(&exporters(apis), path).await
}

async fn page_of(exporters: &[Arc<Exporter>], path: &str) -> String {
    let exporters = exporters.to_vec();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let stop = watch::Sender::new(false);
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let (first, all) = (Arc::clone(&exporters[0]), exporters);
    tokio::spawn(first.serve_with(move || all.clone(), theirs, peer, stop.subscribe()));
    let request = format!("GET {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n");
    let answer = exchange_over(ours, request.into_bytes(), false).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).expect("text")
}

/// The rows of a page by their names and labels. All rows of a metric stand together, and no row stands there twice.
fn rows(page: &str) -> BTreeMap<String, String> {
    let (mut rows, mut metric) = (BTreeMap::new(), "");
    let mut metrics = std::collections::BTreeSet::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            metric = rest.split(' ').next().expect("a name");
            assert!(metrics.insert(metric), "{metric} stands there twice");
        } else if !line.starts_with('#') {
            assert!(line.starts_with(metric), "{line} is no row of {metric}");
            let (name, value) = line.rsplit_once(' ').expect("a row");
            let before = rows.insert(name.to_owned(), value.to_owned());
            assert_eq!(before, None, "{name} stands there twice");
        }
    }
    rows.retain(|name, _| !OTHER.iter().any(|other| name.starts_with(other)));
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_several_brokers_is_that_of_one_with_all_of_it() {
    let world = World::start().await;
    for vhost in ["%2F", "a", "b", "c", "d"] {
        for queue in 0..3 {
            world
                .both("PUT", &format!("/api/queues/{vhost}/q{queue}"), r#"{"durable":true}"#)
                .await;
            let body = json!({
                "routing_key": format!("q{queue}"), "properties": {}, "payload": "x".repeat(500),
                "payload_encoding": "string",
            });
            let path = format!("/api/exchanges/{vhost}//publish");
            world.both("POST", &path, &body.to_string()).await;
        }
    }
    let _clients = [world.connect("guest", "a", 1), world.connect("guest", "b", 2)];
    let single = [Arc::clone(&world.single)];
    let detailed = "/metrics/detailed?family=queue_coarse_metrics&family=vhost_status\
                    &family=exchange_names&family=connection_metrics&family=connection_churn_metrics\
                    &family=channel_metrics&vhost=a&vhost=c";
    for path in ["/metrics", "/metrics/per-object", detailed] {
        let together = rows(&page(&world.apis(), path).await);
        let mut expected = rows(&page(&single, path).await);
        // Each of three brokers has let in the two clients and one of the requests, or so they say.
        for (row, value) in &mut expected {
            if row.starts_with("rabbitmq_auth_attempts") && row.contains("amqp091") {
                let logins: u64 = value.parse().expect("a number");
                *value = (logins * 3).to_string();
            }
        }
        expected.retain(|name, _| !name.contains("protocol=\"http\""));
        for (name, value) in &expected {
            assert_eq!(together.get(name), Some(value), "{name} of {path}");
        }
        let more: Vec<&String> = together
            .keys()
            .filter(|name| !expected.contains_key(*name) && !name.contains("protocol=\"http\""))
            .collect();
        assert!(more.is_empty(), "{more:?} of {path}");
    }
    let memory = page(&world.apis(), "/metrics/memory-breakdown").await;
    assert!(rows(&memory).contains_key("rabbitmq_memory_binary_bytes"), "{memory}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_stay_when_a_group_is_led_elsewhere() {
    let world = World::start().await;
    for vhost in ["%2F", "a", "b", "c", "d"] {
        world.both("PUT", &format!("/api/queues/{vhost}/q"), r#"{"durable":true}"#).await;
        let body =
            r#"{"routing_key":"q","properties":{},"payload":"x","payload_encoding":"string"}"#;
        world.both("POST", &format!("/api/exchanges/{vhost}//publish"), body).await;
    }
    let exporters = exporters(&world.apis());
    let before = rows(&page_of(&exporters, "/metrics").await);
    let received = "rabbitmq_global_messages_received_total{protocol=\"amqp091\"}";
    assert_eq!(before.get(received).map(String::as_str), Some("5"), "{before:?}");
    let (stays, goes) = exporters.split_at(1);
    goes.iter().for_each(|one| one.end());
    let after = rows(&page_of(stays, "/metrics").await);
    let is_total = |name: &str| name.contains("_total") || name.contains("_count");
    for (name, total) in before.iter().filter(|(name, _)| is_total(name)) {
        let total: f64 = total.parse().expect("a number");
        if total.is_nan() {
            // It is not counted.
            continue;
        }
        let left = after.get(name).and_then(|value| value.parse::<f64>().ok());
        assert!(left.is_some_and(|left| left >= total), "{name}: {total}, then {left:?}");
    }
}
