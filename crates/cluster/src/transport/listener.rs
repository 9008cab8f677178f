//! Takes the connections of other nodes.
//!
//! Anyone can connect who reaches the port. One that takes long to prove that it belongs here makes room for a newcomer, and no
//! more than some lines in the log tell of it. Those that have only just begun do not: of many nodes' connections at once, each
//! would end the work of another, and all would come again.

use super::about::About;
use super::ask::answer;
use super::frames::{self, Frame, IDLE, PONG};
use super::handshake::{Accepted, Endpoint, HandshakeError, Purpose};
use super::stream::Stream;
use crate::packet::Packet;
use crate::{GroupNumber, NodeId};
use bytes::BytesMut;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Connections that have not proven yet that they are nodes'.
const HANDSHAKES_MAX: usize = 128;
/// How long one of them has its place for itself.
const PLACE_TIME: Duration = Duration::from_millis(300);
/// Lines in the log that tell of those that were not let in, in an interval.
const LINES_MAX: u32 = 10;
const LINES_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait where a connection could not be accepted: some time has to pass before a descriptor is free.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// The answer to a question of another node, or why there is none.
pub type Answer = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Who is told what comes from other nodes. All of them have proven that they belong here.
pub trait Incoming: Send + Sync + 'static {
    /// Where the packets of a group are read, if it is here.
    fn thread(&self, group: GroupNumber) -> Option<Handle>;

    /// Whether this node takes part in a group: its packets are heard. Does not block.
    fn takes_part(&self, group: GroupNumber) -> bool;

    /// A packet of a node of the same cluster. Does not block.
    fn packet(&self, group: GroupNumber, from: NodeId, packet: Packet);

    /// A node has connected, for whatever purpose. Does not block.
    fn met(&self, other: &About);

    /// A node wants a copy of a group's log; the note says what it needs. Does not block.
    fn copy(&self, group: GroupNumber, from: About, note: String, stream: Stream);

    /// A question.
    fn ask(&self, from: About, question: String) -> Answer;

    /// The connection of a client that has come to another node. Does not block.
    fn tunnel(&self, from: About, note: String, stream: Stream);
}

/// Takes connections of other nodes, until it is dropped. Packets are read on the threads of their groups.
pub async fn listen(listener: TcpListener, endpoint: Arc<Endpoint>, incoming: Arc<dyn Incoming>) {
    let (mut handshakes, mut tasks) = (Handshakes::default(), JoinSet::new());
    let mut strangers = Strangers::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some((address, ended)) = handshakes.next() => {
                match ended {
                    Ok(accepted) => {
                        let (endpoint, incoming) = (Arc::clone(&endpoint), Arc::clone(&incoming));
                        tasks.spawn(async move { serve(accepted, &endpoint, incoming).await });
                    }
                    Err(error) => strangers.tell(address, &error),
                }
                continue;
            }
            // Those that have ended are forgotten.
            Some(_) = tasks.join_next() => continue,
        };
        match accepted {
            Ok(accepted) => handshakes.begin(Instant::now(), accepted, &endpoint),
            Err(error) => {
                tracing::debug!(%error, "a node's connection could not be accepted");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Connections that have not proven yet that they are nodes'.
#[derive(Default)]
struct Handshakes {
    tasks: JoinSet<(SocketAddr, Result<Accepted, HandshakeError>)>,
    /// When they have begun, the oldest first.
    order: VecDeque<(Instant, AbortHandle)>,
}

impl Handshakes {
    /// Begins one. If there are too many, the oldest makes room for it once it has had its time; before, the newcomer is refused.
    fn begin(
        &mut self,
        now: Instant,
        (stream, address): (TcpStream, SocketAddr),
        endpoint: &Arc<Endpoint>,
    ) {
        if self.order.len() >= HANDSHAKES_MAX {
            let oldest = self.order.pop_front_if(|(begun, _)| now >= *begun + PLACE_TIME);
            let Some((_, oldest)) = oldest else {
                return tracing::debug!(peer = %address, "refused: too many nodes introduce themselves at once");
            };
            tracing::debug!(
                "too many nodes introduce themselves at once: the first one makes room"
            );
            oldest.abort();
        }
        let endpoint = Arc::clone(endpoint);
        let task = self.tasks.spawn(async move { (address, endpoint.accept(stream).await) });
        self.order.push_back((now, task));
    }

    /// How the next one ends that is not aborted; none if there is none.
    async fn next(&mut self) -> Option<(SocketAddr, Result<Accepted, HandshakeError>)> {
        loop {
            let (id, ended) = match self.tasks.join_next_with_id().await? {
                Ok((id, ended)) => (id, Some(ended)),
                Err(error) => (error.id(), None),
            };
            self.order.retain(|(_, task)| task.id() != id);
            if ended.is_some() {
                return ended;
            }
        }
    }
}

/// Keeps those who are not let in from filling the log.
#[derive(Default)]
struct Strangers {
    since: Option<Instant>,
    lines: u32,
    /// Lines that were not written.
    suppressed: u64,
}

impl Strangers {
    fn tell(&mut self, address: SocketAddr, error: &HandshakeError) {
        match self.allow(Instant::now()) {
            Some(suppressed) => {
                tracing::warn!(peer = %address, %error, suppressed, "a node was not let in");
            }
            None => self.suppressed += 1,
        }
    }

    /// Whether a line may be written, and for how many it stands that were not.
    fn allow(&mut self, now: Instant) -> Option<Option<u64>> {
        if self.since.is_none_or(|since| now >= since + LINES_INTERVAL) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES_MAX {
            return None;
        }
        self.lines += 1;
        Some(Some(std::mem::take(&mut self.suppressed)).filter(|&count| count > 0))
    }
}

async fn serve(accepted: Accepted, endpoint: &Endpoint, incoming: Arc<dyn Incoming>) {
    let Accepted { about, purpose, note, stream } = accepted;
    incoming.met(&about);
    match purpose {
        Purpose::Meet => {}
        Purpose::Tunnel => incoming.tunnel(about, note, stream),
        Purpose::Copy => incoming.copy(GroupNumber::HOME, about, note, stream),
        Purpose::GroupCopy => match note
            .split_once(' ')
            .and_then(|(group, rest)| Some((GroupNumber(group.parse().ok()?), rest.to_owned())))
        {
            Some((group, rest)) => incoming.copy(group, about, rest, stream),
            None => tracing::warn!(node = about.name, note, "a copy of no group was asked for"),
        },
        Purpose::Ask => {
            let said = incoming.ask(about, note).await;
            answer(stream, said).await;
        }
        Purpose::Packets => {
            take_packets(GroupNumber::HOME, about, stream, endpoint, &incoming).await;
        }
        Purpose::GroupPackets => match note.parse() {
            Ok(group) => {
                take_packets(GroupNumber(group), about, stream, endpoint, &incoming).await;
            }
            Err(_) => tracing::warn!(node = about.name, note, "packets came for no group"),
        },
    }
}

/// Takes the packets of a connection on the thread of their group, until it ends.
async fn take_packets(
    group: GroupNumber,
    about: About,
    stream: Stream,
    endpoint: &Endpoint,
    incoming: &Arc<dyn Incoming>,
) {
    let Some(thread) = incoming.thread(group) else {
        // It is tried again, until this node has the group too.
        return tracing::debug!(
            node = about.name,
            group = group.0,
            "packets came for a group that is not here"
        );
    };
    let own = endpoint.about().node;
    // Its end is not for that thread, which may be what it waits for.
    let taking = Arc::downgrade(incoming);
    // With the set, what is in it is aborted.
    let mut receiving = JoinSet::new();
    let receiver = async move { receive(group, stream.here()?, (about.node, own), &taking).await };
    receiving.spawn_on(receiver, &thread);
    if let Some(Ok(Err(error))) = receiving.join_next().await {
        tracing::debug!(node = about.name, %error, "a node's connection ended");
    }
}

/// Takes packets until the connection ends.
///
/// # Errors
/// Why it has ended.
async fn receive(
    group: GroupNumber,
    stream: Stream,
    (from, own): (NodeId, NodeId),
    incoming: &Weak<dyn Incoming>,
) -> io::Result<Infallible> {
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let mut parts = BytesMut::new();
    loop {
        match frames::read(&mut stream, &mut parts).await? {
            Frame::Ping => {
                let incoming = incoming.upgrade().ok_or(io::ErrorKind::ConnectionAborted)?;
                let answer = if incoming.takes_part(group) { PONG } else { IDLE };
                drop(incoming);
                let answering = async {
                    stream.write_all(&[answer]).await?;
                    stream.flush().await
                };
                frames::within(answering).await?;
            }
            Frame::Packet(packet) if packet.from() == from && packet.to() == own => {
                let incoming = incoming.upgrade().ok_or(io::ErrorKind::ConnectionAborted)?;
                incoming.packet(group, from, packet);
            }
            Frame::Packet(_) => {
                return Err(frames::malformed("a packet is of another node, or for another one"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
