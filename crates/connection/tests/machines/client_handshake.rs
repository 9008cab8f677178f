//! The client's machine until its connection is open.

use std::sync::Arc;
use std::time::Duration;

use courser_codec::*;
use courser_connection::client::Config;
use courser_connection::{Credentials, server};

use crate::client::{Client, close, open_ok, start, tune};
use crate::common::methods;

#[test]
fn the_handshake_presents_the_credentials_and_settles_the_limits() {
    let mut client = Client::new(Config { heartbeat_s: 10, frame_max: 8192, ..Config::default() });
    assert!(client.feed(&start("AMQPLAIN PLAIN")).is_empty());
    assert!(client.machine.is_logging_in());
    let sent = std::mem::take(&mut client.sent);
    let [(0, Method::ConnectionStartOk(start_ok))] = methods(&sent)[..] else { panic!() };
    assert_eq!(
        (start_ok.mechanism.to_string(), start_ok.response),
        ("PLAIN".to_owned(), &b"\0guest\0guest"[..])
    );
    assert!(client.machine.server_capabilities().basic_nack());
    assert!(client.machine.server_properties().get("product").is_some());

    assert!(client.feed(&tune(100, 131_072, 60)).is_empty());
    let sent = std::mem::take(&mut client.sent);
    let [(0, Method::ConnectionTuneOk(tune_ok)), (0, Method::ConnectionOpen(open))] =
        methods(&sent)[..]
    else {
        panic!()
    };
    assert_eq!((tune_ok.channel_max, tune_ok.frame_max, tune_ok.heartbeat), (100, 8192, 10));
    assert_eq!(open.virtual_host, "/");
    assert_eq!(client.feed(&open_ok()), ["Opened"]);
    assert!(client.machine.is_open());
}

#[test]
fn no_limit_on_one_side_is_the_limit_of_the_other() {
    for (own, offered, agreed) in [
        ((0, 0, 60), (2047, 131_072, 30), (2047, 131_072, 30)),
        ((10, 4096, 60), (0, 0, 0), (10, 4096, 60)),
        ((0, 0, 0), (0, 0, 60), (65_535, 131_072, 0)),
        ((5, 100, 5), (2047, 131_072, 60), (5, 4096, 5)),
    ] {
        let config = Config {
            channel_max: own.0,
            frame_max: own.1,
            heartbeat_s: own.2,
            ..Config::default()
        };
        let mut client = Client::new(config);
        client.feed(&[start("PLAIN"), tune(offered.0, offered.1, offered.2)].concat());
        let machine = &client.machine;
        assert_eq!((machine.channel_max(), machine.frame_max(), machine.heartbeat_s()), agreed);
    }
}

#[test]
fn times_that_reach_beyond_the_clock_are_no_limits() {
    let forever = Duration::MAX;
    let config = Config { handshake_timeout: forever, close_timeout: forever, ..Config::default() };
    let mut client = Client::new(config);
    assert_eq!(client.machine.poll_timeout(), None);
    client.feed(&[start("PLAIN"), tune(10, 8192, 0), open_ok()].concat());
    assert!(client.machine.is_open());
    client.machine.close(200, "the end", client.now);
    assert_eq!(client.machine.poll_timeout(), None);

    let config = server::Config { handshake_timeout: forever, ..server::Config::default() };
    let server = server::Connection::new(Arc::new(config), client.now);
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_server_without_the_mechanism_is_left() {
    let mut client =
        Client::new(Config { credentials: Credentials::External, ..Config::default() });
    assert_eq!(client.feed(&start("PLAIN AMQPLAIN")).len(), 1);
    assert!(client.machine.is_closed() && client.sent.is_empty());
    assert_eq!(client.close_text(), "the server offers no mechanism EXTERNAL, only PLAIN AMQPLAIN");
}

#[test]
fn a_server_of_another_protocol_is_left() {
    let mut client = Client::new(Config::default());
    assert_eq!(client.feed(b"AMQP\x03\x01\x00\x00").len(), 1);
    assert!(client.machine.is_closed() && client.sent.is_empty());
    assert!(client.close_text().starts_with("the server does not speak AMQP 0-9-1"));
}

#[test]
fn a_refused_login_is_told_with_its_reason() {
    let mut client = Client::new(Config::default());
    let bytes = [start("PLAIN"), close(403, "ACCESS_REFUSED - Login was refused")].concat();
    let seen = client.feed(&bytes);
    assert!(seen[0].contains("code: 403") && seen[0].contains("Peer"), "{seen:?}");
    assert!(client.machine.is_closed());
    assert_eq!(
        client.sent_methods().last().map(String::as_str),
        Some("0 ConnectionCloseOk(CloseOk)")
    );
}
