//! Who has asked for which change.

use crate::direct::{Asked, Direct, HERE, head};
use crate::support::Broker;
use courser::Management;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use serde_json::{Value, json};
use std::io::Write;
use tokio::io::AsyncWriteExt;

/// Method, path, user and status of a line.
fn line(line: &Value) -> (&Value, &Value, &Value, &Value) {
    (&line["method"], &line["path"], &line["user"], &line["status"])
}

#[tokio::test]
async fn changes_are_noted_with_who_asked_and_what_came_of_it() {
    let broker = Broker::start().await;
    broker.add_user("small", "management", &["/"]);
    let secret = json!({ "password": "hunter2", "tags": "" }).to_string();
    broker.send("PUT", "/api/users/new", &secret).await;
    broker.get("/api/overview").await;
    broker.call("DELETE", "/api/users/new", Some("small"), "").await;
    broker.call("DELETE", "/api/queues/%2F/q?if-empty=true", Some("stranger"), "").await;
    let log = broker.get("/api/audit").await.json();
    let expected = [
        ("DELETE", "/api/queues/%2F/q?if-empty=true", Value::Null, 401),
        ("DELETE", "/api/users/new", json!("small"), 401),
        ("PUT", "/api/users/new", json!("guest"), 201),
    ];
    assert_eq!(log.as_array().map(Vec::len), Some(expected.len()), "{log}");
    for (nth, (method, path, user, status)) in expected.into_iter().enumerate() {
        assert_eq!(line(&log[nth]), (&json!(method), &json!(path), &user, &json!(status)));
        assert!(log[nth]["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")));
    }
    assert!(!log.to_string().contains("hunter2"), "{log}");
    assert_eq!(broker.get("/api/audit?count=1").await.json().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn requests_that_find_nothing_are_noted_too_and_no_secret_of_a_query() {
    let broker = Broker::start().await;
    broker.send("POST", "/api/nothing/of/this/name", "").await;
    broker.send("PATCH", "/api/users/guest", "").await;
    broker.send("DELETE", "/api/queues/%2F/q?if-empty=true&_token=geheim", "").await;
    let log = broker.get("/api/audit").await.json();
    let expected = [
        ("DELETE", "/api/queues/%2F/q?if-empty=true&_token=...", 404),
        ("PATCH", "/api/users/guest", 405),
        ("POST", "/api/nothing/of/this/name", 404),
    ];
    assert_eq!(log.as_array().map(Vec::len), Some(expected.len()), "{log}");
    for (nth, (method, path, status)) in expected.into_iter().enumerate() {
        let (found, at, _, came) = line(&log[nth]);
        assert_eq!((found, at, came), (&json!(method), &json!(path), &json!(status)));
    }
}

/// How many requests are in the log besides those that are counted only, and how many are not in it.
async fn noted(direct: &Direct) -> (usize, u64) {
    let log = direct.ask(Asked::new("GET", "/api/audit?count=1000").by("boss")).await.json();
    let lines = log.as_array().expect("a list");
    let left_out = lines.iter().filter_map(|line| line["left_out"].as_u64()).sum();
    (lines.len(), left_out)
}

/// A broker on whose clock no time passes, with an administrator and a user who may change nothing.
fn audited(folder: &tempfile::TempDir) -> Direct {
    let direct = Direct::audited(folder.path().join("audit.log"));
    direct.add_user("boss", "administrator");
    direct.add_user("low", "management");
    direct
}

#[tokio::test]
async fn questions_are_not_noted_whatever_their_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let direct = audited(&folder);
    let body = json!({ "vhost": "/", "right": "read", "resource": "queue", "name": "q" });
    let body = body.to_string();
    let path = "/api/access/check?_a=1";
    let answer = direct.ask(Asked { body: &body, ..Asked::new("POST", path).by("low") }).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(noted(&direct).await, (0, 0));
}

#[tokio::test]
async fn logins_and_requests_that_do_not_come_whole_do_not_drive_out_changes() {
    const REQUESTS: usize = 100;
    const MOST: usize = 60;
    let folder = tempfile::tempdir().expect("a folder");
    let direct = audited(&folder);
    for _ in 0..REQUESTS {
        direct.log_in("low").await;
    }
    assert_eq!(noted(&direct).await, (MOST, 0));
    direct.now_ms.fetch_add(60_000, std::sync::atomic::Ordering::Relaxed);
    for _ in 0..REQUESTS {
        let mut stream = direct.connect(HERE);
        let request = head(&Asked::new("PUT", "/api/queues/%2F/q").by("low"), 10);
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        tokio::task::yield_now().await;
    }
    // A line says what was left out before it.
    let mut changes = 0;
    let all = async {
        loop {
            let path = format!("/api/vhosts/{changes}");
            let change = direct.ask(Asked { body: "{}", ..Asked::new("PUT", &path).by("boss") });
            assert_eq!(change.await.status, 201);
            changes += 1;
            let (lines, left_out) = noted(&direct).await;
            if lines + left_out as usize >= 2 * REQUESTS + changes {
                return lines;
            }
        }
    };
    let lines =
        tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("in time");
    assert_eq!(lines, 2 * MOST + changes);
}

#[tokio::test]
async fn what_is_refused_half_way_is_noted_whatever_was_refused_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let direct = audited(&folder);
    let json = [("content-type", "application/json")];
    let send = async |method: &str, path: &str, body: &str| {
        direct.ask(Asked { body, headers: &json, ..Asked::new(method, path).by("boss") }).await
    };
    let all = r#"{"configure":".*","write":".*","read":".*"}"#;
    assert_eq!(send("PUT", "/api/permissions/%2F/boss", all).await.status, 201);
    let full = json!({ "arguments": { "x-max-length": 0, "x-overflow": "reject-publish" } });
    assert_eq!(send("PUT", "/api/queues/%2F/full", &full.to_string()).await.status, 201);
    for _ in 0..100 {
        assert_eq!(send("DELETE", "/api/users/none", "").await.status, 404);
    }
    let users = json!([{ "name": "evil", "tags": ["administrator"] }, { "name": "" }]);
    let file = json!({ "users": users }).to_string();
    let message = json!({
        "routing_key": "full", "properties": {}, "payload": "m", "payload_encoding": "string",
    });
    for (path, body) in [
        ("/api/definitions", file),
        ("/api/exchanges/%2F/amq.default/publish", message.to_string()),
    ] {
        let refused = send("POST", path, &body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        let log = direct.ask(Asked::new("GET", "/api/audit?count=1").by("boss")).await.json();
        assert_eq!((&log[0]["path"], &log[0]["status"]), (&json!(path), &json!(400)));
        assert_eq!(refused.headers.get("x-courser-partial").map(String::as_str), Some("true"));
    }
    let refused = send("DELETE", "/api/users/none", "").await;
    assert!(!refused.headers.contains_key("x-courser-partial"), "{refused:?}");
}

#[tokio::test]
async fn it_is_read_page_by_page_and_by_who_did_what() {
    let broker = Broker::start().await;
    for nth in 0..5 {
        broker.send("PUT", &format!("/api/queues/%2F/q{nth}"), "{}").await;
    }
    broker.send("DELETE", "/api/queues/%2F/q3", "").await;
    let page = |query: &'static str| {
        let broker = &broker;
        async move {
            let page = broker.get(&format!("/api/audit?{query}")).await.json();
            let items = page["items"].as_array().expect("items");
            let paths = items.iter().map(|line| line["path"].as_str().expect("a path"));
            let names = paths.filter_map(|path| path.rsplit('/').next());
            (names.map(str::to_owned).collect::<Vec<_>>(), page["has_more"].clone())
        }
    };
    let two = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
    assert_eq!(page("page=1&page_size=2").await, (two("q3", "q4"), json!(true)));
    assert_eq!(page("page=3&page_size=2").await, (two("q1", "q0"), json!(false)));
    assert_eq!(page("page=1&contains=q3").await, (two("q3", "q3"), json!(false)));
    assert_eq!(page("page=1&contains=q3&method=PUT").await.0, ["q3"]);
    assert!(page("page=1&user=stranger").await.0.is_empty());
    assert_eq!(page("page=1&search=GUEST+put+//q3+201").await.0, ["q3"], "with its escapes read");
    assert_eq!(
        page("page=1&page_size=1&search=%2F+delete").await,
        (vec!["q3".to_owned()], json!(true))
    );
    assert!(page("page=1&search=q3+stranger").await.0.is_empty());
    broker.send("DELETE", "/api/queues/%2F/q9", "").await;
    assert_eq!(page("page=1&result=refused").await, (vec!["q9".to_owned()], json!(false)));
    assert_eq!(page("page=1&page_size=1&result=done").await, (vec!["q3".to_owned()], json!(true)));
    assert_eq!(broker.get("/api/audit?result=maybe").await.status, 400);
}

#[tokio::test]
async fn the_audit_log_can_be_turned_off() {
    let management = Management { audit_log: "none".into(), ..Management::default() };
    let broker = Broker::start_with(management).await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    assert_eq!(broker.get("/api/audit").await.json(), json!([]));
}

#[tokio::test]
async fn what_the_broker_has_not_is_empty_or_refused() {
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    for path in [
        "/api/shovels",
        "/api/shovels/%2F",
        "/api/federation-links",
        "/api/federation-links/state/down/",
        "/api/traces",
        "/api/users/guest/queues",
        "/api/stream/connections",
        "/api/stream/connections/%2F",
        "/api/stream/publishers/%2F",
        "/api/stream/consumers/%2F",
    ] {
        assert_eq!(broker.get(path).await.json(), json!([]), "{path}");
    }
    for path in [
        "/api/shovels/none",
        "/api/shovels/vhost/%2F/s",
        "/api/users/none/queues",
        "/api/traces/none",
        "/api/stream/connections/none",
    ] {
        assert_eq!(broker.get(path).await.status, 404, "{path}");
    }
    let action = broker.send("POST", "/api/queues/%2F/q/actions", "{\"action\":\"sync\"}").await;
    assert_eq!((action.status, action.refusal().1), (400, json!(["unknown", "sync"])));
    assert_eq!(broker.get("/api/queues/quorum/%2F/q/status").await.status, 400);
    let add = broker.send("POST", "/api/queues/quorum/%2F/q/replicas/add", "{}").await;
    assert_eq!(add.status, 400);
}

#[tokio::test]
async fn a_disk_that_takes_no_line_keeps_no_request_from_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.log");
    mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).expect("a pipe");
    let pipe = open(&path, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).expect("it is opened");
    let mut pipe = std::fs::File::from(pipe);
    let management = Management { audit_log: path, ..Management::default() };
    let broker = Broker::start_with(management).await;
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    assert_eq!(broker.send("PUT", "/api/queues/%2F/q", "{}").await.status, 201);
    let attention = broker.get("/api/attention").await.json();
    let kinds = attention.as_array().expect("a list").iter().map(|finding| &finding["kind"]);
    assert!(kinds.into_iter().any(|kind| kind == "audit_log"), "{attention}");
    assert_eq!(broker.get("/api/overview").await.status, 200);
}
