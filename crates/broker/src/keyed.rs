//! Maps and sets whose keys clients choose.
//!
//! Their hash has a key that no client knows. With a fixed one a client could choose names that all have the same hash, and
//! each of them would be compared with all others.

use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// A map by what clients choose: names, keys, values.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, RandomState>;
/// A set of what clients choose.
pub(crate) type KeyedSet<T> = HashSet<T, RandomState>;

static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// A hasher whose key is that of this process.
pub(crate) fn hasher() -> impl Hasher {
    STATE.build_hasher()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    fn hashes<S: BuildHasher>(state: &S, keys: &[impl Hash]) -> usize {
        keys.iter().map(|key| state.hash_one(key)).collect::<HashSet<_>>().len()
    }

    #[test]
    fn keys_that_a_client_has_chosen_to_collide_do_not() {
        let begin = 0x243f_6a88_85a3_08d3_u64.to_le_bytes();
        let keys: Vec<[u8; 16]> = (0..100_u64)
            .map(|n| [begin, n.to_le_bytes()].concat().try_into().expect("sixteen bytes"))
            .collect();
        assert_eq!(hashes(&rustc_hash::FxBuildHasher, &keys), 1);
        assert_eq!(hashes(KeyedMap::<[u8; 16], ()>::default().hasher(), &keys), 100);
        let digests = keys.iter().map(|key| {
            let mut hasher = hasher();
            hasher.write(key);
            hasher.finish()
        });
        assert_eq!(digests.collect::<HashSet<_>>().len(), 100);
    }
}
