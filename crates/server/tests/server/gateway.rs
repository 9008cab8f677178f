//! The gateway, as far as sockets that are no ZeroMQ programs see it; `conformance/zeromq` has the rest.

use crate::support::{Client, Heard, TestServer, short};
use courser_codec::queue;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The library gives up on a handshake after ten seconds.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

async fn with_pull(address: SocketAddr, queue: &str) -> TestServer {
    TestServer::start_with(|config| {
        let endpoint = serde_json::json!([{
            "socket": "pull", "bind": format!("tcp://{address}"), "queue": queue, "peers_max": 10,
        }]);
        config.gateway.endpoints = courser_gateway::endpoints(endpoint).expect("a good endpoint");
    })
    .await
}

/// Connects as a PUSH socket does (ZMTP 3.1, NULL), and sends a message of one frame.
async fn push(address: SocketAddr, message: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).await?;
    stream.read_exact(&mut greeting).await?;
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x04PUSH\x08Identity\0\0\0\0";
    stream.write_all(&[4, ready.len() as u8]).await?;
    stream.write_all(ready).await?;
    let mut header = [0; 2];
    stream.read_exact(&mut header).await?;
    stream.read_exact(&mut vec![0; header[1].into()]).await?;
    stream.write_all(&[0, message.len() as u8]).await?;
    stream.write_all(message).await?;
    Ok(stream)
}

#[tokio::test]
async fn silent_connections_do_not_keep_a_peer_out() {
    let address = free_address();
    let server = with_pull(address, "tasks").await;
    let mut client = Client::connect(server.address()).await;
    // As the gateway declares it, whoever comes first.
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
