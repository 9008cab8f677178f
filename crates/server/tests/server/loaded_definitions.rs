//! Definitions that are imported at each start, into a broker that has what clients have made since: none of that keeps it from
//! serving.

use crate::support::operated::Operated;
use crate::support::{Process, TestServer};
use courser::{Config, DefinitionsError, Server, StartError};
use courser_client::{
    Channel, Connection, DeleteQueueOptions, ExchangeKind, ExchangeOptions, FieldTable,
    QueueOptions,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use tempfile::TempDir;

/// With a user who may do everything in a vhost.
fn definitions(rest: Value) -> String {
    let Value::Object(mut all) = rest else { panic!("{rest}") };
    all.insert(
        "users".into(),
        json!([{ "name": "app", "password": "app", "tags": "administrator" }]),
    );
    let everything =
        json!({ "user": "app", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*" });
    all.insert("permissions".into(), json!([everything]));
    Value::Object(all).to_string()
}

/// A broker that imports definitions at each start, and logs into a file.
fn start(folder: TempDir, definitions: &str) -> Operated {
    let file = folder.path().join("definitions.json");
    fs::write(&file, definitions).expect("a file");
    let log = File::create(folder.path().join("log")).expect("a file");
    let mut command = Process::command();
    command.env("COURSER_MANAGEMENT_LOAD_DEFINITIONS", file).stderr(log);
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
    Operated { broker: Process::start_with(command), folder }
}

fn restart(operated: Operated, definitions: &str) -> Operated {
    let Operated { folder, mut broker } = operated;
    broker.signal("TERM");
    assert!(broker.wait().success());
    start(folder, definitions)
}

async fn open(operated: &Operated) -> (Connection, Channel) {
    let uri = format!("amqp://app:app@{}/shop", operated.broker.address);
    let connection = Connection::open(&uri).await.expect("it serves");
    let channel = connection.open_channel().await.expect("a channel");
    (connection, channel)
}

/// What is said of definitions that were left out, if anything is.
fn left_out(operated: &Operated) -> Option<String> {
    let findings = operated.json(&["attention"]);
    let findings = findings.as_array().expect("a list").clone();
    let finding = findings.into_iter().find(|one| one["kind"] == "definitions_left_out");
    finding.map(|finding| finding["text"].as_str().expect("a text").to_owned())
}

fn assert_logged(operated: &Operated, warning: &str) {
    let log = fs::read_to_string(operated.folder.path().join("log")).expect("a log");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("what is there")).collect();
    assert!(lines.len() == 1 && lines[0].contains(warning), "{log}");
    assert!(lines[0].contains("WARN"), "{}", lines[0]);
}

fn binding(source: &str, key: &str) -> Value {
    json!({
        "source": source, "vhost": "shop", "destination": "q", "destination_type": "queue",
        "routing_key": key, "arguments": {},
    })
}

fn bindings(operated: &Operated) -> Vec<String> {
    let rows = operated.json(&["list_bindings", "-p", "shop"]);
    let rows = rows.as_array().expect("a list").iter();
    let from = rows.filter_map(|row| row["source_name"].as_str());
    from.filter(|source| !source.is_empty()).map(str::to_owned).collect()
}

#[tokio::test]
async fn an_exchange_that_a_client_has_put_in_the_place_of_another_stops_no_start() {
    let file = definitions(json!({
        "vhosts": [{ "name": "shop" }],
        "exchanges": [{ "name": "e", "vhost": "shop", "type": "topic", "durable": true, "arguments": {} }],
        "queues": [{ "name": "q", "vhost": "shop", "durable": true, "arguments": {} }],
        "bindings": [binding("e", "orders.#"), binding("amq.topic", "all.#")],
    }));
    let operated = start(tempfile::tempdir().expect("a folder"), &file);
    assert_eq!(bindings(&operated), ["amq.topic", "e"]);
    assert_eq!(left_out(&operated), None);

    let (_connection, channel) = open(&operated).await;
    channel.exchange_delete("e", false).await.expect("deleted");
    let options = ExchangeOptions { durable: true, ..ExchangeOptions::default() };
    let kind = ExchangeKind::Other("x-consistent-hash".into());
    channel.exchange_declare("e", kind, options).await.expect("declared");
    channel.queue_unbind("q", "amq.topic", "all.#", FieldTable::new()).await.expect("unbound");
    let operated = restart(operated, &file);

    let (_connection, channel) = open(&operated).await;
    assert_eq!(bindings(&operated), ["amq.topic"], "the rest of the file");
    let why = "in vhost 'shop': binding to 'q': The binding key must be an integer";
    assert_logged(&operated, why);
    assert!(left_out(&operated).is_some_and(|text| text.contains(why)));

    channel.exchange_delete("e", false).await.expect("deleted");
    let operated = restart(operated, &file);
    assert_eq!(bindings(&operated), ["amq.topic", "e"]);
    assert_eq!(left_out(&operated), None, "it is mended");
}

#[tokio::test]
async fn a_queue_that_a_client_has_put_in_the_place_of_another_stops_no_start() {
    let file = definitions(json!({
        "vhosts": [{ "name": "shop", "limits": { "max-queues": 1 } }],
        "queues": [{ "name": "q", "vhost": "shop", "durable": true, "arguments": {} }],
        "bindings": [binding("amq.topic", "all.#")],
    }));
    let operated = start(tempfile::tempdir().expect("a folder"), &file);
    let (_connection, channel) = open(&operated).await;
    channel.queue_delete("q", DeleteQueueOptions::default()).await.expect("deleted");
    channel.queue_declare("other", QueueOptions::durable()).await.expect("declared");
    let operated = restart(operated, &file);

    let (_connection, channel) = open(&operated).await;
    channel.queue_info("other").await.expect("it is there");
    let why = "in vhost 'shop': queue 'q': cannot declare queue 'q': queue limit in vhost 'shop' (1) is reached";
    assert_logged(&operated, why);
    assert!(left_out(&operated).is_some_and(|text| text.contains(why)));
}

#[tokio::test]
async fn parameters_that_leave_no_room_stop_no_start_and_no_note_of_what_was_imported() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("definitions.json");
    // As large as those that leave no room for it: a small one may fit behind them.
    let large = "1".repeat((64 << 10) - 2);
    let text = json!({
        "global_parameters": [{ "name": "late", "value": large }],
        "queues": [{ "name": "q", "vhost": "/", "durable": true, "arguments": {} }],
    });
    fs::write(&file, text.to_string()).expect("a file");
    let with = || {
        let file = file.clone();
        move |config: &mut Config| {
            config.management.load_definitions = file;
            config.management.skip_if_unchanged = true;
        }
    };
    let server = TestServer::start().await;
    let full = |nth: u32| server.admin().set_global_parameter(&nth.to_string(), &large).is_err();
    assert!((0..1000).any(full), "there is a bound");
    let server = server.restart_with(with()).await;
    let admin = server.admin();
    admin.delete_queue("/", b"q", false, false).expect("it was imported");
    let noted = admin.global_parameter("imported_definitions_left_out").expect("noted");
    assert!(noted.contains("global parameter 'late': limit (16777216 bytes"), "{noted}");
    drop(admin);

    let server = server.restart_with(with()).await;
    assert!(server.admin().queue("/", b"q").is_err(), "the file is the same");
    assert_eq!(server.admin().global_parameter("imported_definitions_left_out"), Some(noted));
    server.stop().await;
}

#[tokio::test]
async fn what_no_broker_takes_stops_the_start_whatever_is_there() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("definitions.json");
    let queue =
        json!({ "name": "q", "vhost": "/", "durable": true, "arguments": { "x-max-length": -1 } });
    let text =
        json!({ "vhosts": [{ "name": "/", "limits": { "max-queues": 0 } }], "queues": [queue] });
    fs::write(&file, text.to_string()).expect("a file");
    let mut config = crate::support::config_in(&files);
    config.management.load_definitions = file;
    let error = Server::start(config).await.err().expect("it is wrong");
    let StartError::Definitions { error: DefinitionsError::Import(error), .. } = error else {
        panic!("{error:?}");
    };
    assert!(error.to_string().starts_with("queue 'q': "), "{error}");
}
