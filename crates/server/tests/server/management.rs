//! Where the HTTP API is served. What it answers is tested where it is made.

use crate::support::{Client, PATIENCE, TestServer, config_in, wait_until};
use crate::tls::{World, client_config};
use courser::{Config, DefinitionsError, HttpListen, Server, StartError, TlsHost};
use courser_broker::admin::NewQueue;
use rustls::pki_types::ServerName;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// What is answered to a request for what needs no credentials.
async fn ask(stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    ask_for("/health/live", stream).await
}

/// What is answered to `guest`, if that is let in.
async fn ask_for(path: &str, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\
         authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n"
    );
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
    let connector = TlsConnector::from(Arc::new(client_config(&world.authority, None)));
    let answer = ask(connector.connect(name, stream).await.expect("a handshake")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.server.stop().await;
}

#[tokio::test]
async fn connections_that_begin_no_tls_handshake_are_bounded_and_keep_no_one_out() {
    /// One more than may be in their handshakes.
    const SILENT: usize = 257;
    let world = World::with(|config, _, _| {
        config.management.tls_listen = vec![any_port()];
        config.tls.handshake_timeout_ms = 60_000;
    })
    .await;
    let address = world.server.https_addresses()[0];
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        silent.push(TcpStream::connect(address).await.expect("a connection"));
    }
    // Long before its time is over.
    let ended = tokio::time::timeout(PATIENCE / 3, silent[0].read(&mut [0; 1])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "the oldest makes room: {ended:?}");
    let ended = silent[SILENT - 1].try_read(&mut [0; 1]);
    assert!(ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "the last one stays");
    let stream = TcpStream::connect(address).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(client_config(&world.authority, None)));
    let answer = ask(connector.connect(name, stream).await.expect("a handshake")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(silent);
    world.server.stop().await;
}

#[tokio::test]
async fn certificates_are_listed_with_where_they_are_used_and_checked_for_their_end() {
    let world = World::with(|config, _, _| {
        config.management.listen = HttpListen::At(vec![any_port()]);
        config.management.tls_listen = vec![any_port()];
    })
    .await;
    let address = world.server.http_addresses()[0];
    let connect = || async { TcpStream::connect(address).await.expect("a connection") };
    let listed = ask_for("/api/certificates", connect().await).await;
    let used_at = format!("{{\"address\":\"{}\",", world.server.https_addresses()[0]);
    for part in [
        used_at.as_str(),
        "\"protocol\":\"amqp/ssl\"",
        "\"use\":\"server\"",
        "\"alternative_names\":[\"localhost\"",
        "\"issuer\":\"CN=",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let check = "/api/health/checks/certificate-expiration";
    let soon = ask_for(&format!("{check}/1/days"), connect().await).await;
    assert!(soon.ends_with("{\"status\":\"ok\"}"), "{soon}");
    // What tests are given is good until 4096.
    let ever = ask_for(&format!("{check}/5000/years"), connect().await).await;
    assert!(ever.starts_with("HTTP/1.1 503") && ever.contains("Certificates expiring"), "{ever}");
    let unit = ask_for(&format!("{check}/1/seconds"), connect().await).await;
    assert!(unit.starts_with("HTTP/1.1 400"), "{unit}");
    world.server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_has_expired_needs_attention() {
    let world = World::with(|config, authority, files| {
        config.management.listen = HttpListen::At(vec![any_port()]);
        let (certificate, key) = authority.issue_expired(&["old"]).write(files.path(), "old");
        config.tls.hosts = vec![TlsHost { names: vec!["old".into()], certificate, key }];
    })
    .await;
    let stream = TcpStream::connect(world.server.http_addresses()[0]).await;
    let found = ask_for("/api/attention", stream.expect("a connection")).await;
    assert!(found.contains("\"kind\":\"certificate_expired\""), "{found}");
    assert!(
        found.contains("/old.pem (CN=old) has expired: peers that check it refuse it"),
        "{found}"
    );
    assert_eq!(found.matches("\"kind\":\"certificate").count(), 1, "the other is good: {found}");
    world.server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_can_not_be_renewed_needs_attention_until_it_is() {
    let world = World::with(|config, _, _| {
        config.management.listen = HttpListen::At(vec![any_port()]);
    })
    .await;
    let (key, address) = (&world.config.tls.key, world.server.http_addresses()[0]);
    let is_told = async || {
        let stream = TcpStream::connect(address).await.expect("a connection");
        ask_for("/api/attention", stream).await.contains("\"kind\":\"certificates_not_renewed\"")
    };
    let good = std::fs::read(key).expect("a file");
    assert!(!is_told().await);
    for (written, is_bad) in [(&b"nonsense"[..], true), (&good, false)] {
        std::fs::write(key, written).expect("a file");
        world.server.reload(&world.config).await;
        wait_until("what came of it", async || is_told().await == is_bad).await;
    }
    world.server.stop().await;
}

#[tokio::test]
async fn checkpoints_that_fail_need_attention_until_there_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config_in(&folder);
    config.management.listen = HttpListen::At(vec![any_port()]);
    (config.journal.segment_bytes, config.journal.checkpoint_after_bytes) = (1 << 20, 1 << 20);
    // In the place of the file that is written first.
    let in_the_way = config.data_dir.join("journal").join("checkpoint.tmp");
    let server = Server::start(config).await.expect("a start");
    let mut client = Client::connect(server.addresses()[0]).await;
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    server.admin().declare_queue("/", "q", queue).expect("a queue");
    let is_told = async || {
        let stream = TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
        ask_for("/api/attention", stream).await.contains("\"kind\":\"checkpoint_failed\"")
    };
    assert!(!is_told().await);
    std::fs::create_dir(&in_the_way).expect("a folder");
    for _ in 0..150 {
        client.publish_persistent("q", &[1; 10_000]).await;
    }
    wait_until("it is told", is_told).await;
    // Nothing else has to happen.
    std::fs::remove_dir(&in_the_way).expect("it is empty");
    wait_until("it is told no more", async || !is_told().await).await;
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn what_went_through_connections_to_a_vhost_is_counted_when_they_are_over_too() {
    const BODY_BYTES: usize = 100_000;
    let server = TestServer::start_with(|config| {
        config.management.listen = HttpListen::At(vec![any_port()]);
    })
    .await;
    let address = server.http_addresses()[0];
    let traffic = async || {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let answer = ask_for("/api/vhosts?columns=name,recv_oct,send_oct", stream).await;
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        let all: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let of = |vhost: &str, what: &str| {
            let one = all.as_array().expect("a list").iter().find(|one| one["name"] == vhost);
            one.and_then(|one| one[what].as_u64()).expect("a number")
        };
        ["/", "other"].map(|vhost| (of(vhost, "recv_oct"), of(vhost, "send_oct")))
    };
    server.admin().change_vhost("other", |_| ()).expect("a vhost");
    assert_eq!(traffic().await, [(0, 0); 2]);
    let mut client = Client::connect(server.address()).await;
    client.declare("q").await;
    client.publish("q", &[7; BODY_BYTES]).await;
    client.count("q").await;
    let [open, other] = traffic().await;
    assert!(open.0 > BODY_BYTES as u64 && open.1 > 0 && other == (0, 0), "{open:?} {other:?}");
    drop(client);
    wait_until("the connection's end", async || {
        server.admin().connections(None).expect("all").is_empty()
    })
    .await;
    let [over, other] = traffic().await;
    assert!(over.0 >= open.0 && over.1 >= open.1 && other == (0, 0), "{over:?} {other:?}");
    server.stop().await;
}

#[tokio::test]
async fn without_it_the_broker_starts_where_the_usual_address_is_taken() {
    // Whether this takes it or another process has it already: it is taken.
    let _taken = TcpListener::bind(("127.0.0.1", 15672));
    let server =
        TestServer::start_with(|config| config.management.listen = HttpListen::Default).await;
    assert!(server.http_addresses().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn metrics_are_served_likewise() {
    let taken = TcpListener::bind(any_port()).expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config_in(&folder);
    config.metrics.listen = HttpListen::At(vec![address]);
    let error = Server::start(config).await.err().expect("it is taken").to_string();
    assert!(error.starts_with(&format!("can't listen on {address} (metrics.listen): ")), "{error}");

    let _taken = TcpListener::bind(("127.0.0.1", 15692));
    let server = TestServer::start_with(|config| config.metrics.listen = HttpListen::Default).await;
    assert!(server.metrics_addresses().is_empty());
    server.stop().await;

    let world = World::with(|config, _, _| config.metrics.tls_listen = vec![any_port()]).await;
    let stream = TcpStream::connect(world.server.metrics_tls_addresses()[0]).await;
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(client_config(&world.authority, None)));
    let stream = connector.connect(name, stream.expect("a connection")).await;
    let answer = ask_for("/metrics", stream.expect("a handshake")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\ncourser_certificate_expiry_timestamp_seconds{path=\""), "{answer}");
    world.server.stop().await;
}

#[tokio::test]
async fn an_address_that_was_chosen_and_is_taken_is_an_error() {
    let taken = TcpListener::bind(any_port()).expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config_in(&folder);
    config.management.listen = HttpListen::At(vec![address]);
    let error = Server::start(config).await.err().expect("it is taken").to_string();
    assert!(
        error.starts_with(&format!("can't listen on {address} (management.listen): ")),
        "{error}"
    );
}

#[tokio::test]
async fn definitions_that_the_configuration_names_are_made_before_clients_are_served() {
    let files = tempfile::tempdir().expect("a folder");
    let first = r#"{"vhosts": [{"name": "shop"}], "users": [{"name": "app", "tags": []}]}"#;
    let second = r#"{
        "permissions": [{"user": "app", "vhost": "shop", "configure": "", "write": ".*", "read": ""}],
        "queues": [{"name": "q", "vhost": "shop", "durable": true, "arguments": []}]
    }"#;
    for (name, text) in [("1.json", first), ("2.json", second), ("notes.txt", "no definitions")] {
        std::fs::write(files.path().join(name), text).expect("a file");
    }
    let path = files.path().to_owned();
    let server =
        TestServer::start_with(|config| config.management.load_definitions.clone_from(&path)).await;
    let admin = server.admin();
    assert!(admin.queue("shop", b"q").is_ok_and(|queue| queue.durable));
    assert!(admin.accounts().permission("app", "shop").is_some());
    assert!(admin.accounts().user("guest").is_none(), "it was not asked for");
    // The journal stays open as long as the broker is held.
    drop(admin);
    let server = server.restart_with(|config| config.management.load_definitions = path).await;
    assert_eq!(server.admin().accounts().user_count(), 1, "once more");
    server.stop().await;
}

#[tokio::test]
async fn definitions_that_have_not_changed_are_skipped_where_that_is_wanted() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("shop.json");
    let shop = r#"{"vhosts": [{"name": "shop"}]}"#;
    let other = r#"{"vhosts": [{"name": "shop"}, {"name": "other"}]}"#;
    std::fs::write(&file, shop).expect("a file");
    let with = |skip_if_unchanged| {
        let file = file.clone();
        move |config: &mut Config| {
            config.management.listen = HttpListen::At(vec![any_port()]);
            config.management.load_definitions = file;
            config.management.skip_if_unchanged = skip_if_unchanged;
        }
    };
    let has_shop = |server: &TestServer| server.admin().vhost("shop").is_some();
    let server = TestServer::start_with(with(true)).await;
    assert!(has_shop(&server));
    server.admin().delete_vhost("shop").expect("deleted");
    let server = server.restart_with(with(true)).await;
    assert!(!has_shop(&server), "the file is the same");
    let stream = TcpStream::connect(server.http_addresses()[0]).await.expect("a connection");
    let exported = ask_for("/api/definitions", stream).await;
    assert!(exported.starts_with("HTTP/1.1 200"), "{exported}");
    assert!(!exported.contains("imported_definition_hash_value"), "{exported}");

    std::fs::write(&file, other).expect("a file");
    let server = server.restart_with(with(true)).await;
    assert!(has_shop(&server), "another one");
    server.admin().delete_vhost("shop").expect("deleted");
    let cleared = server.admin().clear_global_parameter("imported_definition_hash_value");
    assert!(cleared.expect("cleared"), "it was there");
    let server = server.restart_with(with(true)).await;
    assert!(has_shop(&server), "it is not known what was imported");
    server.admin().delete_vhost("shop").expect("deleted");
    let server = server.restart_with(with(false)).await;
    assert!(has_shop(&server), "at each start");
    server.stop().await;
}

#[tokio::test]
async fn definitions_that_can_not_be_made_stop_the_start() {
    let files = tempfile::tempdir().expect("a folder");
    let file = files.path().join("wrong.json");
    let without_vhost = r#"{"queues": [{"name": "q", "durable": true, "arguments": {}}]}"#;
    for (text, part) in [("{", "failed_to_parse_json"), (without_vhost, "'vhost'")] {
        std::fs::write(&file, text).expect("a file");
        let mut config = config_in(&files);
        config.management.load_definitions.clone_from(&file);
        let error = Server::start(config).await.err().expect("it is wrong");
        let text = error.to_string();
        assert!(text.contains("wrong.json") && text.contains(part), "{text}");
        let StartError::Definitions { path, error: DefinitionsError::Import(_) } = error else {
            panic!("{error:?}");
        };
        assert_eq!(path, file);
    }
    let mut config = config_in(&files);
    config.management.load_definitions = files.path().join("none.json");
    let error = Server::start(config).await.err().expect("there is none");
    assert!(error.to_string().contains("none.json"), "{error}");
    let StartError::Definitions { error: DefinitionsError::Read(error), .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
