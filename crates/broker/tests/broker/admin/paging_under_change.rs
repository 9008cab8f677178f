//! Lists that are paged through while queues come and go.

use crate::support::World;
use courser_broker::admin::{PageRequest, Start};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Debug)]
enum Change {
    Declare(u16),
    Delete(u16),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![(0..2000_u16).prop_map(Change::Declare), (0..2000_u16).prop_map(Change::Delete)]
}

fn name(number: u16) -> String {
    // Not in the order of the numbers.
    format!("{:04x}-{number}", number.wrapping_mul(40_503))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What is there all the time is seen exactly once, in order; nothing is seen twice.
    #[test]
    fn going_on_behind_the_last_name_misses_nothing(
        there in prop::collection::btree_set(0..2000_u16, 0..1500),
        changes in prop::collection::vec(prop::collection::vec(change(), 0..200), 1..8),
        limit in 1..400_usize,
    ) {
        let world = World::new();
        let mut client = world.connect();
        there.iter().for_each(|number| client.declare(&name(*number)));
        let admin = world.broker.admin();
        let mut model: BTreeSet<String> = there.iter().map(|number| name(*number)).collect();
        let mut always = model.clone();
        let mut seen = Vec::new();
        let mut start = Start::Rank(0);
        let mut rounds = changes.iter();
        loop {
            let listing = admin.queues(Some("/")).expect("the vhost");
            prop_assert_eq!(listing.len(), model.len());
            let page = listing.page(&PageRequest { start, limit, filter: None });
            seen.extend(page.items.iter().map(|queue| queue.name.to_string()));
            let Some(next) = page.next else { break };
            start = next;
            for change in rounds.next().into_iter().flatten() {
                match change {
                    Change::Declare(number) => {
                        client.declare(&name(*number));
                        model.insert(name(*number));
                    }
                    Change::Delete(number) => {
                        client.delete(&name(*number));
                        model.remove(&name(*number));
                        always.remove(&name(*number));
                    }
                }
            }
        }
        prop_assert!(seen.is_sorted_by(|one, next| one < next), "in order, and none twice");
        let seen: BTreeSet<String> = seen.into_iter().collect();
        prop_assert!(always.is_subset(&seen), "missed: {:?}", always.difference(&seen));
    }

    /// Every rank and every name leads to the same place as in a list of all names.
    #[test]
    fn ranks_and_names_agree_with_a_sorted_list(
        changes in prop::collection::vec(change(), 0..3000),
        rank in 0..2000_usize,
        behind in 0..2000_u16,
    ) {
        let world = World::new();
        let mut client = world.connect();
        let mut model = BTreeMap::new();
        for change in &changes {
            match change {
                Change::Declare(number) => {
                    client.declare(&name(*number));
                    model.insert(name(*number), ());
                }
                Change::Delete(number) => {
                    client.delete(&name(*number));
                    model.remove(&name(*number));
                }
            }
        }
        let listing = world.broker.admin().queues(Some("/")).expect("the vhost");
        let all: Vec<String> = listing.iter().map(|queue| queue.name.to_string()).collect();
        prop_assert!(all.iter().eq(model.keys()));
        let shown = |start| {
            let page = listing.page(&PageRequest { start, limit: 5, filter: None });
            page.items.iter().map(|queue| queue.name.to_string()).collect::<Vec<_>>()
        };
        let expected: Vec<String> = model.keys().skip(rank).take(5).cloned().collect();
        prop_assert_eq!(shown(Start::Rank(rank)), expected);
        let behind = name(behind);
        let expected: Vec<String> =
            model.keys().filter(|known| **known > behind).take(5).cloned().collect();
        prop_assert_eq!(
            shown(Start::After { vhost: "/".into(), name: behind.into_bytes() }),
            expected
        );
    }
}

#[test]
fn pages_made_while_other_threads_declare_and_delete_hold_what_stays() {
    let world = World::new();
    let mut client = world.connect();
    let stays: BTreeSet<String> = (0..1000).map(|nth| format!("stays-{nth:04}")).collect();
    stays.iter().for_each(|name| client.declare(name));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (world, done) = (&world, &done);
            scope.spawn(move || {
                let mut client = world.connect();
                let mut nth = 0;
                while !done.load(Ordering::Relaxed) {
                    let name = format!("stays-{:04}-{thread}", nth % 1000);
                    client.declare(&name);
                    client.delete(&name);
                    nth += 1;
                }
            });
        }
        let admin = world.broker.admin();
        for _ in 0..20 {
            let mut seen = BTreeSet::new();
            let mut start = Some(Start::Rank(0));
            while let Some(from) = start {
                let listing = admin.queues(Some("/")).expect("the vhost");
                let page = listing.page(&PageRequest { start: from, limit: 90, filter: None });
                for queue in &page.items {
                    assert!(seen.insert(queue.name.to_string()), "{} came twice", queue.name);
                }
                start = page.next;
            }
            assert!(stays.is_subset(&seen));
        }
        done.store(true, Ordering::Relaxed);
    });
}
