//! The subscribers of an xpub endpoint, and what it holds for them.

use crate::gateway::peer;
use crate::gateway_peers::{endpoints, links, receive};
use crate::support::{Client, TestServer, free_addresses};
use courser_auth::{Hashing, PasswordHash, Permission, TopicPermission, User};
use courser_gateway::{Connector, Gateway, Metrics, Snapshot, Stream};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// A broker with one endpoint whose user `gw` has topic permissions.
async fn with_topics(mut endpoint: Value, topics: TopicPermission) -> TestServer {
    let server = TestServer::start().await;
    let password = PasswordHash::new(b"pw", Hashing::Argon2id).expect("a hash");
    server.admin().create_user(User::new("gw", password)).expect("a user");
    server.admin().set_permission("gw", "/", Permission::all()).expect("a permission");
    server.admin().set_topic_permission("gw", "/", "amq.topic", topics).expect("a permission");
    (endpoint["user"], endpoint["password"]) = (json!("gw"), json!("pw"));
    server.restart_with(|config| config.gateway.endpoints = endpoints(endpoint)).await
}

async fn command(stream: &mut TcpStream, name: &str, rest: &[u8]) {
    let bytes = [&[name.len() as u8], name.as_bytes(), rest].concat();
    stream.write_all(&[&[4, bytes.len() as u8], &*bytes].concat()).await.expect("an open socket");
}

/// A SUB peer with subscriptions.
async fn subscriber(address: SocketAddr, prefixes: &[&str]) -> TcpStream {
    let mut stream = peer(address, b"SUB").await.expect("a peer");
    for prefix in prefixes {
        command(&mut stream, "SUBSCRIBE", prefix.as_bytes()).await;
    }
    stream
}

/// Publishes until a subscriber gets something: its subscription is bound then.
async fn wait_until_bound(client: &mut Client, key: &str, subscriber: &mut TcpStream) {
    let waiting = async {
        loop {
            client.publish_to("amq.topic", key, b"first").await;
            tokio::select! {
                frames = receive(subscriber) => return frames,
                () = tokio::time::sleep(Duration::from_millis(500)) => {}
            }
        }
    };
    let received = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert_eq!(received.expect(key), [key.as_bytes(), b"first"]);
}

#[tokio::test]
async fn a_subscription_that_is_refused_costs_other_subscribers_nothing() {
    let address = free_addresses(1)[0];
    let topics = TopicPermission { write: ".*".into(), read: r"^sensors\.".into() };
    let endpoint = json!({
        "socket": "xpub", "bind": format!("tcp://{address}"), "exchange": "amq.topic",
    });
    let server = with_topics(endpoint, topics).await;
    let mut client = Client::connect(server.address()).await;
    let mut one = subscriber(address, &["sensors.door."]).await;
    wait_until_bound(&mut client, "sensors.door.1", &mut one).await;
    // What is refused comes first, so it has been tried when what comes behind it is bound.
    let mut other = subscriber(address, &["", "other.secret.", "sensors.window."]).await;
    wait_until_bound(&mut client, "sensors.window.1", &mut other).await;
    let mut third = subscriber(address, &["sensors.roof."]).await;
    wait_until_bound(&mut client, "sensors.roof.1", &mut third).await;
    for nth in 0..50 {
        client.publish_to("amq.topic", "sensors.door.2", nth.to_string().as_bytes()).await;
    }
    for nth in 0..50 {
        let received = loop {
            let frames = receive(&mut one).await;
            // More than one may have been published until the first was there.
            if frames[0] != b"sensors.door.1" {
                break frames;
            }
        };
        assert_eq!(received, [&b"sensors.door.2"[..], nth.to_string().as_bytes()]);
    }
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    // What is permitted later is bound before long.
    let topics = TopicPermission { write: ".*".into(), read: ".*".into() };
    server.admin().set_topic_permission("gw", "/", "amq.topic", topics).expect("a permission");
    let mut late = subscriber(address, &["other.secret."]).await;
    wait_until_bound(&mut client, "other.secret.1", &mut late).await;
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    server.stop().await;
}

#[tokio::test]
async fn a_peer_with_very_many_subscriptions_keeps_no_other_from_its_own() {
    let address = free_addresses(1)[0];
    let topics = TopicPermission { write: ".*".into(), read: r"^sensors\.".into() };
    let endpoint = json!({
        "socket": "xpub", "bind": format!("tcp://{address}"), "exchange": "amq.topic",
    });
    let server = with_topics(endpoint, topics).await;
    let mut client = Client::connect(server.address()).await;
    let prefixes: Vec<String> = (1000..3000).map(|nth| format!("sensors.{nth}.")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    let mut many = subscriber(address, &prefixes).await;
    wait_until_bound(&mut client, "sensors.1000.x", &mut many).await;
    let mut other = subscriber(address, &["sensors.door."]).await;
    wait_until_bound(&mut client, "sensors.door.1", &mut other).await;
    assert_eq!(links(&server), 1, "the endpoint has lost its connection");
    server.stop().await;
}

/// Bytes of a message that many are published of.
const BODY_BYTES: usize = 100_000;
/// Bytes that an endpoint may hold.
const HIGH_WATER_BYTES: usize = 400_000;

/// What an endpoint has read of the broker and not sent or dropped.
#[derive(Default)]
struct Waiting {
    read_bytes: AtomicU64,
    most_bytes: AtomicU64,
    metrics: OnceLock<Arc<Metrics>>,
    /// The connection is to end.
    is_cut: AtomicBool,
}

impl Waiting {
    fn note_read(&self, bytes: usize) {
        let read = self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        let counted = self.metrics.get().map(|metrics| metrics.snapshot()).unwrap_or_default();
        let done = counted.sent_bytes + counted.dropped * BODY_BYTES as u64;
        self.most_bytes.fetch_max(read.saturating_sub(done), Ordering::Relaxed);
    }
}

/// A connection to the broker that says what is read of it.
struct Watched {
    stream: TcpStream,
    waiting: Arc<Waiting>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.waiting.is_cut.swap(false, Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.waiting.note_read(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn connect(address: SocketAddr, waiting: &Arc<Waiting>) -> io::Result<Watched> {
    let stream = std::net::TcpStream::connect(address)?;
    stream.set_nonblocking(true)?;
    Ok(Watched { stream: TcpStream::from_std(stream)?, waiting: Arc::clone(waiting) })
}

/// A gateway with one endpoint, which has dropped messages because its one subscriber takes nothing.
struct Stuck {
    server: TestServer,
    gateway: Gateway,
    metrics: Arc<Metrics>,
    waiting: Arc<Waiting>,
    client: Client,
    silent: Option<TcpStream>,
}

impl Stuck {
    async fn start() -> Self {
        let address = free_addresses(1)[0];
        let server = TestServer::start().await;
        let waiting = Arc::new(Waiting::default());
        let (broker, noted) = (server.address(), Arc::clone(&waiting));
        let connector: Connector = Arc::new(move || {
            connect(broker, &noted).ok().map(|link| Box::new(link) as Box<dyn Stream>)
        });
        let endpoint = endpoints(json!({
            "socket": "xpub", "bind": format!("tcp://{address}"), "exchange": "amq.topic",
            "prefetch": 1000, "max_message_bytes": 200_000, "high_water_bytes": HIGH_WATER_BYTES,
        }));
        let gateway = Gateway::start(&endpoint, connector, 128).await.expect("a free port");
        let metrics = gateway.counters().remove(0).1;
        waiting.metrics.set(Arc::clone(&metrics)).expect("it is not set yet");
        let mut client = Client::connect(server.address()).await;
        let mut silent = subscriber(address, &["sensors."]).await;
        wait_until_bound(&mut client, "sensors.door", &mut silent).await;
        let mut stuck = Stuck { server, gateway, metrics, waiting, client, silent: Some(silent) };
        stuck.publish_until(|counted| counted.dropped >= 10).await;
        stuck
    }

    /// Publishes until something comes to pass.
    async fn publish_until(&mut self, done: impl Fn(&Snapshot) -> bool) {
        let publishing = async {
            while !done(&self.metrics.snapshot()) {
                self.client.publish_to("amq.topic", "sensors.door", &[7; BODY_BYTES]).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), publishing).await.expect("it comes to pass");
    }

    async fn stop(self) {
        self.gateway.stop().await;
        self.server.stop().await;
    }
}

#[tokio::test]
async fn an_endpoint_reads_no_more_of_the_broker_than_it_may_hold_for_a_peer_that_takes_nothing() {
    let mut stuck = Stuck::start().await;
    let most_bytes = stuck.waiting.most_bytes.load(Ordering::Relaxed);
    // Besides, one read, a message that is begun, and the one that the endpoint has in its hands.
    assert!(most_bytes < HIGH_WATER_BYTES as u64 + 1_000_000, "{most_bytes} bytes have waited");
    // When the peer takes them, others follow.
    let sent = stuck.metrics.snapshot().sent;
    let (mut silent, mut discarded) =
        (stuck.silent.take().expect("it is there"), tokio::io::sink());
    let reading = tokio::spawn(async move { tokio::io::copy(&mut silent, &mut discarded).await });
    stuck.publish_until(|counted| counted.sent > sent + 10).await;
    reading.abort();
    stuck.stop().await;
}

#[tokio::test]
async fn what_peers_hold_counts_also_behind_another_connection_to_the_broker() {
    let mut stuck = Stuck::start().await;
    let before = stuck.metrics.snapshot();
    stuck.waiting.is_cut.store(true, Ordering::Relaxed);
    let dropped = before.dropped + 10;
    stuck.publish_until(|counted| counted.links == 2).await;
    stuck
        .publish_until(|counted| counted.dropped > dropped || counted.sent > before.sent + 10)
        .await;
    let sent = stuck.metrics.snapshot().sent - before.sent;
    assert!(sent <= 10, "{sent} messages more for a peer that takes nothing");
    stuck.stop().await;
}
