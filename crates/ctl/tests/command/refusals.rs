//! What is not there, what the broker refuses, and what must not be said to have succeeded.

use crate::support::Server;
use std::os::unix::fs::PermissionsExt;

/// What an API says of what it does not have.
const NOT_FOUND: (u16, &str, &str) =
    (404, "application/json", r#"{"error":"Object Not Found","reason":"Not Found"}"#);

#[test]
fn a_list_of_a_vhost_that_does_not_exist_is_no_empty_list() {
    let broker = Server::start(|_, path| match path {
        "/api/whoami" => (200, "application/json", r#"{"name":"guest"}"#),
        _ => NOT_FOUND,
    });
    for command in ["list_queues", "list_exchanges", "list_policies", "list_operator_policies"] {
        let failure = broker.ctl(&[command, "-p", "none"]).expect_err("no vhost");
        assert_eq!(failure.code, 65, "{command}: {failure}");
        assert!(failure.text.contains("Virtual host 'none' does not exist"), "{failure}");
    }
}

#[test]
fn a_password_is_good_only_where_the_broker_says_so() {
    type Answer = (u16, &'static str, &'static str);
    type Case = (fn(&str, &str) -> Answer, Option<u8>);
    let cases: [Case; 5] = [
        (|_, _| (200, "application/json", r#"{"name":"alice"}"#), None),
        (|_, _| (401, "application/json", r#"{"reason":"Not management user"}"#), None),
        (|_, _| (401, "application/json", r#"{"reason":"Not_Authorized"}"#), Some(65)),
        (
            |_, _| {
                let body = r#"{"reason":"HTTP access denied: basic auth disabled"}"#;
                (401, "application/json", body)
            },
            Some(69),
        ),
        (
            |_, _| (401, "application/json", r#"{"reason":"User can only log in via localhost"}"#),
            Some(69),
        ),
    ];
    for (answer, expected) in cases {
        let came = Server::start(answer).ctl(&["authenticate_user", "alice", "secret"]);
        assert_eq!(came.err().map(|failure| failure.code), expected, "{:?}", answer("", ""));
    }
}

#[test]
fn an_export_makes_a_new_file_that_only_its_owner_reads_or_leaves_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("definitions.json");
    std::fs::write(&file, "old").expect("a file");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("its mode");
    let name = file.to_str().expect("text");
    let read = || std::fs::read_to_string(&file).expect("it is there");
    let refuses = Server::start(|_, _| (401, "application/json", r#"{"reason":"Not_Authorized"}"#));
    assert_eq!(refuses.ctl(&["export_definitions", name]).expect_err("refused").code, 77);
    assert_eq!(read(), "old");
    let exports = Server::start(|_, _| (200, "application/json", r#"{"users":[]}"#));
    exports.ctl(&["export_definitions", name]).expect("exported");
    let mode = file.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((read().as_str(), mode), (r#"{"users":[]}"#, 0o600));
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1,
        "nothing else is left"
    );
}
