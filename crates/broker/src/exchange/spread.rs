//! Exchanges that hand each message to one destination, whatever the binding keys: `x-random`,
//! `x-local-random` and `x-modulus-hash`.

use super::consistent_hash::{hash, mix};
use super::fanout::FanoutIndex;
use super::{Destination, shrink, shrink_list};
use crate::work;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// `x-random` and `x-local-random`: any destination, all of them equally often.
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

    pub fn remove_destination(&mut self, destination: u64) {
        self.destinations.remove_destination(destination);
    }
}

/// `x-modulus-hash`: the hash of the routing key modulo the number of destinations, which stand in
/// the order of their names.
#[derive(Default)]
pub(super) struct ModulusIndex {
    destinations: Vec<Destination>,
    /// By how many routing keys each is bound.
    keys: FxHashMap<u64, (Destination, usize)>,
}

impl ModulusIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        let destinations = &self.destinations;
        if destinations.is_empty() {
            return;
        }
        found(&destinations[(hash(routing_key) % destinations.len() as u64) as usize]);
    }

    pub fn add(&mut self, destination: &Destination) {
        let (_, keys) =
            self.keys.entry(destination.id()).or_insert_with(|| (destination.clone(), 0));
        *keys += 1;
        if *keys == 1
            && let Err(at) = position(&self.destinations, destination)
        {
            self.destinations.insert(at, destination.clone());
        }
    }

    pub fn remove(&mut self, destination: u64) {
        let Some((_, keys)) = self.keys.get_mut(&destination) else { return };
        *keys -= 1;
        if *keys == 0 {
            self.remove_destination(destination);
        }
    }

    pub fn remove_destination(&mut self, destination: u64) {
        let Some((known, _)) = self.keys.remove(&destination) else { return };
        shrink(&mut self.keys);
        if let Ok(at) = position(&self.destinations, &known) {
            self.destinations.remove(at);
            shrink_list(&mut self.destinations);
        }
    }
}

/// Where a destination is, or has to be: in the order of names, queues before exchanges.
fn position(sorted: &[Destination], destination: &Destination) -> Result<usize, usize> {
    let rank = |one: &Destination| matches!(one, Destination::Exchange(_));
    sorted.binary_search_by(|one| {
        work::count(1);
        let place = (rank(one), one.name().as_bytes());
        place.cmp(&(rank(destination), destination.name().as_bytes()))
    })
}
