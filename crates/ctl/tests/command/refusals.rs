//! What is not there, what the broker refuses, and what must not be said to have succeeded.

use crate::support::Server;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::{fs::PermissionsExt, net::UnixStream};
use std::process::Command;

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
fn users_of_a_broker_of_an_earlier_version_are_neither_replaced_nor_denied() {
    // It takes no notice of If-None-Match, and has no path for passwords.
    let broker = Server::start(|method, path| match (method, path) {
        ("GET", "/api/users/alice" | "/api/whoami") => {
            (200, "application/json", r#"{"name":"alice","tags":["administrator"]}"#)
        }
        ("PUT", "/api/users/alice" | "/api/users/bob") => (204, "", ""),
        _ => NOT_FOUND,
    });
    let failure = broker.ctl(&["add_user", "alice", "secret"]).expect_err("there is one");
    assert_eq!((failure.code, failure.text.contains("already exists")), (70, true), "{failure}");
    for command in [&["change_password", "alice", "secret"][..], &["clear_password", "alice"]] {
        let failure = broker.ctl(command).expect_err("it can't");
        assert_eq!(failure.code, 69, "{failure}");
        assert!(failure.text.contains("it is of an earlier version"), "{failure}");
    }
    let failure = broker.ctl(&["clear_password", "carol"]).expect_err("no such user");
    let text = "User \"carol\" does not exist";
    assert_eq!((failure.code, failure.text.contains(text)), (67, true), "{failure}");
    let has_put = |path: &str| broker.asked().contains(&format!("PUT {path}"));
    assert!(!has_put("/api/users/alice"), "{:?}", broker.asked());
    broker.ctl(&["add_user", "bob", "secret"]).expect("there is none");
    assert!(has_put("/api/users/bob"), "{:?}", broker.asked());
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

/// Set for a process that is to export: the name of the file.
const CHILD: &str = "COURSER_TEST_EXPORT_TO";

#[test]
fn an_export_to_standard_output_is_only_the_document_by_each_of_its_names() {
    let document = r#"{"users":[]}"#;
    if let Ok(name) = std::env::var(CHILD) {
        let exports = Server::start(|_, _| (200, "application/json", r#"{"users":[]}"#));
        return exports.ctl_aloud(&["export_definitions", &name]).expect("exported");
    }
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        // As a service has it. It can't be opened once more.
        let (mut here, there) = UnixStream::pair().expect("a socket");
        let this = std::env::current_exe().expect("a path");
        let test =
            "refusals::an_export_to_standard_output_is_only_the_document_by_each_of_its_names";
        let mut child = Command::new(this)
            .args([test, "--exact", "--nocapture"])
            .env(CHILD, name)
            .stdout(OwnedFd::from(there))
            .spawn()
            .expect("a process");
        let mut said = String::new();
        here.read_to_string(&mut said).expect("text");
        assert!(child.wait().expect("its end").success(), "{name}: {said}");
        assert!(said.contains(document), "{name}: {said}");
        assert!(!said.contains("Exporting"), "{name}: {said}");
    }
}
