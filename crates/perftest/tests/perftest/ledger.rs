//! Loss accounting.

use courser_perftest::Options;
use courser_perftest::ledger::{Arrivals, Balance, Ledger};
use courser_perftest::ranges::Ranges;
use courser_perftest::topology::Topology;
use proptest::prelude::*;

fn ledger(line: &str) -> Ledger {
    Ledger::new(Topology::new(&Options::parse_from_args(line.split_whitespace()).unwrap()))
}

#[test]
fn what_arrives_is_not_missing() {
    let ledger = ledger("perftest --producers 2");
    let mut arrivals = Arrivals::new(&ledger, 0);
    for producer in 0..2 {
        ledger.publishing(producer, 1000);
        for number in 0..1000 {
            assert!(arrivals.mark(&ledger, producer, number));
        }
    }
    arrivals.flush(&ledger);
    assert_eq!(ledger.balance(), Balance::default());
    assert_eq!(ledger.expected(), 2000);
}

#[test]
fn one_message_that_does_not_arrive_is_missing() {
    let ledger = ledger("perftest");
    ledger.publishing(0, 1000);
    let mut arrivals = Arrivals::new(&ledger, 0);
    for number in (0..1000).filter(|&number| number != 640) {
        arrivals.mark(&ledger, 0, number);
    }
    arrivals.flush(&ledger);
    assert_eq!(ledger.balance(), Balance { missing: 1, duplicates: 0 });
}

#[test]
fn a_duplicate_does_not_stand_in_for_a_lost_message() {
    let ledger = ledger("perftest");
    ledger.publishing(0, 10);
    let mut arrivals = Arrivals::new(&ledger, 0);
    for number in [0, 1, 2, 3, 4, 4, 5, 6, 7, 8] {
        arrivals.mark(&ledger, 0, number);
    }
    arrivals.flush(&ledger);
    assert_eq!(ledger.balance(), Balance { missing: 1, duplicates: 1 });
}

#[test]
fn an_exchange_that_chooses_one_queue_owes_each_message_once() {
    for kind in ["x-consistent-hash", "x-modulus-hash", "x-random"] {
        let ledger = ledger(&format!(
            "perftest --exchange x --exchange-type {kind} --queues 3 --consumers 3 --routing-key 1"
        ));
        ledger.publishing(0, 30);
        for queue in 0..3 {
            let mut arrivals = Arrivals::new(&ledger, queue);
            for number in (0..30).filter(|number| number % 3 == queue as u64 && *number != 7) {
                arrivals.mark(&ledger, 0, number);
            }
            arrivals.flush(&ledger);
        }
        assert_eq!(ledger.expected(), 30, "{kind}");
        assert_eq!(ledger.balance(), Balance { missing: 1, duplicates: 0 }, "{kind}");
        ledger.excuse(0, 7..=7);
        assert_eq!(ledger.expected(), 29, "{kind}");
        assert_eq!(ledger.balance(), Balance::default(), "{kind}");
    }
}

#[test]
fn a_duplicate_at_another_consumer_is_one_too() {
    let ledger = ledger("perftest --consumers 2");
    ledger.publishing(0, 2);
    for _ in 0..2 {
        let mut arrivals = Arrivals::new(&ledger, 0);
        arrivals.mark(&ledger, 0, 1);
        arrivals.flush(&ledger);
    }
    assert_eq!(ledger.balance(), Balance { missing: 1, duplicates: 1 });
}

#[test]
fn refused_and_returned_messages_need_not_arrive() {
    let ledger = ledger("perftest");
    ledger.publishing(0, 100);
    ledger.excuse(0, 50..=59);
    ledger.excuse(0, 20..=20);
    let mut arrivals = Arrivals::new(&ledger, 0);
    (0..50).filter(|&number| number != 20).for_each(|number| {
        arrivals.mark(&ledger, 0, number);
    });
    arrivals.flush(&ledger);
    assert_eq!(ledger.balance().missing, 40);
    assert_eq!(ledger.expected(), 89);
}

#[test]
fn what_was_never_published_is_of_another_run() {
    let ledger = ledger("perftest");
    ledger.publishing(0, 100);
    let mut arrivals = Arrivals::new(&ledger, 0);
    assert!(!arrivals.mark(&ledger, 0, 100_000_000_000), "a number that has not been published");
    assert!(!arrivals.mark(&ledger, 1, 0), "a producer that there is not");
    assert!(arrivals.mark(&ledger, 0, 99));
}

#[test]
fn a_fanout_expects_every_message_in_every_queue() {
    let ledger = ledger("perftest --exchange x --exchange-type fanout --queues 3 --consumers 3");
    ledger.publishing(0, 10);
    assert_eq!(ledger.expected(), 30);
    for queue in 0..2 {
        let mut arrivals = Arrivals::new(&ledger, queue);
        (0..10).for_each(|number| {
            arrivals.mark(&ledger, 0, number);
        });
        arrivals.flush(&ledger);
    }
    assert_eq!(ledger.balance().missing, 10);
}

#[test]
fn queues_without_a_consumer_expect_nothing() {
    let ledger = ledger("perftest --exchange x --exchange-type fanout --queues 3 --consumers 1");
    ledger.publishing(0, 10);
    assert_eq!((ledger.expected(), ledger.balance().missing), (10, 10));
}

#[test]
fn a_producer_that_takes_turns_expects_each_queue_to_have_its_share() {
    let ledger = ledger("perftest --queues 3 --consumers 3");
    ledger.publishing(0, 10);
    assert_eq!(ledger.expected(), 10);
    for queue in 0..3 {
        let mut arrivals = Arrivals::new(&ledger, queue);
        for number in (0..10).filter(|number| number % 3 == queue as u64) {
            arrivals.mark(&ledger, 0, number);
        }
        arrivals.flush(&ledger);
    }
    assert_eq!(ledger.balance(), Balance::default());
}

proptest! {
    #[test]
    fn any_order_of_arrival_balances(
        count in 1..500_u64,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..800),
    ) {
        let ledger = ledger("perftest");
        ledger.publishing(0, count);
        let mut arrivals = Arrivals::new(&ledger, 0);
        let mut seen = std::collections::BTreeSet::new();
        let mut duplicates = 0;
        for index in order {
            let number = index.index(count as usize) as u64;
            arrivals.mark(&ledger, 0, number);
            duplicates += u64::from(!seen.insert(number));
        }
        arrivals.flush(&ledger);
        let missing = count - seen.len() as u64;
        prop_assert_eq!(ledger.balance(), Balance { missing, duplicates });
    }

    #[test]
    fn ranges_hold_what_was_added(numbers in prop::collection::btree_set(0..200_u64, 0..100), seed: u64) {
        let mut ranges = Ranges::default();
        let mut shuffled: Vec<u64> = numbers.iter().copied().collect();
        shuffled.sort_by_key(|number| number.wrapping_mul(seed | 1));
        shuffled.iter().for_each(|&number| ranges.add(number..=number));
        ranges.sort();
        prop_assert_eq!(ranges.count(), numbers.len() as u64);
        prop_assert!((0..200).all(|number| ranges.contains(number) == numbers.contains(&number)));
    }
}
