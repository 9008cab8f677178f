//! Connections with TLS: what goes through them, which certificate is shown, and its renewal.

use crate::support::{
    Authority, Client, Heard, Issued, PATIENCE, Process, TestServer, config_in, wait_until,
};
use courser::{Config, Server, TlsHost};
use courser_connection::client::Config as ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A broker with TLS for `localhost`, its authority, and its files.
pub struct World {
    pub authority: Authority,
    _files: TempDir,
    pub server: TestServer,
    pub config: Config,
}

impl World {
    pub async fn with(change: impl FnOnce(&mut Config, &Authority, &TempDir)) -> Self {
        let authority = Authority::new("test authority");
        let files = tempfile::tempdir().expect("a folder");
        let (certificate, key) =
            authority.issue(&["localhost"], &[], 10).write(files.path(), "server");
        let mut used = None;
        let server = TestServer::start_with(|config| {
            config.tls.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
            (config.tls.certificate, config.tls.key) = (certificate, key);
            change(config, &authority, &files);
            used = Some(config.clone());
        })
        .await;
        World { authority, _files: files, server, config: used.expect("settings") }
    }

    pub async fn connect(
        &self,
        host: &'static str,
        shown: Option<&Issued>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_to(self.server.tls_address(), host, shown).await
    }

    pub async fn connect_to(
        &self,
        address: SocketAddr,
        host: &'static str,
        shown: Option<&Issued>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        connect_to(&self.authority, address, host, shown).await
    }

    /// The broker's certificate, as a client that asks for `host` sees it.
    async fn shown(&self, host: &'static str) -> Vec<u8> {
        let stream = self.connect(host, None).await.expect("a handshake");
        stream.get_ref().1.peer_certificates().expect("a certificate")[0].to_vec()
    }
}

/// What a client trusts and shows.
pub fn client_config(authority: &Authority, shown: Option<&Issued>) -> TlsConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).expect("an authority");
    let builder = TlsConfig::builder().with_root_certificates(roots);
    match shown {
        None => builder.with_no_client_auth(),
        Some(issued) => builder
            .with_client_auth_cert(issued.chain(), issued.private_key())
            .expect("a certificate and its key"),
    }
}

/// A connection to a server that calls itself `host`, by a client that trusts this authority.
pub async fn connect_to(
    authority: &Authority,
    address: SocketAddr,
    host: &'static str,
    shown: Option<&Issued>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(host).expect("a name");
    let config = Arc::new(client_config(authority, shown));
    TlsConnector::from(config).connect(name, stream).await
}

#[tokio::test]
async fn messages_of_every_size_go_through_tls_both_ways() {
    let world = World::with(|_, _, _| {}).await;
    let stream = world.connect("localhost", None).await.expect("a handshake");
    let mut client = Client::connect_on(stream, ClientConfig::default()).await;
    client.declare("q").await;
    client.consume("q", true).await;
    let sizes = [0, 1, 100, 16_384, 16_385, 200_000, 5_000_000];
    for size in sizes {
        let body = vec![size as u8; size];
        client.publish("q", &body).await;
        assert!(client.bodies(1).await[0] == body, "a body of {size} bytes");
    }
    client.close().await;
    world.server.stop().await;
}

#[tokio::test]
async fn a_consumer_that_is_slow_gets_everything_that_tls_holds_back() {
    let world = World::with(|_, _, _| {}).await;
    let stream = world.connect("localhost", None).await.expect("a handshake");
    let mut consumer = Client::connect_on(stream, ClientConfig::default()).await;
    consumer.declare("q").await;
    consumer.consume("q", true).await;
    let mut publisher = Client::connect(world.server.address()).await;
    // More than sockets hold: the broker has to wait in the middle of what it has encrypted.
    let body = vec![7; 100_000];
    for _ in 0..200 {
        publisher.publish("q", &body).await;
    }
    publisher.count("q").await;
    let bodies = consumer.bodies(200).await;
    assert!(bodies.iter().all(|got| *got == body));
    world.server.stop().await;
}

#[tokio::test]
async fn a_stopping_broker_says_goodbye_through_tls() {
    let world = World::with(|_, _, _| {}).await;
    let stream = world.connect("localhost", None).await.expect("a handshake");
    let mut client = Client::connect_on(stream, ClientConfig::default()).await;
    let stopping = tokio::spawn(world.server.stop());
    let heard = client.next().await;
    assert!(matches!(&heard, Heard::Closed(320, _)), "{heard:?}");
    // The end of the stream is said, not only cut.
    let rest = client.stream.read(&mut [0; 16]).await.expect("no error");
    assert_eq!(rest, 0);
    drop(client);
    stopping.await.expect("a clean stop");
}

#[tokio::test]
async fn the_certificate_is_that_of_the_host_a_client_asks_for() {
    let mut other = Vec::new();
    let world = World::with(|config, authority, files| {
        let issued = authority.issue(&["amqp.example.com", "x.example.org"], &[], 11);
        other = issued.chain()[0].to_vec();
        let (certificate, key) = issued.write(files.path(), "other");
        let names = vec!["AMQP.example.com".into(), "*.example.org".into()];
        config.tls.hosts = vec![TlsHost { names, certificate, key }];
    })
    .await;
    assert_eq!(world.shown("amqp.example.com").await, other);
    assert_eq!(world.shown("x.example.org").await, other);
    assert_ne!(world.shown("localhost").await, other);
    world.server.stop().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let world = World::with(|_, _, _| {}).await;
    let first = world.shown("localhost").await;
    let stream = world.connect("localhost", None).await.expect("a handshake");
    let mut old = Client::connect_on(stream, ClientConfig::default()).await;

    let renewed = world.authority.issue(&["localhost"], &[], 20);
    // As between the writing of the certificate and of its key.
    std::fs::write(&world.config.tls.certificate, &renewed.certificate).expect("a file");
    world.server.reload(&world.config).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.shown("localhost").await, first);

    std::fs::write(&world.config.tls.key, &renewed.key).expect("a file");
    world.server.reload(&world.config).await;
    let wanted = renewed.chain()[0].to_vec();
    wait_until("the renewed certificate", async || world.shown("localhost").await == wanted).await;

    std::fs::write(&world.config.tls.key, "nonsense").expect("a file");
    world.server.reload(&world.config).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.shown("localhost").await, wanted);
    // Connections that were there go on.
    old.declare("q").await;
    world.server.stop().await;
}

#[tokio::test]
async fn who_sends_no_handshake_is_sent_away() {
    let world = World::with(|config, _, _| config.tls.handshake_timeout_ms = 200).await;
    let address = world.server.tls_address();
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    let mut plain = TcpStream::connect(address).await.expect("a connection");
    plain.write_all(b"AMQP\x00\x00\x09\x01").await.expect("sent");
    for stream in [&mut silent, &mut plain] {
        let mut said = Vec::new();
        let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said)).await;
        // Cut off or ended, but never answered as an AMQP client.
        let _ = reading.expect("an end in good time");
        assert!(!said.starts_with(b"AMQP") && !said.starts_with(&[1]), "{said:?}");
    }
    world.server.stop().await;
}

async fn refusal(change: impl FnOnce(&mut Config, &TempDir)) -> String {
    let files = tempfile::tempdir().expect("a folder");
    let mut config = config_in(&files);
    config.tls.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let authority = Authority::new("test authority");
    let issued = authority.issue(&["localhost"], &[], 1);
    (config.tls.certificate, config.tls.key) = issued.write(files.path(), "server");
    change(&mut config, &files);
    let Err(error) = Server::start(config).await else { panic!("it started") };
    error.to_string().replace(&files.path().display().to_string(), "DIR")
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let said = refusal(|config, _| config.tls.key = "/nowhere/server.key".into()).await;
    assert_eq!(said, "tls.key: /nowhere/server.key: No such file or directory (os error 2)");
    let other = Authority::new("another").issue(&["localhost"], &[], 2);
    let said = refusal(|config, files| config.tls.key = other.write(files.path(), "other").1).await;
    let mismatch = "it is not the key of the certificate in DIR/server.pem (tls.certificate)";
    assert_eq!(said, format!("tls.key: DIR/other.key: {mismatch}"));
    let said = refusal(|config, _| config.tls.certificate = config.tls.key.clone()).await;
    assert_eq!(said, "tls.certificate: DIR/server.key: holds no certificate in PEM form");
    let said = refusal(|config, files| {
        config.tls.certificate = files.path().join("old.pem");
        std::fs::write(&config.tls.certificate, include_str!("support/version1.pem"))
            .expect("a file");
    })
    .await;
    let why = "tls.certificate: DIR/old.pem: the certificate is of an old version of X.509: TLS needs version 3";
    assert!(said.starts_with(why), "{said}");
    let said = refusal(|config, _| {
        let (certificate, key) = (config.tls.certificate.clone(), "/nowhere/host.key".into());
        config.tls.hosts = vec![TlsHost { names: vec!["host".into()], certificate, key }];
    })
    .await;
    assert!(said.starts_with("tls.hosts[0].key: /nowhere/host.key: No such file"), "{said}");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let said = refusal(|config, files| {
        config.tls.key = files.path().join("locked.key");
        std::fs::write(&config.tls.key, encrypted).expect("a file");
    })
    .await;
    assert!(
        said.starts_with("tls.key: DIR/locked.key: the key is encrypted; decrypt it"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said_once_with_the_settings_file_before_it() {
    let files = tempfile::tempdir().expect("a folder");
    let authority = Authority::new("test authority");
    let (certificate, _) = authority.issue(&["localhost"], &[], 1).write(files.path(), "server");
    let (_, key) = authority.issue(&["localhost"], &[], 2).write(files.path(), "other");
    let settings = files.path().join("courser.yaml");
    let (certificate, key) = (certificate.display(), key.display());
    let text = format!(
        "listen: []\ntls: {{listen: '127.0.0.1:0', certificate: '{certificate}', key: '{key}'}}\n\
         management: {{listen: none}}\nmetrics: {{listen: none}}\n"
    );
    std::fs::write(&settings, text).expect("a file");
    let output = Process::run(&["--config", settings.to_str().expect("text")]);
    let said = String::from_utf8(output.stderr).expect("text");
    let settings = settings.display();
    let expected = format!(
        "courser: {settings}: tls.key: {key}: it is not the key of the certificate in {certificate} (tls.certificate)\n"
    );
    assert_eq!(said, expected);
}
