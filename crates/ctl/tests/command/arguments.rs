//! Arguments that are refused before a broker is asked, and those that are its to judge.

use crate::support::Server;

/// A broker with three queues that deletes whatever it is told to.
fn broker() -> Server {
    Server::start(|method, path| match (method, path) {
        ("GET", "/api/whoami") => (200, "application/json", r#"{"name":"guest"}"#),
        ("GET", path) if path.starts_with("/api/queues/orders?") => {
            (200, "application/json", r#"[{"name":"keep"},{"name":"a"},{"name":"b.keep"}]"#)
        }
        ("DELETE", _) => (204, "", ""),
        _ => (404, "application/json", r#"{"error":"Object Not Found","reason":"Not Found"}"#),
    })
}

#[test]
fn an_empty_pattern_does_not_delete_every_queue() {
    let broker = broker();
    let failure = broker.ctl(&["delete_queues", "-p", "orders", ""]).expect_err("no pattern");
    assert_eq!(failure.code, 64);
    assert!(failure.text.contains("give '.*' for all queues"), "{failure}");
    assert_eq!(broker.asked(), [""; 0]);
}

#[test]
fn a_pattern_for_queues_may_look_around_and_the_vhost_has_to_exist() {
    let broker = broker();
    broker.ctl(&["delete_queues", "-p", "orders", "^(?!keep)"]).expect("deleted");
    let deleted = ["DELETE /api/queues/orders/a?", "DELETE /api/queues/orders/b.keep?"];
    assert_eq!(broker.asked()[1..], deleted);
    let failure = broker.ctl(&["delete_queues", "-p", "none", ".*"]).expect_err("no vhost");
    assert_eq!(failure.code, 65);
    assert!(failure.text.contains("Virtual host 'none' does not exist"), "{failure}");
}

#[test]
fn an_empty_name_is_refused_before_anything_is_asked() {
    let broker = broker();
    for command in [
        &["add_vhost", ""][..],
        &["delete_vhost", ""],
        &["add_user", "", "x"],
        &["delete_user", ""],
        &["clear_permissions", ""],
        &["list_queues", "-p", ""],
        &["clear_policy", ""],
        &["set_policy", "", ".*", "{}"],
        &["delete_queue", ""],
    ] {
        let failure = broker.ctl(command).expect_err("no name");
        assert_eq!(failure.code, 64, "{command:?}: {failure}");
        assert!(failure.text.contains("is empty"), "{failure}");
    }
    assert_eq!(broker.asked(), [""; 0]);
}
