//! Room that was needed once is given back when most of it has not been for a while.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// Gives back memory of a map that had many more entries.
pub(crate) fn shrink<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() > 64 && map.len() < map.capacity() / 4 {
        map.shrink_to(2 * map.len());
    }
}

/// The same for a set.
pub(crate) fn shrink_set<K: Eq + Hash, S: BuildHasher>(set: &mut HashSet<K, S>) {
    if set.capacity() > 64 && set.len() < set.capacity() / 4 {
        set.shrink_to(2 * set.len());
    }
}

/// The same for a list.
pub(crate) fn shrink_list<T>(list: &mut Vec<T>) {
    if list.capacity() > 64 && list.len() < list.capacity() / 4 {
        list.shrink_to(2 * list.len());
    }
}
