//! Certificates of clients: who gets in, and as whom.

use crate::cluster::Three;
use crate::support::{Authority, Client, Heard, Issued, PATIENCE, wait_until};
use crate::tls::{World, connect_to};
use crate::websocket::pipe;
use courser::{ClientCertificates, ExternalName};
use courser_connection::Credentials;
use courser_connection::client::Config as ClientConfig;
use rcgen::DnType;
use std::net::SocketAddr;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A broker that asks for certificates, and where `external_name` is to be `user`.
async fn asking(asks: ClientCertificates, name: ExternalName, user: &str) -> World {
    World::with(|config, authority, files| {
        let path = files.path().join("clients.pem");
        std::fs::write(&path, authority.pem()).expect("a file");
        config.tls.client_ca = path;
        config.tls.client_certificates = asks;
        config.tls.external_name = name;
        config.auth.user = user.to_owned();
    })
    .await
}

/// Whether a client with this certificate gets through the handshake.
async fn gets_in(world: &World, shown: Option<&Issued>) -> bool {
    // With TLS 1.3 a client hears of a refusal only when it reads.
    let Ok(mut stream) = world.connect("localhost", shown).await else { return false };
    let mut header = [0; 1];
    if stream.write_all(b"AMQP\x00\x00\x09\x01").await.is_err() {
        return false;
    }
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut header)).await;
    matches!(read.expect("an answer"), Ok(1))
}

/// What a client hears that logs in with its certificate.
async fn log_in(world: &World, shown: Option<&Issued>) -> Heard {
    log_in_on(world.connect("localhost", shown).await.expect("a handshake"), "/").await
}

fn with_certificate(vhost: &str) -> ClientConfig {
    ClientConfig {
        credentials: Credentials::External,
        virtual_host: vhost.try_into().expect("a short name"),
        ..ClientConfig::default()
    }
}

async fn log_in_on(stream: TlsStream<TcpStream>, vhost: &str) -> Heard {
    Client::begin_on(stream, with_certificate(vhost)).await.next().await
}

/// The same over a WebSocket.
async fn log_in_over_websocket(world: &World, shown: Option<&Issued>) -> Heard {
    let address = world.server.https_addresses()[0];
    let stream = world.connect_to(address, "localhost", shown).await.expect("a handshake");
    log_in_over_websocket_on(stream, "/").await
}

async fn log_in_over_websocket_on(stream: TlsStream<TcpStream>, vhost: &str) -> Heard {
    let opening = tokio_tungstenite::client_async("wss://localhost/ws/amqp", stream);
    let (socket, _) = opening.await.expect("a socket");
    Client::begin_on(pipe(socket, 1024), with_certificate(vhost)).await.next().await
}

#[tokio::test]
async fn who_needs_a_certificate_gets_in_with_a_good_one_only() {
    let world = asking(ClientCertificates::Required, ExternalName::CommonName, "alice").await;
    let good = world.authority.issue(&["client"], &[], 30);
    let foreign = Authority::new("test authority").issue(&["client"], &[], 30);
    assert!(gets_in(&world, Some(&good)).await);
    assert!(!gets_in(&world, Some(&foreign)).await);
    assert!(!gets_in(&world, None).await);
    world.server.stop().await;
}

#[tokio::test]
async fn where_certificates_are_optional_none_is_needed_but_a_bad_one_is_refused() {
    let world = asking(ClientCertificates::Optional, ExternalName::CommonName, "alice").await;
    let foreign = Authority::new("test authority").issue(&["client"], &[], 30);
    assert!(gets_in(&world, None).await);
    assert!(!gets_in(&world, Some(&foreign)).await);
    // No certificate, no name.
    let heard = log_in(&world, None).await;
    assert!(matches!(heard, Heard::Closed(403, _)), "{heard:?}");
    world.server.stop().await;
}

#[tokio::test]
async fn a_revoked_certificate_is_refused() {
    let world = World::with(|config, authority, files| {
        config.tls.client_ca = files.path().join("clients.pem");
        std::fs::write(&config.tls.client_ca, authority.pem()).expect("a file");
        let list = files.path().join("revoked.crl");
        std::fs::write(&list, authority.revoke(31)).expect("a file");
        config.tls.crls = vec![list];
        config.tls.client_certificates = ClientCertificates::Required;
    })
    .await;
    assert!(gets_in(&world, Some(&world.authority.issue(&["client"], &[], 30))).await);
    assert!(!gets_in(&world, Some(&world.authority.issue(&["client"], &[], 31))).await);
    world.server.stop().await;
}

#[tokio::test]
async fn the_common_name_logs_in_as_the_user_of_that_name() {
    let world = asking(ClientCertificates::Required, ExternalName::CommonName, "alice").await;
    let issue = |name| world.authority.issue(&[], &[(DnType::CommonName, name)], 30);
    assert_eq!(log_in(&world, Some(&issue("alice"))).await, Heard::Opened);
    let heard = log_in(&world, Some(&issue("mallory"))).await;
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism EXTERNAL. For \
                details see the broker logfile.";
    assert_eq!(heard, Heard::Closed(403, text.into()));
    world.server.stop().await;
}

#[tokio::test]
async fn a_certificate_logs_in_over_a_websocket_too() {
    let world = World::with(|config, authority, files| {
        config.tls.client_ca = files.path().join("clients.pem");
        std::fs::write(&config.tls.client_ca, authority.pem()).expect("a file");
        config.tls.client_certificates = ClientCertificates::Optional;
        config.tls.external_name = ExternalName::CommonName;
        config.auth.user = "alice".to_owned();
        config.management.tls_listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    })
    .await;
    let issue = |name| world.authority.issue(&[], &[(DnType::CommonName, name)], 30);
    assert_eq!(log_in_over_websocket(&world, Some(&issue("alice"))).await, Heard::Opened);
    for shown in [Some(&issue("mallory")), None] {
        let heard = log_in_over_websocket(&world, shown).await;
        assert!(matches!(heard, Heard::Closed(403, _)), "{heard:?}");
    }
    world.server.stop().await;
}

/// The status that a request of alice's is answered with.
async fn put_as_alice(address: SocketAddr, path: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    // alice:guest
    let request = format!(
        "PUT {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic YWxpY2U6Z3Vlc3Q=\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("a listener");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_logs_in_at_any_node_of_a_cluster_also_over_a_websocket() {
    let (authority, files) = (Authority::new("test authority"), TempDir::new().expect("a folder"));
    let (certificate, key) = authority.issue(&["localhost"], &[], 10).write(files.path(), "server");
    let clients = files.path().join("clients.pem");
    std::fs::write(&clients, authority.pem()).expect("a file");
    let three = Three::start_with(|config| {
        config.tls.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        (config.tls.certificate, config.tls.key) = (certificate.clone(), key.clone());
        config.tls.client_ca.clone_from(&clients);
        config.tls.client_certificates = ClientCertificates::Optional;
        config.tls.external_name = ExternalName::CommonName;
        config.auth.user = "alice".to_owned();
        config.management.tls_listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        config.cluster.groups = 2;
    })
    .await;
    // In the other group.
    wait_until("a group that takes a vhost", async || {
        let http = three.node(0).addresses().http[0];
        put_as_alice(http, "/api/vhosts/away", r#"{"group":1}"#).await / 100 == 2
    })
    .await;
    let issue = |name| authority.issue(&[], &[(DnType::CommonName, name)], 30);
    let (alice, mallory) = (issue("alice"), issue("mallory"));
    for node in three.running() {
        let (amqps, https) = (node.addresses().amqp_tls[0], node.addresses().https[0]);
        let all = [Some(&alice), Some(&mallory), None];
        for (shown, vhost) in all.into_iter().flat_map(|one| [(one, "/"), (one, "away")]) {
            let connect = |address| connect_to(&authority, address, "localhost", shown);
            let stream = connect(amqps).await.expect("a handshake");
            let plain = log_in_on(stream, vhost).await;
            let stream = connect(https).await.expect("a handshake");
            let over_websocket = log_in_over_websocket_on(stream, vhost).await;
            for heard in [plain, over_websocket] {
                match shown.is_some_and(|shown| std::ptr::eq(shown, &alice)) {
                    true => assert_eq!(heard, Heard::Opened),
                    false => assert!(matches!(heard, Heard::Closed(403, _)), "{heard:?}"),
                }
            }
        }
    }
    three.stop().await;
}

#[tokio::test]
async fn the_distinguished_name_is_written_as_rfc_4514_says() {
    let user = "CN=alice \\+ bob,O=Acme\\, Inc.,C=SE";
    let world = asking(ClientCertificates::Required, ExternalName::DistinguishedName, user).await;
    let subject = [
        (DnType::CountryName, "SE"),
        (DnType::OrganizationName, "Acme, Inc."),
        (DnType::CommonName, "alice + bob"),
    ];
    let issued = world.authority.issue(&[], &subject, 30);
    assert_eq!(log_in(&world, Some(&issued)).await, Heard::Opened);
    world.server.stop().await;
}

#[tokio::test]
async fn an_alternative_name_logs_in_by_its_kind() {
    let world = asking(ClientCertificates::Required, ExternalName::SanDns, "one.example").await;
    let issued = world.authority.issue(&["127.0.0.1", "one.example"], &[], 30);
    assert_eq!(log_in(&world, Some(&issued)).await, Heard::Opened);
    let other = world.authority.issue(&["two.example", "one.example"], &[], 31);
    assert!(matches!(log_in(&world, Some(&other)).await, Heard::Closed(403, _)));
    world.server.stop().await;
}

#[tokio::test]
async fn what_the_handshake_agreed_on_is_shown_of_a_connection() {
    let world = asking(ClientCertificates::Optional, ExternalName::CommonName, "alice").await;
    let subject = [(DnType::OrganizationName, "Acme"), (DnType::CommonName, "alice")];
    let issued = world.authority.issue(&[], &subject, 0x1e);
    let stream = world.connect("localhost", Some(&issued)).await.expect("a handshake");
    let mut client = Client::begin_on(stream, with_certificate("/")).await;
    assert_eq!(client.next().await, Heard::Opened);
    let seen: Vec<_> = world.server.admin().connections(None).expect("all").iter().collect();
    let tls = seen[0].tls.as_ref().expect("TLS");
    assert!(tls.session.starts_with("TLSv1_3, TLS13_"), "{tls:?}");
    let certificate = tls.certificate.as_ref().expect("a certificate");
    assert_eq!((&*certificate.subject, &*certificate.serial), ("CN=alice,O=Acme", "1E"));
    assert_eq!(certificate.issuer, "CN=test authority");
    let (from, to) = certificate.validity.split_once(" - ").expect("two times");
    for time in [from, to] {
        let digits: Vec<&str> = time.split(['-', 'T', ':', 'Z']).collect();
        let lens: Vec<usize> = digits.iter().map(|part| part.len()).collect();
        assert_eq!(lens, [4, 2, 2, 2, 2, 2, 0], "{time}");
    }
    world.server.stop().await;
}
