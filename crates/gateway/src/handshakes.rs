//! Connections that have not finished their handshake. They have places of their own, as many as peers may have, and the
//! oldest makes room for a newcomer: a peer that connects and says nothing keeps no other peer out.

use crate::config::EndpointConfig;
use omq_tokio::options::DEFAULT_MAX_PENDING_HANDSHAKES;
use std::collections::BTreeSet;

/// Places are so many times the handshakes that may be under way: the oldest have to go before the library refuses others.
const SPARE: usize = 2;

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
    /// For a socket whose connections have so many places.
    pub fn new(places: usize) -> Self {
        Handshakes { most: (places / SPARE).max(1), begun: BTreeSet::new(), last: 0 }
    }

    /// A connection has been accepted. Those between the last one and this one were too, if the event of it was lost.
    pub fn begin(&mut self, connection_id: u64) {
        let from = (self.last + 1).max(connection_id.saturating_sub((SPARE * self.most) as u64));
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

/// Places for handshakes that an endpoint would have, and descriptors that they may take: all peers may connect at once.
fn places(config: &EndpointConfig) -> usize {
    config.peers_max.max(DEFAULT_MAX_PENDING_HANDSHAKES).saturating_mul(SPARE)
}

/// The same of all endpoints that are connected to.
#[must_use]
pub fn handshakes_wanted(configs: &[EndpointConfig]) -> usize {
    configs.iter().filter(|one| one.bind.is_some()).map(places).fold(0, usize::saturating_add)
}

/// What an endpoint has, if there are so many for all of them.
pub(crate) fn share(config: &EndpointConfig, configs: &[EndpointConfig], most: usize) -> usize {
    let (own, wanted) = (places(config), handshakes_wanted(configs).max(1));
    if wanted <= most {
        return own;
    }
    let part = own as u128 * most as u128 / wanted as u128;
    usize::try_from(part).unwrap_or(own).max(SPARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::endpoints;

    #[test]
    fn endpoints_share_what_there_is() {
        let json = serde_json::json!([
            { "socket": "pull", "bind": "tcp://127.0.0.1:1", "queue": "q" },
            { "socket": "pull", "bind": "tcp://127.0.0.1:2", "queue": "q", "peers_max": 10 },
            { "socket": "pull", "connect": "tcp://127.0.0.1:3", "queue": "q" },
        ]);
        let all = endpoints(json).expect("good ones");
        assert_eq!(handshakes_wanted(&all), 2048 + 256);
        let shares = |most| [share(&all[0], &all, most), share(&all[1], &all, most)];
        assert_eq!(shares(handshakes_wanted(&all)), [2048, 256]);
        assert_eq!(shares(1152), [1024, 128]);
        assert_eq!(shares(0), [2, 2]);
    }

    #[test]
    fn the_oldest_makes_room_before_the_places_are_all_taken() {
        let mut handshakes = Handshakes::new(6);
        (1..=5).for_each(|id| handshakes.begin(id));
        assert_eq!((handshakes.pop_excess(), handshakes.pop_excess()), (Some(1), Some(2)));
        assert_eq!(handshakes.pop_excess(), None);
    }
}
