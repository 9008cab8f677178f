//! Clients that take places and do nothing with them keep no other client out.

use crate::support::Broker;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// Less than a client that stands still is given.
const SOON: Duration = Duration::from_secs(20);

/// A connection that takes a little at a time.
async fn small_window(broker: &Broker) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("it is small");
    socket.connect(broker.http()).await.expect("a connection")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_lists_hold_up_no_other_client() {
    let broker = Broker::start().await;
    // Far more than the system itself takes of what is sent.
    let (value, rows) = ("x".repeat(60_000), 8);
    for row in 0..rows {
        let set = broker.admin().set_global_parameter(&row.to_string(), &format!("\"{value}\""));
        set.expect("a parameter");
    }
    let login = STANDARD.encode("guest:guest");
    let mut unread = Vec::new();
    for _ in 0..40 {
        let mut stream = small_window(&broker).await;
        let request = format!(
            "GET /api/global-parameters HTTP/1.1\r\nhost: broker\r\nauthorization: Basic {login}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        unread.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let answer = tokio::time::timeout(SOON, broker.get("/api/overview")).await;
    assert_eq!(answer.expect("it does not wait for them").status, 200);
    let whole = tokio::time::timeout(SOON, broker.get("/api/global-parameters")).await;
    assert!(whole.expect("who reads gets it all").body.len() > rows * value.len());
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_unread_answers_count_towards_memory() {
    const BODY_BYTES: u64 = 9_000_000;
    let broker = Broker::start().await;
    broker.send("PUT", "/api/queues/%2F/q", "{}").await;
    let message = json!({
        "routing_key": "q", "properties": {}, "payload": "x".repeat(BODY_BYTES as usize),
        "payload_encoding": "string",
    });
    let path = "/api/exchanges/%2F/amq.default/publish";
    assert_eq!(broker.send("POST", path, &message.to_string()).await.status, 200);
    let login = STANDARD.encode("guest:guest");
    let mut unread = Vec::new();
    for path in ["messages/0", "messages", "messages/0"] {
        let mut stream = small_window(&broker).await;
        let request = format!(
            "GET /api/queues/%2F/q/{path} HTTP/1.1\r\nhost: broker\r\nauthorization: Basic {login}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        unread.push(stream);
    }
    let counts = async |enough: &dyn Fn(u64) -> bool| {
        let reached = async {
            while !enough(broker.admin().memory_uses().answers) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, reached).await
    };
    counts(&|bytes| bytes >= 3 * BODY_BYTES).await.expect("all three are counted");
    drop(unread);
    counts(&|bytes| bytes == 0).await.expect("nothing is left of them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_heads_keep_no_other_client_out() {
    let broker = Broker::start().await;
    let mut half = Vec::new();
    for _ in 0..560 {
        let mut stream = TcpStream::connect(broker.http()).await.expect("a connection");
        // Who has lost its place may be gone already.
        let _ = stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: bro").await;
        half.push(stream);
    }
    for path in ["/health/live", "/api/overview"] {
        let answer = tokio::time::timeout(SOON, broker.get(path)).await;
        assert_eq!(answer.expect("there is a place").status, 200, "{path}");
    }
    drop(half);
}
