//! `x-delayed-retry-type`: what comes back to a quorum queue waits before its next try.

mod arguments;
mod memory;
mod operators;

use crate::support::{
    Client, Heard, Message, World, WorldOnDisk, deaths, declare_with, headers, short,
};
use courser_broker::admin::{DelayedStatus, QueueView};
use courser_codec::{FieldTable, FieldValue, basic, queue};

/// When everything here begins.
const T0_MS: u64 = 1_000_000;

fn quorum() -> FieldTable {
    FieldTable::new().with("x-queue-type", "quorum")
}

fn retrying(of: &str) -> FieldTable {
    quorum()
        .with("x-delayed-retry-type", of)
        .with("x-delayed-retry-min", 400)
        .with("x-delayed-retry-max", 1_000)
}

fn begin() -> World {
    let world = World::new();
    world.tick_all(T0_MS);
    world
}

fn view(world: &World) -> QueueView {
    world.broker.admin().queue("/", b"q").expect("the queue")
}

fn delayed(world: &World) -> usize {
    view(world).delayed.messages
}

/// Fails on the next message, or gives it back unharmed.
fn give_back(client: &mut Client, fails: bool) {
    let tag = client.get("q").expect("a message").tag;
    if fails { client.fail_on(tag) } else { client.requeue(tag) }
}

/// How long the message is away that is given back now, in milliseconds.
fn away_ms(world: &World, client: &mut Client, now_ms: &mut u64, fails: bool) -> u64 {
    give_back(client, fails);
    let begun_ms = *now_ms;
    while world.counts("q").0 == 0 {
        *now_ms += 1;
        assert!(*now_ms < begun_ms + 10_000, "it does not come back");
        world.tick_all(*now_ms);
    }
    *now_ms - begun_ms
}

#[test]
fn each_failure_makes_the_wait_longer_up_to_the_longest() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    let waits = [0; 4].map(|_| away_ms(&world, &mut client, &mut now_ms, true));
    assert_eq!(waits, [400, 800, 1_000, 1_000]);
    let delivery = client.get("q").expect("it is back");
    let count = headers(&delivery).get("x-delivery-count").and_then(FieldValue::as_integer);
    assert_eq!((count, delivery.redelivered), (Some(4), true));
}

#[test]
fn what_comes_back_unharmed_waits_as_long_each_time() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all").with("x-delivery-limit", 1));
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    let waits = [0; 3].map(|_| away_ms(&world, &mut client, &mut now_ms, false));
    assert_eq!(waits, [400, 400, 400]);
}

#[test]
fn the_type_says_what_waits() {
    for (of, of_failed, of_returned) in
        [("all", 400, 400), ("failed", 400, 0), ("returned", 0, 400), ("disabled", 0, 0)]
    {
        let world = begin();
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &retrying(of));
        client.publish("", "q", "a");
        let mut now_ms = T0_MS;
        let seen = [false, true].map(|fails| away_ms(&world, &mut client, &mut now_ms, fails));
        assert_eq!(seen, [of_returned, of_failed], "{of}");
    }
}

#[test]
fn what_a_lost_connection_had_waits_as_what_has_failed() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("failed"));
    client.fill("q", &["a", "b"]);
    let mut consumer = world.connect();
    consumer.consume("q");
    assert_eq!(consumer.bodies(), ["a", "b"]);
    consumer.disconnect();
    assert_eq!((world.counts("q"), delayed(&world)), ((0, 0, 0), 2));
    world.tick_all(T0_MS + 400);
    assert_eq!(client.pop_all("q"), ["a", "b"]);
}

#[test]
fn others_pass_what_waits_and_it_returns_to_its_place_and_to_its_consumer() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.fill("q", &["a", "b", "c"]);
    give_back(&mut client, true);
    assert_eq!(client.pop("q").as_deref(), Some("b"));
    world.tick_all(T0_MS + 399);
    assert_eq!((world.counts("q"), delayed(&world)), ((1, 0, 0), 1));
    world.tick_all(T0_MS + 400);
    assert_eq!(client.pop_all("q"), ["a", "c"]);
    client.consume("q");
    client.publish("", "q", "d");
    let tag = client.deliveries().pop().expect("a delivery").tag;
    client.fail_on(tag);
    assert_eq!(client.bodies(), Vec::<String>::new());
    world.tick_all(T0_MS + 800);
    assert_eq!(client.bodies(), ["d"]);
}

#[test]
fn an_operator_sees_what_waits_and_until_when() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.fill("q", &["aa", "bbb", "c"]);
    give_back(&mut client, true);
    world.tick_all(T0_MS + 10);
    give_back(&mut client, true);
    let seen = view(&world);
    let (next_ms, last_ms) = (Some(T0_MS + 400), Some(T0_MS + 410));
    assert_eq!(seen.delayed, DelayedStatus { messages: 2, next_ms, last_ms });
    assert_eq!((seen.ready, seen.unacked), (1, 0));
    assert_eq!(seen.contents.expect("of a queue").ready_bytes, Some(6));
    let printed = seen.delayed_retry.map(|retry| retry.to_string());
    assert_eq!(printed.as_deref(), Some("all (min: 400ms, max: 1000ms)"));
    let totals = world.broker.admin().message_totals("/").expect("the vhost");
    assert_eq!((totals.ready, totals.unacked, totals.delayed), (1, 0, 2));
    world.tick_all(T0_MS + 1_000);
    assert_eq!(view(&world).delayed, DelayedStatus::default());
}

#[test]
fn one_failure_too_many_ends_a_message_at_once() {
    let world = begin();
    let mut client = world.connect();
    client.declare("dead");
    let limited = retrying("all").with("x-delivery-limit", 1);
    let letters = limited.with("x-dead-letter-exchange", "");
    declare_with(&mut client, "q", true, &letters.with("x-dead-letter-routing-key", "dead"));
    client.publish("", "q", "a");
    let mut now_ms = T0_MS;
    assert_eq!(away_ms(&world, &mut client, &mut now_ms, true), 400);
    give_back(&mut client, true);
    let letter = client.get("dead").expect("the letter");
    assert_eq!(deaths(&letter), ["q delivery_limit 1"]);
}

#[test]
fn what_waits_counts_towards_the_limits_of_its_queue() {
    let world = begin();
    let mut client = world.connect();
    let refusing = retrying("all").with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &refusing.with("x-max-length", 1));
    client.confirm_select();
    client.publish("", "q", "a");
    client.heard();
    give_back(&mut client, true);
    client.publish("", "q", "b");
    assert_eq!(client.heard().last(), Some(&Heard::Refused { channel: 1, tag: 2 }));
    world.tick_all(T0_MS + 400);
    client.heard();
    assert_eq!(client.pop_all("q"), ["a"]);
    // The same in bytes; and the oldest leave where the queue drops.
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all").with("x-max-length-bytes", 3));
    client.publish("", "q", "aa");
    give_back(&mut client, true);
    client.fill("q", &["b", "c"]);
    assert_eq!((world.counts("q"), delayed(&world)), ((1, 0, 0), 1));
    world.give_policy("q", FieldTable::new().with("max-length", 1));
    assert_eq!((world.counts("q"), delayed(&world)), ((0, 0, 0), 1));
    world.give_policy("q", FieldTable::new().with("max-length", 0));
    assert_eq!((world.counts("q"), delayed(&world)), ((0, 0, 0), 0));
}

#[test]
fn a_purge_takes_what_waits() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.fill("q", &["a", "b"]);
    give_back(&mut client, true);
    assert_eq!(client.purge("q"), Heard::Count(2));
    assert_eq!((world.counts("q"), delayed(&world)), ((0, 0, 0), 0));
    world.tick_all(T0_MS + 1_000);
    assert_eq!(client.get("q"), None);
}

#[test]
fn a_queue_in_which_something_waits_is_not_empty_and_goes_with_it() {
    let mut world = WorldOnDisk::new();
    world.tick_all(T0_MS);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.send(persistent("a"));
    give_back(&mut client, true);
    let delete = queue::Delete { queue: short("q"), if_empty: true, ..Default::default() };
    let text = "406 PRECONDITION_FAILED - queue 'q' in vhost '/' not empty";
    assert_eq!(client.refused(delete), text);
    drop(client);
    let mut client = world.connect();
    assert_eq!(client.delete("q"), Heard::Count(1));
    world.tick_all(T0_MS + 1_000);
    drop(client);
    world.restart();
    assert!(!world.has_queue("q"));
}

fn persistent(body: &str) -> Message {
    Message::new("", "q", body).with_properties(|properties| properties.delivery_mode = Some(2))
}

#[test]
fn what_waits_is_there_at_once_after_a_restart_in_its_place_and_with_its_count() {
    let restarts: [fn(&mut WorldOnDisk); 3] =
        [WorldOnDisk::restart, WorldOnDisk::restart_from_checkpoint, WorldOnDisk::lose_power];
    for restart in restarts {
        let mut world = WorldOnDisk::new();
        world.tick_all(T0_MS);
        let mut client = world.connect();
        declare_with(&mut client, "q", true, &retrying("all"));
        ["a", "b", "c"].iter().for_each(|body| client.send(persistent(body)));
        assert_eq!(client.pop("q").as_deref(), Some("a"));
        give_back(&mut client, true);
        world.sync();
        drop(client);
        restart(&mut world);
        let mut client = world.connect();
        let delivery = client.get("q").expect("it is there");
        let count = headers(&delivery).get("x-delivery-count").and_then(FieldValue::as_integer);
        assert_eq!((delivery.text(), count), ("b", Some(1)));
        assert_eq!(client.pop_all("q"), ["c"]);
    }
}

#[test]
fn a_purge_of_what_waits_is_in_the_log() {
    let mut world = WorldOnDisk::new();
    world.tick_all(T0_MS);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    client.send(persistent("a"));
    give_back(&mut client, true);
    assert_eq!(client.purge("q"), Heard::Count(1));
    drop(client);
    world.restart();
    assert_eq!(world.connect().get("q"), None);
}

#[test]
fn a_message_whose_time_to_live_ends_while_it_waits_expires_when_its_wait_is_over() {
    let world = begin();
    let mut client = world.connect();
    client.declare("dead");
    let letters = retrying("all").with("x-dead-letter-exchange", "");
    declare_with(&mut client, "q", true, &letters.with("x-dead-letter-routing-key", "dead"));
    client.send(Message::new("", "q", "a").expiration("100"));
    give_back(&mut client, true);
    world.tick_all(T0_MS + 399);
    assert_eq!(delayed(&world), 1);
    world.tick_all(T0_MS + 400);
    assert_eq!((world.counts("q"), delayed(&world)), ((0, 0, 0), 0));
    let letter = client.get("dead").expect("the letter");
    assert_eq!(deaths(&letter), ["q expired 1"]);
}

#[test]
fn very_many_that_are_due_at_once_return_in_portions_and_in_their_order() {
    let world = begin();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    let bodies: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    bodies.iter().for_each(|body| client.publish("", "q", body));
    let tags = bodies.iter().map(|_| client.get("q").expect("one").tag);
    let delivery_tag = tags.max().expect("some");
    client.tell(basic::Nack { delivery_tag, multiple: true, requeue: true });
    assert_eq!(delayed(&world), 3_000);
    world.tick_all(T0_MS + 400);
    assert_eq!(client.pop_all("q"), bodies);
}
