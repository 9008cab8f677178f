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

async fn page(apis: &[Arc<Api>], path: &str) -> String {
    let exporters =
        apis.iter().map(|api| Exporter::new(Arc::clone(api), ServerFigures::default, false));
    let exporters: Vec<Arc<Exporter>> = exporters.collect();
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
