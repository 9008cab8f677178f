//! `x-message-deduplication` of a queue without a cache: no message while there is one of the same.

use crate::support::{Client, Heard, Message, Step, World, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, basic};

/// Something that ends a message.
pub type End = fn(&World, &mut Client);

pub fn apart() -> FieldTable {
    FieldTable::new().with("x-message-deduplication", true)
}

fn message(exchange: &str, key: &str, id: &str, body: &str) -> Message {
    let headers = FieldTable::new().with("x-deduplication-header", id);
    Message::new(exchange, key, body)
        .headers(headers)
        .with_properties(|properties| properties.delivery_mode = Some(2))
}

pub fn send(client: &mut Client, id: &str, body: &str) {
    client.send(message("", "q", id, body));
}

fn with_queue(arguments: &FieldTable) -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, arguments);
    (world, client)
}

#[test]
fn a_message_is_dropped_as_long_as_one_of_the_same_is_there() {
    let (_world, mut client) = with_queue(&apart());
    for (id, body) in [("a", "1"), ("b", "2"), ("a", "3")] {
        send(&mut client, id, body);
    }
    client.publish("", "q", "unmarked");
    client.publish("", "q", "unmarked");
    assert_eq!(client.pop_all("q"), ["1", "2", "unmarked", "unmarked"]);
    send(&mut client, "a", "4");
    assert_eq!(client.pop_all("q"), ["4"]);
}

#[test]
fn what_is_acknowledged_before_a_publish_in_the_same_read_is_not_there() {
    let (_world, mut client) = with_queue(&apart());
    send(&mut client, "a", "1");
    let delivery = client.get("q").expect("a message");
    let ack = basic::Ack { delivery_tag: delivery.tag, multiple: false };
    client.read(&[
        Step::Publish(1, message("", "q", "a", "dropped")),
        Step::Call(1, ack.into()),
        Step::Publish(1, message("", "q", "a", "the next")),
    ]);
    assert_eq!(client.pop_all("q"), ["the next"]);
}

#[test]
fn what_is_not_acknowledged_is_there() {
    let (world, mut client) = with_queue(&apart());
    send(&mut client, "a", "1");
    let delivery = client.get("q").expect("a message");
    send(&mut client, "a", "2");
    assert_eq!(world.counts("q"), (0, 1, 0));
    client.requeue(delivery.tag);
    send(&mut client, "a", "3");
    assert_eq!(world.counts("q"), (1, 0, 0));
    let again = client.get("q").expect("a message");
    assert_eq!(again.text(), "1");
    client.ack(again.tag);
    send(&mut client, "a", "4");
    assert_eq!(client.pop_all("q"), ["4"]);
}

#[test]
fn what_goes_to_a_consumer_at_once_is_there_until_it_is_acknowledged() {
    let (_world, mut client) = with_queue(&apart());
    client.consume("q");
    send(&mut client, "a", "1");
    send(&mut client, "a", "2");
    assert_eq!(client.bodies(), ["1"]);
    client.ack(1);
    send(&mut client, "a", "3");
    assert_eq!(client.bodies(), ["3"]);
}

#[test]
fn what_needs_no_acknowledgement_is_gone_when_it_is_delivered() {
    let (world, mut client) = with_queue(&apart());
    send(&mut client, "a", "waited");
    let mut consumer = world.connect();
    consumer.consume_no_ack("q");
    send(&mut client, "a", "1");
    send(&mut client, "a", "2");
    assert_eq!(consumer.bodies(), ["waited", "1", "2"]);
}

#[test]
fn whatever_ends_a_message_makes_room_for_the_next() {
    let ends: [(&str, End); 4] = [
        ("purge", |_, client| drop(client.purge("q"))),
        ("expiry", |world, _| assert_eq!(world.broker.tick(2000), None)),
        ("overflow", |_, client| send(client, "another", "newer")),
        ("reject", |_, client| {
            let delivery_tag = client.get("q").expect("a message").tag;
            client.tell(basic::Reject { delivery_tag, requeue: false });
        }),
    ];
    for (name, end) in ends {
        let arguments = apart().with("x-message-ttl", 1000).with("x-max-length", 1);
        let (world, mut client) = with_queue(&arguments);
        send(&mut client, "a", "old");
        end(&world, &mut client);
        send(&mut client, "a", "new");
        assert_eq!(client.pop_all("q"), ["new"], "{name}");
    }
}

#[test]
fn a_purge_leaves_what_is_delivered() {
    let (_world, mut client) = with_queue(&apart());
    send(&mut client, "a", "1");
    client.get("q").expect("a message");
    client.purge("q");
    send(&mut client, "a", "2");
    assert_eq!(client.get("q"), None);
}

#[test]
fn what_a_full_queue_has_refused_is_not_there() {
    let arguments = apart().with("x-max-length", 1).with("x-overflow", "reject-publish");
    let (_world, mut client) = with_queue(&arguments);
    client.confirm_select();
    send(&mut client, "a", "1");
    send(&mut client, "b", "refused");
    send(&mut client, "a", "the same");
    let heard = client.heard();
    assert!(
        matches!(
            &heard[..],
            [Heard::Confirm { .. }, Heard::Refused { tag: 2, .. }, Heard::Confirm { .. }]
        ),
        "{heard:?}"
    );
    assert_eq!(client.pop_all("q"), ["1"]);
    send(&mut client, "b", "2");
    assert!(matches!(client.heard()[..], [Heard::Confirm { .. }]));
    assert_eq!(client.pop_all("q"), ["2"]);
}

#[test]
fn other_queues_get_what_one_has() {
    let (_world, mut client) = with_queue(&apart());
    client.declare("always");
    client.bind("q", "amq.fanout", "");
    client.bind("always", "amq.fanout", "");
    client.send(message("amq.fanout", "", "a", "1").mandatory());
    client.send(message("amq.fanout", "", "a", "2").mandatory());
    assert_eq!(client.heard(), []);
    assert_eq!(client.pop_all("q"), ["1"]);
    assert_eq!(client.pop_all("always"), ["1", "2"]);
}

#[test]
fn a_dead_letter_is_dropped_where_one_of_the_same_is() {
    let (_world, mut client) = with_queue(&apart());
    let to_q =
        FieldTable::new().with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "q");
    declare_with(&mut client, "dying", false, &to_q);
    for body in ["1", "2"] {
        client.send(message("", "dying", "a", body));
        let delivery_tag = client.get("dying").expect("a message").tag;
        client.tell(basic::Reject { delivery_tag, requeue: false });
    }
    assert_eq!(client.pop_all("q"), ["1"]);
}

#[test]
fn another_header_may_be_named_here_too() {
    let (_world, mut client) = with_queue(&apart().with("x-deduplication-header", "id"));
    for name in ["id", "other", "id", "other"] {
        client.send(Message::new("", "q", name).headers(FieldTable::new().with(name, 1)));
    }
    assert_eq!(client.pop_all("q"), ["id", "other", "other"]);
}

#[test]
fn a_restart_knows_what_is_there() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &apart());
    send(&mut client, "a", "1");
    send(&mut client, "b", "2");
    send(&mut client, "c", "gone");
    send(&mut client, "b", "dropped");
    for _ in 0..3 {
        client.get("q").expect("a message");
    }
    client.ack(3);
    client.disconnect();
    for _ in 0..2 {
        world.restart();
        let mut client = world.connect();
        send(&mut client, "a", "dropped");
        send(&mut client, "b", "dropped");
        assert_eq!(world.counts("q"), (2, 0, 0));
        client.disconnect();
        world.restart_from_checkpoint();
    }
    let mut client = world.connect();
    send(&mut client, "c", "3");
    assert_eq!(client.pop_all("q"), ["1", "2", "3"]);
    send(&mut client, "a", "4");
    assert_eq!(client.pop_all("q"), ["4"]);
}

#[test]
fn what_is_dropped_is_not_written() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &apart());
    send(&mut client, "a", "1");
    world.flush();
    let end = world.log_end();
    send(&mut client, "a", "dropped");
    assert_eq!(world.log_end(), end);
    client.disconnect();
}

#[test]
fn a_letter_that_is_back_after_a_restart_takes_only_itself_along() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    let arguments = apart()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "nowhere yet")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &arguments);
    for body in ["1", "2"] {
        send(&mut client, "a", body);
        let delivery_tag = client.get("q").expect("a message").tag;
        client.tell(basic::Reject { delivery_tag, requeue: false });
    }
    send(&mut client, "a", "3");
    client.disconnect();
    world.restart();
    let mut client = world.connect();
    for body in ["1", "2"] {
        assert_eq!(client.pop("q").as_deref(), Some(body));
        send(&mut client, "a", "the same as 3");
    }
    assert_eq!(client.pop_all("q"), ["3"]);
    send(&mut client, "a", "4");
    assert_eq!(client.pop_all("q"), ["4"]);
}

#[test]
fn a_letter_that_is_back_drives_out_no_other_though_letters_go_nowhere_any_more() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &apart());
    let definition = FieldTable::new()
        .with("dead-letter-exchange", "")
        .with("dead-letter-routing-key", "nowhere yet")
        .with("dead-letter-strategy", "at-least-once")
        .with("overflow", "reject-publish");
    world.give_policy("q", definition);
    send(&mut client, "a", "letter");
    let delivery_tag = client.get("q").expect("a message").tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
    send(&mut client, "a", "new");
    assert_eq!(world.counts("q").0, 1);
    world.take_policy();
    client.disconnect();
    world.flush();
    world.lose_power();
    assert_eq!(world.connect().pop_all("q"), ["letter", "new"]);
}

#[test]
fn what_is_dropped_does_not_stay_in_the_log_and_in_transactions_neither() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &apart());
    client.tx_select();
    for body in ["1", "2"] {
        send(&mut client, "a", body);
    }
    client.tell(courser_codec::tx::Commit {});
    world.flush();
    client.disconnect();
    assert_eq!(world.counts("q"), (1, 0, 0));
    world.restart();
    assert_eq!(world.connect().pop_all("q"), ["1"]);
    world.restart();
    assert_eq!(world.counts("q"), (0, 0, 0));
}
