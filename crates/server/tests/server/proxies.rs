//! Connections that a proxy passes on: whose they are, and what becomes of those that begin otherwise.

use crate::support::{Client, Heard, PATIENCE, TestServer};
use crate::tls::{World, client_config};
use courser::{Config, HttpListen, Network};
use courser_broker::admin::ConnectionView;
use courser_connection::client::Config as ClientConfig;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const FROM_AFAR: &[u8] = b"PROXY TCP4 203.0.113.7 10.0.0.1 51000 5672\r\n";
const FROM_HERE: &[u8] = b"PROXY TCP4 127.0.0.1 10.0.0.1 51000 5672\r\n";
const UNKNOWN: &[u8] = b"PROXY UNKNOWN\r\n";
const OF_THE_PROXY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

fn network(text: &str) -> Network {
    Network::try_from(text.to_owned()).expect("a network")
}

/// A broker that believes proxies on this machine.
async fn start(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::start_with(|config| {
        config.amqp.proxy_protocol_from = vec![network("127.0.0.0/8")];
        change(config);
    })
    .await
}

/// What a client sees that logs in as guest behind `header`.
async fn log_in(server: &TestServer, header: &[u8]) -> Client {
    Client::begin_on(send(server.address(), header).await, ClientConfig::default()).await
}

async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(bytes).await.expect("sent");
    stream
}

/// All that the broker says until it closes the connection.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let reading = stream.read_to_end(&mut said);
    // An end that comes as a reset is one, too.
    let _ = tokio::time::timeout(PATIENCE, reading).await.expect("the broker closes it");
    said
}

fn connections(server: &TestServer) -> Vec<ConnectionView> {
    server.admin().connections(None).expect("all vhosts").iter().collect()
}

#[tokio::test]
async fn a_connection_has_the_address_that_its_proxy_says() {
    let server = start(|config| config.auth.loopback_only = false).await;
    let mut client = log_in(&server, FROM_AFAR).await;
    assert_eq!(client.next().await, Heard::Opened);
    let seen = connections(&server);
    let peers: Vec<_> = seen.iter().map(|one| one.peer).collect();
    assert_eq!(peers, [Some("203.0.113.7:51000".parse().expect("an address"))]);
    let name = format!("203.0.113.7:51000 -> {}", server.address());
    assert_eq!(seen[0].name, name);
    client.close().await;
    server.stop().await;
}

#[tokio::test]
async fn guest_comes_from_this_machine_if_client_or_proxy_is_there() {
    let server = start(|_| {}).await;
    for header in [FROM_HERE, OF_THE_PROXY] {
        let mut client = log_in(&server, header).await;
        assert_eq!(client.next().await, Heard::Opened);
        client.close().await;
    }
    for header in [FROM_AFAR, UNKNOWN] {
        let mut client = log_in(&server, header).await;
        let heard = client.next().await;
        assert!(matches!(&heard, Heard::Closed(403, _)), "{heard:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_header_in_two_parts_is_put_together() {
    let server = start(|config| config.auth.loopback_only = false).await;
    let (first, second) = FROM_AFAR.split_at(20);
    let mut stream = send(server.address(), first).await;
    // Whether the broker has seen the first part alone or not, it comes to the same.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    stream.write_all(second).await.expect("sent");
    let mut client = Client::begin_on(stream, ClientConfig::default()).await;
    assert_eq!(client.next().await, Heard::Opened);
    client.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_proxy_that_sends_no_header_or_half_of_one_is_not_served() {
    let server = start(|_| {}).await;
    assert_eq!(rest(send(server.address(), b"AMQP\0\0\x09\x01").await).await, b"");
    assert_eq!(
        rest(send(server.address(), b"PROXY TCP4 1.2.3.4 stranger 1 2\r\n").await).await,
        b""
    );
    // It waits for the rest, but not for ever.
    assert_eq!(rest(send(server.address(), b"PROXY TCP4 203.").await).await, b"");
    assert!(connections(&server).is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_header_from_elsewhere_is_an_error_of_the_protocol() {
    let server = start(|config| {
        config.amqp.proxy_protocol_from = vec![network("10.0.0.0/8"), network("2001:db8::1")];
    })
    .await;
    // What is answered to everything that is not AMQP 0-9-1.
    assert_eq!(rest(send(server.address(), FROM_AFAR).await).await, b"AMQP\0\0\x09\x01");
    let mut client = log_in(&server, b"").await;
    assert_eq!(client.next().await, Heard::Opened);
    client.close().await;
    server.stop().await;
}

#[tokio::test]
async fn the_header_stands_before_tls() {
    let world = World::with(|config, _, _| {
        config.tls.proxy_protocol_from = vec![network("127.0.0.1")];
        config.auth.loopback_only = false;
    })
    .await;
    let stream = send(world.server.tls_address(), FROM_AFAR).await;
    let connector = TlsConnector::from(Arc::new(client_config(&world.authority, None)));
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = connector.connect(name, stream).await.expect("a handshake");
    let mut client = Client::connect_on(stream, ClientConfig::default()).await;
    let peers: Vec<_> = connections(&world.server).iter().map(|one| one.peer).collect();
    assert_eq!(peers, [Some("203.0.113.7:51000".parse().expect("an address"))]);
    client.close().await;
    // Each kind of listeners has a list of its own.
    let mut client = Client::connect(world.server.address()).await;
    client.close().await;
    world.server.stop().await;
}

#[tokio::test]
async fn http_knows_the_client_behind_its_proxy() {
    let server = TestServer::start_with(|config| {
        config.management.listen = HttpListen::At(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        config.management.proxy_protocol_from = vec![network("127.0.0.1")];
    })
    .await;
    let request = "GET /api/whoami HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                   Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n";
    for (header, status) in [(FROM_HERE, "HTTP/1.1 200"), (FROM_AFAR, "HTTP/1.1 401"), (b"", "")] {
        let asked = [header, request.as_bytes()].concat();
        let said = rest(send(server.http_addresses()[0], &asked).await).await;
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with(status) && said.is_empty() == status.is_empty(), "{said}");
    }
    server.stop().await;
}
