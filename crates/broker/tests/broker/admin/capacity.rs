//! The part of the time in which no message of a queue had to wait for busy consumers.

use crate::support::{World, declare_with, short};
use courser_codec::{FieldTable, basic};

fn capacity(world: &World, name: &str) -> Option<f64> {
    world.broker.admin().queue("/", name.as_bytes()).expect("the queue").consumer_capacity
}

#[test]
fn messages_that_wait_for_busy_consumers_lower_the_capacity_until_none_waits() {
    let world = World::new();
    let mut client = world.connect();
    world.broker.set_time(1_000);
    client.declare("q");
    assert_eq!(capacity(&world, "q"), Some(0.0), "there is no consumer");
    world.broker.set_time(50_000);
    client.qos(1);
    client.consume("q");
    assert_eq!(capacity(&world, "q"), Some(1.0), "it waits for messages");
    world.broker.set_time(60_000);
    assert_eq!(capacity(&world, "q"), Some(1.0));
    client.fill("q", &["1", "2", "3"]);
    world.broker.set_time(61_000);
    assert_eq!(capacity(&world, "q"), Some(0.5), "for as long as the half of all counts");
    // There is another message that waits.
    client.ack(1);
    world.broker.set_time(62_000);
    assert_eq!(capacity(&world, "q"), Some(0.25));
    client.ack(2);
    assert_eq!(capacity(&world, "q"), Some(0.25));
    world.broker.set_time(63_000);
    assert_eq!(capacity(&world, "q"), Some(0.625));
    world.broker.set_time(200_000);
    assert!(capacity(&world, "q").is_some_and(|part| part > 0.999));
}

#[test]
fn a_free_consumer_that_goes_leaves_those_that_are_busy() {
    let world = World::new();
    world.broker.set_time(1_000);
    let (mut busy, mut free) = (world.connect(), world.connect());
    busy.declare("q");
    busy.qos(1);
    busy.consume("q");
    busy.fill("q", &["1", "2"]);
    free.call(basic::Consume { queue: short("q"), no_ack: true, ..Default::default() });
    assert_eq!(capacity(&world, "q"), Some(1.0));
    drop(free);
    world.broker.set_time(2_000);
    assert_eq!(capacity(&world, "q"), Some(0.5));
    drop(busy);
    assert_eq!(capacity(&world, "q"), Some(0.0));
}

#[test]
fn a_stream_has_none() {
    let world = World::new();
    let stream = FieldTable::new().with("x-queue-type", "stream");
    declare_with(&mut world.connect(), "s", true, &stream);
    assert_eq!(capacity(&world, "s"), None);
}

#[test]
fn the_delivery_limit_is_that_of_the_argument_or_the_type() {
    let world = World::new();
    let mut client = world.connect();
    let quorum = FieldTable::new().with("x-queue-type", "quorum");
    for (name, arguments, expected) in [
        ("plain", FieldTable::new(), None),
        ("classic", FieldTable::new().with("x-delivery-limit", 3), Some(3)),
        ("quorum", quorum.clone(), Some(20)),
        ("limited", quorum.clone().with("x-delivery-limit", 5), Some(5)),
        ("unlimited", quorum.with("x-delivery-limit", -1), Some(u64::MAX)),
    ] {
        declare_with(&mut client, name, true, &arguments);
        let view = world.broker.admin().queue("/", name.as_bytes()).expect("the queue");
        assert_eq!(view.delivery_limit, expected, "{name}");
    }
}
