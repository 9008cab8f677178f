//! The removal of all bindings to a destination, or of all of an exchange. Messages see the whole of it at once. What takes
//! long if there are many comes behind that, and holds up no other thread that binds or routes.

use super::consistent_hash::Weighted;
use super::portions::{PORTION, PORTION_BYTES};
use super::{BindingKey, Bindings, Bound, Destination, Exchange, Removed, shrink};
use crate::memory::table_bytes;
use crate::work;
use parking_lot::RwLockWriteGuard;

/// Bindings to a destination that no message goes to by them any more.
pub(crate) struct Leaving {
    bound: Bound,
    /// Dropped when the lock is free.
    _weighted: Option<Weighted>,
}

/// A binding to be taken out of the index, and whether it is the last one of its routing key.
type Taken = (BindingKey, bool);

impl Exchange {
    /// From now on, no message goes from here to this destination. [`Exchange::unbind_left`] has to follow, before another
    /// one leaves or this one is bound again.
    pub(crate) fn leave(&self, destination: u64) -> Option<Leaving> {
        let mut bindings = self.bindings.write();
        let bound = bindings.by_destination.remove(&destination)?;
        shrink(&mut bindings.by_destination);
        bindings.leaving = Some(destination);
        Some(Leaving { bound, _weighted: bindings.index.remove_destination(destination) })
    }

    /// Removes the bindings to a destination that has left, in portions, and calls `each` for every one.
    pub(crate) fn unbind_left(
        &self,
        leaving: Leaving,
        each: &mut dyn FnMut(&Destination, &BindingKey),
    ) -> Removed {
        let Bound { destination, keys } = leaving.bound;
        let mut left = keys.into_iter().flat_map(|(routing_key, variants)| {
            let last = variants.len() - 1;
            let tables = variants.into_tables().into_iter().enumerate();
            tables.map(move |(nth, arguments)| {
                (BindingKey { routing_key: routing_key.clone(), arguments }, nth == last)
            })
        });
        let mut count = 0;
        loop {
            let portion = take(&mut left);
            let mut bindings = self.bindings.write();
            if portion.is_empty() {
                bindings.leaving = None;
                return Removed { count, none_left: bindings.by_destination.is_empty() };
            }
            for (key, is_last) in &portion {
                bindings.index.remove(destination.id(), key, *is_last);
            }
            count += portion.len();
            bindings.count -= portion.len();
            // The threads that wait for the lock have it first. Unlocked as usual, it would be this one's again before they wake.
            RwLockWriteGuard::unlock_fair(bindings);
            portion.iter().for_each(|(key, _)| each(&destination, key));
        }
    }

    /// Forgets all bindings when the exchange itself goes, and calls `each` for every one. Returns
    /// how many there were.
    pub(crate) fn clear(&self, each: &mut dyn FnMut(&Destination, &BindingKey)) -> usize {
        let none = Bindings::none(&self.settings);
        let cleared = std::mem::replace(&mut *self.bindings.write(), none);
        for bound in cleared.by_destination.into_values() {
            for (routing_key, variants) in bound.keys {
                work::count(variants.len());
                for arguments in variants.into_tables() {
                    let routing_key = routing_key.clone();
                    each(&bound.destination, &BindingKey { routing_key, arguments });
                }
            }
            bound.destination.sources().remove(&self.name);
        }
        cleared.count
    }
}

/// Takes the next portion; none if there are no more.
fn take(left: &mut impl Iterator<Item = Taken>) -> Vec<Taken> {
    let (mut portion, mut bytes) = (Vec::new(), 0);
    while portion.len() < PORTION && bytes < PORTION_BYTES {
        let Some(taken) = left.next() else { break };
        bytes += taken.0.routing_key.as_bytes().len() + table_bytes(&taken.0.arguments);
        portion.push(taken);
    }
    work::count(portion.len());
    portion
}
