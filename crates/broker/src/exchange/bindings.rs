//! The bindings of an exchange, as they are looked at.

use super::variants::Variants;
use super::{Destination, Exchange};
use crate::work;
use courser_codec::{FieldTable, ShortString};
use std::ops::ControlFlow;

impl Exchange {
    /// The numbers of the destinations that bindings lead to, in no particular order.
    pub(super) fn destinations(&self) -> Vec<u64> {
        self.bindings.read().by_destination.keys().copied().collect()
    }

    /// Calls `each` for every binding to a destination, or for those with a routing key, until it breaks off. The lock is held all
    /// the while.
    pub(crate) fn for_each_binding_to(
        &self,
        destination: u64,
        routing_key: Option<&[u8]>,
        each: &mut dyn FnMut(&Destination, &ShortString, &FieldTable) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bindings = self.bindings.read();
        let Some(bound) = bindings.by_destination.get(&destination) else {
            return ControlFlow::Continue(());
        };
        let with_key = |(routing_key, variants): (&ShortString, &Variants)| {
            variants.iter().try_for_each(|one| {
                work::count(1);
                each(&bound.destination, routing_key, one)
            })
        };
        match routing_key {
            None => bound.keys.iter().try_for_each(with_key),
            Some(key) => bound.keys.get_key_value(key).map_or(ControlFlow::Continue(()), with_key),
        }
    }

    /// The arguments of bindings to a destination with a routing key: `limit` of them at most, the last ones of the first
    /// `before`, and where these begin. A caller that goes on there sees everything that is there all the time.
    pub(crate) fn some_bindings_to(
        &self,
        destination: u64,
        routing_key: &[u8],
        before: usize,
        limit: usize,
    ) -> (usize, Vec<FieldTable>) {
        let bindings = self.bindings.read();
        let bound = bindings.by_destination.get(&destination);
        let variants = bound.and_then(|bound| bound.keys.get(routing_key));
        variants.map_or((0, Vec::new()), |variants| variants.some(before, limit))
    }

    /// How many bindings it has.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.read().count
    }

    /// How many of them lead to this destination, counted until there are more than `most`.
    pub(crate) fn bindings_to(&self, destination: u64, most: usize) -> usize {
        let bindings = self.bindings.read();
        let keys = bindings.by_destination.get(&destination).into_iter();
        let keys = keys.flat_map(|bound| bound.keys.values()).inspect(|_| work::count(1));
        let mut count = 0;
        for variants in keys {
            count += variants.len();
            if count > most {
                break;
            }
        }
        count
    }

    /// Whether anything is bound to it.
    pub(crate) fn has_bindings(&self) -> bool {
        !self.bindings.read().by_destination.is_empty()
    }
}
