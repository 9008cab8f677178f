//! Exchanges that hand each message to one destination, whatever the binding keys: `x-random` and
//! `x-modulus-hash`.

use super::Destination;
use super::consistent_hash::{hash, mix};
use super::fanout::FanoutIndex;
use std::sync::atomic::{AtomicU64, Ordering};

/// `x-random`: any destination, all of them equally often.
#[derive(Default)]
pub(super) struct RandomIndex {
    destinations: FanoutIndex,
    turns: AtomicU64,
}

impl RandomIndex {
    pub fn matches(&self, found: &mut dyn FnMut(&Destination)) {
        let destinations = self.destinations.as_slice();
        if destinations.is_empty() {
            return;
        }
        // Mixing up a counter is as good as rolling a die, and needs no lock.
        let random = mix(self.turns.fetch_add(1, Ordering::Relaxed));
        found(&destinations[(random % destinations.len() as u64) as usize]);
    }

    pub fn add(&mut self, destination: &Destination) {
        self.destinations.add(destination);
    }

    pub fn remove(&mut self, destination: u64) {
        self.destinations.remove(destination);
    }
}

/// `x-modulus-hash`: the hash of the routing key modulo the number of destinations, which stand in
/// the order of their names.
#[derive(Default)]
pub(super) struct ModulusIndex(FanoutIndex);

impl ModulusIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        let destinations = self.0.as_slice();
        if destinations.is_empty() {
            return;
        }
        found(&destinations[(hash(routing_key) % destinations.len() as u64) as usize]);
    }

    pub fn add(&mut self, destination: &Destination) {
        self.0.add(destination);
        self.0.sort_by_name();
    }

    pub fn remove(&mut self, destination: u64) {
        self.0.remove(destination);
    }
}
