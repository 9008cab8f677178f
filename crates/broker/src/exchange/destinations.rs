//! Destinations, in no particular order: each is added and removed without a look at the others.

use super::{Destination, shrink, shrink_list};
use crate::work;
use rustc_hash::FxHashMap;

/// So many are found by a look at each.
const FEW: usize = 16;

/// Each destination once.
#[derive(Default)]
pub(super) struct Destinations {
    all: Vec<Destination>,
    /// Where each is, once there are more than a few.
    places: Option<Box<FxHashMap<u64, usize>>>,
}

impl Destinations {
    pub fn as_slice(&self) -> &[Destination] {
        &self.all
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds one that is not there yet.
    pub fn add(&mut self, destination: &Destination) {
        if let Some(places) = &mut self.places {
            places.insert(destination.id(), self.all.len());
        }
        self.all.push(destination.clone());
        if self.places.is_none() && self.all.len() > FEW {
            let places = self.all.iter().enumerate().map(|(at, one)| (one.id(), at));
            self.places = Some(Box::new(places.collect()));
        }
    }

    pub fn remove(&mut self, destination: u64) {
        let mut all = self.all.iter().inspect(|_| work::count(1));
        let at = match &mut self.places {
            Some(places) => places.remove(&destination),
            None => all.position(|known| known.id() == destination),
        };
        let Some(at) = at else { return };
        self.all.swap_remove(at);
        shrink_list(&mut self.all);
        if let Some(places) = &mut self.places {
            if let Some(moved) = self.all.get(at) {
                places.insert(moved.id(), at);
            }
            shrink(places);
        }
        if self.all.is_empty() {
            *self = Destinations::default();
        }
    }
}
