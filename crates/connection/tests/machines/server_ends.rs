//! How a server's connection ends, heartbeats, and blocking.

use std::time::Duration;

use courser_codec::*;
use courser_connection::server::Config;

use crate::common::*;

const SECOND: Duration = Duration::from_secs(1);

fn close() -> Vec<u8> {
    let text = "Goodbye".try_into().unwrap();
    frame(
        0,
        Method::ConnectionClose(connection::Close {
            reply_code: 200,
            reply_text: text,
            class_id: 0,
            method_id: 0,
        }),
    )
}

fn close_ok() -> Vec<u8> {
    frame(0, Method::ConnectionCloseOk(connection::CloseOk {}))
}

#[test]
fn a_client_that_closes_gets_close_ok_and_some_time_to_leave() {
    let mut server = Server::running();
    server.feed(&open_channel(1));
    server.sent.clear();
    let seen = server.feed(&[close(), publish(1, "q", b"late")].concat());
    assert_eq!(seen, [Seen::Closed { code: 200, text: "Goodbye".into(), ids: (0, 0) }]);
    assert_eq!(methods(&server.sent), [(0, Method::ConnectionCloseOk(connection::CloseOk {}))]);
    assert!(server.left.is_empty() && !server.machine.is_closed() && server.machine.is_closing());
    server.advance(Config::default().linger_timeout);
    assert!(server.machine.is_closed());
    assert_eq!(server.machine.poll_timeout(), None);
}

#[test]
fn an_error_of_the_connection_waits_for_close_ok_a_bounded_time() {
    for answers in [true, false] {
        let mut server = Server::running();
        server.feed(&open_channel(1));
        server.sent.clear();
        server.machine.connection_error(541, "oops", (60, 40), server.now);
        // What was under way is not acted on, whatever it is.
        assert_eq!(
            server
                .feed(&[publish(1, "q", &[0; 70_000]), open_channel(1), open_channel(0)].concat()),
            []
        );
        assert_eq!(server.sent_close(), (0, 541, "INTERNAL_ERROR - oops".to_owned(), (60, 40)));
        assert!(!server.machine.is_closed());
        if answers {
            server.feed(&close_ok());
        } else {
            server.advance(Config::default().close_timeout);
        }
        assert!(server.machine.is_closed());
        assert_eq!(server.machine.close_reason().map(|reason| reason.code), Some(541));
    }
}

#[test]
fn only_the_first_error_counts() {
    let mut server = Server::running();
    server.machine.connection_error(541, "first", (0, 0), server.now);
    server.machine.connection_error(540, "second", (0, 0), server.now);
    server.machine.channel_error(1, 404, "third", (0, 0), server.now);
    server.feed(&[]);
    assert_eq!(server.sent_close().2, "INTERNAL_ERROR - first");
}

#[test]
fn both_sides_may_close_at_once() {
    let mut server = Server::running();
    server.machine.shutdown("broker forced connection closure with reason 'shutdown'", server.now);
    server.feed(&[]);
    let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
    assert_eq!(server.sent_close(), (0, 320, text.to_owned(), (0, 0)));
    assert_eq!(server.feed(&close()), []);
    assert_eq!(methods(&server.sent), [(0, Method::ConnectionCloseOk(connection::CloseOk {}))]);
    server.advance(Config::default().linger_timeout);
    assert!(server.machine.is_closed());
}

#[test]
fn garbage_after_a_close_does_no_harm() {
    let mut server = Server::running();
    server.machine.shutdown("x", server.now);
    assert_eq!(server.feed(&[0xff; 100]), []);
    assert!(server.left.is_empty());
    server.advance(Config::default().linger_timeout);
    assert!(server.machine.is_closed());
}

#[test]
fn a_connection_without_a_protocol_header_is_shut_down_in_silence() {
    let mut server = Server::new(Config::default());
    server.machine.shutdown("x", server.now);
    assert!(server.machine.is_closed() && server.machine.output().is_empty());
}

#[test]
fn heartbeats_are_sent_at_half_the_interval_and_only_when_nothing_else_is() {
    let mut server = Server::running();
    assert_eq!(server.machine.poll_timeout(), Some(server.now + 30 * SECOND));
    server.advance(29 * SECOND);
    assert!(server.sent.is_empty());
    server.machine.bytes_sent(server.now);
    server.advance(SECOND);
    assert!(server.sent.is_empty());
    server.advance(29 * SECOND);
    assert_eq!(server.sent, HEARTBEAT_FRAME);
    server.sent.clear();
    server.feed(&HEARTBEAT_FRAME);
    server.advance(29 * SECOND);
    assert!(server.sent.is_empty());
    server.advance(SECOND);
    assert_eq!(server.sent, HEARTBEAT_FRAME);
}

#[test]
fn a_client_that_misses_two_heartbeats_is_gone() {
    let mut server = Server::running();
    for _ in 0..5 {
        server.advance(100 * SECOND);
        assert_eq!(server.feed(&HEARTBEAT_FRAME), []);
    }
    server.advance(119 * SECOND);
    assert!(!server.machine.is_closed());
    server.advance(SECOND);
    assert!(server.machine.is_closed());
    let reason = server.machine.close_reason().map(|reason| (reason.code, reason.text.as_str()));
    assert_eq!(reason, Some((0, "missed heartbeats from client, timeout: 60s")));
}

#[test]
fn a_client_whose_vhost_is_looked_for_is_not_gone() {
    let tune_ok = connection::TuneOk { heartbeat: 1, ..default_tune_ok() };
    let mut server = Server::new(Config::default());
    server.accept = false;
    server.feed(&PROTOCOL_HEADER);
    server.feed(&start_ok(&client_capabilities(), "PLAIN", b"\0guest\0guest"));
    server.machine.login_accepted(server.now);
    server.feed(&frame(0, Method::ConnectionTuneOk(tune_ok)));
    server.sent.clear();
    // What comes now is kept from the machine: `connection.open`, and all heartbeats behind it.
    for _ in 0..8 {
        server.advance(SECOND);
        assert!(!server.machine.is_closed());
    }
    assert_eq!(
        server.sent,
        HEARTBEAT_FRAME.repeat(8),
        "the client is told that this side is alive"
    );
    let open = connection::Open { virtual_host: "/".try_into().unwrap() };
    server.feed(&frame(0, Method::ConnectionOpen(open)));
    server.advance(SECOND);
    server.machine.open_accepted(server.now);
    // From now on its silence counts, as that of any other.
    server.advance(SECOND);
    assert!(!server.machine.is_closed());
    server.advance(SECOND);
    assert!(server.machine.is_closed());
    let reason = server.machine.close_reason().map(|reason| reason.text.as_str());
    assert_eq!(reason, Some("missed heartbeats from client, timeout: 1s"));
}

#[test]
fn any_bytes_count_as_a_sign_of_life() {
    let mut server = Server::running();
    let bytes = open_channel(1);
    server.advance(100 * SECOND);
    server.feed(&bytes[..3]);
    server.advance(100 * SECOND);
    assert!(!server.machine.is_closed());
    assert_eq!(server.feed(&bytes[3..]), [Seen::ChannelOpened(1)]);
}

#[test]
fn a_client_that_is_not_read_is_not_gone() {
    let mut server = Server::running();
    server.machine.set_reading(false, server.now);
    server.advance(1000 * SECOND);
    assert!(!server.machine.is_closed());
    assert_eq!(server.sent, HEARTBEAT_FRAME, "the client is told that this side is alive");
    server.machine.set_reading(true, server.now);
    server.advance(119 * SECOND);
    assert!(!server.machine.is_closed());
    server.advance(SECOND);
    assert!(server.machine.is_closed());
}

#[test]
fn blocked_goes_once_and_only_to_clients_that_want_it() {
    let mut server = Server::running();
    server.machine.unblocked();
    server.machine.blocked("low on memory");
    server.machine.blocked("low on disk");
    server.machine.unblocked();
    server.machine.unblocked();
    server.feed(&[]);
    let reason = "low on memory".try_into().unwrap();
    let expected = [
        (0, Method::ConnectionBlocked(connection::Blocked { reason })),
        (0, Method::ConnectionUnblocked(connection::Unblocked {})),
    ];
    assert_eq!(methods(&server.sent), expected);

    let mut server = Server::new(Config::default());
    server.feed(&handshake(FieldTable::new(), default_tune_ok()));
    server.sent.clear();
    server.machine.blocked("low on memory");
    server.feed(&[]);
    assert!(server.sent.is_empty());
}
