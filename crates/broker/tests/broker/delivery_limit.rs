//! `x-delivery-limit`: who comes back too often does not come back, and everybody is told how often.

use crate::support::{
    Client, Delivery, Message, World, WorldOnDisk, deaths, declare_with, headers,
};
use courser_broker::admin::GetMode;
use courser_codec::{FieldTable, FieldValue, basic};

fn declare(client: &mut Client, limit: i64) {
    let arguments = FieldTable::new().with("x-delivery-limit", limit);
    declare_with(client, "q", true, &arguments);
}

fn message(body: &str) -> Message {
    Message::new("", "q", body).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// The delivery's `x-delivery-count`, if it has one.
fn count(delivery: &Delivery) -> Option<i64> {
    match headers(delivery).get("x-delivery-count") {
        None => None,
        Some(FieldValue::I64(count)) => Some(*count),
        Some(other) => panic!("not a long: {other:?}"),
    }
}

/// Takes the next message and fails on it `times` times.
fn fail_often(client: &mut Client, times: usize) {
    for _ in 0..times {
        let delivery = client.get("q").expect("a message");
        client.fail_on(delivery.tag);
    }
}

#[test]
fn a_message_may_come_back_as_often_as_the_limit_says() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 2);
    client.send(message("poison"));
    for expected in [None, Some(1), Some(2)] {
        let delivery = client.get("q").expect("a message");
        assert_eq!(count(&delivery), expected);
        assert_eq!(delivery.redelivered, expected.is_some());
        client.fail_on(delivery.tag);
    }
    assert_eq!(client.get("q"), None);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn consumers_are_told_the_count_beside_the_messages_own_headers() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 5);
    let own = FieldTable::new().with("own", 1).with("x-delivery-count", "made up");
    client.send(message("a").headers(own).with_properties(|properties| {
        properties.message_id = Some("7".try_into().expect("short"));
    }));
    fail_often(&mut client, 1);
    client.consume("q");
    client.fail_on(2);
    let deliveries = client.deliveries();
    assert_eq!(deliveries.iter().map(count).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let expected = FieldTable::new().with("own", 1).with("x-delivery-count", 2_i64);
    assert_eq!(headers(&deliveries[1]), expected);
    assert_eq!(deliveries[1].properties.message_id, Some("7".try_into().expect("short")));
    assert_eq!(deliveries[1].text(), "a");
}

#[test]
fn a_channel_that_closes_brings_its_messages_closer_to_the_limit() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 1);
    client.send(message("a"));
    for expected in [None, Some(1)] {
        let mut consumer = world.connect();
        consumer.consume("q");
        assert_eq!(consumer.deliveries().iter().map(count).collect::<Vec<_>>(), [expected]);
        consumer.disconnect();
    }
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn with_a_limit_of_nothing_no_message_comes_back() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 0);
    client.send(message("a"));
    fail_often(&mut client, 1);
    assert_eq!(client.get("q"), None);
}

#[test]
fn a_message_that_is_given_back_unharmed_may_come_back_for_ever() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 1);
    client.send(message("a"));
    client.send(message("b"));
    for _ in 0..25 {
        let first = client.get("q").expect("a message");
        let second = client.get("q").expect("a message");
        assert_eq!((first.text(), count(&first)), ("a", None));
        let nack = basic::Nack { delivery_tag: second.tag, multiple: true, requeue: true };
        client.tell(nack);
    }
    let delivery = client.get("q").expect("a message");
    assert!(delivery.redelivered);
    client.recover();
    assert_eq!(client.pop_all("q"), ["a", "b"]);
}

#[test]
fn what_did_not_count_leaves_the_count_as_it_was() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 1);
    client.send(message("a"));
    fail_often(&mut client, 1);
    for _ in 0..3 {
        let delivery = client.get("q").expect("a message");
        assert_eq!((count(&delivery), delivery.redelivered), (Some(1), true));
        client.requeue(delivery.tag);
    }
    fail_often(&mut client, 1);
    assert_eq!(client.get("q"), None);
}

#[test]
fn a_transaction_counts_what_fails_in_it_and_not_what_is_given_back() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 1);
    client.tx_select();
    client.send(message("fails"));
    client.send(message("returns"));
    client.commit();
    for expected in [None, Some(1)] {
        let failed = client.get("q").expect("a message");
        let returned = client.get("q").expect("a message");
        assert_eq!((failed.text(), count(&failed)), ("fails", expected));
        assert_eq!((returned.text(), count(&returned)), ("returns", None));
        client.requeue(returned.tag);
        client.fail_on(failed.tag);
        client.commit();
    }
    assert_eq!(client.pop_all("q"), ["returns"]);
}

#[test]
fn an_operator_who_looks_brings_no_message_closer_to_the_limit() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 1);
    client.send(message("a"));
    let admin = world.broker.admin();
    let look = |counts| {
        let mode = GetMode::Requeue { counts };
        admin.get("/", b"q", 1, mode, 100, 1000).expect("a queue").len()
    };
    assert_eq!((0..5).map(|_| look(false)).sum::<usize>(), 5);
    assert_eq!((0..5).map(|_| look(true)).sum::<usize>(), 2);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn a_negative_limit_only_counts() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, -1);
    client.send(message("a"));
    fail_often(&mut client, 5000);
    assert_eq!(count(&client.get("q").expect("a message")), Some(5000));
}

#[test]
fn a_queue_without_a_limit_does_not_count() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.send(message("a"));
    fail_often(&mut client, 50);
    assert_eq!(count(&client.get("q").expect("a message")), None);
}

#[test]
fn what_came_back_too_often_is_a_dead_letter() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    let arguments = FieldTable::new()
        .with("x-delivery-limit", 1)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "q", true, &arguments);
    client.send(message("a"));
    client.send(message("b"));
    client.qos(1);
    client.consume("q");
    client.fail_on(1);
    client.fail_on(2);
    assert_eq!(client.bodies(), ["a", "a", "b"]);
    let dead = client.get("dead").expect("a dead letter");
    assert_eq!(deaths(&dead), ["q delivery_limit 1"]);
    assert_eq!(dead.text(), "a");
    assert_eq!(world.counts("q"), (0, 1, 1));
}

#[test]
fn the_count_survives_a_restart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client, 3);
    client.send(message("a"));
    client.send(message("b"));
    fail_often(&mut client, 1);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    let first = client.get("q").expect("a message");
    assert_eq!((count(&first), first.redelivered), (Some(1), true));
    let second = client.get("q").expect("a message");
    assert_eq!((count(&second), second.redelivered), (None, false));
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    fail_often(&mut client, 1);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    assert_eq!(count(&client.get("q").expect("a message")), Some(3));
    client.fail_on(1);
    let next = client.get("q").expect("a message");
    assert_eq!((next.text(), count(&next)), ("b", Some(1)));
    assert_eq!(client.get("q"), None);
    client.tell(basic::Ack { delivery_tag: next.tag, multiple: false });
    client.disconnect();
    world.restart_from_checkpoint();
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn the_count_survives_a_restart_while_no_policy_limits_it() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    world.give_policy("q", FieldTable::new().with("delivery-limit", 5));
    client.send(message("a"));
    fail_often(&mut client, 1);
    world.take_policy();
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    assert_eq!(count(&client.get("q").expect("a message")), Some(1));
    client.disconnect();
}

#[test]
fn a_limit_may_be_any_number() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 4200);
    client.send(message("a"));
    client.send(message("b"));
    client.qos(1);
    fail_often(&mut client, 4200);
    let last = client.get("q").expect("a message");
    assert_eq!((last.text(), count(&last)), ("a", Some(4200)));
    client.fail_on(last.tag);
    assert_eq!(client.pop_all("q"), ["b"]);
    client.delete("q");
    declare(&mut client, i64::MAX);
    client.send(message("a"));
    fail_often(&mut client, 3);
    assert_eq!(count(&client.get("q").expect("a message")), Some(3));
}

#[test]
fn a_high_count_survives_a_restart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client, 4102);
    client.send(message("a"));
    fail_often(&mut client, 4100);
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    fail_often(&mut client, 1);
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    let delivery = client.get("q").expect("a message");
    assert_eq!(count(&delivery), Some(4101));
    client.fail_on(delivery.tag);
    fail_often(&mut client, 1);
    assert_eq!(client.get("q"), None);
}
