//! What the broker notes of messages counts as memory, and is given back.

use crate::streams::stream;
use crate::support::{Message, Step, World, declare_with, short};
use courser_codec::{FieldTable, Table, basic, exchange};

/// How much more memory is used after `call`.
fn growth(world: &World, call: impl FnOnce()) -> u64 {
    let before = world.broker.memory_used_bytes();
    call();
    world.broker.memory_used_bytes().saturating_sub(before)
}

fn numbered(nth: i64) -> Message {
    let headers = FieldTable::new().with("x-deduplication-header", nth);
    Message::new("", "q", "x").headers(headers)
}

#[test]
fn letters_that_wait_count_until_they_go() {
    let world = World::new();
    let mut client = world.connect();
    let letters = FieldTable::new()
        .with("x-dead-letter-exchange", "missing")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &letters);
    client.fill("q", &["x"; 1000]);
    let delivery_tag = (0..1000).filter_map(|_| client.get("q")).last().expect("messages").tag;
    let grown = growth(&world, || {
        client.tell(basic::Nack { delivery_tag, multiple: true, requeue: false });
    });
    assert!(grown > 50_000, "{grown}");
    let before = world.broker.memory_used_bytes();
    client.purge("q");
    assert!(world.broker.memory_used_bytes() + 50_000 < before);
}

#[test]
fn what_a_queue_notes_of_messages_to_keep_them_apart_counts() {
    let grown = |arguments: &FieldTable| {
        let world = World::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", false, arguments);
        let grown = growth(&world, || (0..1000).for_each(|nth| client.send(numbered(nth))));
        client.purge("q");
        let before = world.broker.memory_used_bytes();
        client.delete("q");
        (grown, before - world.broker.memory_used_bytes())
    };
    let (plain, _) = grown(&FieldTable::new());
    let (apart, given_back) = grown(&FieldTable::new().with("x-message-deduplication", true));
    assert!(apart > plain + 50_000, "{plain}, {apart}");
    assert!(given_back > 50_000, "{given_back}");
}

#[test]
fn since_when_messages_are_handed_out_counts() {
    let grown = |arguments: &FieldTable| {
        let world = World::new();
        let mut client = world.connect();
        declare_with(&mut client, "q", false, arguments);
        client.fill("q", &["x"; 1000]);
        growth(&world, || drop((0..1000).filter_map(|_| client.get("q")).last()))
    };
    let plain = grown(&FieldTable::new());
    let watched = grown(&FieldTable::new().with("x-consumer-timeout", 3_600_000_i64));
    assert!(watched > plain + 50_000, "{plain}, {watched}");
}

#[test]
fn the_places_of_what_streams_and_histories_have_count_until_they_go() {
    let world = World::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    let length = FieldTable::new().with("x-recent-history-length", 10_000_i64).to_entries();
    client.call(exchange::Declare {
        exchange: short("x"),
        kind: short("x-recent-history"),
        arguments: Table::from_entries(&length),
        ..Default::default()
    });
    let places = |world: &World| world.broker.admin().memory_uses().places;
    for (exchange, key) in [("", "s"), ("x", "")] {
        let before = places(&world);
        (0..100).for_each(|_| {
            let message = |_| Step::Publish(1, Message::new(exchange, key, "x"));
            client.read(&(0..100).map(message).collect::<Vec<_>>());
        });
        assert!(places(&world) > before + 50_000, "{before}, {}", places(&world));
    }
    client.delete("s");
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    assert_eq!(places(&world), 0);
}
