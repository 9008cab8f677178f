//! The gateway, as far as sockets that are no ZeroMQ programs see it; `conformance/zeromq` has the rest.

use crate::support::{Client, Heard, TestServer, free_addresses, short, wait_until};
use courser_auth::{Hashing, PasswordHash, Permission, TopicPermission, User};
use courser_broker::admin::NewMessage;
use courser_codec::queue;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The library gives up on a handshake after ten seconds.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

async fn with_pull(address: SocketAddr, queue: &str) -> TestServer {
    TestServer::start_with(|config| {
        let endpoint = serde_json::json!([{
            "socket": "pull", "bind": format!("tcp://{address}"), "queue": queue, "peers_max": 10,
        }]);
        config.gateway.endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
    })
    .await
}

/// Connects as a PUSH socket does, and sends a message of one frame.
async fn push(address: SocketAddr, message: &[u8]) -> io::Result<TcpStream> {
    let mut stream = peer(address, b"PUSH").await?;
    send(&mut stream, &[message]).await?;
    Ok(stream)
}

/// Connects as a socket of a type does (ZMTP 3.1, NULL).
pub(crate) async fn peer(address: SocketAddr, socket_type: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).await?;
    stream.read_exact(&mut greeting).await?;
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0".to_vec();
    ready.push(socket_type.len() as u8);
    ready.extend([socket_type, b"\x08Identity\0\0\0\0"].concat());
    stream.write_all(&[4, ready.len() as u8]).await?;
    stream.write_all(&ready).await?;
    let mut header = [0; 2];
    stream.read_exact(&mut header).await?;
    stream.read_exact(&mut vec![0; header[1].into()]).await?;
    Ok(stream)
}

/// A message with an envelope of so many bytes.
fn request(envelope_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend((envelope_bytes as u64).to_be_bytes());
    bytes.resize(bytes.len() + envelope_bytes, 7);
    bytes.extend(b"\x01\x00\x00\x02hi");
    bytes
}

/// Sends a message of short frames.
pub(crate) async fn send(stream: &mut TcpStream, frames: &[&[u8]]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let is_more = at + 1 < frames.len();
        bytes.extend([is_more.into(), frame.len() as u8]);
        bytes.extend_from_slice(frame);
    }
    stream.write_all(&bytes).await
}

#[tokio::test]
async fn silent_connections_do_not_keep_a_peer_out() {
    let address = free_addresses(1)[0];
    let server = with_pull(address, "tasks").await;
    let mut client = Client::connect(server.address()).await;
    // As the gateway declares it, so that either may come first.
    let declare = queue::Declare { queue: short("tasks"), durable: true, ..Default::default() };
    assert!(matches!(client.call(declare).await, Heard::DeclareOk { .. }));
    client.consume("tasks", true).await;
    let start = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(address).await.expect("a connection"));
    }
    // As a ZeroMQ program does, it tries again where it is not let in.
    let _peer = loop {
        let attempt = tokio::time::timeout(Duration::from_secs(1), push(address, b"task")).await;
        if let Ok(Ok(peer)) = attempt {
            break peer;
        }
        assert!(start.elapsed() < HANDSHAKE_TIMEOUT, "kept out");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(start.elapsed() < HANDSHAKE_TIMEOUT - Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(client.bodies(1).await, [b"task"]);
    server.stop().await;
}

#[tokio::test]
async fn a_topic_that_is_refused_costs_its_own_message_alone() {
    let address = free_addresses(1)[0];
    let server = TestServer::start().await;
    let password = PasswordHash::new(b"pw", Hashing::Argon2id).expect("a hash");
    server.admin().create_user(User::new("sensors", password)).expect("a user");
    server.admin().set_permission("sensors", "/", Permission::all()).expect("a permission");
    let topics = TopicPermission { write: r"^sensor\.".into(), read: ".*".into() };
    server.admin().set_topic_permission("sensors", "/", "amq.topic", topics).expect("a permission");
    let server = server
        .restart_with(|config| {
            let endpoint = serde_json::json!([{
                "socket": "sub", "bind": format!("tcp://{address}"), "exchange": "amq.topic",
                "user": "sensors", "password": "pw",
            }]);
            let endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
            config.gateway.endpoints = endpoints;
        })
        .await;
    let mut client = Client::connect(server.address()).await;
    client.declare("seen").await;
    let (queue, exchange, routing_key) = (short("seen"), short("amq.topic"), short("#"));
    let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
    assert_eq!(client.call(bind).await, Heard::Reply("queue.bind-ok"));
    client.consume("seen", true).await;
    let mut peer = peer(address, b"PUB").await.expect("a peer");
    for (topic, body) in [("sensor.1", "1"), ("x", "refused"), ("sensor.2", "2"), ("y", "refused")]
    {
        send(&mut peer, &[topic.as_bytes(), body.as_bytes()]).await.expect("an open socket");
    }
    send(&mut peer, &[b"sensor.3", b"3"]).await.expect("an open socket");
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    while bodies.last().is_none_or(|body| body != b"3") {
        assert!(bodies.len() < 20, "they come again and again");
        bodies.extend(client.bodies(1).await);
    }
    // Those that were under way beside a refused one may come again.
    bodies.dedup();
    assert_eq!(bodies, [b"1", b"2", b"3"]);
    assert_eq!(server.gateway_counts(|endpoint| endpoint.dropped), 2);
    server.stop().await;
}

#[tokio::test]
async fn requests_wait_for_others_whose_envelopes_take_all_bytes() {
    let address = free_addresses(1)[0];
    let server = TestServer::start_with(|config| {
        let endpoint = serde_json::json!([{
            "socket": "router", "bind": format!("tcp://{address}"), "queue": "requests",
            "max_message_bytes": 100_000, "high_water_bytes": 100_000, "timeout_ms": 2000,
        }]);
        config.gateway.endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
    })
    .await;
    let mut peer = peer(address, b"DEALER").await.expect("a peer");
    let sent = 6;
    for _ in 0..sent {
        peer.write_all(&request(60_000)).await.expect("an open socket");
    }
    // No worker answers: each is forgotten in time, and makes room for another.
    wait_until("all are published", async || {
        let published = server.gateway_counts(|endpoint| endpoint.published);
        let open = published - server.gateway_counts(|endpoint| endpoint.expired).min(published);
        assert!(open <= 2, "{open} wait");
        published == sent
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_starts_though_the_program_that_knows_the_user_of_an_endpoint_is_down() {
    let addresses = free_addresses(2);
    let server = TestServer::start_with(|config| {
        let asked = |what: &str| format!("http://{}/{what}", addresses[0]);
        config.auth_http.user_path = asked("user");
        config.auth_http.vhost_path = asked("vhost");
        config.auth_http.resource_path = asked("resource");
        config.auth_http.topic_path = asked("topic");
        let endpoint = serde_json::json!([{
            "socket": "pull", "bind": format!("tcp://{}", addresses[1]), "queue": "q",
            "user": "alice", "password": "s3cret",
        }]);
        config.gateway.endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
    })
    .await;
    peer(addresses[1], b"PUSH").await.expect("the endpoint is there");
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    client.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_dealer_without_workers_takes_as_many_bytes_of_requests_as_it_may_hold() {
    const REQUESTS: usize = 200;
    let address = free_addresses(1)[0];
    let server = TestServer::start().await;
    let mut client = Client::connect(server.address()).await;
    client.declare_durable("requests").await;
    let mut request = NewMessage {
        routing_key: "requests".try_into().expect("short"),
        body: vec![7; 40_000].into(),
        ..NewMessage::default()
    };
    request.properties.delivery_mode = Some(2);
    request.properties.reply_to = Some("replies".try_into().expect("short"));
    for _ in 0..REQUESTS {
        let publishing = server.admin().publish("guest", "/", &request).expect("it is let in");
        publishing.await.expect("it is routed");
    }
    client.close().await;
    let server = server
        .restart_with(|config| {
            let endpoint = serde_json::json!([{
                "socket": "dealer", "bind": format!("tcp://{address}"), "queue": "requests",
                "prefetch": 1000, "timeout_ms": 1000,
                "max_message_bytes": 50_000, "high_water_bytes": 100_000,
            }]);
            let endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
            config.gateway.endpoints = endpoints;
        })
        .await;
    // There are many rounds of a second each: those that come to nothing make room for others.
    let expired = async || server.gateway_counts(|endpoint| endpoint.expired) > 0;
    wait_until("the first are late", expired).await;
    let left = server.admin().queue("/", b"requests").expect("the queue").ready;
    assert!(left > 0, "all of them are held");
    server.stop().await;
}
