//! `x-acquired-count`: consumers of a quorum queue are told how often a message has come back, whether that counts for a delivery
//! limit or not.

use crate::consumer_timeout::tick;
use crate::support::{Client, Delivery, Heard, Message, World, WorldOnDisk, declare_with, headers};
use courser_codec::{FieldTable, FieldValue, basic};

fn declare(client: &mut Client, queue_type: &str) {
    let arguments = FieldTable::new().with("x-queue-type", queue_type);
    declare_with(client, "q", true, &arguments.with("x-delivery-limit", 5));
}

/// `x-acquired-count` and `x-delivery-count` of a delivery.
fn counts(delivery: &Delivery) -> (Option<i64>, Option<i64>) {
    let headers = headers(delivery);
    let count = |name| headers.get(name).and_then(FieldValue::as_integer);
    (count("x-acquired-count"), count("x-delivery-count"))
}

fn next(client: &mut Client) -> (u64, (Option<i64>, Option<i64>)) {
    let delivery = client.get("q").expect("a message");
    (delivery.tag, counts(&delivery))
}

#[test]
fn every_return_to_a_quorum_queue_is_counted_beside_those_that_may_have_failed() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, "quorum");
    client.fill("q", &["a"]);
    let (tag, seen) = next(&mut client);
    assert_eq!(seen, (None, None));
    client.requeue(tag);
    let (tag, seen) = next(&mut client);
    assert_eq!(seen, (Some(1), None));
    client.fail_on(tag);
    let (tag, seen) = next(&mut client);
    assert_eq!(seen, (Some(2), Some(1)));
    client.requeue(tag);
    assert_eq!(next(&mut client).1, (Some(3), Some(1)));
    client.disconnect();
    let mut client = world.connect();
    client.consume("q");
    let seen: Vec<_> = client.deliveries().iter().map(counts).collect();
    assert_eq!(seen, [(Some(4), Some(2))]);
    client.recover();
    let seen: Vec<_> = client.deliveries().iter().map(counts).collect();
    assert_eq!(seen, [(Some(5), Some(2))]);
}

#[test]
fn each_message_has_its_own_count_and_a_new_one_has_none() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, "quorum");
    client.fill("q", &["a", "b"]);
    let (tag, _) = next(&mut client);
    client.requeue(tag);
    let (tag, seen) = next(&mut client);
    assert_eq!((seen, next(&mut client).1), ((Some(1), None), (None, None)));
    client.ack(tag);
    client.fill("q", &["c"]);
    assert_eq!(next(&mut client).1, (None, None));
}

#[test]
fn what_a_slow_consumer_loses_has_come_back_unharmed() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-queue-type", "quorum");
    declare_with(&mut client, "q", true, &arguments.with("x-consumer-timeout", 1_000));
    client.fill("q", &["a"]);
    client.consume("q");
    tick(&world, 20_000);
    assert!(matches!(client.heard().last(), Some(Heard::Cancelled(_))));
    assert_eq!(next(&mut client).1, (Some(1), None));
}

#[test]
fn a_classic_queue_says_nothing_of_it() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, "classic");
    client.fill("q", &["a"]);
    let (tag, _) = next(&mut client);
    client.requeue(tag);
    let (tag, seen) = next(&mut client);
    assert_eq!(seen, (None, None));
    client.fail_on(tag);
    assert_eq!(next(&mut client).1, (None, Some(1)));
}

#[test]
fn after_a_restart_the_count_begins_with_those_that_may_have_failed() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client, "quorum");
    client.send(
        Message::new("", "q", "a").with_properties(|properties| properties.delivery_mode = Some(2)),
    );
    for fails in [false, true, false] {
        let (tag, _) = next(&mut client);
        if fails { client.fail_on(tag) } else { client.requeue(tag) }
    }
    drop(client);
    world.restart();
    let mut client = world.connect();
    let (tag, seen) = next(&mut client);
    assert_eq!(seen, (Some(1), Some(1)));
    client.requeue(tag);
    assert_eq!(next(&mut client).1, (Some(2), Some(1)));
}

/// Bytes that are used when `count` messages have come back to a queue of this type, and once they are gone.
fn used_bytes(queue_type: &str, count: usize) -> (u64, u64) {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, queue_type);
    (0..count).for_each(|_| client.publish("", "q", "a"));
    let tags = (0..count).map(|_| client.get("q").expect("one").tag);
    let delivery_tag = tags.max().expect("some");
    client.tell(basic::Nack { delivery_tag, multiple: true, requeue: true });
    let used = world.broker.memory_used_bytes();
    client.purge("q");
    (used, world.broker.memory_used_bytes())
}

#[test]
fn the_counts_are_counted_memory_until_their_messages_are_gone() {
    let (classic, emptied_classic) = used_bytes("classic", 20_000);
    let (quorum, emptied_quorum) = used_bytes("quorum", 20_000);
    assert!(quorum > classic + 20_000 * 32, "{quorum} and {classic}");
    assert!(emptied_quorum < emptied_classic + 300_000, "{emptied_quorum} and {emptied_classic}");
}
