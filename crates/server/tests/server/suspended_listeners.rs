//! Listeners for clients that an operator has suspended: they take no new connections until they are resumed.

use crate::support::operated::Operated;
use crate::support::{Client, Heard, PATIENCE, Process, wait_until};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

async fn is_listened_at(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_ok()
}

/// What the broker sends on a new WebSocket that says nothing, until the broker ends it.
async fn end_of_websocket(broker: &Operated) -> Vec<u8> {
    let address = broker.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let request = format!("ws://{address}/ws/amqp").into_client_request().expect("a URL");
    let stream = TcpStream::connect(address).await.expect("HTTP is served all the same");
    let (socket, _) = tokio_tungstenite::client_async(request, stream).await.expect("a socket");
    let (mut stream, mut sent) = (socket.into_inner(), Vec::new());
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut sent));
    drop(read.await.expect("an end"));
    sent
}

/// Whether clients are served, for probes.
async fn is_ready(broker: &Operated) -> bool {
    let address = broker.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let path = "/api/health/checks/ready-to-serve-clients";
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(address).await.expect("HTTP is served");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.starts_with("HTTP/1.1 200 ")
}

fn is_said_to_be_suspended(broker: &Operated) -> bool {
    let in_status = broker.quiet(&["status"]).contains("Those for clients are suspended");
    let in_json = broker.json(&["status"])["listeners_suspended"] == true;
    let in_attention = broker.json(&["attention"]).to_string().contains("\"listeners_suspended\"");
    let port = broker.broker.address.port().to_string();
    let in_checks = ["check_port_listener", "check_protocol_listener"].map(|check| {
        broker.ctl(&[check, if check.contains("port") { &port } else { "amqp" }]).code
    });
    let all = [in_status, in_json, in_attention, in_checks[0] != Some(0), in_checks[1] != Some(0)];
    assert!(all.iter().all(|one| *one == in_status), "{all:?}");
    in_status
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_listeners_take_no_new_connections_until_they_are_resumed() {
    let broker = Operated::start();
    let address = broker.broker.address;
    let mut client = Client::connect(address).await;
    client.declare("q").await;
    assert!(!is_said_to_be_suspended(&broker) && is_ready(&broker).await);
    for _ in 0..2 {
        broker.quiet(&["suspend_listeners"]);
        wait_until("it listens no more", async || !is_listened_at(address).await).await;
    }
    assert!(is_said_to_be_suspended(&broker) && !is_ready(&broker).await);
    assert_eq!(end_of_websocket(&broker).await, b"", "it is served without a handshake");
    client.publish("q", b"for an operator").await;
    let taken = broker.quiet(&["consume", "q", "--count", "1"]);
    assert!(taken.contains("for an operator"), "who has suspended them gets in: {taken}");
    client.publish("q", b"still served").await;
    client.consume("q", true).await;
    assert_eq!(client.next().await, Heard::Delivery { tag: 1, body: b"still served".into() });
    for _ in 0..2 {
        broker.quiet(&["resume_listeners"]);
        wait_until("the broker listens", async || is_listened_at(address).await).await;
    }
    assert!(!is_said_to_be_suspended(&broker) && is_ready(&broker).await);
    Client::connect(address).await.declare("more").await;
}

/// The system listens there, whatever the broker does.
#[tokio::test(flavor = "multi_thread")]
async fn at_a_socket_of_the_system_connections_end_at_once_meanwhile() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("bash");
    let handing_over = r#"exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@""#;
    command.args(["-c", handing_over, env!("CARGO_BIN_EXE_courser"), "--data-dir"]);
    command.arg(folder.path().join("data")).stdin(OwnedFd::from(listener));
    command.env("COURSER_MANAGEMENT_LISTEN", "none").env("COURSER_METRICS_LISTEN", "none");
    let broker = Operated { broker: Process::start_with(command), folder };
    Client::connect(address).await.declare("q").await;
    broker.quiet(&["suspend_listeners"]);
    let mut stream = TcpStream::connect(address).await.expect("the system listens");
    let mut sent = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut sent)).await;
    assert!(sent.is_empty(), "{end:?} {sent:?}");
    end.expect("an end").ok();
    broker.quiet(&["resume_listeners"]);
    Client::connect(address).await.declare("more").await;
}
