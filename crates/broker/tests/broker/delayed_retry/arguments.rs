//! Which values of `x-delayed-retry-*` queues and policies take, and what they do.

use super::{T0_MS, away_ms, begin, give_back, quorum, retrying, view};
use crate::support::{declare_with, short};
use courser_broker::admin::{ApplyTo, Policy, PolicyKind};
use courser_codec::{FieldTable, Table, queue};

#[test]
fn without_a_shortest_wait_nothing_waits_and_without_a_longest_all_wait_for_the_shortest() {
    let of = |arguments: FieldTable| {
        let world = begin();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &arguments);
        client.publish("", "q", "a");
        let mut now_ms = T0_MS;
        [0; 2].map(|_| away_ms(&world, &mut client, &mut now_ms, true))
    };
    let all = || quorum().with("x-delayed-retry-type", "all");
    assert_eq!(of(all()), [0, 0]);
    assert_eq!(of(all().with("x-delayed-retry-max", 500)), [0, 0]);
    assert_eq!(of(all().with("x-delayed-retry-min", 300)), [300, 300]);
}

#[test]
fn a_longest_wait_of_nothing_counts_as_none_and_one_below_the_shortest_as_each_wait() {
    for (max_ms, expected) in [
        (0, [300, 300]),
        (-1, [300, 300]),
        (i64::MIN, [300, 300]),
        (200, [200, 200]),
        (1, [1, 1]),
        (i64::MAX, [300, 600]),
    ] {
        let world = begin();
        let mut client = world.connect();
        let all = quorum().with("x-delayed-retry-type", "all").with("x-delayed-retry-min", 300);
        declare_with(&mut client, "q", true, &all.with("x-delayed-retry-max", max_ms));
        client.publish("", "q", "a");
        let mut now_ms = T0_MS;
        let waits = [0; 2].map(|_| away_ms(&world, &mut client, &mut now_ms, true));
        assert_eq!(waits, expected, "{max_ms}");
    }
}

#[test]
fn no_message_waits_for_longer_than_ten_years() {
    let world = begin();
    let mut client = world.connect();
    const TEN_YEARS_MS: i64 = 315_360_000_000;
    let all = quorum().with("x-delayed-retry-type", "all").with("x-delivery-limit", -1);
    let longest = all.with("x-delayed-retry-min", TEN_YEARS_MS);
    declare_with(&mut client, "q", true, &longest.with("x-delayed-retry-max", i64::MAX));
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    for _ in 0..2 {
        give_back(&mut client, true);
        now_ms += TEN_YEARS_MS as u64;
        assert_eq!(view(&world).delayed.next_ms, Some(now_ms));
        world.tick_all(now_ms);
    }
    assert_eq!(client.pop("q").as_deref(), Some("a"));
}

#[test]
fn a_policy_says_so_for_queues_that_are_there_and_stands_before_the_argument() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("failed"));
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    let given = |of: &str, min_ms: i64| {
        FieldTable::new().with("delayed-retry-type", of).with("delayed-retry-min", min_ms)
    };
    // Of times the shorter counts.
    world.give_policy("q", given("returned", 300));
    assert_eq!(away_ms(&world, &mut client, &mut now_ms, true), 0);
    assert_eq!(away_ms(&world, &mut client, &mut now_ms, false), 300);
    world.give_policy("q", given("all", 5_000));
    assert_eq!(away_ms(&world, &mut client, &mut now_ms, false), 400);
    world.give_policy("q", FieldTable::new().with("delayed-retry-type", "disabled"));
    assert_eq!(away_ms(&world, &mut client, &mut now_ms, true), 0);
}

#[test]
fn an_operator_bounds_the_waits_on_both_sides() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &quorum());
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    let given = FieldTable::new().with("delayed-retry-type", "all").with("delayed-retry-min", 300);
    world.give_policy("q", given.with("delayed-retry-max", 5_000));
    let bounds = FieldTable::new().with("delayed-retry-min", 700).with("delayed-retry-max", 1_000);
    let policy = Policy {
        name: "bounds".to_owned(),
        pattern: "^q$".to_owned(),
        apply_to: ApplyTo::QuorumQueues,
        priority: 0,
        definition: bounds,
    };
    world.broker.set_policy("/", PolicyKind::Operator, policy).expect("a good policy");
    let waits = [0; 2].map(|_| away_ms(&world, &mut client, &mut now_ms, true));
    assert_eq!(waits, [700, 1_000]);
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let world = begin();
    let mut client = world.connect();
    let mut refused = |arguments: FieldTable, why: &str| {
        let entries = arguments.to_entries();
        let arguments = Table::from_entries(&entries);
        let queue = short("q");
        let declare = queue::Declare { queue, durable: true, arguments, ..Default::default() };
        let text = client.refused(declare);
        let start = "406 PRECONDITION_FAILED - invalid arg 'x-delayed-retry-";
        assert_eq!(text.strip_prefix(start), Some(why), "{text}");
    };
    refused(
        quorum().with("x-delayed-retry-type", "zz"),
        "type' for queue 'q' in vhost '/': must be one of: all, failed, returned, disabled",
    );
    refused(
        quorum().with("x-delayed-retry-min", 0),
        "min' for queue 'q' in vhost '/': {value_zero,0}",
    );
    refused(
        quorum().with("x-delayed-retry-max", "1000"),
        "max' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
    );
    refused(
        FieldTable::new().with("x-delayed-retry-type", "all"),
        "type' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
    );
}

#[test]
fn a_policy_whose_longest_wait_makes_no_sense_is_refused() {
    let world = begin();
    let of = |max_ms: i64| FieldTable::new().with("delayed-retry-max", max_ms);
    for (definition, why) in [
        (of(0), "is no positive number"),
        (of(-1), "is no positive number"),
        (of(299).with("delayed-retry-min", 300), "is smaller than delayed-retry-min"),
    ] {
        let policy = Policy {
            name: "retries".to_owned(),
            pattern: "^q$".to_owned(),
            apply_to: ApplyTo::QuorumQueues,
            priority: 0,
            definition,
        };
        let refused = world.broker.set_policy("/", PolicyKind::User, policy);
        let printed = refused.expect_err("it makes no sense").to_string();
        assert!(printed.contains(why), "{printed}");
    }
}
