//! Connections that have not finished their handshake. They have places of their own, as many as peers may have, and the
//! oldest makes room for a newcomer: who connects and says nothing keeps nobody out.

use crate::config::EndpointConfig;
use omq_tokio::options::DEFAULT_MAX_PENDING_HANDSHAKES;
use std::collections::BTreeSet;

/// Handshakes under way at a socket, by the numbers that the library gives to connections: it counts up.
#[derive(Debug)]
pub(crate) struct Handshakes {
    most: usize,
    /// Those that have begun and are not known to be over. One that fails has no number in the library's event: it stays
    /// until it is the oldest.
    begun: BTreeSet<u64>,
    /// The last number seen.
    last: u64,
}

impl Handshakes {
    pub fn new(config: &EndpointConfig) -> Self {
        Handshakes { most: most(config), begun: BTreeSet::new(), last: 0 }
    }

    /// A connection has been accepted. Those between the last one and this one were too, if the event of it was lost.
    pub fn begin(&mut self, connection_id: u64) {
        let from = (self.last + 1).max(connection_id.saturating_sub(places(self.most) as u64));
        self.begun.extend(from.min(connection_id)..=connection_id);
        self.last = self.last.max(connection_id);
    }

    /// A connection has become a peer, or has ended.
    pub fn end(&mut self, connection_id: u64) {
        self.begun.remove(&connection_id);
        self.last = self.last.max(connection_id);
    }

    /// The oldest, if there are too many.
    pub fn pop_excess(&mut self) -> Option<u64> {
        if self.begun.len() > self.most { self.begun.pop_first() } else { None }
    }
}

/// How many handshakes may be under way: all peers may connect at once.
fn most(config: &EndpointConfig) -> usize {
    config.peers_max.max(DEFAULT_MAX_PENDING_HANDSHAKES)
}

/// How many the library has to have room for: as many again, until the oldest are gone.
fn places(most: usize) -> usize {
    most.saturating_mul(2)
}

/// What the library is to be told of an endpoint.
pub(crate) fn library_places(config: &EndpointConfig) -> usize {
    places(most(config))
}
