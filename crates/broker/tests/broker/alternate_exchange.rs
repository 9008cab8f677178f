//! Alternate exchanges: where messages go that find no destination.

use crate::support::{Client, Heard, Message, World, owned, short};
use courser_codec::{FieldTable, FieldValue, Table, exchange};

const ALTERNATE: &str = "alternate-exchange";

/// Declares an exchange with an alternate one.
fn declare_with(client: &mut Client, name: &str, kind: &str, alternate: &str) -> Heard {
    declare_arguments(client, name, kind, FieldTable::new().with(ALTERNATE, alternate))
}

fn declare_arguments(client: &mut Client, name: &str, kind: &str, arguments: FieldTable) -> Heard {
    let entries = arguments.to_entries();
    client.call(exchange::Declare {
        exchange: short(name),
        kind: short(kind),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

fn declared(client: &mut Client, name: &str, kind: &str, alternate: &str) {
    assert_eq!(declare_with(client, name, kind, alternate), Heard::Done("exchange.declare-ok"));
}

#[test]
fn what_finds_no_destination_goes_to_the_alternate_exchange() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("spare", "fanout");
    declared(&mut client, "x", "direct", "spare");
    client.declare("bound");
    client.declare("rest");
    client.bind("bound", "x", "k");
    client.bind("rest", "spare", "");
    client.publish("x", "k", "for the bound one");
    client.publish("x", "other", "for the rest");
    assert_eq!(client.pop_all("bound"), ["for the bound one"]);
    assert_eq!(client.pop_all("rest"), ["for the rest"]);
}

#[test]
fn alternates_are_followed_from_one_to_the_next() {
    let world = World::new();
    let mut client = world.connect();
    declared(&mut client, "a", "direct", "b");
    declared(&mut client, "b", "topic", "c");
    client.declare_exchange("c", "fanout");
    client.declare("q");
    client.bind("q", "c", "");
    client.publish("a", "k", "far");
    assert_eq!(client.pop_all("q"), ["far"]);
}

#[test]
fn a_circle_of_alternates_comes_to_an_end() {
    let world = World::new();
    let mut client = world.connect();
    declared(&mut client, "a", "direct", "b");
    declared(&mut client, "b", "direct", "a");
    declared(&mut client, "self", "direct", "self");
    client.publish("a", "k", "lost");
    client.publish("self", "k", "lost");
    client.declare("q");
    client.bind("q", "b", "k");
    client.publish("a", "k", "found");
    assert_eq!(client.pop_all("q"), ["found"]);
}

#[test]
fn an_alternate_that_is_not_there_yet_is_used_once_it_is() {
    let world = World::new();
    let mut client = world.connect();
    declared(&mut client, "x", "direct", "later");
    client.publish("x", "k", "lost");
    client.declare_exchange("later", "fanout");
    client.declare("q");
    client.bind("q", "later", "");
    client.publish("x", "k", "kept");
    assert_eq!(client.pop_all("q"), ["kept"]);
}

#[test]
fn an_alternate_of_an_exchange_behind_another_is_used() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("front", "fanout");
    client.declare_exchange("spare", "fanout");
    declared(&mut client, "back", "direct", "spare");
    client.bind_exchange("back", "front", "");
    client.declare("q");
    client.bind("q", "spare", "");
    client.publish("front", "k", "on");
    assert_eq!(client.pop_all("q"), ["on"]);
}

#[test]
fn mandatory_is_met_by_a_queue_of_the_alternate_only() {
    let world = World::new();
    let mut client = world.connect();
    client.declare_exchange("spare", "fanout");
    declared(&mut client, "x", "direct", "spare");
    client.send(Message::new("x", "k", "back").mandatory());
    assert!(matches!(&client.heard()[..], [Heard::Return { .. }]));
    client.declare("q");
    client.bind("q", "spare", "");
    client.send(Message::new("x", "k", "kept").mandatory());
    assert_eq!(client.heard(), []);
    assert_eq!(client.pop_all("q"), ["kept"]);
}

#[test]
fn an_internal_exchange_can_be_an_alternate() {
    let world = World::new();
    let mut client = world.connect();
    let (exchange, kind) = (short("inner"), short("fanout"));
    client.call(exchange::Declare { exchange, kind, internal: true, ..Default::default() });
    declared(&mut client, "x", "direct", "inner");
    client.declare("q");
    client.bind("q", "inner", "");
    client.publish("x", "k", "in");
    assert_eq!(client.pop_all("q"), ["in"]);
}

#[test]
fn a_redeclare_with_another_alternate_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    declared(&mut client, "x", "direct", "spare");
    declared(&mut client, "x", "direct", "spare");
    let refusal = |client: &mut Client, answer| match answer {
        Heard::ChannelClosed(text) => {
            client.open_channel(1);
            text
        }
        other => panic!("not refused: {other:?}"),
    };
    let difference = "406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': received ";
    let answer = declare_with(&mut client, "x", "direct", "other");
    let text = refusal(&mut client, answer);
    assert_eq!(text, format!("{difference}'other' but current is 'spare'"));
    let void = FieldTable::new().with(ALTERNATE, FieldValue::Void);
    let answer = declare_arguments(&mut client, "x", "direct", void);
    assert_eq!(refusal(&mut client, answer), format!("{difference}none but current is 'spare'"));
    let answer = declare_arguments(&mut client, "x", "direct", FieldTable::new());
    let text = refusal(&mut client, answer);
    assert_eq!(
        text,
        format!("{difference}none but current is the value 'spare' of type 'longstr'")
    );
}

#[test]
fn an_alternate_that_is_no_text_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let mut arguments = FieldTable::new();
    arguments.insert(owned(ALTERNATE), FieldValue::I32(5));
    let answer = declare_arguments(&mut client, "x", "direct", arguments);
    let Heard::ChannelClosed(text) = answer else { panic!("not refused: {answer:?}") };
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    );
    assert!(!world.has_exchange("x"));
}
