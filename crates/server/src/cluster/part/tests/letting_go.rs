//! A node that leads no more lets go of its broker, whatever its clients still hold.

use super::super::super::testing::{HOME, PATIENCE, Three, wait_until};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Requests whose answers are more than sockets hold.
const REQUESTS: usize = 400;

/// A connection with little room for what is not read, on which so many times the same was asked for.
async fn ask(http: SocketAddr, path: &str, times: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a size");
    let mut stream = socket.connect(http).await.expect("a listener");
    // guest:guest
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n"
    );
    stream.write_all(head.repeat(times).as_bytes()).await.expect("a listener");
    stream
}

/// What comes, up to this.
async fn until(stream: &mut TcpStream, wanted: &str) {
    let mut text = String::new();
    while !text.contains(wanted) {
        let mut bytes = [0; 4096];
        let read = timeout(PATIENCE, stream.read(&mut bytes)).await.expect("it comes");
        let read = read.expect("it can be read");
        assert!(read > 0, "{text}");
        text += &String::from_utf8_lossy(&bytes[..read]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_loses_the_lead_lets_go_of_its_broker_though_clients_listen_or_read_nothing() {
    let three = Three::start().await;
    let mut unread = Vec::new();
    for _ in 0..3 {
        let leader = three.leader(HOME).await;
        let broker = Arc::downgrade(&three.service(HOME).await.shared.broker);
        let http = three.nodes[leader].addresses().http[0];
        let mut events = ask(http, "/api/events", 1).await;
        until(&mut events, "events from now on").await;
        let mut answers = ask(http, "/api/definitions", REQUESTS).await;
        until(&mut answers, "200 OK").await;
        unread.push(answers);
        three.move_lead(HOME, (leader + 1) % 3).await;
        // However it ends.
        drop(timeout(PATIENCE, events.read_to_end(&mut Vec::new())).await.expect("it ends"));
        wait_until("its broker is gone", async || broker.strong_count() == 0).await;
    }
    drop(unread);
    three.stop().await;
}
