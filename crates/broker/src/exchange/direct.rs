//! Direct exchanges: the binding key equals the routing key (AMQP 0-9-1, 3.1.3.1).

use super::destinations::Destinations;
use super::{Destination, shrink};
use crate::keyed::KeyedMap;
use courser_codec::ShortString;

#[derive(Default)]
pub(super) struct DirectIndex(KeyedMap<ShortString, Destinations>);

impl DirectIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        if let Some(destinations) = self.0.get(routing_key) {
            destinations.as_slice().iter().for_each(found);
        }
    }

    pub fn add(&mut self, destination: &Destination, key: &ShortString) {
        self.0.entry(key.clone()).or_default().add(destination);
    }

    pub fn remove(&mut self, destination: u64, key: &ShortString) {
        let Some(destinations) = self.0.get_mut(key.as_bytes()) else { return };
        destinations.remove(destination);
        if destinations.is_empty() {
            self.0.remove(key.as_bytes());
            shrink(&mut self.0);
        }
    }
}
