//! Who holds the identities that a router's peers have chosen.
//!
//! While a peer is connected, the socket lets no peer with another name or key have its identity. Behind that the identity
//! is free: a reply that comes then would go to the next one to take it.

use bytes::Bytes;
use omq_tokio::{PeerAuthentication, Socket};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// How often the peers are asked for anew when they change while they are asked for.
const ATTEMPTS_MAX: usize = 10;

/// A router's peer: its identity, and the name or key that it was let in with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addressee {
    pub identity: Bytes,
    pub authentication: Arc<PeerAuthentication>,
}

impl Addressee {
    /// Whether a peer with another name or key can have its identity later. Those that the socket makes begin with 0, and
    /// are given once.
    pub fn may_be_replaced(&self) -> bool {
        let who = &self.authentication;
        let is_known = who.username.is_some() || who.public_key.is_some();
        is_known && self.identity.first() != Some(&0)
    }
}

/// Knows the holders. Clones ask the socket once for all of them.
#[derive(Clone)]
pub(crate) struct Holders {
    socket: Socket,
    known: Arc<Mutex<Known>>,
}

/// The holders, as they were when the socket's peers had this generation.
#[derive(Default)]
struct Known {
    generation: Option<u64>,
    by_identity: HashMap<Bytes, Holder>,
}

enum Holder {
    One(Arc<PeerAuthentication>),
    /// One has taken over from another whose end the socket has not seen.
    Unclear,
}

impl Holders {
    pub fn new(socket: &Socket) -> Self {
        Holders { socket: socket.clone(), known: Arc::default() }
    }

    /// Whether what is sent to the identity now reaches this peer, or the same one with another connection.
    pub async fn is_held_by(&self, peer: &Addressee) -> bool {
        if !peer.may_be_replaced() {
            return true;
        }
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS_MAX {
            let generation = self.socket.connections_generation();
            if known.generation == Some(generation) {
                return match known.by_identity.get(&peer.identity) {
                    Some(Holder::One(holder)) => is_same(holder, &peer.authentication),
                    Some(Holder::Unclear) | None => false,
                };
            }
            // It fails when the socket is closed.
            let Ok(peers) = self.socket.connections().await else { return false };
            known.generation = Some(generation);
            known.by_identity.clear();
            for peer in peers {
                if let Some(info) = peer.peer_info {
                    known.note(peer.identity, info.authentication);
                }
            }
        }
        false
    }
}

impl Known {
    fn note(&mut self, identity: Bytes, holder: Arc<PeerAuthentication>) {
        let holder = match self.by_identity.get(&identity) {
            Some(Holder::One(other)) if is_same(other, &holder) => return,
            Some(_) => Holder::Unclear,
            None => Holder::One(holder),
        };
        self.by_identity.insert(identity, holder);
    }
}

fn is_same(one: &PeerAuthentication, other: &PeerAuthentication) -> bool {
    (&one.username, &one.public_key) == (&other.username, &other.public_key)
}
