//! Takes the connections of other nodes.

use super::about::About;
use super::ask::answer;
use super::frames::{self, Frame, PONG};
use super::handshake::{Accepted, Endpoint, Purpose};
use super::stream::Stream;
use crate::NodeId;
use crate::packet::Packet;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections that have not proven yet that they are nodes'.
const HANDSHAKES_MAX: usize = 128;
/// How long to wait where a connection could not be accepted: some time has to pass before a descriptor is free.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// The answer to a question of another node, or why there is none.
pub type Answer = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Who is told what comes from other nodes. All of them have proven that they belong here.
pub trait Incoming: Send + Sync + 'static {
    /// A packet of a node of the same cluster. Does not block.
    fn packet(&self, from: NodeId, packet: Packet);

    /// A node has connected, for whatever purpose. Does not block.
    fn met(&self, other: &About);

    /// A node wants a copy of the log; the note says of which one. Does not block.
    fn copy(&self, from: About, note: String, stream: Stream);

    /// A question.
    fn ask(&self, from: About, question: String) -> Answer;

    /// The connection of a client that has come to another node. Does not block.
    fn tunnel(&self, from: About, note: String, stream: Stream);
}

/// Takes connections of other nodes, until it is dropped. Packets are read on another runtime.
pub async fn listen(
    listener: TcpListener,
    endpoint: Arc<Endpoint>,
    incoming: Arc<dyn Incoming>,
    packets: Handle,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // Those that have ended are forgotten.
            Some(_) = tasks.join_next() => continue,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a node's connection could not be accepted");
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&handshakes).try_acquire_owned() else {
            tracing::debug!(peer = %address, "refused: too many nodes introduce themselves at once");
            continue;
        };
        let (endpoint, incoming) = (Arc::clone(&endpoint), Arc::clone(&incoming));
        let packets = packets.clone();
        tasks.spawn(async move {
            match endpoint.accept(stream).await {
                Ok(accepted) => {
                    drop(place);
                    serve(accepted, &endpoint, incoming, &packets).await;
                }
                Err(error) => tracing::warn!(peer = %address, %error, "a node was not let in"),
            }
        });
    }
}

async fn serve(
    accepted: Accepted,
    endpoint: &Endpoint,
    incoming: Arc<dyn Incoming>,
    packets: &Handle,
) {
    let Accepted { about, purpose, note, stream } = accepted;
    incoming.met(&about);
    match purpose {
        Purpose::Meet => {}
        Purpose::Tunnel => incoming.tunnel(about, note, stream),
        Purpose::Copy => incoming.copy(about, note, stream),
        Purpose::Ask => {
            let said = incoming.ask(about, note).await;
            answer(stream, said).await;
        }
        Purpose::Packets => {
            let own = endpoint.about().node;
            // Its end is not for that thread, which may be what it waits for.
            let taking = Arc::downgrade(&incoming);
            // With the set, what is in it is aborted.
            let mut receiving = JoinSet::new();
            let receiver = async move { receive(stream.here()?, (about.node, own), &taking).await };
            receiving.spawn_on(receiver, packets);
            if let Some(Ok(Err(error))) = receiving.join_next().await {
                tracing::debug!(node = about.name, %error, "a node's connection ended");
            }
        }
    }
}

/// Takes packets until the connection ends.
///
/// # Errors
/// Why it has ended.
async fn receive(
    stream: Stream,
    (from, own): (NodeId, NodeId),
    incoming: &Weak<dyn Incoming>,
) -> io::Result<Infallible> {
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    loop {
        match frames::read(&mut stream).await? {
            Frame::Ping => {
                let answering = async {
                    stream.write_all(&[PONG]).await?;
                    stream.flush().await
                };
                frames::within(answering).await?;
            }
            Frame::Packet(packet) if packet.from() == from && packet.to() == own => {
                let incoming = incoming.upgrade().ok_or(io::ErrorKind::ConnectionAborted)?;
                incoming.packet(from, packet);
            }
            Frame::Packet(_) => {
                return Err(frames::malformed("a packet is of another node, or for another one"));
            }
        }
    }
}
