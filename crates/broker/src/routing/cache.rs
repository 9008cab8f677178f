//! The routes that a connection remembers: the next message mostly goes where one went before.

use super::Route;
use crate::keyed::KeyedMap;
use crate::memory::Charge;
use std::sync::Arc;

/// The last route of a channel.
pub(crate) struct LastRoute {
    pub address: Box<[u8]>,
    pub generation: u64,
    pub route: Arc<Route>,
}

/// Routes by exchange and routing key, for one generation of the vhost.
pub(crate) struct RouteCache {
    generation: u64,
    by_address: KeyedMap<Box<[u8]>, Arc<Route>>,
    /// What they use.
    charge: Charge,
}

/// Routes remembered for one connection.
const ROUTES_MAX: usize = 1024;
/// What they may use.
const ROUTES_MAX_BYTES: usize = 4 << 20;

impl RouteCache {
    /// An empty one, whose memory counts in `charge`.
    pub fn new(charge: Charge) -> Self {
        RouteCache { generation: 0, by_address: KeyedMap::default(), charge }
    }

    /// Of which generation of the vhost its routes are.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a route may be remembered at all.
    #[inline]
    pub fn takes(address: &[u8], route: &Route) -> bool {
        address.len() + route.used_bytes() <= ROUTES_MAX_BYTES
    }

    pub fn has_room_for(&self, address: &[u8], route: &Route) -> bool {
        let bytes = self.charge.bytes() + address.len() + route.used_bytes();
        self.by_address.len() < ROUTES_MAX && bytes <= ROUTES_MAX_BYTES
    }

    #[inline]
    pub fn get(&self, address: &[u8]) -> Option<&Arc<Route>> {
        self.by_address.get(address)
    }

    /// Remembers a route for which there is room.
    pub fn put(&mut self, address: &[u8], route: &Arc<Route>) {
        self.charge.set(self.charge.bytes() + address.len() + route.used_bytes());
        self.by_address.insert(address.into(), Arc::clone(route));
        debug_assert!(self.by_address.len() <= ROUTES_MAX);
    }

    /// Forgets all, and gives back their room; the next ones are those of this generation.
    pub fn clear(&mut self, generation: u64) {
        self.by_address = KeyedMap::default();
        self.charge.set(0);
        self.generation = generation;
    }
}
