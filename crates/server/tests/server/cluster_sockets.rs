//! WebSockets of clients that have come to a node which does not lead.

use crate::cluster::Three;
use crate::cluster_operated::ctl;
use crate::support::PATIENCE;
use courser::Node;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A socket that says nothing, by way of this node.
async fn silent_socket(node: &Node) -> TcpStream {
    let mut stream = TcpStream::connect(node.addresses().http[0]).await.expect("a listener");
    let request = "GET /ws/amqp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut status = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut status)).await.expect("in time").expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 101");
    stream
}

/// Waits until the other end does not even take what is said any more.
async fn is_gone(mut stream: TcpStream) {
    let going = async {
        // A frame of a WebSocket that nothing has to be done for: an empty pong.
        while stream.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, going).await.expect("its end is here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_by_way_of_a_follower_ends_with_the_leader_though_its_client_does_not() {
    let mut three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let socket = silent_socket(three.node((leader + 1) % 3)).await;
    let led = three.nodes[leader].take().expect("it runs");
    led.stop().await.expect("a clean stop");
    is_gone(socket).await;
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_by_way_of_a_node_that_is_drained_is_closed() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let socket = silent_socket(three.node(follower)).await;
    let drain: [&[&str]; 3] =
        [&["cluster", "drain", "a"], &["cluster", "drain", "b"], &["cluster", "drain", "c"]];
    let drained = ctl(&three.configs[follower], drain[follower]).await;
    assert!(drained.status.success(), "{drained:?}");
    is_gone(socket).await;
    three.stop().await;
}
