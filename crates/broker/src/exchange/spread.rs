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
    destinations: Sorted,
    /// By how many routing keys each is bound.
    keys: FxHashMap<u64, (Destination, usize)>,
}

impl ModulusIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        let count = self.keys.len() as u64;
        if count > 0
            && let Some(destination) = self.destinations.get((hash(routing_key) % count) as usize)
        {
            found(destination);
        }
    }

    pub fn add(&mut self, destination: &Destination) {
        let (_, keys) =
            self.keys.entry(destination.id()).or_insert_with(|| (destination.clone(), 0));
        *keys += 1;
        if *keys == 1 {
            self.destinations.insert(destination);
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
        self.destinations.remove(&known);
    }
}

/// Destinations that one that comes or goes moves at most.
const PART_MAX: usize = 512;

/// Destinations in the order of names, queues before exchanges, in parts none of which is empty.
#[derive(Default)]
struct Sorted(Vec<Vec<Destination>>);

impl Sorted {
    fn get(&self, mut nth: usize) -> Option<&Destination> {
        for part in &self.0 {
            match part.get(nth) {
                Some(found) => return Some(found),
                None => nth -= part.len(),
            }
        }
        None
    }

    fn insert(&mut self, new: &Destination) {
        let at = self.part_for(new).min(self.0.len().saturating_sub(1));
        let Some(part) = self.0.get_mut(at) else {
            self.0.push(vec![new.clone()]);
            return;
        };
        if let Err(place) = place_in(part, new) {
            part.insert(place, new.clone());
        }
        if part.len() > PART_MAX {
            let upper = part.split_off(PART_MAX / 2);
            self.0.insert(at + 1, upper);
        }
    }

    fn remove(&mut self, known: &Destination) {
        let at = self.part_for(known);
        let Some(part) = self.0.get_mut(at) else { return };
        if let Ok(place) = place_in(part, known) {
            part.remove(place);
            shrink_list(part);
        }
        if part.is_empty() {
            self.0.remove(at);
            shrink_list(&mut self.0);
        }
    }

    /// The part that has this one, or that it goes into; behind the last one if it is behind all.
    fn part_for(&self, one: &Destination) -> usize {
        self.0.partition_point(|part| {
            work::count(1);
            part.last().is_some_and(|last| rank(last) < rank(one))
        })
    }
}

/// Where a destination is in a part, or has to be.
fn place_in(part: &[Destination], destination: &Destination) -> Result<usize, usize> {
    part.binary_search_by(|one| {
        work::count(1);
        rank(one).cmp(&rank(destination))
    })
}

fn rank(one: &Destination) -> (bool, &[u8]) {
    (matches!(one, Destination::Exchange(_)), one.name().as_bytes())
}
