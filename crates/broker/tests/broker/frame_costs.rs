//! What one frame costs at the limits of what a client may have: counted in steps, not in time.

use crate::support::{Client, Message, Step, World, declare_with, short};
use courser_broker::{Batch, Limits, steps};
use courser_codec::{FieldTable, Method, basic, channel};

/// As many consumers as one channel may have.
const CONSUMERS: usize = 10_000;
/// Deliveries that are not acknowledged.
const UNACKED: usize = 100_000;

/// The steps that `act` takes.
pub fn cost(act: impl FnOnce()) -> u64 {
    let before = steps();
    act();
    steps() - before
}

pub fn consume(client: &mut Client, queue: &str, count: usize) {
    let tags: Vec<String> = (0..count).map(|nth| format!("{queue} {nth}")).collect();
    let consume = |tag| basic::Consume {
        queue: short(queue),
        consumer_tag: short(tag),
        nowait: true,
        ..Default::default()
    };
    let all: Vec<_> = tags.iter().map(|tag| Step::Call(1, consume(tag).into())).collect();
    client.read(&all);
}

pub fn fill(client: &mut Client, queue: &str, count: usize) {
    client.read(&vec![Step::Publish(1, Message::new("", queue, "x")); count]);
}

fn flow(client: &mut Client, active: bool) {
    client.call(channel::Flow { active });
}

#[test]
fn the_flow_of_a_channel_costs_no_more_than_its_consumers() {
    let world = World::new();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    client.qos(1);
    consume(&mut client, "q", CONSUMERS);
    fill(&mut publisher, "q", CONSUMERS + 1000);
    world.tick_all(1);
    client.heard();
    assert_eq!(world.counts("q"), (1000, CONSUMERS, CONSUMERS));
    flow(&mut client, false);
    let taken = cost(|| {
        flow(&mut client, true);
        world.tick_all(1);
        client.heard();
    });
    assert!(taken <= 5 * CONSUMERS as u64, "{taken}");
    assert!(cost(|| flow(&mut client, true)) < 10, "it was on");
}

#[test]
fn a_limit_for_a_whole_channel_costs_no_more_than_its_consumers() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    consume(&mut client, "q", CONSUMERS);
    let taken = cost(|| {
        client.qos_global(10);
        world.tick_all(1);
    });
    assert!(taken <= 5 * CONSUMERS as u64, "{taken}");
}

#[test]
fn an_acknowledgement_on_a_channel_with_a_limit_does_not_ask_all_of_its_consumers() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(10);
    consume(&mut client, "q", CONSUMERS);
    fill(&mut client, "q", 1000);
    assert_eq!(client.deliveries().len(), 10);
    for delivery_tag in 1..100 {
        let taken = cost(|| client.ack(delivery_tag));
        assert!(taken < 10, "{taken}");
        assert_eq!(client.deliveries().len(), 1);
    }
}

#[test]
fn an_acknowledgement_does_not_ask_consumers_of_its_channel_that_have_nothing_to_get() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(1);
    consume(&mut client, "q", CONSUMERS);
    let mut seen = std::collections::BTreeSet::new();
    let mut costs = Vec::new();
    for round in 0..100 {
        costs.push(cost(|| fill(&mut client, "q", 2)));
        for _ in 0..2 {
            let delivery = client.deliveries().remove(0);
            costs.push(cost(|| client.ack(delivery.tag)));
            assert!(seen.insert(delivery.consumer), "each has its turn, in round {round}");
        }
        assert_eq!(world.counts("q"), (0, 0, CONSUMERS));
    }
    // All are asked once, when the limit is used up for the first time.
    assert!(costs.remove(0) <= 2 * CONSUMERS as u64 + 10);
    assert!(costs.iter().all(|taken| *taken < 12), "{costs:?}");
}

#[test]
fn a_consumer_that_waits_for_the_limit_of_its_channel_goes_on_when_the_others_have_gone() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos_global(1);
    consume(&mut client, "q", 5);
    fill(&mut client, "q", 20);
    let mut tags = Vec::new();
    for _ in 0..4 {
        let delivery = client.deliveries().remove(0);
        client.cancel(&delivery.consumer);
        tags.push(delivery.consumer);
        client.ack(delivery.tag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 4, "one after the other");
    for _ in 4..20 {
        let delivery = client.deliveries().remove(0);
        assert!(!tags.contains(&delivery.consumer));
        client.ack(delivery.tag);
    }
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn consumers_of_a_channel_without_its_limit_share_messages_with_those_of_others_again() {
    let world = World::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    client.qos_global(1);
    consume(&mut client, "q", 3);
    fill(&mut client, "q", 5);
    assert_eq!(client.deliveries().len(), 1);
    client.qos_global(0);
    assert_eq!(client.deliveries().len(), 4);
    other.consume("q");
    fill(&mut client, "q", 8);
    assert_eq!((client.deliveries().len(), other.deliveries().len()), (6, 2));
}

#[test]
fn who_waits_for_the_limit_of_its_channel_gets_its_turn_whatever_its_own_limit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(1);
    client.qos_global(3);
    consume(&mut client, "q", 5);
    fill(&mut client, "q", 1000);
    let mut last: Vec<u64> = client.deliveries().iter().map(|one| one.tag).collect();
    assert_eq!(last.len(), 3);
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..100 {
        client.ack(last.remove(0));
        for delivery in client.deliveries() {
            *seen.entry(delivery.consumer).or_default() += 1;
            last.push(delivery.tag);
        }
        assert_eq!(last.len(), 3);
    }
    assert_eq!(seen.values().copied().collect::<Vec<_>>(), [20; 5]);
}

/// A transactional channel with many deliveries unacknowledged, which its client never looks at.
fn with_unacked(world: &World) -> Client {
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    client.tx_select();
    client.consume("q");
    fill(&mut publisher, "q", UNACKED);
    assert_eq!(world.counts("q"), (0, UNACKED, 1));
    client
}

pub fn large() -> World {
    World::with(Limits { outbox_high_bytes: usize::MAX, ..Limits::default() })
}

/// Hands in methods without a look at what comes.
pub fn ask(client: &mut Client, methods: &[Method<'_>]) {
    let mut batch = Batch::default();
    for method in methods {
        client.session().request(&mut batch, 1, method).expect("a good method");
    }
    client.session().flush(&mut batch).expect("nothing fails");
}

#[test]
fn a_rollback_costs_what_it_gives_back() {
    let world = large();
    let mut client = with_unacked(&world);
    let ack = |delivery_tag, multiple| Method::from(basic::Ack { delivery_tag, multiple });
    let rollback = Method::from(courser_codec::tx::Rollback {});
    let (oldest, middle, newest) = (1, UNACKED as u64 / 2, UNACKED as u64);
    for tags in [&[newest][..], &[oldest], &[middle], &[oldest, 2, middle, newest]] {
        let mut methods: Vec<_> = tags.iter().map(|tag| ack(*tag, false)).collect();
        methods.push(rollback);
        let taken = cost(|| ask(&mut client, &methods));
        assert!(taken < 20, "{tags:?}: {taken}");
    }
    // They can be acknowledged, once, in any order.
    ask(&mut client, &[ack(middle, true), rollback]);
    ask(&mut client, &[ack(newest, true), rollback]);
    ask(&mut client, &[ack(middle, false), ack(newest, true), courser_codec::tx::Commit {}.into()]);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn dead_letters_cost_the_same_each_however_many_there_are() {
    let world = large();
    world.broker.set_time(1000);
    let (mut publisher, mut client) = (world.connect(), world.connect());
    let letters = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "letters");
    declare_with(&mut publisher, "q", false, &letters);
    publisher.declare("letters");
    client.consume("q");
    let mut costs = Vec::new();
    for (count, tag) in [(5_000, 5_000), (20_000, 25_000)] {
        fill(&mut publisher, "q", count);
        let nack = basic::Nack { delivery_tag: tag, multiple: true, requeue: false };
        costs.push(cost(|| ask(&mut client, &[nack.into()])));
        let at_once = world.counts("letters").0;
        assert!(at_once < 5_000, "{at_once} in one go");
        world.tick_all(1000);
        assert_eq!(world.counts("letters").0, count, "without a wait");
        publisher.purge("letters");
    }
    assert!(costs[1] <= 5 * costs[0], "{costs:?}");
}

#[test]
fn consuming_does_not_count_the_consumers_of_all_channels_each_time() {
    let world = World::with(Limits { consumers_per_connection_max: 1, ..Limits::default() });
    let mut client = world.connect();
    client.declare("q");
    (2..=u16::MAX).for_each(|number| client.open_channel(number));
    for _ in 0..3 {
        let mut tag = String::new();
        assert!(cost(|| tag = client.consume("q")) < 10);
        client.cancel(&tag);
        let _ = client.consume("q");
        client.close_channel(1);
        client.open_channel(1);
    }
}

#[test]
fn what_is_handed_to_a_consumer_counts_with_its_bytes() {
    let world = large();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    publisher.declare("q");
    publisher.declare("large");
    fill(&mut publisher, "q", 5000);
    publisher.read(&vec![Step::Publish(1, Message::new("", "large", vec![7; 6400])); 100]);
    for (queue, least) in [("q", 5000), ("large", 10_000)] {
        let taken = cost(|| {
            client.consume_no_ack(queue);
            world.tick_all(1);
        });
        assert!((least..least + 1000).contains(&taken), "{queue}: {taken}");
        client.heard();
    }
    assert_eq!((world.counts("q").0, world.counts("large").0), (0, 0));
}

#[test]
fn a_get_lets_others_through_between_the_parts_of_what_has_expired() {
    let world = World::new();
    world.broker.set_time(1000);
    let mut client = world.connect();
    client.declare("q");
    fill(&mut client, "q", 1);
    let expiring = Message::new("", "q", "dead").expiration("1");
    client.read(&vec![Step::Publish(1, expiring); 2000]);
    fill(&mut client, "q", 1);
    world.broker.set_time(2000);
    assert_eq!(client.pop_all("q"), ["x", "x"]);
    assert_eq!(world.counts("q"), (0, 0, 0));
}
