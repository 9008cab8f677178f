//! Commands that do many things, one after the other.

use crate::support::Server;

const JSON: &str = "application/json";

/// A broker of five objects of each kind that refuses a change of the third.
fn broker() -> Server {
    Server::start(|method, path| match (method, path.split('?').next().unwrap_or_default()) {
        ("GET", "/api/users/alice") => (200, JSON, r#"{"name":"alice"}"#),
        ("GET", _) => (
            200,
            JSON,
            r#"[{"name":"a","vhost":"/","messages":0},{"name":"b","vhost":"/","messages":0},
                {"name":"c","vhost":"/","messages":0},{"name":"d","vhost":"/","messages":0},
                {"name":"e","vhost":"/","messages":0}]"#,
        ),
        (_, path) if path.split('/').any(|part| part == "c") => {
            (503, JSON, r#"{"error":"Unavailable","reason":"no leader"}"#)
        }
        _ => (204, "", ""),
    })
}

#[test]
fn one_that_is_refused_is_named_with_how_many_were_done() {
    for command in [
        &["delete_queues", "."][..],
        &["close_all_connections", "--global", "bye"],
        &["set_permissions_globally", "alice", "", "", ""],
    ] {
        let broker = broker();
        let failure = broker.ctl(command).expect_err("the third is refused");
        assert_eq!(failure.code, 69, "{command:?}: {failure}");
        assert_eq!(failure.text, "Error:\nno leader\nThis was 3 of 5: c", "{command:?}");
        let changes = broker.asked().into_iter().filter(|one| !one.starts_with("GET ")).count();
        assert_eq!(changes, 3, "{command:?}");
    }
}

#[test]
fn what_stands_in_the_name_of_one_that_is_refused_begins_no_line() {
    let broker = Server::start(|method, _| match method {
        "GET" => (200, JSON, r#"[{"name":"a\u001b[2J\nError: b","vhost":"/","messages":0}]"#),
        _ => (503, JSON, r#"{"error":"Unavailable","reason":"no leader"}"#),
    });
    let failure = broker.ctl(&["delete_queues", "."]).expect_err("it is refused");
    let expected = "Error:\nno leader\nThis was 1 of 1: a\\u{1b}[2J\\nError: b";
    assert_eq!(failure.text, expected);
}
