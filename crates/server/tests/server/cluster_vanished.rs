//! A leader whose machine goes without a word: its connections stay open and nothing comes over them any more.

use crate::cluster::Three;
use crate::cluster_sockets::socket;
use crate::support::{Client, Heard, PATIENCE, free_addresses};
use crate::websocket::pipe;
use courser_connection::client::Config as ClientConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// The way from other nodes to one, until it is silent.
struct Wire {
    address: SocketAddr,
    silent: Arc<watch::Sender<bool>>,
}

impl Wire {
    async fn to(target: SocketAddr) -> Self {
        let address = free_addresses(1)[0];
        let listener = TcpListener::bind(address).await.expect("a free address");
        let silent = Arc::new(watch::Sender::new(false));
        let carried = Arc::clone(&silent);
        tokio::spawn(async move {
            while let Ok((incoming, _)) = listener.accept().await {
                let silent = carried.subscribe();
                tokio::spawn(async move {
                    let Ok(outgoing) = TcpStream::connect(target).await else { return };
                    let ((from, back), (answers, to)) =
                        (incoming.into_split(), outgoing.into_split());
                    tokio::join!(carry(from, to, silent.clone()), carry(answers, back, silent));
                });
            }
        });
        Wire { address, silent }
    }
}

/// One way. Silent, it holds both ends.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut silent: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            () = silenced(&mut silent) => std::future::pending().await,
        };
        if read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

async fn silenced(silent: &mut watch::Receiver<bool>) {
    // The sender is there as long as the test.
    drop(silent.wait_for(|silent| *silent).await);
}

async fn ask(stream: &mut TcpStream, path: &str) {
    // guest:guest
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("a listener");
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

/// A consumer that nothing but the end of its connection tells of a leader that has gone: it has no heartbeats.
async fn consumer<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> Client<S> {
    let config = ClientConfig { heartbeat_s: 0, ..ClientConfig::default() };
    let mut client = Client::connect_on(stream, config).await;
    client.declare("q").await;
    client.consume("q", true).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_follower_passes_on_ends_when_the_leader_vanishes() {
    let listen = free_addresses(3);
    let mut wires = Vec::new();
    for address in &listen {
        wires.push(Wire::to(*address).await);
    }
    let three = Three::start_at(&listen, |config| {
        let at = listen.iter().position(|one| one.to_string() == config.cluster.listen);
        config.cluster.advertise = wires[at.expect("one of them")].address.to_string();
        config.cluster.join = wires.iter().map(|wire| wire.address.to_string()).collect();
    });
    let three = three.await;
    let leader = three.wait_for_leader().await;
    let follower = three.node((leader + 1) % 3);
    let (http, amqp) = (follower.addresses().http[0], follower.addresses().amqp[0]);
    let mut kept_alive = TcpStream::connect(http).await.expect("a listener");
    ask(&mut kept_alive, "/api/whoami").await;
    until(&mut kept_alive, "\"guest\"").await;
    let mut events = TcpStream::connect(http).await.expect("a listener");
    ask(&mut events, "/api/events").await;
    until(&mut events, "events from now on").await;
    let mut over_tcp = consumer(TcpStream::connect(amqp).await.expect("a listener")).await;
    let mut over_socket = consumer(pipe(socket(follower).await, 4096)).await;

    wires[leader].silent.send_replace(true);
    ask(&mut kept_alive, "/api/whoami").await;
    // Also by the next leader, if that is known by then.
    until(&mut kept_alive, "HTTP/1.1 ").await;
    let mut rest = Vec::new();
    // However it ends.
    drop(timeout(PATIENCE, events.read_to_end(&mut rest)).await.expect("it ends"));
    assert_eq!(over_tcp.next().await, Heard::Gone);
    assert_eq!(over_socket.next().await, Heard::Gone);
    three.stop().await;
}
