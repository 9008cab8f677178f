//! Takes the connections of other nodes.

use super::about::About;
use super::ask::answer;
use super::frames::{self, Frame, PONG};
use super::handshake::{Accepted, Endpoint, Purpose};
use super::stream::Stream;
use crate::NodeId;
use crate::packet::Packet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

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

/// Takes connections of other nodes, until it is dropped.
pub async fn listen(listener: TcpListener, endpoint: Arc<Endpoint>, incoming: Arc<dyn Incoming>) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut tasks = tokio::task::JoinSet::new();
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
        tasks.spawn(async move {
            match endpoint.accept(stream).await {
                Ok(accepted) => {
                    drop(place);
                    serve(accepted, &endpoint, &*incoming).await;
                }
                Err(error) => tracing::warn!(peer = %address, %error, "a node was not let in"),
            }
        });
    }
}

async fn serve(accepted: Accepted, endpoint: &Endpoint, incoming: &dyn Incoming) {
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
            let error = receive(stream, (about.node, own), incoming).await;
            tracing::debug!(node = about.name, %error, "a node's connection ended");
        }
    }
}

/// Takes packets until the connection ends, and says why it did.
async fn receive(
    stream: Stream,
    (from, own): (NodeId, NodeId),
    incoming: &dyn Incoming,
) -> io::Error {
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    loop {
        let frame = match frames::read(&mut stream).await {
            Ok(frame) => frame,
            Err(error) => return error,
        };
        match frame {
            Frame::Ping => {
                let answering = async {
                    stream.write_all(&[PONG]).await?;
                    stream.flush().await
                };
                if let Err(error) = frames::within(answering).await {
                    return error;
                }
            }
            Frame::Packet(packet) if packet.from() == from && packet.to() == own => {
                incoming.packet(from, packet);
            }
            Frame::Packet(_) => {
                return frames::malformed("a packet is of another node, or for another one");
            }
        }
    }
}
