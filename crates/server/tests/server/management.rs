//! Where the HTTP API is served. What it answers is tested where it is made.

use crate::support::{PATIENCE, TestServer, config_in};
use crate::tls::World;
use courser::{HttpListen, Server};
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// What is answered to a request for what needs no credentials.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    let request = "GET /health/live HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    answer
}

#[tokio::test]
async fn it_is_served_at_every_address_that_was_chosen() {
    let listen = HttpListen::At(vec![any_port(), any_port()]);
    let server = TestServer::start_with(|config| config.management.listen = listen).await;
    let addresses = server.http_addresses().to_vec();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let answer = ask(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn it_is_served_with_tls_by_the_certificates_of_the_broker() {
    let world = World::with(|config, _, _| config.management.tls_listen = vec![any_port()]).await;
    let address = world.server.https_addresses()[0];
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(world.client(None)));
    let answer = ask(connector.connect(name, stream).await.expect("a handshake")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.server.stop().await;
}

#[tokio::test]
async fn without_it_the_broker_starts_where_the_usual_address_is_taken() {
    // Whether this takes it or somebody else has it already: it is taken.
    let _taken = TcpListener::bind(("127.0.0.1", 15672));
    let server =
        TestServer::start_with(|config| config.management.listen = HttpListen::Default).await;
    assert!(server.http_addresses().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn an_address_that_was_chosen_and_is_taken_is_an_error() {
    let taken = TcpListener::bind(any_port()).expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config_in(&folder);
    config.management.listen = HttpListen::At(vec![address]);
    let error = Server::start(config).await.err().expect("it is taken").to_string();
    assert!(error.starts_with(&format!("can't listen on {address}")), "{error}");
}
