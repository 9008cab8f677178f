//! What answers is not a broker, or has its API elsewhere.

use crate::support::Server;

const COMMANDS: &[&[&str]] = &[
    &["check_alarms"],
    &["check_local_alarms"],
    &["check_running"],
    &["check_virtual_hosts"],
    &["list_queues"],
    &["list_user_limits", "alice"],
    &["export_definitions", "-"],
    &["set_permissions", "alice", "", "", ""],
    &["clear_permissions", "alice"],
    &["delete_user", "alice"],
    &["set_user_tags", "alice", "management"],
    &["purge_queue", "orders"],
    &["pause_queue", "orders"],
    &["set_vhost_limits", "{\"max-queues\": 1}"],
    &["clear_vhost_limits"],
];

fn all_refused(server: &Server) {
    for command in COMMANDS {
        let failure = server.ctl(command).expect_err("no broker");
        assert_eq!(failure.code, 69, "{command:?}: {failure}");
        assert!(failure.text.contains("there is no HTTP API of a broker at http://"), "{failure}");
        assert!(failure.text.contains("path prefix"), "{failure}");
    }
}

#[test]
fn a_web_server_that_has_a_page_for_everything_is_no_broker() {
    let server = Server::start(|_, _| (200, "text/html", "<html>Welcome</html>"));
    all_refused(&server);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("definitions.json");
    let file = file.to_str().expect("text");
    server.ctl(&["export_definitions", file]).expect_err("no broker");
    assert!(!std::path::Path::new(file).exists(), "a page was written as definitions");
}

#[test]
fn a_broker_whose_api_is_below_another_path_is_told_from_one_without_the_object() {
    all_refused(&Server::start(|_, _| (404, "text/plain", "not found")));
    all_refused(&Server::start(|_, _| (404, "", "")));
    all_refused(&Server::start(|_, _| {
        (404, "application/json", r#"{"error":"Object Not Found","reason":"Not Found"}"#)
    }));
    let broker = Server::start(|_, path| match path {
        "/api/whoami" => (200, "application/json", r#"{"name":"guest"}"#),
        // The vhost is there.
        path if path.starts_with("/api/policies/%2F?") => (200, "application/json", "[]"),
        _ => (404, "application/json", r#"{"error":"Object Not Found","reason":"Not Found"}"#),
    });
    for command in [&["delete_user", "alice"][..], &["clear_permissions", "alice"]] {
        broker.ctl(command).expect("nothing to delete is success");
    }
    assert_eq!(broker.asked()[..2], ["DELETE /api/users/alice", "GET /api/whoami"]);
}

#[test]
fn health_that_is_not_said_to_be_good_is_not_good() {
    let server = Server::start(|_, _| (200, "application/json", "{\"hello\": 1}"));
    let failure = server.ctl(&["check_alarms"]).expect_err("no broker");
    assert!(failure.text.contains("there is no HTTP API"), "{failure}");
}
