//! Direct exchanges: the binding key equals the routing key (AMQP 0-9-1, 3.1.3.1).

use super::Destination;
use courser_codec::ShortString;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(super) struct DirectIndex(FxHashMap<ShortString, Vec<Destination>>);

impl DirectIndex {
    pub fn matches(&self, routing_key: &[u8], found: &mut dyn FnMut(&Destination)) {
        self.0.get(routing_key).into_iter().flatten().for_each(found);
    }

    pub fn add(&mut self, destination: &Destination, key: &ShortString) {
        self.0.entry(key.clone()).or_default().push(destination.clone());
    }

    pub fn remove(&mut self, destination: u64, key: &ShortString) {
        let Some(destinations) = self.0.get_mut(key.as_bytes()) else { return };
        destinations.retain(|known| known.id() != destination);
        if destinations.is_empty() {
            self.0.remove(key.as_bytes());
        }
    }
}
