//! `x-message-deduplication`: what says that it has been there before is dropped.

use crate::support::{Client, Heard, Message, Step, World, declare_with, short};
use courser_codec::{FieldTable, FieldValue, Table, exchange, queue};

fn message(exchange: &str, key: &str, id: impl Into<FieldValue>, body: &str) -> Message {
    let headers = FieldTable::new().with("x-deduplication-header", id);
    Message::new(exchange, key, body).headers(headers)
}

fn remembering(size: i32) -> FieldTable {
    FieldTable::new().with("x-message-deduplication", true).with("x-cache-size", size)
}

/// What a declaration of an exchange is answered.
fn declare_exchange(client: &mut Client, name: &str, kind: &str, arguments: &FieldTable) -> Heard {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    let declare = exchange::Declare {
        exchange: short(name),
        kind: short(kind),
        arguments,
        ..Default::default()
    };
    client.call(declare)
}

fn made() -> Heard {
    Heard::Done("exchange.declare-ok")
}

#[test]
fn a_queue_takes_a_message_once() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(10));
    client.read(&[
        Step::Publish(1, message("", "q", "a", "1")),
        Step::Publish(1, message("", "q", "b", "2")),
        Step::Publish(1, message("", "q", "a", "3")),
    ]);
    client.send(message("", "q", "b", "4"));
    client.send(Message::new("", "q", "unmarked"));
    client.send(Message::new("", "q", "unmarked").headers(FieldTable::new().with("a", 1)));
    assert_eq!(client.pop_all("q"), ["1", "2", "unmarked", "unmarked"]);
    client.send(message("", "q", "a", "5"));
    assert_eq!(client.pop("q"), None, "also after it was consumed");
}

#[test]
fn values_of_other_types_are_other_values() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(10));
    for id in [FieldValue::from("7"), FieldValue::I32(7), FieldValue::Bool(true)] {
        client.send(message("", "q", id.clone(), "x"));
        client.send(message("", "q", id, "x"));
    }
    assert_eq!(world.counts("q"), (3, 0, 0));
}

#[test]
fn other_queues_get_what_one_has_had() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("x", "fanout");
    declare_with(&mut client, "once", false, &remembering(10));
    client.declare("always");
    client.bind("once", "x", "");
    client.bind("always", "x", "");
    client.send(message("x", "", "a", "1"));
    client.send(message("x", "", "a", "2").with_properties(|properties| {
        properties.delivery_mode = Some(2);
    }));
    assert_eq!(client.pop_all("once"), ["1"]);
    assert_eq!(client.pop_all("always"), ["1", "2"]);
}

#[test]
fn the_last_so_many_are_remembered() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(2));
    for id in ["a", "b", "c", "b", "a", "c", "b"] {
        client.send(message("", "q", id, id));
    }
    assert_eq!(client.pop_all("q"), ["a", "b", "c", "a", "b"]);
}

#[test]
fn each_is_remembered_for_some_time() {
    let world = World::new();
    world.broker.set_time(10_000);
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-message-deduplication", true);
    declare_with(&mut client, "q", false, &arguments.with("x-cache-ttl", 1000));
    let own = |id: &str| {
        let headers = FieldTable::new().with("x-deduplication-header", id);
        Message::new("", "q", "own").headers(headers.with("x-cache-ttl", 5000))
    };
    client.send(message("", "q", "a", "1"));
    client.send(own("b"));
    world.broker.set_time(10_999);
    client.send(message("", "q", "a", "2"));
    world.broker.set_time(11_000);
    client.send(message("", "q", "a", "3"));
    client.send(own("b"));
    world.broker.set_time(15_000);
    client.send(message("", "q", "b", "4"));
    assert_eq!(client.pop_all("q"), ["1", "own", "3", "4"]);
    // What was remembered while the clock was ahead is not for as long as that.
    world.broker.set_time(1_000_000_000);
    client.send(message("", "q", "c", "5"));
    world.broker.set_time(1_000_000_000 - 500);
    client.send(message("", "q", "c", "6"));
    world.broker.set_time(16_000);
    client.send(message("", "q", "c", "7"));
    assert_eq!(client.pop_all("q"), ["5", "7"]);
}

#[test]
fn another_header_may_be_named() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = remembering(10).with("x-deduplication-header", "id");
    declare_with(&mut client, "q", false, &arguments);
    let marked = |name: &str| Message::new("", "q", name).headers(FieldTable::new().with(name, 1));
    for name in ["id", "x-deduplication-header", "id", "x-deduplication-header"] {
        client.send(marked(name));
    }
    let bodies = ["id", "x-deduplication-header", "x-deduplication-header"];
    assert_eq!(client.pop_all("q"), bodies);
}

#[test]
fn an_exchange_sends_a_message_on_once_and_everything_is_confirmed() {
    let world = World::new();
    let mut client = world.connect();
    assert_eq!(declare_exchange(&mut client, "x", "topic", &remembering(10)), made());
    let typed = FieldTable::new().with("x-cache-size", 10);
    assert_eq!(declare_exchange(&mut client, "y", "x-message-deduplication", &typed), made());
    client.declare("q");
    client.bind("q", "x", "k.#");
    client.bind("q", "y", "whatever");
    client.confirm_select();
    for name in ["x", "y"] {
        client.send(message(name, "k.1", "a", "1").mandatory());
        client.send(message(name, "k.2", "a", "2").mandatory());
        let confirms: Vec<Heard> = client.heard();
        assert!(
            matches!(&confirms[..], [Heard::Confirm { .. }, Heard::Confirm { .. }]),
            "{confirms:?}"
        );
    }
    assert_eq!(client.pop_all("q"), ["1", "1"]);
}

#[test]
fn what_found_no_queue_may_be_sent_again() {
    let world = World::new();
    let mut client = world.connect();
    declare_exchange(&mut client, "x", "direct", &remembering(10));
    client.send(message("x", "k", "a", "1").mandatory());
    assert!(matches!(&client.heard()[..], [Heard::Return { .. }]));
    client.declare("q");
    client.bind("q", "x", "k");
    client.send(message("x", "k", "a", "2").mandatory());
    assert_eq!(client.pop_all("q"), ["2"]);
}

#[test]
fn what_a_full_queue_has_refused_may_be_sent_again() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = remembering(10).with("x-max-length", 1).with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &arguments);
    client.send(message("", "q", "a", "1"));
    client.send(message("", "q", "b", "2"));
    assert_eq!(client.pop_all("q"), ["1"]);
    client.send(message("", "q", "a", "3"));
    client.send(message("", "q", "b", "4"));
    assert_eq!(client.pop_all("q"), ["4"]);
}

#[test]
fn what_was_rolled_back_may_be_sent_again() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(10));
    client.tx_select();
    client.send(message("", "q", "a", "1"));
    client.rollback();
    client.send(message("", "q", "a", "2"));
    client.send(message("", "q", "a", "3"));
    client.commit();
    client.send(message("", "q", "a", "4"));
    client.commit();
    assert_eq!(world.counts("q"), (1, 0, 0));
    assert_eq!(client.pop("q").as_deref(), Some("2"));
}

#[test]
fn further_keys_lead_a_message_to_a_queue_once() {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, &remembering(10));
    client.declare("other");
    let headers = FieldTable::new()
        .with("x-deduplication-header", "a")
        .with("CC", vec![FieldValue::from("q")]);
    for body in ["1", "2"] {
        client.send(Message::new("", "other", body).headers(headers.clone()));
    }
    assert_eq!(client.pop_all("q"), ["1"]);
    assert_eq!(client.pop_all("other"), ["1", "2"]);
}

#[test]
fn what_is_asked_has_to_make_sense() {
    let world = World::new();
    let mut client = world.connect();
    let queue = |client: &mut Client, arguments: &FieldTable| {
        let entries = arguments.to_entries();
        let arguments = Table::from_entries(&entries);
        client.refused(queue::Declare { queue: short("q"), arguments, ..Default::default() })
    };
    let text = queue(&mut client, &remembering(1_000_001));
    assert!(text.ends_with("'x-cache-size' for queue 'q' in vhost '/': {value_too_large,1000001}"));
    let mut exchange = |kind: &str, arguments: &FieldTable| {
        let answer = declare_exchange(&mut client, "x", kind, arguments);
        client.open_channel(1);
        let Heard::ChannelClosed(text) = answer else { panic!("not refused: {answer:?}") };
        text
    };
    let text = exchange("x-message-deduplication", &FieldTable::new());
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - Missing or invalid argument, 'x-cache-size' must be an integer \
         greater than 0"
    );
    let text = exchange("direct", &remembering(0));
    assert!(text.ends_with("'x-cache-size' for exchange 'x' in vhost '/': {value_zero,0}"));
    let text = exchange("direct", &remembering(5).with("x-cache-persistence", "disk"));
    assert!(text.ends_with("only 'memory' is supported by this broker"), "{text}");
}
