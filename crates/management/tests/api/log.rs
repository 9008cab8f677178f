//! The broker's log over HTTP.

use crate::support::{Broker, follow, until};
use courser::KeepLogLines;
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

/// Writes a line into the log of this process.
fn write(text: &str, level: tracing::Level) {
    let subscriber = tracing_subscriber::registry().with(KeepLogLines);
    tracing::subscriber::with_default(subscriber, || match level {
        tracing::Level::WARN => tracing::warn!(name = "a\nb", "{text}"),
        _ => tracing::info!("{text}"),
    });
}

fn texts(lines: &Value) -> Vec<&str> {
    let lines = lines.as_array().expect("lines");
    lines.iter().map(|line| line["text"].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn an_administrator_reads_the_last_lines_and_those_that_come() {
    let broker = Broker::start().await;
    write("log-test one", tracing::Level::INFO);
    write("log-test two", tracing::Level::WARN);
    let lines = broker.get("/api/log?contains=log-test&count=2").await.json();
    assert_eq!(texts(&lines), ["log-test one", "log-test two name=\"a\\nb\""]);
    assert_eq!((&lines[1]["level"], &lines[1]["target"]), (&"warn".into(), &"api::log".into()));
    let warnings = broker.get("/api/log?contains=log-test&level=warn").await.json();
    assert_eq!(texts(&warnings).len(), 1);
    assert_eq!(broker.get("/api/log?level=loud").await.status, 400);
    let path = "/api/log/stream?contains=log-test&count=1";
    let mut stream = follow(&broker, "guest", path, &[]).await;
    let text = until(&mut stream, "two").await;
    assert!(text.contains("event: line\ndata: {") && !text.contains("log-test one"), "{text}");
    write("log-test three", tracing::Level::INFO);
    until(&mut stream, "log-test three").await;
}

#[tokio::test]
async fn only_administrators_read_it() {
    let broker = Broker::start().await;
    broker.add_user("watcher", "monitoring", &["/"]);
    for path in ["/api/log", "/api/log/stream"] {
        assert_eq!(broker.call("GET", path, Some("watcher"), "").await.status, 401, "{path}");
    }
}
