//! `x-recent-history`: whoever is bound later gets the last messages too.

use crate::support::{Client, Heard, Message, World, owned, short};
use courser_codec::{FieldTable, FieldValue, Table, exchange};

fn declare(client: &mut Client, arguments: FieldTable) -> Heard {
    let entries = arguments.to_entries();
    client.call(exchange::Declare {
        exchange: short("x"),
        kind: short("x-recent-history"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

fn with_history(length: Option<i32>) -> (World, Client) {
    let world = World::new();
    let mut client = world.connect();
    let mut arguments = FieldTable::new();
    length.into_iter().for_each(|length| {
        arguments.insert(owned("x-recent-history-length"), FieldValue::I32(length));
    });
    assert_eq!(declare(&mut client, arguments), Heard::Done("exchange.declare-ok"));
    (world, client)
}

fn texts(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|nth| nth.to_string()).collect()
}

#[test]
fn a_new_queue_gets_the_last_twenty_messages() {
    let (_world, mut client) = with_history(None);
    for text in texts(0..25) {
        client.publish("x", "any key", &text);
    }
    client.declare("q");
    client.bind("q", "x", "other");
    assert_eq!(client.pop_all("q"), texts(5..25));
    client.publish("x", "", "new");
    assert_eq!(client.pop_all("q"), ["new"], "and then what comes, like any other");
}

#[test]
fn the_length_can_be_chosen() {
    let (_world, mut client) = with_history(Some(3));
    for text in texts(0..5) {
        client.publish("x", "", &text);
    }
    client.declare("q");
    client.bind("q", "x", "");
    assert_eq!(client.pop_all("q"), texts(2..5));
}

#[test]
fn messages_keep_their_exchange_key_and_properties() {
    let (_world, mut client) = with_history(None);
    client.send(Message::new("x", "k", "m").headers(FieldTable::new().with("h", 1)));
    client.declare("q");
    client.bind("q", "x", "");
    let delivery = client.get("q").expect("a message");
    assert_eq!((&*delivery.exchange, &*delivery.routing_key), ("x", "k"));
    assert_eq!(delivery.properties.headers, Some(FieldTable::new().with("h", 1)));
    assert!(!delivery.redelivered);
}

#[test]
fn a_message_can_ask_not_to_be_remembered() {
    let (_world, mut client) = with_history(None);
    let values: [FieldValue; 4] =
        [FieldValue::Bool(true), FieldValue::Bool(false), 1.into(), "true".into()];
    for (nth, value) in values.into_iter().enumerate() {
        let headers = FieldTable::new().with("x-recent-history-no-store", value);
        client.send(Message::new("x", "", nth.to_string()).headers(headers));
    }
    client.declare("q");
    client.bind("q", "x", "");
    assert_eq!(client.pop_all("q"), texts(1..4));
}

#[test]
fn the_same_binding_again_brings_nothing_and_another_one_everything() {
    let (_world, mut client) = with_history(None);
    client.publish("x", "", "m");
    client.declare("q");
    client.bind("q", "x", "a");
    client.bind("q", "x", "a");
    assert_eq!(client.pop_all("q"), ["m"]);
    client.bind("q", "x", "b");
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn an_exchange_that_is_bound_passes_the_history_on() {
    let (_world, mut client) = with_history(None);
    client.publish("x", "k", "m");
    client.publish("x", "other", "not for q");
    client.declare_exchange("next", "direct");
    client.declare("q");
    client.bind("q", "next", "k");
    client.bind_exchange("next", "x", "");
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn what_passes_through_from_another_exchange_is_remembered() {
    let (_world, mut client) = with_history(None);
    client.declare_exchange("front", "fanout");
    client.bind_exchange("x", "front", "");
    client.publish("front", "", "m");
    client.declare("q");
    client.bind("q", "x", "");
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn a_consumer_gets_the_history_too() {
    let (world, mut client) = with_history(None);
    client.publish("x", "", "m");
    client.declare("q");
    let mut consumer = world.connect();
    consumer.consume_no_ack("q");
    client.bind("q", "x", "");
    assert_eq!(consumer.bodies(), ["m"]);
}

#[test]
fn a_mandatory_message_without_a_queue_is_returned_and_remembered() {
    let (_world, mut client) = with_history(None);
    client.send(Message::new("x", "", "m").mandatory());
    assert!(matches!(&client.heard()[..], [Heard::Return { .. }]));
    client.declare("q");
    client.bind("q", "x", "");
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn copies_that_are_not_shown_are_not_shown_later_either() {
    let (_world, mut client) = with_history(None);
    let bcc = FieldValue::Array(vec!["b".into()]);
    client.send(Message::new("x", "", "m").headers(FieldTable::new().with("BCC", bcc)));
    client.declare("q");
    client.bind("q", "x", "");
    assert_eq!(client.get("q").expect("a message").properties.headers, Some(FieldTable::new()));
}

#[test]
fn a_length_that_is_none_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let number = |number: i32| FieldValue::I32(number);
    let cases: [(FieldValue, &str); 4] = [
        (number(0), "0, 'x-recent-history-length' must be a positive integer"),
        (number(-1), "-1, 'x-recent-history-length' must be a positive integer"),
        ("5".into(), "<<\"5\">>, 'x-recent-history-length' must be a positive integer"),
        (number(200_000), "200000, 'x-recent-history-length' must be at most 100000"),
    ];
    for (length, text) in cases {
        let answer =
            declare(&mut client, FieldTable::new().with("x-recent-history-length", length));
        let text = format!("406 PRECONDITION_FAILED - Invalid argument {text}");
        assert_eq!(answer, Heard::ChannelClosed(text));
        client.open_channel(1);
    }
}
