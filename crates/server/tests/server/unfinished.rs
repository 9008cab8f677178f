//! Messages whose end does not come: what they may take, and of what they keep others.

use crate::support::{Client, Heard, TestServer, short, wait_until};
use courser_auth::{Hashing, PasswordHash, Permission, User};
use courser_codec::{RawProperties, basic, write_body_frame, write_content_header_frame};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

const MIB: usize = 1 << 20;
const BODY: usize = 16 * MIB;

/// The method and the content header of a publish with a body of [`BODY`] bytes.
pub fn publish_start(channel: u16, exchange: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let publish = basic::Publish { exchange: short(exchange), ..Default::default() };
    publish.write_frame(channel, &mut bytes);
    let (class, properties) = (basic::CLASS_ID, RawProperties::EMPTY);
    write_content_header_frame(channel, class, BODY as u64, properties, &mut bytes);
    bytes
}

/// Sends all but the end of a message on each of two channels, which is more than one connection may.
pub async fn send_unfinished<S: AsyncRead + AsyncWrite + Unpin>(client: &mut Client<S>) {
    assert_eq!(client.open_channel().await, Heard::ChannelOpened(2));
    let piece = vec![7; 100_000];
    for channel in [1, 2] {
        let mut bytes = publish_start(channel, "amq.direct");
        for _ in 0..BODY / piece.len() {
            write_body_frame(channel, &piece, &mut bytes);
        }
        client.stream.write_all(&bytes).await.expect("the broker reads to the end");
    }
}

#[tokio::test]
async fn messages_whose_end_does_not_come_take_half_of_the_memory_at_most() {
    const MOST: u64 = 64 * MIB as u64;
    let server = TestServer::start_with(|config| config.limits.memory_high_bytes = MOST).await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        // It is let alone with what one connection may have.
        let mut client = Client::connect(server.address()).await;
        let mut bytes = publish_start(1, "amq.direct");
        write_body_frame(1, &vec![7; 100_000], &mut bytes);
        client.stream.write_all(&bytes).await.expect("an open connection");
        clients.push(client);
        let mut client = Client::connect(server.address()).await;
        send_unfinished(&mut client).await;
        let heard = client.wait_for(|heard| matches!(heard, Heard::Closed(..))).await;
        let Heard::Closed(506, text) = heard else { panic!("{heard:?}") };
        assert!(text.contains("messages that have come in part"), "{text}");
        let used = server.admin().memory_uses().incomplete;
        assert!((100_000..MOST / 2).contains(&used), "{used}");
    }
    let mut other = Client::connect(server.address()).await;
    other.declare("q").await;
    other.publish("q", &vec![7; MIB / 8]).await;
    wait_until("another's message has come", async || other.count("q").await == 1).await;
    drop(clients);
    let admin = server.admin();
    wait_until("it is given back", async || admin.memory_uses().incomplete < 500_000).await;
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_may_not_be_published_is_refused_before_its_body_has_come() {
    let server = TestServer::start().await;
    let hash = PasswordHash::new(b"secret", Hashing::Argon2id).expect("a hash");
    let admin = server.admin();
    admin.create_user(User::new("u", hash)).expect("a user");
    admin.set_permission("u", "/", Permission::default()).expect("a permission");
    let mut client = Client::log_in(server.address(), "u", "secret").await.expect("let in");
    client.stream.write_all(&publish_start(1, "amq.direct")).await.expect("an open connection");
    let heard = client.next().await;
    let refused = |heard: &Heard, code: &str| matches!(heard, Heard::ChannelClosed(1, text) if text.starts_with(code));
    assert!(refused(&heard, "ACCESS_REFUSED"), "{heard:?}");
    client.reopen().await;
    let mut guest = Client::connect(server.address()).await;
    guest.stream.write_all(&publish_start(1, "none")).await.expect("an open connection");
    let heard = guest.next().await;
    assert!(refused(&heard, "NOT_FOUND"), "{heard:?}");
    server.stop().await;
}
