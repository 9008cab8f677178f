//! `x-dead-letter-strategy: at-least-once`: dead letters that no queue takes for now.

use crate::support::{Client, Heard, Message, World, WorldOnDisk, declare_with};
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::{FieldTable, basic};

fn declare_careful(client: &mut Client, durable: bool) {
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-max-length", 2)
        .with("x-overflow", "reject-publish");
    declare_with(client, "q", durable, &arguments);
}

fn persistent(text: &str) -> Message {
    Message::new("", "q", text).with_properties(|properties| properties.delivery_mode = Some(2))
}

fn reject(client: &mut Client) {
    let delivery = client.get("q").expect("a message");
    client.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
}

#[test]
fn a_letter_waits_until_there_is_a_queue_for_it() {
    let world = World::new();
    let mut client = world.connect();
    declare_careful(&mut client, false);
    client.fill("q", &["1", "2"]);
    reject(&mut client);
    assert_eq!(world.broker.tick(1000), Some(2000));
    client.declare("dead");
    world.broker.tick(2000);
    assert_eq!(client.pop_all("dead"), ["1"]);
    assert_eq!(world.broker.tick(9000), None);
}

#[test]
fn a_letter_waits_until_its_queue_has_room() {
    let world = World::new();
    let mut client = world.connect();
    let full = FieldTable::new().with("x-max-length", 1).with("x-overflow", "reject-publish");
    declare_with(&mut client, "dead", false, &full);
    declare_careful(&mut client, false);
    client.fill("dead", &["in the way"]);
    client.fill("q", &["1"]);
    reject(&mut client);
    world.broker.tick(1000);
    assert_eq!(client.pop_all("dead"), ["in the way"]);
    world.broker.tick(2000);
    assert_eq!(client.pop_all("dead"), ["1"]);
}

#[test]
fn letters_fill_a_queue_up_to_its_bound_and_the_others_wait() {
    let world = World::new();
    let mut client = world.connect();
    let bounded = FieldTable::new().with("x-max-length", 2).with("x-overflow", "reject-publish");
    declare_with(&mut client, "dead", false, &bounded);
    let to_dead = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &to_dead);
    client.fill("q", &["1", "2", "3", "4", "5"]);
    let delivery = (0..5).filter_map(|_| client.get("q")).last().expect("five messages");
    client.tell(basic::Nack { delivery_tag: delivery.tag, multiple: true, requeue: false });
    assert_eq!(client.pop_all("dead"), ["1", "2"]);
    world.broker.tick(1000);
    assert_eq!(client.pop_all("dead"), ["3", "4"]);
    world.broker.tick(2000);
    assert_eq!(client.pop_all("dead"), ["5"]);
}

#[test]
fn letters_that_wait_count_where_messages_are_bounded() {
    let world = World::new();
    let mut client = world.connect();
    declare_careful(&mut client, false);
    client.fill("q", &["1", "2"]);
    reject(&mut client);
    reject(&mut client);
    client.fill("q", &["no room"]);
    assert_eq!(client.get("q"), None);
    client.declare("dead");
    world.broker.tick(1000);
    client.fill("q", &["3"]);
    assert_eq!(client.pop_all("q"), ["3"]);
    assert_eq!(client.pop_all("dead"), ["1", "2"]);
}

#[test]
fn letters_that_wait_count_where_bytes_are_bounded() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-max-length-bytes", 100)
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &arguments);
    let (first, second) = ("1".repeat(60), "2".repeat(30));
    client.fill("q", &[&first, &second]);
    reject(&mut client);
    client.fill("q", &["too much for it"]);
    assert_eq!(client.pop_all("q"), [second.as_str()]);
    client.fill("q", &["is less", &second, "no room"]);
    reject(&mut client);
    assert_eq!(client.purge("q"), Heard::Count(3));
    client.fill("q", &[&first, &second]);
    reject(&mut client);
    reject(&mut client);
    client.declare("dead");
    world.broker.tick(1000);
    client.fill("q", &[&first, &second]);
    assert_eq!(client.pop_all("q"), [first.as_str(), &second]);
    assert_eq!(client.pop_all("dead"), [first, second]);
}

#[test]
fn letters_that_wait_leave_no_room_for_what_a_consumer_would_reject() {
    let limits = [("x-max-length", 3), ("x-max-length-bytes", 25)];
    for (exchange, (limit, most)) in ["", "amq.fanout"].iter().flat_map(|x| limits.map(|l| (x, l)))
    {
        let world = World::new();
        let (mut publisher, mut consumer) = (world.connect(), world.connect());
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "missing")
            .with("x-dead-letter-strategy", "at-least-once")
            .with("x-overflow", "reject-publish")
            .with(limit, most);
        declare_with(&mut publisher, "q", false, &arguments);
        publisher.declare("another");
        for queue in ["q", "another"] {
            publisher.bind(queue, "amq.fanout", "q");
        }
        consumer.qos(1);
        consumer.consume("q");
        publisher.confirm_select();
        let mut heard = Vec::new();
        for _ in 0..10 {
            publisher.publish(exchange, "q", "ten bytes.");
            heard.extend(publisher.heard());
            for delivery in consumer.deliveries() {
                consumer.tell(basic::Reject { delivery_tag: delivery.tag, requeue: false });
            }
        }
        let acks = heard.iter().filter(|one| matches!(one, Heard::Confirm { .. })).count();
        assert_eq!((acks, heard.len()), (3, 10), "{exchange} {limit}: {heard:?}");
        assert_eq!(publisher.purge("q"), Heard::Count(3), "{exchange} {limit}");
        // There is room again.
        publisher.publish(exchange, "q", "ten bytes.");
        assert_eq!(consumer.deliveries().len(), 1, "{exchange} {limit}");
    }
}

#[test]
fn letters_that_are_not_kept_leave_room_for_what_a_consumer_takes() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "missing")
        .with("x-overflow", "reject-publish")
        .with("x-max-length", 0);
    declare_with(&mut publisher, "q", false, &arguments);
    consumer.qos(1);
    consumer.consume("q");
    publisher.confirm_select();
    for _ in 0..10 {
        publisher.publish("", "q", "x");
        assert!(matches!(publisher.heard()[..], [Heard::Confirm { .. }]));
        let delivery_tag = consumer.deliveries().remove(0).tag;
        consumer.tell(basic::Reject { delivery_tag, requeue: false });
    }
}

#[test]
fn letters_that_are_not_kept_are_lost_where_their_queue_refuses_them() {
    let world = World::new();
    let mut client = world.connect();
    let bounded = FieldTable::new().with("x-max-length", 2).with("x-overflow", "reject-publish");
    declare_with(&mut client, "dead", false, &bounded);
    let to_dead = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "q", false, &to_dead);
    client.fill("q", &["1", "2", "3", "4", "5"]);
    (0..5).for_each(|_| reject(&mut client));
    assert_eq!(client.pop_all("dead"), ["1", "2"]);
    world.broker.tick(1000);
    assert_eq!(client.get("dead"), None);
    assert_eq!(client.purge("q"), Heard::Count(0));
}

#[test]
fn a_queue_that_refuses_nothing_keeps_no_letters() {
    for (overflow, kept) in [("drop-head", 2), ("reject-publish-dlx", 2), ("reject-publish", 3)] {
        let world = World::new();
        let mut client = world.connect();
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "missing")
            .with("x-dead-letter-strategy", "at-least-once")
            .with("x-max-length", 3)
            .with("x-overflow", overflow);
        declare_with(&mut client, "q", false, &arguments);
        client.fill("q", &["1", "2", "3", "4", "5"]);
        reject(&mut client);
        assert_eq!(client.purge("q"), Heard::Count(kept), "{overflow}");
    }
}

#[test]
fn a_policy_can_have_a_queue_keep_its_letters_and_end_that() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once");
    declare_with(&mut client, "q", false, &arguments);
    let admin = world.broker.admin();
    let refuses = Policy {
        name: "refuses".to_owned(),
        pattern: "^q$".to_owned(),
        apply_to: ApplyTo::All,
        priority: 0,
        definition: FieldTable::new().with("overflow", "reject-publish"),
    };
    admin.set_policy("/", PolicyKind::User, refuses).expect("a good policy");
    client.fill("q", &["1", "2"]);
    reject(&mut client);
    reject(&mut client);
    assert_eq!(world.broker.tick(1000), Some(2000));
    admin.clear_policy("/", PolicyKind::User, "refuses").expect("it is there");
    // They leave with their next try, as they would have left at once.
    assert_eq!(world.broker.tick(2000), None);
    client.declare("dead");
    client.fill("q", &["3"]);
    reject(&mut client);
    assert_eq!(client.pop_all("dead"), ["3"]);
}

#[test]
fn a_letter_that_waits_survives_as_the_message_that_it_was() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_careful(&mut client, true);
    client.send(persistent("1"));
    reject(&mut client);
    client.disconnect();
    world.restart_from_checkpoint();
    assert_eq!(world.counts("q"), (1, 0, 0));
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    reject(&mut client);
    client.disconnect();
    world.restart();
    assert_eq!((world.counts("q"), world.counts("dead")), ((0, 0, 0), (1, 0, 0)));
}

#[test]
fn letters_that_wait_keep_their_place_among_those_of_their_priority() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let arguments = FieldTable::new()
        .with("x-max-priority", 2)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &arguments);
    for (text, priority) in [("high", 2), ("1", 1), ("2", 1), ("3", 1), ("low", 0)] {
        client.send(persistent(text).with_properties(|properties| {
            properties.delivery_mode = Some(2);
            properties.priority = Some(priority);
        }));
    }
    let deliveries: Vec<_> = (0..5).filter_map(|_| client.get("q")).collect();
    for rejected in [&deliveries[4], &deliveries[2]] {
        client.tell(basic::Reject { delivery_tag: rejected.tag, requeue: false });
    }
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    assert_eq!(client.pop_all("q"), ["high", "1", "2", "3", "low"]);
}

#[test]
fn a_queue_that_is_deleted_takes_its_letters_along() {
    let world = World::new();
    let mut client = world.connect();
    declare_careful(&mut client, false);
    client.fill("q", &["1"]);
    reject(&mut client);
    client.delete("q");
    client.declare("dead");
    assert_eq!(world.broker.tick(5000), None);
    assert_eq!(client.get("dead"), None);
}

#[test]
fn a_purge_takes_letters_that_wait_along() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_careful(&mut client, true);
    client.send(persistent("1"));
    reject(&mut client);
    client.send(persistent("2"));
    assert_eq!(client.purge("q"), Heard::Count(2));
    client.declare("dead");
    world.broker.tick(5000);
    assert_eq!(client.get("dead"), None);
    client.disconnect();
    world.restart();
    assert_eq!(world.counts("q"), (0, 0, 0));
}
