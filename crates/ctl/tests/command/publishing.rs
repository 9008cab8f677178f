//! Publishing and consuming where the broker refuses, or something else stands before it.

use crate::support::{LOST, Server};

const JSON: &str = "application/json";

#[test]
fn a_message_that_is_not_routed_ends_with_how_many_were_published() {
    let unrouted = Server::start(|_, _| (200, JSON, r#"{"routed":false}"#));
    let failure = unrouted.ctl(&["publish", "-r", "q", "--count", "3", "x"]).expect_err("no queue");
    assert_eq!(failure.code, 69);
    assert!(failure.text.contains("Message published but NOT routed"), "{failure}");
    assert!(!failure.text.contains("Before that"), "{failure}");
    assert_eq!(unrouted.asked(), ["POST /api/exchanges/%2F//publish"], "it ends there");
}

#[test]
fn a_broker_that_is_lost_between_two_messages_is_told_with_those_before() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static PUBLISHED: AtomicUsize = AtomicUsize::new(0);
    let broker = Server::start(|_, _| match PUBLISHED.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => (200, JSON, r#"{"routed":true}"#),
        _ => (LOST, "", ""),
    });
    let failure = broker.ctl(&["publish", "-r", "q", "--count", "9", "x"]).expect_err("lost");
    assert_eq!(failure.code, 69);
    assert!(failure.text.ends_with("\nBefore that, 2 messages were published."), "{failure}");
}

#[test]
fn a_server_that_takes_no_web_socket_is_told_with_what_to_look_for() {
    for server in [
        Server::start(|_, _| (200, "text/html", "<html>Welcome</html>")),
        Server::start(|_, _| (404, JSON, r#"{"reason":"Not Found"}"#)),
        Server::start(|_, _| (403, JSON, r#"{"reason":"not from here"}"#)),
    ] {
        let failure = server.ctl(&["consume", "q"]).expect_err("no socket");
        assert_eq!(failure.code, 69, "{failure}");
        assert!(failure.text.contains("headers Upgrade and Connection"), "{failure}");
        assert_eq!(server.asked(), ["GET /ws/amqp"]);
    }
}
