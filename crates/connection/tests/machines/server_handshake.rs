//! The server's handshake: what is offered, what is accepted, and what ends the connection.

use crate::common::*;

#[test]
fn a_client_that_pipelines_its_handshake_gets_in() {
    let mut server = Server::new(Default::default());
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
