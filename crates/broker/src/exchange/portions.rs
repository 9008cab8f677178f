//! Bindings of an exchange, taken in portions: what is done with them may be slow, and holds up no other thread that binds or
//! routes meanwhile.

use super::{Bindings, Destination, Exchange};
use crate::memory::table_bytes;
use crate::work;
use courser_codec::{FieldTable, ShortString};
use std::ops::ControlFlow;

/// Bindings in a portion at most, and bytes of their keys and arguments with which it ends.
pub(super) const PORTION: usize = 256;
pub(super) const PORTION_BYTES: usize = 64 << 10;

/// A binding as it was taken.
type Taken = (Destination, ShortString, FieldTable);

/// What has not been taken yet.
struct Left {
    destinations: Vec<u64>,
    /// The destination whose routing keys these are.
    destination: u64,
    keys: Vec<ShortString>,
    /// Of the last of these keys, the arguments before this place are left. They are taken from the back, as
    /// the last ones take the places of those that are removed: none comes behind this that was before it.
    before: usize,
}

impl Left {
    fn of(destinations: Vec<u64>) -> Self {
        Left { destinations, destination: 0, keys: Vec::new(), before: usize::MAX }
    }

    /// Takes the next portion; none if there are no more.
    fn take(&mut self, bindings: &Bindings, portion: &mut Vec<Taken>) {
        let mut bytes = 0;
        while portion.len() < PORTION && bytes < PORTION_BYTES {
            let Some(key) = self.keys.last() else {
                let Some(destination) = self.destinations.pop() else { return };
                self.destination = destination;
                let bound = bindings.by_destination.get(&destination);
                self.keys.extend(bound.into_iter().flat_map(|bound| bound.keys.keys().cloned()));
                continue;
            };
            let bound = bindings.by_destination.get(&self.destination);
            let of_key = bound.and_then(|bound| Some((bound, bound.keys.get(key)?)));
            let next = of_key.and_then(|(bound, variants)| {
                self.before = self.before.min(variants.len()).checked_sub(1)?;
                let arguments = variants.get(self.before)?.clone();
                Some((bound.destination.clone(), key.clone(), arguments))
            });
            match next {
                Some(binding) => {
                    bytes += key.as_bytes().len() + table_bytes(&binding.2);
                    portion.push(binding);
                }
                None => {
                    self.keys.pop();
                    self.before = usize::MAX;
                }
            }
        }
    }
}

impl Exchange {
    /// Calls `each`, which may take its time, for every binding, or for those to one destination, until it breaks off. A binding
    /// that comes or goes meanwhile may be among them or not.
    pub(crate) fn for_each_binding(
        &self,
        to: Option<u64>,
        each: &mut dyn FnMut(&Destination, &ShortString, &FieldTable) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut left = Left::of(to.map_or_else(|| self.destinations(), |to| vec![to]));
        let mut portion = Vec::new();
        loop {
            left.take(&self.bindings.read(), &mut portion);
            if portion.is_empty() {
                return ControlFlow::Continue(());
            }
            work::count(portion.len());
            for (destination, routing_key, arguments) in portion.drain(..) {
                each(&destination, &routing_key, &arguments)?;
            }
        }
    }
}
