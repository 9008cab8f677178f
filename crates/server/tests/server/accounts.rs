//! Who can log in, where users come from, and what a restart makes of it.

use super::support::{Client, Heard, PATIENCE, TestServer, short};
use courser_auth::{Hashing, PasswordHash, Permission, User};
use courser_codec::{Frame, Method, connection};
use courser_connection::Credentials;
use courser_connection::client::Config as ClientConfig;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn refusal() -> Heard {
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details \
                see the broker logfile.";
    Heard::Closed(403, text.into())
}

async fn comes_in(server: &TestServer, user: &str, password: &str) -> bool {
    match Client::log_in(server.address(), user, password).await {
        Ok(_) => true,
        Err(heard) => {
            assert_eq!(heard, refusal());
            false
        }
    }
}

fn put(server: &TestServer, name: &str, password: &str, hashing: Hashing) {
    let hash = PasswordHash::new(password.as_bytes(), hashing).expect("a hash");
    let admin = server.admin();
    admin.create_user(User::new(name, hash)).expect("a user");
    admin.set_permission(name, "/", Permission::all()).expect("a permission");
}

#[tokio::test]
async fn a_broker_without_users_makes_guest_and_keeps_what_becomes_of_it() {
    let server = TestServer::start().await;
    assert!(comes_in(&server, "guest", "guest").await);
    let hash = PasswordHash::new(b"changed", Hashing::Argon2id).expect("a hash");
    let change = |user: &mut User| {
        user.password = hash;
        Ok(())
    };
    server.admin().change_user("guest", change).expect("changed");
    assert!(!comes_in(&server, "guest", "guest").await, "remembered from before");
    assert!(comes_in(&server, "guest", "changed").await);
    let server = server.restart_with(|_| {}).await;
    assert!(comes_in(&server, "guest", "changed").await);
    assert!(!comes_in(&server, "guest", "guest").await);
    put(&server, "admin", "secret", Hashing::Argon2id);
    server.admin().delete_user("guest").expect("deleted");
    let server = server.restart_with(|_| {}).await;
    assert!(!comes_in(&server, "guest", "guest").await, "it came back");
    assert!(comes_in(&server, "admin", "secret").await);
    server.stop().await;
}

#[tokio::test]
async fn guest_does_not_come_back_to_a_broker_whose_last_user_was_deleted() {
    let server = TestServer::start().await;
    server.admin().delete_user("guest").expect("deleted");
    let server = server.restart_with(|_| {}).await;
    assert_eq!(server.admin().accounts().user_count(), 0);
    // Not behind a user of the configuration, either.
    let server = server.restart_with(|config| config.auth.user = "me".into()).await;
    let server = server.restart_with(|_| {}).await;
    assert_eq!(server.admin().accounts().user_count(), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_broker_that_began_with_other_users_never_makes_guest() {
    let of_file = |config: &mut courser::Config| config.auth.user = "me".into();
    let server = TestServer::start_with(of_file).await;
    let server = server.restart_with(|_| {}).await;
    assert_eq!(server.admin().accounts().user_count(), 0);
    server.stop().await;
}

#[tokio::test]
async fn the_user_of_the_configuration_is_the_only_one_of_a_new_broker_and_is_not_kept() {
    let named = |config: &mut courser::Config| {
        config.auth.user = "me".into();
        config.auth.password = "mine".into();
    };
    let server = TestServer::start_with(named).await;
    assert!(comes_in(&server, "me", "mine").await);
    assert!(!comes_in(&server, "me", "other").await);
    assert!(!comes_in(&server, "guest", "guest").await);
    let deleted = server.admin().delete_user("me").expect_err("refused");
    assert_eq!(
        deleted.to_string(),
        "user 'me' comes from the configuration file (auth.user); change it there"
    );
    let server = server.restart_with(|config| {
        named(config);
        config.auth.password = "new".into();
    });
    let server = server.await;
    assert!(comes_in(&server, "me", "new").await);
    assert!(!comes_in(&server, "me", "mine").await);
    let server = server.restart_with(|_| {}).await;
    assert!(!comes_in(&server, "me", "new").await, "it was kept");
    server.stop().await;
}

#[tokio::test]
async fn a_file_does_not_undo_what_was_set_at_run_time() {
    let server = TestServer::start().await;
    put(&server, "me", "at-run-time", Hashing::Argon2id);
    let server = server
        .restart_with(|config| {
            config.auth.user = "me".into();
            config.auth.password = "of-the-file".into();
        })
        .await;
    assert!(comes_in(&server, "me", "at-run-time").await);
    assert!(!comes_in(&server, "me", "of-the-file").await);
    server.stop().await;
}

#[tokio::test]
async fn a_file_may_give_another_password_to_a_guest_without_one_of_its_own() {
    let server = TestServer::start().await;
    let server = server.restart_with(|config| config.auth.password = "better".into()).await;
    assert!(comes_in(&server, "guest", "better").await);
    assert!(!comes_in(&server, "guest", "guest").await);
    server.stop().await;
}

#[tokio::test]
async fn guest_may_enter_a_vhost_that_the_configuration_makes() {
    let vhost = |config: &mut courser::Config| {
        config.vhosts = vec![serde_json::from_str(r#"{"name": "orders"}"#).expect("a vhost")];
    };
    let server = TestServer::start().await;
    let server = server.restart_with(vhost).await;
    let permission = |server: &TestServer| server.admin().accounts().permission("guest", "orders");
    assert_eq!(permission(&server), Some(Permission::all()));
    server.admin().clear_permission("guest", "orders").expect("cleared");
    let server = server.restart_with(vhost).await;
    assert_eq!(permission(&server), None, "the file has undone it");
    server.stop().await;
}

#[tokio::test]
async fn an_imported_hash_is_replaced_when_its_user_logs_in() {
    let server = TestServer::start().await;
    put(&server, "imported", "secret", Hashing::RabbitSha256);
    let algorithm = |server: &TestServer| {
        server.admin().accounts().user("imported").expect("a user").password.algorithm()
    };
    assert!(!comes_in(&server, "imported", "wrong").await);
    assert_eq!(algorithm(&server), Some("rabbit_password_hashing_sha256"));
    assert!(comes_in(&server, "imported", "secret").await);
    assert_eq!(algorithm(&server), Some("argon2id"));
    let server = server.restart_with(|_| {}).await;
    assert_eq!(algorithm(&server), Some("argon2id"));
    assert!(comes_in(&server, "imported", "secret").await);
    server.stop().await;
}

#[tokio::test]
async fn limits_of_a_user_hold_for_its_connections_and_channels() {
    let server = TestServer::start().await;
    put(&server, "plain", "secret", Hashing::Argon2id);
    let admin = server.admin();
    admin.set_user_limit("plain", "max-connections", 1).expect("a limit");
    admin.set_user_limit("plain", "max-channels", 2).expect("a limit");
    let mut client = Client::log_in(server.address(), "plain", "secret").await.expect("let in");
    let refused = Client::log_in(server.address(), "plain", "secret").await.err();
    let text = "NOT_ALLOWED - connection refused for user 'plain': user connection limit (1) is \
                reached";
    assert_eq!(refused, Some(Heard::Closed(530, text.into())));
    assert_eq!(client.open_channel().await, Heard::ChannelOpened(2));
    let text = "NOT_ALLOWED - number of channels opened for user 'plain' has reached the maximum \
                allowed user limit of 2";
    // It is not told first that the channel is open.
    assert_eq!(client.open_channel().await, Heard::Closed(530, text.into()));
    server.stop().await;
}

#[tokio::test]
async fn a_deleted_user_is_disconnected() {
    let server = TestServer::start().await;
    put(&server, "gone", "secret", Hashing::Argon2id);
    let mut client = Client::log_in(server.address(), "gone", "secret").await.expect("let in");
    client.declare("before").await;
    server.admin().delete_user("gone").expect("deleted");
    let text = "CONNECTION_FORCED - user 'gone' was deleted";
    assert_eq!(client.next().await, Heard::Closed(320, text.into()));
    assert!(!comes_in(&server, "gone", "secret").await);
    server.stop().await;
}

/// Answers `connection.start`, or `connection.tune` and what comes behind it, and returns what the broker says to that.
async fn answered(stream: &mut TcpStream, bytes: &[u8], until: &str) -> Vec<(u16, String)> {
    stream.write_all(bytes).await.expect("sent");
    let (mut said, mut heard) = (Vec::new(), Vec::new());
    while heard.last().is_none_or(|(_, name)| name != until) {
        let read = tokio::time::timeout(PATIENCE, stream.read_buf(&mut said)).await;
        assert!(read.expect("in time").expect("bytes") > 0, "the end behind {heard:?}");
        while let Some((frame, length)) = Frame::parse(&said, 0).expect("frames") {
            let method = Method::decode(frame.payload).expect("a method");
            let code = match &method {
                Method::ConnectionClose(close) => close.reply_code,
                _ => 0,
            };
            heard.push((code, method.name().to_owned()));
            said.drain(..length);
        }
    }
    heard
}

#[tokio::test]
async fn a_login_of_a_user_that_is_made_anew_before_its_connection_opens_is_worth_nothing() {
    let server = TestServer::start().await;
    put(&server, "bob", "known to others", Hashing::Argon2id);
    let mut stream = TcpStream::connect(server.address()).await.expect("a connection");
    let mut login = b"AMQP\x00\x00\x09\x01".to_vec();
    let (mechanism, locale) = (short("PLAIN"), short("en_US"));
    let response = b"\0bob\0known to others";
    connection::StartOk { mechanism, locale, response, ..Default::default() }
        .write_frame(0, &mut login);
    answered(&mut stream, &login, "connection.tune").await;
    server.admin().delete_user("bob").expect("deleted");
    put(&server, "bob", "new", Hashing::Argon2id);
    let mut open = Vec::new();
    connection::TuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 }
        .write_frame(0, &mut open);
    connection::Open { virtual_host: short("/") }.write_frame(0, &mut open);
    let heard = answered(&mut stream, &open, "connection.close").await;
    assert_eq!(heard, [(530, "connection.close".to_owned())]);
    assert!(comes_in(&server, "bob", "new").await);
    server.stop().await;
}

/// On one thread, as here, a hash that blocked it would hold up everybody.
#[tokio::test]
async fn passwords_that_are_checked_do_not_hold_up_others() {
    // Forty hashes may take a busy machine long.
    let patient = |config: &mut courser::Config| config.amqp.handshake_timeout_ms = 60_000;
    let server = TestServer::start_with(patient).await;
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    let address = server.address();
    let guesses: Vec<_> = (0..40)
        .map(|_| tokio::spawn(async move { Client::log_in(address, "guest", "guess").await.err() }))
        .collect();
    let start = Instant::now();
    let mut asked = 0;
    while !guesses.iter().all(|guess| guess.is_finished())
        && start.elapsed() < Duration::from_secs(60)
    {
        client.count("q").await;
        asked += 1;
    }
    // One after the other they would leave no room for as many questions as there are guesses.
    assert!(asked > 200, "{asked} answers while 40 passwords were checked");
    for guess in guesses {
        assert_eq!(guess.await.expect("no panic"), Some(refusal()));
    }
    server.stop().await;
}

/// What the broker says first, with the mechanisms in it.
async fn offered(server: &TestServer) -> String {
    let mut stream = TcpStream::connect(server.address()).await.expect("a connection");
    stream.write_all(b"AMQP\x00\x00\x09\x01").await.expect("sent");
    let mut start = vec![0; 4096];
    let mut read = 0;
    while !start[..read].ends_with(b"\xce") {
        let more = tokio::time::timeout(PATIENCE, stream.read(&mut start[read..])).await;
        let more = more.expect("in time").expect("a frame");
        assert!(more > 0, "the end before the frame's");
        read += more;
    }
    String::from_utf8_lossy(&start[..read]).into_owned()
}

async fn log_in_without_credentials(server: &TestServer) -> Heard {
    let config = ClientConfig { credentials: Credentials::Anonymous, ..ClientConfig::default() };
    Client::begin(server.address(), config).await.next().await
}

#[tokio::test]
async fn no_client_gets_in_without_credentials_unless_a_user_is_named_for_that() {
    let server = TestServer::start().await;
    put(&server, "guest-of-all", "secret", Hashing::Argon2id);
    assert!(!offered(&server).await.contains("ANONYMOUS"));
    let server =
        server.restart_with(|config| config.auth.anonymous_user = "guest-of-all".into()).await;
    assert!(offered(&server).await.contains("ANONYMOUS"));
    let config = ClientConfig { credentials: Credentials::Anonymous, ..ClientConfig::default() };
    let mut client = Client::connect_with(server.address(), config).await;
    client.declare("theirs").await;
    server.admin().delete_user("guest-of-all").expect("deleted");
    assert!(matches!(client.next().await, Heard::Closed(320, _)), "it is of that user");
    let refused = log_in_without_credentials(&server).await;
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism ANONYMOUS. For details \
                see the broker logfile.";
    assert_eq!(refused, Heard::Closed(403, text.into()));
    server.stop().await;
}
