//! Random histories of two copies.

use crate::pair::{Pair, step};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_was_synced_is_there_and_what_was_cut_is_not(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let mut pair = Pair::new(seed);
        for step in steps {
            pair.run(step);
        }
        for copy in &mut pair.copies {
            copy.crash(true);
        }
    }
}

/// `PROPTEST_CASES` says how many histories there are, at least.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(1500), failure_persistence: None, ..default }
}
