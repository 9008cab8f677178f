//! Opening and closing connections.

use std::time::{Duration, Instant};

use crate::support::{Peer, Seen, beside, channel, channel_over, code};
use courser_client::{Connection, Error, Options};
use courser_codec::{Method, connection};
use courser_connection::server::Event;
use tokio::time::timeout;

#[tokio::test]
async fn a_connection_opens_and_closes() {
    let (connection, mut peer) = Peer::connected().await;
    assert!(connection.is_open());
    let closing = beside({
        let connection = connection.clone();
        async move { connection.close().await }
    });
    assert_eq!(peer.seen().await, Seen::Gone);
    closing.await.unwrap().unwrap();
    assert!(!connection.is_open());
    assert_eq!(code(connection.open_channel().await), Some(200));
}

#[tokio::test]
async fn a_refused_login_is_an_error_with_the_servers_text() {
    let (stream, mut peer) = Peer::new(1 << 16);
    let opening = beside(Connection::open_on(stream, Options::default()));
    let script = beside(async move {
        loop {
            peer.refuse_logins().await;
        }
    });
    let error = opening.await.unwrap().unwrap_err();
    script.abort();
    assert_eq!(error.reply_code(), Some(403));
    assert!(error.to_string().contains("Login was refused"), "{error}");
}

impl Peer {
    async fn refuse_logins(&mut self) {
        if let Some(credentials) = self.login().await {
            assert_eq!(format!("{credentials:?}"), "PLAIN(guest)");
            self.machine.login_refused(
                "Login was refused using authentication mechanism PLAIN",
                Instant::now(),
            );
            self.flush().await;
        }
    }

    async fn login(&mut self) -> Option<courser_client::Credentials> {
        self.next_event(|event| match event {
            Event::Login { credentials, .. } => credentials,
            event => panic!("{event:?}"),
        })
        .await
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let (stream, _peer) = Peer::new(1 << 16);
    let options = Options { connect_timeout: Duration::from_millis(50), ..Options::default() };
    let error = Connection::open_on(stream, options).await.unwrap_err();
    assert!(error.to_string().contains("no handshake in time"), "{error}");
}

#[tokio::test]
async fn a_port_without_a_listener_is_an_error_with_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = Connection::open(&format!("amqp://127.0.0.1:{port}")).await.unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")),
        "{error}"
    );
}

#[tokio::test]
async fn amqps_without_a_tls_stream_says_what_to_do() {
    let error = Connection::open("amqps://localhost").await.unwrap_err();
    assert!(matches!(error, Error::TlsStreamNeeded));
    assert!(error.to_string().contains("Connection::open_through"));
}

#[tokio::test]
async fn the_servers_end_of_a_connection_reaches_everybody() {
    let (connection, channel, mut peer) = channel().await;
    let declaring = beside({
        let channel = channel.clone();
        async move { channel.queue_info("q").await }
    });
    peer.request("queue.declare").await;
    peer.machine
        .shutdown("broker forced connection closure with reason 'shutdown'", Instant::now());
    peer.flush().await;
    let error = connection.closed().await;
    assert_eq!(error.reply_code(), Some(320));
    assert_eq!(code(declaring.await.unwrap()), Some(320));
    assert_eq!(code(channel.queue_info("q").await), Some(320));
    assert_eq!(code(connection.close().await), Some(320));
}

#[tokio::test]
async fn a_stream_that_breaks_is_told_as_such() {
    let (connection, channel, peer) = channel().await;
    drop(peer);
    let error = connection.closed().await;
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert!(error.is_connection_gone());
    assert!(channel.queue_info("q").await.unwrap_err().is_connection_gone());
}

#[tokio::test]
async fn the_last_handle_that_is_dropped_closes_the_connection() {
    let (connection, channel, mut peer) = channel().await;
    drop(connection);
    let using = beside({
        let channel = channel.clone();
        async move { channel.queue_info("q").await }
    });
    peer.request("queue.declare").await;
    using.abort();
    let _ = using.await;
    drop(channel);
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
    assert_eq!(peer.seen().await, Seen::Gone);
}

#[tokio::test]
async fn blocked_and_unblocked_are_told() {
    let (connection, mut peer) = Peer::connected().await;
    let mut blocked = connection.blocked();
    assert_eq!(*blocked.borrow(), None);
    peer.blocked("low on memory").await;
    blocked.changed().await.unwrap();
    assert_eq!(blocked.borrow_and_update().as_deref(), Some("low on memory"));
    peer.send(0, Method::ConnectionUnblocked(connection::Unblocked)).await;
    blocked.changed().await.unwrap();
    assert_eq!(*blocked.borrow(), None);
}

#[tokio::test]
async fn a_new_secret_is_told_to_the_server() {
    let (connection, mut peer) = Peer::connected().await;
    let updating = beside(async move { connection.update_secret(b"new", "expired").await });
    let (channel, payload) = peer.request("connection.update-secret").await;
    let Ok(Method::ConnectionUpdateSecret(update)) = Method::decode(&payload) else { panic!() };
    assert_eq!((channel, update.new_secret), (0, &b"new"[..]));
    peer.send(0, Method::ConnectionUpdateSecretOk(connection::UpdateSecretOk)).await;
    updating.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_new_secret_for_a_stream_that_broke_is_refused() {
    let (connection, peer) = Peer::connected().await;
    drop(peer);
    let _ = connection.closed().await;
    let updating = connection.update_secret(b"new", "expired");
    let updated = timeout(Duration::from_secs(60), updating).await.expect("it ends");
    assert!(matches!(updated, Err(Error::Lost(_))), "{updated:?}");
}

#[tokio::test]
async fn a_close_that_the_server_does_not_answer_ends_all_the_same() {
    let (connection, peer) = Peer::connected().await;
    let closed = timeout(Duration::from_secs(60), connection.close()).await.expect("it ends");
    assert!(matches!(closed, Err(Error::CloseUnanswered)));
    drop(peer);
}

#[tokio::test]
async fn a_server_that_takes_nothing_does_not_keep_a_connection_from_closing() {
    let (connection, channel, peer) = channel_over(4096).await;
    channel.publish("", "q", &[0; 100_000]).await.unwrap();
    let closed = timeout(Duration::from_secs(60), connection.close()).await.expect("it ends");
    assert!(matches!(closed, Err(Error::CloseUnanswered)));
    drop(peer);
}
