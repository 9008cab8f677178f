//! Fanout exchanges: every destination, once (AMQP 0-9-1, 3.1.3.2).

use super::destinations::Destinations;
use super::{Destination, shrink};
use rustc_hash::FxHashMap;

/// Destinations, and by how many routing keys each is bound.
#[derive(Default)]
pub(super) struct FanoutIndex {
    destinations: Destinations,
    keys: FxHashMap<u64, usize>,
}

impl FanoutIndex {
    pub fn as_slice(&self) -> &[Destination] {
        self.destinations.as_slice()
    }

    pub fn matches(&self, found: &mut dyn FnMut(&Destination)) {
        self.destinations.as_slice().iter().for_each(found);
    }

    pub fn add(&mut self, destination: &Destination) {
        let keys = self.keys.entry(destination.id()).or_default();
        *keys += 1;
        if *keys == 1 {
            self.destinations.add(destination);
        }
    }

    pub fn remove(&mut self, destination: u64) {
        let Some(keys) = self.keys.get_mut(&destination) else { return };
        *keys -= 1;
        if *keys == 0 {
            self.remove_destination(destination);
        }
    }

    pub fn remove_destination(&mut self, destination: u64) {
        self.keys.remove(&destination);
        shrink(&mut self.keys);
        self.destinations.remove(destination);
    }
}
