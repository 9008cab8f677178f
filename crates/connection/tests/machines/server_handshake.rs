//! The server's handshake: what is offered, what is accepted, and what ends the connection.

use courser_codec::*;
use courser_connection::server::{Config, Connection, Event};
use courser_connection::{Capabilities, ClosedBy, Mechanism, Mechanisms, login_refusal};

use crate::common::*;

/// A server that waits for `connection.start-ok`, with nothing to be read from it.
fn started(config: Config) -> Server {
    let mut server = Server::new(config);
    assert_eq!(server.feed(&PROTOCOL_HEADER), []);
    server.sent.clear();
    server
}

/// A server that waits for `connection.tune-ok`.
fn tuning(config: Config) -> Server {
    let mut server = started(config);
    server.feed(&start_ok(&client_capabilities(), "PLAIN", b"\0guest\0guest"));
    server.sent.clear();
    server
}

/// What a client sees that answers `connection.tune` so.
fn tuned(tune_ok: connection::TuneOk) -> (u16, u16, String, (u16, u16)) {
    let mut server = tuning(Config::default());
    server.feed(&frame(0, Method::ConnectionTuneOk(tune_ok)));
    server.sent_close()
}

#[test]
fn a_client_that_pipelines_its_handshake_gets_in() {
    let mut server = Server::new(Config::default());
    let seen = server.feed(&handshake(client_capabilities(), default_tune_ok()));
    assert!(
        matches!(&seen[..], [Seen::Login { user, .. }, Seen::Open(vhost)] if user == "PLAIN(guest)" && vhost == "/")
    );
    let names: Vec<_> = methods(&server.sent).iter().map(|(_, method)| method.name()).collect();
    assert_eq!(names, ["connection.start", "connection.tune", "connection.open-ok"]);
    let seen = server.feed(&[open_channel(1), publish(1, "q", b"hello")].concat());
    assert!(
        matches!(&seen[..], [Seen::ChannelOpened(1), Seen::Publish { channel: 1, .. }]),
        "{seen:?}"
    );
}

#[test]
fn the_offer_names_version_mechanisms_locale_and_limits() {
    let mut server = Server::new(Config::default());
    server.feed(&PROTOCOL_HEADER);
    let sent = std::mem::take(&mut server.sent);
    let [(0, Method::ConnectionStart(start))] = methods(&sent)[..] else { panic!() };
    assert_eq!((start.version_major, start.version_minor), (0, 9));
    assert_eq!(start.mechanisms, b"PLAIN AMQPLAIN");
    assert_eq!(start.locales, b"en_US");
    let properties = start.server_properties.to_owned().unwrap();
    let Some(FieldValue::Table(capabilities)) = properties.get("capabilities") else { panic!() };
    assert_eq!(capabilities.len(), 9);
    assert!(capabilities.iter().all(|(_, value)| *value == FieldValue::Bool(true)));

    server.feed(&start_ok(&client_capabilities(), "PLAIN", b"\0guest\0guest"));
    let [(0, Method::ConnectionTune(tune))] = methods(&server.sent)[..] else { panic!() };
    assert_eq!((tune.channel_max, tune.frame_max, tune.heartbeat), (2047, 131_072, 60));
}

#[test]
fn a_bad_protocol_header_is_answered_with_the_right_one() {
    for header in [
        &b"AMQP\x00\x01\x00\x00"[..],
        b"AMQP\x03\x01\x00\x00",
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01",
        b"X",
    ] {
        let mut server = Server::new(Config::default());
        let seen = server.feed(header);
        assert!(matches!(&seen[..], [Seen::Closed { code: 0, .. }]), "{seen:?}");
        assert_eq!(server.sent, PROTOCOL_HEADER);
        assert!(server.left.is_empty());
        assert!(server.machine.is_output_over(), "the client need not wait for more");
        assert_eq!(server.feed(b"more"), []);
        server.advance(Config::default().linger_timeout);
        assert!(server.machine.is_closed());
    }
}

#[test]
fn the_header_of_amqp_0_9_is_welcome_too() {
    let mut server = Server::new(Config::default());
    assert_eq!(server.feed(b"AMQP\x01\x01\x00\x09"), []);
    assert_eq!(methods(&server.sent)[0].1.name(), "connection.start");
}

#[test]
fn nothing_is_read_until_the_driver_has_answered() {
    let mut server = Server::new(Config::default());
    server.accept = false;
    let seen = server.feed(&handshake(client_capabilities(), default_tune_ok()));
    assert_eq!(seen.len(), 1);
    let left = server.left.len();
    assert!(server.feed(&[]).is_empty() && server.left.len() == left && left > 0);
    server.machine.login_accepted(server.now);
    assert!(matches!(&server.feed(&[])[..], [Seen::Open(_)]));
}

#[test]
fn client_properties_reach_the_driver() {
    let properties = client_capabilities().with("connection_name", "orders");
    let mut server = started(Config::default());
    let seen = server.feed(&start_ok(&properties, "PLAIN", b"\0u\0p"));
    assert_eq!(seen, [Seen::Login { user: "PLAIN(u)".into(), properties }]);
    let capabilities = server.machine.client_capabilities();
    assert!(capabilities.authentication_failure_close() && capabilities.connection_blocked());
    assert!(!capabilities.consumer_cancel_notify());
}

#[test]
fn what_is_said_twice_of_a_capability_counts_as_it_is_said_first() {
    let [mut twice, mut said] = [Vec::new(), Vec::new()];
    for announced in [(true, false), (false, true)] {
        let each = FieldTable::new()
            .with("basic.nack", announced.0)
            .with("connection.blocked", announced.1)
            .with("unknown", true);
        each.encode_entries(&mut twice);
    }
    TableWriter::new(&mut said).table("capabilities".try_into().expect("short"), |capabilities| {
        for entry in Table::from_entries(&twice).iter() {
            let (name, value) = entry.expect("well-formed");
            capabilities.put(name, value);
        }
    });
    let known = Capabilities::from_properties(Table::from_entries(&said));
    assert!(known.basic_nack() && !known.connection_blocked() && !known.publisher_confirms());
}

#[test]
fn amqplain_external_and_anonymous_log_in() {
    let mechanisms = Mechanisms::PASSWORD.with(Mechanism::External).with(Mechanism::Anonymous);
    let amqplain = {
        let mut encoded = Vec::new();
        FieldTable::new().with("LOGIN", "u").with("PASSWORD", "p").encode(&mut encoded);
        encoded.split_off(4)
    };
    for (mechanism, response, user) in [
        ("AMQPLAIN", &amqplain[..], "AMQPLAIN(u)"),
        ("EXTERNAL", b"", "EXTERNAL"),
        ("ANONYMOUS", b"anything", "ANONYMOUS"),
    ] {
        let mut server = started(Config { mechanisms, ..Config::default() });
        let seen = server.feed(&start_ok(&FieldTable::new(), mechanism, response));
        assert!(matches!(&seen[..], [Seen::Login { user: got, .. }] if got == user), "{seen:?}");
    }
}

#[test]
fn a_mechanism_that_is_not_offered_ends_the_connection_in_silence() {
    for mechanism in ["EXTERNAL", "ANONYMOUS", "X", ""] {
        let mut server = started(Config::default());
        let seen = server.feed(&start_ok(&client_capabilities(), mechanism, b""));
        let text = format!("COMMAND_INVALID - mechanism '{mechanism}' is not offered");
        assert_eq!(seen, [Seen::Closed { code: 503, text, ids: (10, 11) }]);
        assert!(server.sent.is_empty() && server.machine.is_closed());
    }
}

#[test]
fn a_malformed_login_is_502_and_does_not_repeat_the_password() {
    for (mechanism, response, text) in [
        ("PLAIN", &b"secret"[..], "SYNTAX_ERROR - PLAIN response invalid"),
        ("PLAIN", b"\0user", "SYNTAX_ERROR - PLAIN response invalid"),
        ("PLAIN", b"\0user\0secret\0x", "SYNTAX_ERROR - PLAIN response invalid"),
        ("PLAIN", b"admin\0user\0secret", "SYNTAX_ERROR - PLAIN response invalid"),
        (
            "AMQPLAIN",
            b"\x05LOGINS\0\0\0\x01u",
            "SYNTAX_ERROR - AMQPLAIN auth info is missing LOGIN or PASSWORD field",
        ),
        ("AMQPLAIN", b"\xff", "SYNTAX_ERROR - AMQPLAIN auth info is no table"),
        (
            "AMQPLAIN",
            b"\x05LOGINt\x01\x08PASSWORDt\x01",
            "SYNTAX_ERROR - AMQPLAIN auth info uses unsupported type for LOGIN or PASSWORD field",
        ),
    ] {
        let mut server = started(Config::default());
        server.feed(&start_ok(&client_capabilities(), mechanism, response));
        assert_eq!(server.sent_close(), (0, 502, text.to_owned(), (10, 11)));
    }
}

#[test]
fn plain_takes_empty_and_odd_passwords() {
    for (response, user) in
        [(&b"\0\0"[..], "PLAIN()"), (b"\0u\0", "PLAIN(u)"), (b"\0u\0\xff\xfe", "PLAIN(u)")]
    {
        let mut server = started(Config::default());
        let seen = server.feed(&start_ok(&FieldTable::new(), "PLAIN", response));
        assert!(matches!(&seen[..], [Seen::Login { user: got, .. }] if got == user));
    }
}

#[test]
fn a_refused_login_is_told_to_clients_that_announced_it() {
    let mut server = started(Config::default());
    server.accept = false;
    server.feed(&start_ok(&client_capabilities(), "PLAIN", b"\0u\0wrong"));
    server.machine.login_refused(&login_refusal(Mechanism::Plain), server.now);
    server.feed(&[]);
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker \
                logfile.";
    assert_eq!(server.sent_close(), (0, 403, text.to_owned(), (0, 0)));
    assert!(!server.machine.is_closed());
    server.feed(&frame(0, Method::ConnectionCloseOk(connection::CloseOk {})));
    assert!(server.machine.is_closed());
}

#[test]
fn a_refused_login_of_another_client_just_ends() {
    let mut server = started(Config::default());
    server.accept = false;
    server.feed(&start_ok(&FieldTable::new(), "PLAIN", b"\0u\0wrong"));
    server.machine.login_refused(&login_refusal(Mechanism::Plain), server.now);
    server.feed(&[]);
    assert!(server.sent.is_empty());
    assert!(server.machine.is_closed());
    assert_eq!(
        server.machine.close_reason().map(|reason| (reason.by, reason.code)),
        Some((ClosedBy::Local, 403))
    );
}

#[test]
fn limits_above_or_below_the_offer_are_530() {
    let explain = |text: &str| (0, 530, format!("NOT_ALLOWED - negotiated {text}"), (10, 30));
    let ok = default_tune_ok();
    assert_eq!(
        tuned(connection::TuneOk { channel_max: 5000, ..ok }),
        explain("channel_max = 5000 is higher than the maximum allowed value (2047)")
    );
    assert_eq!(
        tuned(connection::TuneOk { channel_max: 0, ..ok }),
        explain("channel_max = 0 (no limit) is higher than the maximum allowed value (2047)")
    );
    assert_eq!(
        tuned(connection::TuneOk { frame_max: 131_073, ..ok }),
        explain("frame_max = 131073 is higher than the maximum allowed value (131072)")
    );
    assert_eq!(
        tuned(connection::TuneOk { frame_max: 0, ..ok }),
        explain("frame_max = 0 is higher than the maximum allowed value (131072)")
    );
    assert_eq!(
        tuned(connection::TuneOk { frame_max: 100, ..ok }),
        explain("frame_max = 100 is lower than the minimum allowed value (4096)")
    );
}

#[test]
fn lower_limits_of_a_client_count() {
    let tune_ok = connection::TuneOk { channel_max: 3, frame_max: 4096, heartbeat: 0 };
    let server = Server::running_tuned(Config::default(), tune_ok);
    assert_eq!(
        (server.machine.channel_max(), server.machine.frame_max(), server.machine.heartbeat_s()),
        (3, 4096, 0)
    );
    assert_eq!(server.machine.poll_timeout(), None);
}

#[test]
fn the_largest_limits_that_can_be_set_work() {
    let config = || Config { channel_max: 0, frame_max: u32::MAX, ..Config::default() };
    let tune_ok = connection::TuneOk { channel_max: 0, frame_max: u32::MAX, heartbeat: u16::MAX };
    let mut server = Server::running_tuned(config(), tune_ok);
    assert_eq!(server.machine.channel_max(), u16::MAX);
    assert_eq!(server.feed(&open_channel(u16::MAX)), [Seen::ChannelOpened(u16::MAX)]);
    let body = vec![1; 200_000];
    let seen = server.feed(&publish_cut(u16::MAX, "q", &body, body.len()));
    assert!(matches!(&seen[..], [Seen::Publish { .. }]));
}

#[test]
fn a_start_ok_larger_than_4096_bytes_is_501() {
    let properties = FieldTable::new().with("product", "x".repeat(5000).as_str());
    let mut server = started(Config::default());
    let start_ok = start_ok(&properties, "PLAIN", b"\0guest\0guest");
    let payload_len = start_ok.len() - 8;
    assert!(matches!(&server.feed(&start_ok)[..], [Seen::Closed { code: 501, .. }]));
    let text =
        format!("FRAME_ERROR - type 1, all octets = <<>>: {{frame_too_large,{payload_len},4088}}");
    assert_eq!(server.sent_close(), (0, 501, text, (0, 0)));
    // Nothing behind such a frame can be trusted.
    assert_eq!(server.feed(&frame(0, Method::ConnectionCloseOk(connection::CloseOk {}))), []);
    assert!(server.left.is_empty() && !server.machine.is_closed());
    server.advance(Config::default().linger_timeout);
    assert!(server.machine.is_closed());
}

#[test]
fn a_method_out_of_turn_is_504_and_names_the_state() {
    let mut server = started(Config::default());
    server.feed(&frame(0, Method::ConnectionTuneOk(default_tune_ok())));
    let text = "CHANNEL_ERROR - unexpected method in connection state starting";
    assert_eq!(server.sent_close(), (0, 504, text.to_owned(), (10, 31)));

    let mut server = tuning(Config::default());
    server.feed(&frame(
        0,
        Method::ConnectionOpen(connection::Open { virtual_host: ShortStr::EMPTY }),
    ));
    let text = "CHANNEL_ERROR - unexpected method in connection state tuning";
    assert_eq!(server.sent_close(), (0, 504, text.to_owned(), (10, 40)));
}

#[test]
fn a_channel_before_the_connection_is_open_is_505() {
    let mut server = tuning(Config::default());
    server.feed(&open_channel(1));
    let text = "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>";
    assert_eq!(server.sent_close(), (0, 505, text.to_owned(), (0, 0)));
}

#[test]
fn a_refused_virtual_host_is_told() {
    let mut server = Server::new(Config::default());
    let handshake = handshake(client_capabilities(), default_tune_ok());
    let mut input = &handshake[..];
    let now = server.now;
    assert!(matches!(server.machine.next(&mut input, now), Some(Event::Login { .. })));
    server.machine.login_accepted(now);
    assert!(matches!(server.machine.next(&mut input, now), Some(Event::Open { .. })));
    server.machine.output().clear();
    server.machine.open_refused(530, "vhost x not found", now);
    server.feed(&[]);
    assert_eq!(
        server.sent_close(),
        (0, 530, "NOT_ALLOWED - vhost x not found".to_owned(), (10, 40))
    );
}

#[test]
fn a_client_may_leave_during_the_handshake() {
    let mut server = tuning(Config::default());
    let close = connection::Close {
        reply_code: 200,
        reply_text: ShortStr::EMPTY,
        class_id: 0,
        method_id: 0,
    };
    let seen = server.feed(&frame(0, Method::ConnectionClose(close)));
    assert!(matches!(&seen[..], [Seen::Closed { code: 200, .. }]));
    assert_eq!(methods(&server.sent)[0].1.name(), "connection.close-ok");
}

#[test]
fn a_handshake_that_takes_too_long_is_ended() {
    let timeout = Config::default().handshake_timeout;
    for (bytes, state) in [
        (vec![], "pre_init"),
        (PROTOCOL_HEADER[..5].to_vec(), "pre_init"),
        (PROTOCOL_HEADER.to_vec(), "starting"),
        (
            [&PROTOCOL_HEADER[..], &start_ok(&FieldTable::new(), "PLAIN", b"\0u\0p")].concat(),
            "tuning",
        ),
    ] {
        let mut server = Server::new(Config::default());
        server.feed(&bytes);
        assert_eq!(server.machine.poll_timeout(), Some(server.now + timeout));
        server.advance(timeout - std::time::Duration::from_millis(1));
        assert!(!server.machine.is_closed());
        server.advance(std::time::Duration::from_millis(1));
        assert!(server.machine.is_closed());
        let reason = server.machine.close_reason().map(|reason| reason.text.clone());
        assert_eq!(reason, Some(format!("no handshake in time (in state {state})")));
    }
}

#[test]
fn a_driver_that_does_not_answer_in_time_loses_the_connection_too() {
    let mut server = Server::new(Config::default());
    server.accept = false;
    server.feed(&handshake(client_capabilities(), default_tune_ok()));
    server.advance(Config::default().handshake_timeout);
    assert!(server.machine.is_closed());
    server.sent.clear();
    // Its late answer changes nothing.
    server.machine.login_accepted(server.now);
    assert!(server.machine.is_closed() && server.machine.output().is_empty());
}

#[test]
fn a_connection_that_is_not_in_use_takes_little_memory() {
    assert!(size_of::<Connection>() <= 512, "{}", size_of::<Connection>());
    assert!(size_of::<Event<'_>>() <= 128, "{}", size_of::<Event<'_>>());
}
