//! `x-queue-type: quorum`: on one node the same durable queue, with that type's rules and defaults.

use crate::support::{Client, Heard, Message, World, declare_with, headers, short};
use courser_codec::{FieldTable, FieldValue, Table, basic, queue};

fn arguments() -> FieldTable {
    FieldTable::new().with("x-queue-type", "quorum")
}

/// What `declare` with these arguments is answered.
fn ask(client: &mut Client, declare: queue::Declare<'_>, arguments: &FieldTable) -> String {
    let entries = arguments.to_entries();
    client.refused(queue::Declare { arguments: Table::from_entries(&entries), ..declare })
}

#[test]
fn a_quorum_queue_is_durable_and_named_and_not_exclusive() {
    let world = World::new();
    let mut client = world.connect();
    let good = queue::Declare { queue: short("q"), durable: true, ..Default::default() };
    for (declare, property) in [
        (queue::Declare { durable: false, ..good }, "non-durable"),
        (queue::Declare { exclusive: true, ..good }, "exclusive-owner"),
        (queue::Declare { auto_delete: true, ..good }, "auto-delete"),
    ] {
        let text = format!(
            "406 PRECONDITION_FAILED - invalid property '{property}' for queue 'q' in vhost '/'"
        );
        assert_eq!(ask(&mut client, declare, &arguments()), text);
    }
    let unnamed = queue::Declare { queue: short(""), ..good };
    let text = "406 PRECONDITION_FAILED - Cannot declare a server-named queue for type \
                rabbit_quorum_queue";
    assert_eq!(ask(&mut client, unnamed, &arguments()), text);
    assert!(!world.has_queue("q"));
    declare_with(&mut client, "q", true, &arguments());
    assert!(world.has_queue("q"));
}

#[test]
fn a_quorum_queue_takes_the_arguments_of_its_type_and_no_others() {
    let world = World::new();
    let mut client = world.connect();
    let more = arguments()
        .with("x-quorum-initial-group-size", 3)
        .with("x-queue-leader-locator", "balanced")
        .with("x-consumer-disconnected-timeout", 60_000)
        .with("x-delivery-limit", 7);
    declare_with(&mut client, "sized", true, &more);
    let good = queue::Declare { queue: short("q"), durable: true, ..Default::default() };
    for (name, value) in
        [("x-queue-mode", FieldValue::from("lazy")), ("x-queue-version", FieldValue::from(2))]
    {
        let text = format!(
            "406 PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/' of queue \
             type rabbit_quorum_queue"
        );
        assert_eq!(ask(&mut client, good, &arguments().with(name, value)), text);
    }
    let text = "406 PRECONDITION_FAILED - invalid arg 'x-consumer-disconnected-timeout' for queue 'q' in \
                vhost '/': {value_negative,-1}";
    let negative = arguments().with("x-consumer-disconnected-timeout", -1);
    assert_eq!(ask(&mut client, good, &negative), text);
}

#[test]
fn a_classic_queue_is_no_quorum_queue() {
    let world = World::new();
    let mut client = world.connect();
    client.call(queue::Declare { queue: short("q"), durable: true, ..Default::default() });
    let declare = queue::Declare { queue: short("q"), durable: true, ..Default::default() };
    let text = ask(&mut client, declare, &arguments());
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': \
         received the value 'quorum' of type 'longstr' but current is none"
    );
    for (value, printed) in [
        (FieldValue::I32(5), "'5' of type 'signedint'"),
        ("fast".into(), "'fast' of type 'longstr'"),
    ] {
        let text = ask(&mut client, declare, &FieldTable::new().with("x-queue-type", value));
        let difference = format!("received the value {printed} but current is none");
        assert!(text.ends_with(&difference), "{text}");
    }
}

#[test]
fn a_message_may_fail_in_a_quorum_queue_twenty_times() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &arguments());
    client.publish("", "q", "poison");
    for nth in 0..=20_i64 {
        let delivery = client.get("q").expect("a message");
        let count = headers(&delivery).get("x-delivery-count").and_then(FieldValue::as_integer);
        assert_eq!(count, (nth > 0).then_some(nth));
        client.fail_on(delivery.tag);
    }
    assert_eq!(client.get("q"), None);
}

#[test]
fn a_quorum_queue_has_thirty_two_priorities() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &arguments());
    let given = [Some(5), Some(31), None, Some(0), Some(4), Some(255), Some(30), Some(3), Some(9)];
    for priority in given {
        let body = priority.map_or("none".to_owned(), |priority| priority.to_string());
        let message = Message::new("", "q", &body);
        client.send(message.with_properties(|properties| properties.priority = priority));
    }
    let expected = ["31", "255", "30", "9", "5", "none", "4", "3", "0"];
    assert_eq!(client.pop_all("q"), expected);
}

fn consume_with_priority(client: &mut Client, priority: i32) -> String {
    let entries = FieldTable::new().with("x-priority", priority).to_entries();
    client.consume_with(basic::Consume {
        queue: short("q"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

#[test]
fn a_higher_priority_takes_over_from_the_single_active_consumer_once_that_is_done() {
    let world = World::new();
    let mut publisher = world.connect();
    let single = arguments().with("x-single-active-consumer", true);
    declare_with(&mut publisher, "q", true, &single);
    let (mut low, mut high) = (world.connect(), world.connect());
    low.qos(2);
    consume_with_priority(&mut low, 0);
    publisher.fill("q", &["1", "2", "3", "4"]);
    assert_eq!(low.bodies(), ["1", "2"]);
    consume_with_priority(&mut high, 1);
    low.ack(1);
    assert_eq!((low.bodies().len(), high.bodies().len()), (0, 0));
    low.ack(2);
    assert_eq!(high.bodies(), ["3", "4"]);
    high.disconnect();
    assert_eq!(low.bodies(), ["3", "4"]);
}

#[test]
fn the_active_consumer_goes_on_when_the_one_to_take_over_has_gone() {
    let world = World::new();
    let mut publisher = world.connect();
    let single = arguments().with("x-single-active-consumer", true);
    declare_with(&mut publisher, "q", true, &single);
    let (mut low, mut high) = (world.connect(), world.connect());
    consume_with_priority(&mut low, 0);
    publisher.publish("", "q", "1");
    let tag = consume_with_priority(&mut high, 1);
    publisher.publish("", "q", "2");
    assert_eq!(low.bodies(), ["1"]);
    high.cancel(&tag);
    assert_eq!(low.bodies(), ["2"]);
    consume_with_priority(&mut high, 1);
    publisher.publish("", "q", "3");
    low.requeue(1);
    assert_eq!(low.bodies(), Vec::<String>::new());
    low.ack(2);
    assert_eq!(high.bodies(), ["1", "3"]);
    assert_eq!(high.heard(), [] as [Heard; 0]);
}

#[test]
fn a_consumer_of_a_quorum_queue_that_wants_to_be_alone_is_one_of_several() {
    let world = World::new();
    let (mut one, mut two) = (world.connect(), world.connect());
    declare_with(&mut one, "q", true, &arguments());
    declare_with(&mut one, "single", true, &arguments().with("x-single-active-consumer", true));
    for queue in ["q", "single"] {
        let shared = basic::Consume { queue: short(queue), ..Default::default() };
        let exclusive = basic::Consume { exclusive: true, ..shared };
        one.qos(1);
        two.qos(1);
        one.consume_with(exclusive);
        two.consume_with(exclusive);
        two.consume_with(shared);
        assert_eq!(world.counts(queue).2, 3);
        one.fill(queue, &["1", "2", "3"]);
        let seen = (one.bodies().len(), two.bodies().len());
        assert_eq!(seen, if queue == "q" { (1, 2) } else { (1, 0) });
    }
}
