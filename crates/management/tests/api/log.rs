//! The broker's log over HTTP.

use crate::direct::{Asked, Direct};
use crate::support::{Broker, follow, until};
use courser::KeepLogLines;
use courser_auth::Permission;
use courser_broker::admin::NewQueue;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Who asks for what the log is told of, and shall not fill it.
const FLOODER: &str = "flooder";
/// What the log is told of it, from the level info on.
static OF_FLOODER: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps what the log is told of the one user.
struct KeepOfFlooder;

impl<S: tracing::Subscriber> Layer<S> for KeepOfFlooder {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if *event.metadata().level() <= tracing::Level::INFO && line.0.contains(FLOODER) {
            OF_FLOODER.lock().expect("no panic").push(line.0);
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

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

#[tokio::test]
async fn what_users_ask_for_again_and_again_does_not_fill_it() {
    let keeping = tracing_subscriber::registry().with(KeepOfFlooder);
    tracing::subscriber::set_global_default(keeping).expect("no other test has one");
    let direct = Direct::new();
    direct.add_user(FLOODER, "policymaker");
    let admin = direct.broker.admin();
    admin.change_vhost(FLOODER, |_| ()).expect("a vhost");
    admin.set_permission(FLOODER, FLOODER, Permission::all()).expect("a permission");
    let queue = || NewQueue { durable: true, auto_delete: false, arguments: Default::default() };
    for name in ["a", "b"] {
        admin.declare_queue(FLOODER, name, queue()).expect("a queue");
    }
    let parameter = |nth: usize| format!(r#"{{"value":{{"uri":"amqp://{nth}"}}}}"#);
    let ask = async |nth: usize| {
        direct.log_in(FLOODER).await;
        let value = parameter(nth);
        let asked = [
            ("POST", "/api/queues/flooder/a/move", r#"{"to":{"queue":"b"}}"#),
            ("PUT", "/api/parameters/federation-upstream/flooder/x", &value),
        ];
        for (method, path, body) in asked {
            let answer = direct.ask(Asked { body, ..Asked::new(method, path).by(FLOODER) }).await;
            assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
        }
    };
    for nth in 0..150 {
        ask(nth).await;
    }
    let mut odd = queue();
    odd.arguments.insert("n".try_into().expect("a key"), f64::NAN);
    admin.declare_queue(FLOODER, "odd", odd).expect("a queue");
    direct.add_user("root", "administrator");
    let export = Asked::new("GET", "/api/definitions/flooder").by("root");
    let exported = direct.ask(export).await.json();
    let warning = exported["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("'odd' in vhost 'flooder'"), "{warning}");
    let count = |text: &str| {
        OF_FLOODER.lock().expect("no panic").iter().filter(|line| line.contains(text)).count()
    };
    let look = || (count("session begun"), count("messages moved"), count("a parameter is kept"));
    assert_eq!(look(), (0, 100, 100), "all of it within one interval");
    assert_eq!(count("'odd'"), 0, "the export says it");
    // Later there is room again, and it is said how much was left out.
    direct.now_ms.fetch_add(10_000, Ordering::Relaxed);
    ask(150).await;
    assert_eq!(look(), (0, 101, 101));
    assert_eq!(count("suppressed=50"), 2);
}
