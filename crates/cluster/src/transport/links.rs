//! Connections on which packets go to other nodes.

use super::about::About;
use super::frames::{self, PART_BYTES, PING, PONG, Parts};
use super::handshake::{Endpoint, Purpose};
use super::stream::Stream;
use crate::packet::Packet;
use crate::{GroupNumber, NodeId};
use bytes::BytesMut;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Bytes of entries that wait for one node; what comes beyond is dropped, as if it had been lost, and said again later. One
/// packet may always wait.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Packets that may wait without entries.
const WAITING_WORDS_MAX: usize = 4096;
/// Bytes that are put together for one write.
const WRITE_BYTES: usize = PART_BYTES;
/// How long to wait before the first and the last of many attempts to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often the other end is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// How often one is asked that has not said yet that it takes part.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);
/// How long it may leave that unanswered.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Is told who has been met.
type Met = dyn Fn(&About) + Send + Sync;

/// Connections for the packets of one group to the other nodes of a cluster, one for each, made and kept in the background.
pub struct Links {
    endpoint: Arc<Endpoint>,
    group: GroupNumber,
    met: Arc<Met>,
    runtime: Handle,
    links: Mutex<BTreeMap<NodeId, Link>>,
}

struct Link {
    queue: Arc<Queue>,
    address: watch::Sender<String>,
    task: AbortHandle,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Links {
    /// No connection yet. They are made on this runtime; `met` is told who is at their other ends, and must not block.
    pub fn new(
        endpoint: Arc<Endpoint>,
        group: GroupNumber,
        runtime: Handle,
        met: impl Fn(&About) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let met = Arc::new(met);
        Arc::new(Links { endpoint, group, met, runtime, links: Mutex::default() })
    }

    /// Says where a node is; there is a connection to it from now on.
    pub fn set_address(&self, node: NodeId, address: &str) {
        let mut links = self.links.lock();
        if let Some(link) = links.get(&node) {
            link.address.send_if_modified(|known| {
                let is_new = known != address;
                address.clone_into(known);
                is_new
            });
            return;
        }
        let (sender, addresses) = watch::channel(address.to_owned());
        let queue = Arc::<Queue>::default();
        let (endpoint, met) = (Arc::clone(&self.endpoint), Arc::clone(&self.met));
        let task = keep(endpoint, self.group, met, node, addresses, Arc::clone(&queue));
        let task = self.runtime.spawn(task).abort_handle();
        links.insert(node, Link { queue, address: sender, task });
    }

    /// Ends the connections to all nodes but these.
    pub fn retain(&self, wanted: impl Fn(NodeId) -> bool) {
        self.links.lock().retain(|node, _| wanted(*node));
    }

    /// Sends packets to a node, as far as there is a connection and room. Does not block.
    pub fn send(&self, to: NodeId, packets: Vec<Packet>) {
        let queue = self.links.lock().get(&to).map(|link| Arc::clone(&link.queue));
        if let Some(queue) = queue {
            queue.push(packets);
        }
    }

    /// Whether there is a connection to the node.
    pub fn is_connected(&self, node: NodeId) -> bool {
        self.links.lock().get(&node).is_some_and(|link| link.queue.waiting.lock().is_open)
    }

    /// Whether the node's part of the group runs there, as it has said last: it may lack its copy of the log, or room for it.
    pub fn takes_part(&self, node: NodeId) -> bool {
        self.links.lock().get(&node).is_some_and(|link| link.queue.waiting.lock().takes_part)
    }
}

/// What waits for one node.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    /// What a leader sends of its log, in this order.
    appends: VecDeque<Packet>,
    bytes: usize,
    /// What else is said, as that the leader is there: it goes before, for entries may take long.
    words: VecDeque<Packet>,
    /// There is a connection. Otherwise nothing waits: what is old when it arrives is of no use.
    is_open: bool,
    /// The other end takes part in the group.
    takes_part: bool,
}

impl Queue {
    fn push(&self, packets: Vec<Packet>) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_open {
            return;
        }
        let (appends, words): (Vec<_>, Vec<_>) = packets.into_iter().partition(Packet::appends);
        for packet in appends {
            let bytes = packet.encoded_len();
            if waiting.bytes > 0 && waiting.bytes + bytes > WAITING_BYTES_MAX {
                break;
            }
            waiting.bytes += bytes;
            waiting.appends.push_back(packet);
        }
        let room = WAITING_WORDS_MAX - waiting.words.len();
        waiting.words.extend(words.into_iter().take(room));
        drop(waiting);
        self.wake.notify_one();
    }

    fn set_open(&self, is_open: bool) {
        let mut waiting = self.waiting.lock();
        let old = std::mem::replace(&mut *waiting, Waiting { is_open, ..Waiting::default() });
        drop(waiting);
        drop(old);
    }

    fn set_takes_part(&self, takes_part: bool) {
        self.waiting.lock().takes_part = takes_part;
    }

    /// Takes what makes up one write. `long` is the packet of which parts were sent last, if not all were.
    fn pop(&self, long: &mut Option<Parts>, out: &mut BytesMut) {
        while out.len() < WRITE_BYTES {
            match (self.next(long.is_none()), &mut *long) {
                (Some(packet), None) if packet.encoded_len() > PART_BYTES => {
                    *long = Some(Parts::new(&packet));
                }
                (Some(packet), _) => frames::encode(&packet, out),
                (None, Some(parts)) => {
                    if !parts.encode_next(out) {
                        *long = None;
                    }
                }
                (None, None) => return,
            }
        }
    }

    /// The next packet; one with entries only if that is wanted.
    fn next(&self, with_entries: bool) -> Option<Packet> {
        let mut waiting = self.waiting.lock();
        if let Some(packet) = waiting.words.pop_front() {
            return Some(packet);
        }
        let packet = waiting.appends.pop_front_if(|_| with_entries)?;
        waiting.bytes -= packet.encoded_len();
        Some(packet)
    }
}

/// Keeps a connection to one node, for ever.
async fn keep(
    endpoint: Arc<Endpoint>,
    group: GroupNumber,
    met: Arc<Met>,
    node: NodeId,
    mut addresses: watch::Receiver<String>,
    queue: Arc<Queue>,
) {
    let (purpose, note) = match group {
        GroupNumber::HOME => (Purpose::Packets, String::new()),
        other => (Purpose::GroupPackets, other.0.to_string()),
    };
    let mut backoff = BACKOFF.0;
    let mut said = None;
    loop {
        let address = addresses.borrow_and_update().clone();
        let failed = match endpoint.dial(&address, purpose, &note).await {
            Ok(dialled) if dialled.about.node != node => {
                format!("another node is there: '{}'", dialled.about.name)
            }
            Ok(dialled) => {
                tracing::info!(
                    node = dialled.about.name,
                    address,
                    group = group.0,
                    "connected to a node of the cluster"
                );
                (backoff, said) = (BACKOFF.0, None);
                met(&dialled.about);
                queue.set_open(true);
                let ended = carry(dialled.stream, &queue).await;
                queue.set_open(false);
                let (node, group) = (dialled.about.name, group.0);
                tracing::info!(node, address, group, error = %ended, "connection to a node lost");
                continue_after(&mut addresses, BACKOFF.0).await;
                continue;
            }
            Err(error) => error.to_string(),
        };
        if said.as_ref() != Some(&failed) {
            let (node, group) = (format_args!("{:016x}", node.0), group.0);
            tracing::warn!(%node, address, group, error = failed, "no connection to a node of the cluster");
            said = Some(failed);
        }
        continue_after(&mut addresses, backoff).await;
        backoff = (backoff * 2).min(BACKOFF.1);
    }
}

/// Waits for some time, or until the node is somewhere else.
async fn continue_after(addresses: &mut watch::Receiver<String>, pause: Duration) {
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        Ok(()) = addresses.changed() => {}
    }
}

/// Sends what waits until the connection ends, and says why it did.
async fn carry(stream: Stream, queue: &Queue) -> io::Error {
    let (mut incoming, mut outgoing) = tokio::io::split(stream);
    let (heard, hearing) = watch::channel(Instant::now());
    let listening = async {
        let mut answer = [0; 64];
        loop {
            match incoming.read(&mut answer).await {
                Ok(0) => return io::Error::from(io::ErrorKind::UnexpectedEof),
                Ok(bytes) => {
                    queue.set_takes_part(answer[bytes - 1] == PONG);
                    heard.send_replace(Instant::now());
                }
                Err(error) => return error,
            }
        }
    };
    let sending = async {
        let mut ping_at = Instant::now();
        let (mut out, mut long) = (BytesMut::new(), None);
        loop {
            tokio::select! {
                () = queue.wake.notified() => {}
                () = tokio::time::sleep_until(ping_at) => {
                    out.extend_from_slice(&PING);
                    let takes_part = queue.waiting.lock().takes_part;
                    ping_at = Instant::now() + if takes_part { PING_INTERVAL } else { IDLE_INTERVAL };
                }
            }
            loop {
                queue.pop(&mut long, &mut out);
                if out.is_empty() {
                    break;
                }
                for part in out.chunks(WRITE_BYTES) {
                    if let Err(error) = outgoing.write_all(part).await {
                        return error;
                    }
                    // A node that takes this much is there, though it answers only behind it.
                    if part.len() == WRITE_BYTES {
                        heard.send_replace(Instant::now());
                    }
                }
                out.clear();
            }
            if let Err(error) = outgoing.flush().await {
                return error;
            }
            // One large packet should not keep its room.
            if out.capacity() > 4 * WRITE_BYTES {
                out = BytesMut::new();
            }
        }
    };
    let silence = async {
        loop {
            let until = *hearing.borrow() + SILENCE_MAX;
            tokio::time::sleep_until(until).await;
            if *hearing.borrow() + SILENCE_MAX <= Instant::now() {
                return io::Error::new(io::ErrorKind::TimedOut, "the node is silent");
            }
        }
    };
    tokio::select! {
        // What was said is heard before silence is noticed, also when this thread had no time to listen.
        biased;
        error = listening => error,
        error = sending => error,
        error = silence => error,
    }
}

#[cfg(test)]
mod tests;
