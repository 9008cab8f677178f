//! What `courser ctl` says of messages, and what it answers to questions.

use crate::support::operated::Operated;
use crate::support::{Client, Heard};
use courser_codec::{FieldTable, FieldValue, ShortStr, Table, queue};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

/// A broker whose queue `orders` has three messages.
async fn with_orders() -> (Operated, Client) {
    let broker = Operated::start();
    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    client.declare("orders").await;
    for body in [&b"one"[..], b"two\n", b"\xff three"] {
        client.publish("orders", body).await;
    }
    assert_eq!(client.count("orders").await, 3);
    (broker, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_looked_at_and_saved_and_stay_as_they_are() {
    let (broker, mut client) = with_orders().await;
    let shown = broker.quiet(&["peek_messages", "orders", "--count", "2"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].starts_with("offset\tnumber\texchange\trouting_key\tredelivered\t"),
        "{shown}"
    );
    assert!(
        lines[1].starts_with("0\t") && lines[1].contains("\tfalse\t3\tstring\tone\t"),
        "{shown}"
    );
    assert!(lines[2].contains("\ttwo\\n\t"), "{shown}");
    assert_eq!(lines.len(), 3, "{shown}");
    let found = broker.json(&["peek_messages", "orders", "--contains", "three"]);
    assert_eq!(found[0]["offset"], 2, "{found}");
    assert_eq!(found[0]["payload_encoding"], "base64", "{found}");
    let file = broker.folder.path().join("payload");
    let path = file.to_str().expect("a path");
    assert!(broker.quiet(&["save_message", "orders", "2", path]).starts_with("7 bytes written"));
    assert_eq!(std::fs::read(&file).expect("the file"), b"\xff three");
    let mode = file.metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others may not read what is in the queue");
    broker.refused(73, &["save_message", "orders", "0", path]);
    assert_eq!(broker.quiet(&["save_message", "orders", "0", "-"]), "one");
    broker.refused(65, &["save_message", "orders", "9", "-"]);
    broker.refused(73, &["save_message", "orders", "0", "/nowhere/file"]);
    broker.refused(65, &["peek_messages", "nothing"]);
    broker.refused(64, &["peek_messages", "orders", "--count", "few"]);
    assert_eq!(client.count("orders").await, 3);
    client.consume("orders", false).await;
    client.bodies(3).await;
    let held = broker.json(&["list_unacknowledged", "orders"]);
    assert_eq!(held.as_array().map(Vec::len), Some(3), "{held}");
    assert_eq!((&held[0]["user"], &held[0]["payload_bytes"]), (&json!("guest"), &json!(3)));
    assert!(held[0]["channel"].as_str().expect("a channel").ends_with(" (1)"), "{held}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_moved_and_purged_as_far_as_is_asked_for() {
    let (broker, mut client) = with_orders().await;
    client.declare("parked").await;
    let moved = |arguments: &[&str]| {
        let all = [&["move_messages", "orders", "--to-queue", "parked"], arguments].concat();
        broker.quiet(&all)
    };
    assert_eq!(moved(&["--dry-run"]), "would move: 3\n");
    assert_eq!(moved(&["--contains", "two"]), "moved: 1\n");
    assert_eq!(client.counts("parked").await.0, 1);
    let first = broker.json(&["peek_messages", "orders", "--count", "1"]);
    let number = first[0]["number"].as_str().expect("a number").to_owned();
    assert_eq!(moved(&["--numbers", &number]), "moved: 1\n");
    assert_eq!(client.count("orders").await, 1);
    let to =
        ["move_messages", "parked", "--to-exchange", "amq.default", "--routing-key", "nowhere"];
    let stay = broker.quiet(&to);
    assert_eq!(stay, "moved: 0\nnot moved, as no queue takes them: 2\n");
    assert_eq!(broker.quiet(&["purge_queue", "parked", "--count", "1"]), "1 messages purged\n");
    assert_eq!(client.count("parked").await, 1);
    for wrong in [
        &["move_messages", "orders"][..],
        &["move_messages", "orders", "--to-queue", "a", "--to-origin"],
        &["move_messages", "orders", "--to-queue", "a", "--routing-key", "k"],
    ] {
        broker.refused(64, wrong);
    }
    broker.refused(65, &["move_messages", "orders", "--to-queue", "nothing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_in_words_and_for_programs() {
    let (broker, mut client) = with_orders().await;
    let why = broker.quiet(&["explain_queue", "orders"]);
    assert!(
        why.starts_with("severity\tkind\tsince\ttext\n") && why.contains("no_consumer"),
        "{why}"
    );
    broker.refused(65, &["explain_queue", "nothing"]);
    assert!(broker.quiet(&["attention"]).contains("3 messages wait in queue 'orders'"));
    let way = broker.quiet(&["trace_route", "amq.default", "orders"]);
    let words = "The default exchange sends it to one destination\n  binding 'orders' to queue 'orders'\n\
                 It goes to queue 'orders'\n";
    assert_eq!(way, words);
    assert!(broker.quiet(&["trace_route", "amq.topic", "a"]).ends_with("\nNo queue gets it\n"));
    let way = broker.json(&["trace_route", "", "orders"]);
    assert_eq!(way["queues"][0]["name"], "orders", "{way}");
    broker.quiet(&["add_user", "ada", "s3cret"]);
    broker.quiet(&["set_permissions", "ada", "", "", "^orders$"]);
    let may = broker.quiet(&["check_access", "ada", "read", "queue", "orders"]);
    assert_eq!(may, "read access to queue 'orders' in vhost '/' is granted to user 'ada'\n");
    let not = broker.refused(69, &["check_access", "ada", "write", "queue", "orders"]);
    assert!(
        not.contains("write access to queue 'orders' in vhost '/' refused for user 'ada'"),
        "{not}"
    );
    let policy = ["preview_policy", "short", "^ord", r#"{"max-length":1}"#, "--apply-to", "queues"];
    let preview = broker.quiet(&policy);
    assert!(
        preview.starts_with("It matches 1 queues, and would change 1 of them and 0 exchanges.\n")
    );
    assert!(preview.contains("queue 'orders': policy none -> short, arguments "), "{preview}");
    assert_eq!(client.count("orders").await, 3, "a preview changes nothing");
    broker.quiet(&["enable_feature_flag", "all"]);
    broker.ctl(&["set_policy", "bad", "(", r#"{"max-length":1}"#]);
    let audit = broker.json(&["audit_log", "--contains", "/policies/", "--result", "refused"]);
    let line = audit.as_array().and_then(|lines| lines.last()).expect("a line");
    assert_eq!((&line["method"], &line["status"]), (&json!("PUT"), &json!(400)), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_deleted_by_a_pattern_after_a_look() {
    let (broker, mut client) = with_orders().await;
    for name in ["tmp.a", "tmp.b", "tmp.full", "atmp."] {
        client.declare(name).await;
    }
    client.publish("tmp.full", b"kept").await;
    client.consume("tmp.b", false).await;
    assert_eq!(client.counts("tmp.full").await.0, 1);
    let delete =
        |more: &[&str]| broker.json(&[&["delete_queues", r"^tmp\.", "--if-empty"], more].concat());
    let names = |rows: &Value| {
        let names = rows.as_array().expect("rows").iter().map(|row| row["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&delete(&["--dry-run"])), ["tmp.a", "tmp.b"]);
    let rows = delete(&["--if-unused"]);
    assert_eq!((names(&rows), &rows[0]["result"]), (vec![json!("tmp.a")], &json!("deleted")));
    let left = broker.json(&["list_queues", "name"]);
    assert_eq!(names(&left), ["atmp.", "orders", "tmp.b", "tmp.full"]);
    broker.refused(64, &["delete_queues", "("]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_listed_with_what_their_messages_amount_to() {
    let (broker, mut client) = with_orders().await;
    client.consume("orders", false).await;
    assert_eq!(client.bodies(3).await.len(), 3);
    let columns = [
        "messages_persistent",
        "messages_ram",
        "messages_ready_ram",
        "messages_unacknowledged_ram",
        "message_bytes",
        "message_bytes_ready",
        "message_bytes_unacknowledged",
        "message_bytes_ram",
        "message_bytes_persistent",
        "head_message_timestamp",
    ];
    let listed = broker.quiet(&[&["-s", "list_queues"][..], &columns].concat());
    assert_eq!(listed, "0\t3\t0\t3\t14\t0\t14\t14\t0\t\n");
    let told = broker.json(&["list_queues", "memory", "idle_since"]);
    assert!(told[0]["memory"].as_u64() > Some(14), "{told}");
    assert!(told[0]["idle_since"].as_str().is_some_and(|time| time.starts_with("20")), "{told}");
    for absent in ["pid", "disk_reads", "slave_pids"] {
        broker.refused(64, &["list_queues", absent]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_tried_before_it_is_made() {
    let (broker, mut client) = with_orders().await;
    let file = broker.folder.path().join("definitions.json");
    let definitions = json!({
        "exchanges": [{ "name": "odd", "vhost": "/", "type": "x-nothing" }],
        "queues": [{ "name": "new", "vhost": "/", "durable": true }],
    });
    std::fs::write(&file, definitions.to_string()).expect("a file");
    let path = file.to_str().expect("a path");
    let plan = broker.json(&["import_definitions", path, "--dry-run"]);
    assert_eq!(plan.as_array().map(Vec::len), Some(2), "{plan}");
    assert_eq!((&plan[0]["action"], &plan[1]["action"]), (&json!("refuse"), &json!("create")));
    assert_eq!(plan[0]["detail"], "exchange 'odd': unknown exchange type 'x-nothing'", "{plan}");
    assert_eq!(broker.json(&["list_queues", "name"]).as_array().map(Vec::len), Some(1));
    assert_eq!(client.count("orders").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_of_what_is_not_in_the_file_are_skipped_and_named() {
    let (broker, _client) = with_orders().await;
    let to = |queue: &str| json!({ "source": "amq.topic", "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": "k", "arguments": {} });
    let definitions = json!({ "bindings": [to("gone"), to("amq.gen-1"), to("orders")] });
    std::fs::write(broker.folder.path().join("all"), definitions.to_string()).expect("a file");
    let plan = broker.json(&["import_definitions", "all", "--dry-run"]);
    let actions: Vec<&Value> =
        plan.as_array().expect("a list").iter().map(|one| &one["action"]).collect();
    assert_eq!(actions, ["skip", "skip", "create"], "{plan}");
    assert_eq!(plan[0]["detail"], "there is no queue 'gone', neither here nor in the file");
    let imported = broker.ctl(&["-q", "import_definitions", "all"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let bound = broker.quiet(&["-s", "list_bindings", "source_name", "destination_name"]);
    assert!(bound.contains("amq.topic\torders\n") && !bound.contains("gone"), "{bound}");
    let warned = broker.quiet(&["log_tail", "--level", "warn"]);
    let named =
        "'amq.topic' to queue 'gone' in vhost '/', 'amq.topic' to queue 'amq.gen-1' in vhost '/'";
    assert!(warned.contains("bindings not imported") && warned.contains(named), "{warned}");
    let said = &imported.error;
    assert!(said.starts_with("Warning: bindings not imported") && said.contains(named), "{said}");
}

#[test]
fn an_import_says_which_policies_have_keys_that_do_nothing_here() {
    let broker = Operated::start();
    let policy = |name: &str, definition: Value| json!({ "vhost": "/", "name": name, "pattern": "^q", "apply-to": "queues", "priority": 0, "definition": definition });
    let definitions = json!({ "policies": [
        policy("mixed", json!({ "federation-upstream-set": "all", "max-length": 5 })),
        policy("mirrors", json!({ "ha-mode": "all" })),
    ] });
    std::fs::write(broker.folder.path().join("all"), definitions.to_string()).expect("a file");
    let plan = broker.json(&["import_definitions", "all", "--dry-run"]);
    let actions: Vec<&Value> =
        plan.as_array().expect("a list").iter().map(|one| &one["action"]).collect();
    assert_eq!(actions, ["skip", "strip", "create"], "{plan}");
    let imported = broker.ctl(&["-q", "import_definitions", "all"]);
    let names = [
        "policy 'mixed' in vhost '/' (federation-upstream-set)",
        "policy 'mirrors' in vhost '/' (ha-mode)",
    ];
    let warned: Vec<&str> = imported.error.lines().collect();
    assert_eq!((imported.code, warned.len()), (Some(0), 2), "{imported:?}");
    let logged = broker.quiet(&["log_tail", "--level", "warn"]);
    for (line, name) in warned.iter().zip(names) {
        assert!(line.starts_with("Warning: policies ") && line.ends_with(name), "{line}");
        assert!(logged.contains(name), "{logged}");
    }
    let policies = broker.quiet(&["-s", "list_policies"]);
    assert!(policies.contains("mixed") && !policies.contains("mirrors"), "{policies}");
}

#[test]
fn parameters_that_do_nothing_are_warned_of_once_in_an_import_and_when_they_change() {
    let broker = Operated::start();
    let set = "federation-upstream-set";
    let row = |nth: usize| json!({ "vhost": "/", "component": set, "name": format!("n{nth}"), "value": [nth] });
    let definitions = json!({ "parameters": (0..30).map(row).collect::<Vec<_>>() });
    std::fs::write(broker.folder.path().join("all"), definitions.to_string()).expect("a file");
    let imported = broker.ctl(&["-q", "import_definitions", "all"]);
    let first = "'n0' of component 'federation-upstream-set' in vhost '/'";
    let said = &imported.error;
    assert!(said.contains(first) && said.ends_with(" and 10 more\n"), "{said}");
    let warned = || {
        let lines = broker.quiet(&["log_tail", "--level", "warn"]);
        lines.lines().filter(|line| line.contains("there are no shovels")).count()
    };
    assert_eq!((said.lines().count(), warned()), (1, 1), "{said}");
    broker.quiet(&["set_parameter", set, "n0", "[0]"]);
    assert_eq!(warned(), 1, "it was there");
    broker.quiet(&["set_parameter", set, "n0", "[1]"]);
    broker.quiet(&["set_parameter", set, "new", "[1]"]);
    assert_eq!(warned(), 3);
}

#[test]
fn an_export_for_rabbitmq_leaves_out_hashes_that_it_can_not_read() {
    let broker = Operated::start();
    let hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";
    let rows = json!([{ "name": "moved", "password_hash": hash, "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": [] }]);
    let file = broker.folder.path().join("all");
    std::fs::write(&file, json!({ "users": rows }).to_string()).expect("a file");
    broker.quiet(&["import_definitions", "all"]);
    broker.quiet(&["add_user", "made", "secret"]);
    let user = |document: &Value, name: &str| {
        let mut users = document["users"].as_array().expect("a list").iter();
        users.find(|user| user["name"] == name).expect("the user").clone()
    };
    let all = broker.json(&["export_definitions", "-"]);
    assert_eq!(user(&all, "made")["hashing_algorithm"], "argon2id");
    let exported = broker.ctl(&["-q", "export_definitions", "all", "--for-rabbitmq"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let warning =
        "Warning: users without a password, as RabbitMQ can't read the hashes that they have: ";
    let names = exported.error.trim_end().strip_prefix(warning).unwrap_or(&exported.error);
    assert!(names.split(", ").any(|name| name == "made") && !names.contains("moved"), "{names}");
    let text = std::fs::read(&file).expect("the file");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(user(&document, "moved")["password_hash"], hash);
    let made = user(&document, "made");
    let has_hash = made.get("password_hash").is_some() || made.get("hashing_algorithm").is_some();
    assert!(!has_hash && made["tags"] == json!([]), "{made}");
    broker.quiet(&["import_definitions", "all"]);
    assert!(
        broker
            .quiet(&["export_definitions", "-", "-p", "/", "--for-rabbitmq"])
            .contains("\"warnings\":[]")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_names_what_json_can_not_carry_and_leaves_it_out() {
    let broker = Operated::start();
    let mut client = Client::connect(broker.broker.address).await;
    client.open_channel().await;
    let named = |name| ShortStr::new(name).expect("short");
    let odd = FieldTable::new().with("x-note", FieldValue::LongStr(b"\xff".to_vec())).to_entries();
    let odd = Table::from_entries(&odd);
    for (name, arguments) in
        [(&b"text"[..], Table::default()), (b"gr\xf6n", Table::default()), (b"argued", odd)]
    {
        let (queue, durable) = (named(name), true);
        let declare = queue::Declare { queue, durable, arguments, ..Default::default() };
        let answer = client.call(declare).await;
        assert!(matches!(answer, Heard::DeclareOk { .. }), "{answer:?}");
        for key in [&b"key"[..], b"k\xe9y"] {
            let (exchange, routing_key) = (named(b"amq.direct"), named(key));
            let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
            assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
        }
    }
    let exported = broker.ctl(&["-q", "export_definitions", "all"]);
    let text = std::fs::read(broker.folder.path().join("all")).expect("the file");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let all = |list: &str, member: &str| -> Vec<Value> {
        let rows = document[list].as_array().expect("a list").iter();
        rows.map(|row| row[member].clone()).collect()
    };
    assert_eq!(
        (all("queues", "name"), all("bindings", "routing_key")),
        (vec![json!("text")], vec![json!("key")])
    );
    let left_out = "queue 'argued' in vhost '/', queue 'gr%F6n' in vhost '/', \
                    binding of queue 'text' to 'amq.direct' with key 'k%E9y' in vhost '/'";
    assert!(
        exported.error.starts_with("Warning: ") && exported.error.trim_end().ends_with(left_out),
        "{exported:?}"
    );
    // The name in the warning reaches it.
    let url = broker.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let delete = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let login = "authorization: Basic Z3Vlc3Q6Z3Vlc3Q=";
        let request =
            format!("DELETE {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{login}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 204"), "{path}: {answer}");
    };
    delete("/api/queues/%2F/gr%F6n");
    delete("/api/queues/%2F/argued");
    delete("/api/bindings/%2F/e/amq.direct/q/text/k%25EF%25BF%25BDy");
    broker.quiet(&["export_definitions", "all"]);
}
