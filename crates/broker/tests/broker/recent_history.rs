//! `x-recent-history`: a queue that is bound later gets the last messages too.

use crate::support::{
    BATCH_BYTES, Client, Heard, Message, World, WorldOnDisk, declare_with, owned, short,
};
use courser_broker::ExchangeKind;
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, tx};
use courser_journal::testing::Call;
use courser_store::Record;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn declare(client: &mut Client, arguments: FieldTable) -> Heard {
    declare_as(client, "x", arguments, false)
}

fn declare_as(client: &mut Client, name: &str, arguments: FieldTable, durable: bool) -> Heard {
    let entries = arguments.to_entries();
    client.call(exchange::Declare {
        exchange: short(name),
        kind: short("x-recent-history"),
        durable,
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

/// A client of a broker that keeps the last three messages of the durable exchange x.
fn on_disk() -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-recent-history-length", 3);
    assert_eq!(declare_as(&mut client, "x", arguments, true), Heard::Done("exchange.declare-ok"));
    (world, client)
}

fn persistent(exchange: &str, body: &str) -> Message {
    Message::new(exchange, "k", body).with_properties(|of| of.delivery_mode = Some(2))
}

/// What a queue gets that is bound now.
fn remembered(world: &World, exchange: &str) -> Vec<String> {
    let mut client = world.connect();
    client.declare("later");
    client.bind("later", exchange, "");
    let bodies = client.pop_all("later");
    client.delete("later");
    bodies
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
fn a_queue_that_refuses_gets_no_more_of_it_than_it_has_room_for() {
    let (_world, mut client) = with_history(None);
    let full = FieldTable::new().with("x-max-length", 2).with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", false, &full);
    for body in ["1", "2", "3"] {
        client.publish("x", "", body);
    }
    client.bind("q", "x", "");
    assert_eq!(client.pop_all("q"), ["1", "2"]);
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
    let cases: [(FieldValue, &str); 8] = [
        ("".into(), "<<>>, 'x-recent-history-length' must be a positive integer"),
        (FieldValue::F64(1.5), "1.5, 'x-recent-history-length' must be a positive integer"),
        (
            FieldValue::Table(FieldTable::new()),
            "[], 'x-recent-history-length' must be a positive integer",
        ),
        (FieldValue::Timestamp(5), "5, 'x-recent-history-length' must be a positive integer"),
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

#[test]
fn what_is_persistent_is_remembered_after_a_restart() {
    let (mut world, mut client) = on_disk();
    for body in ["1", "2", "3", "4"] {
        client.send(persistent("x", body));
    }
    client.send(Message::new("x", "", "transient"));
    drop(client);
    assert_eq!(remembered(&world, "x"), ["3", "4", "transient"]);
    for _ in 0..2 {
        world.restart();
        assert_eq!(remembered(&world, "x"), ["3", "4"]);
        world.restart_from_checkpoint();
        assert_eq!(remembered(&world, "x"), ["3", "4"]);
    }
    let mut client = world.connect();
    client.send(persistent("x", "5"));
    client.send(persistent("x", "6"));
    drop(client);
    world.restart();
    assert_eq!(remembered(&world, "x"), ["4", "5", "6"]);
}

#[test]
fn a_confirmed_message_is_remembered_after_a_crash() {
    let (mut world, mut client) = on_disk();
    client.confirm_select();
    world.flush();
    client.send(persistent("x", "confirmed"));
    assert_eq!(client.heard(), [], "not before it is on the disk");
    world.flush();
    assert!(matches!(&client.heard()[..], [Heard::Confirm { through: 1, .. }]));
    client.send(persistent("x", "not confirmed"));
    world.crash(|| drop(client));
    assert_eq!(remembered(&world, "x"), ["confirmed"]);
}

#[test]
fn what_a_transaction_publishes_is_remembered_with_the_rest_of_it() {
    let (mut world, mut client) = on_disk();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.tx_select();
    client.send(persistent("x", "1"));
    client.send(Message::new("", "q", "2").with_properties(|of| of.delivery_mode = Some(2)));
    client.tell(tx::Commit {});
    world.flush();
    assert_eq!(client.heard(), [Heard::Done("tx.commit-ok")]);
    client.send(persistent("x", "rolled back"));
    client.rollback();
    drop(client);
    world.restart();
    assert_eq!((remembered(&world, "x"), world.counts("q")), (vec!["1".to_owned()], (1, 0, 0)));
}

#[test]
fn dead_letters_are_remembered_once() {
    let (mut world, mut client) = on_disk();
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "x");
    declare_with(&mut client, "dying", true, &arguments);
    client.send(Message::new("", "dying", "1").with_properties(|of| of.delivery_mode = Some(2)));
    let delivery_tag = client.get("dying").expect("a message").tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
    drop(client);
    assert_eq!(remembered(&world, "x"), ["1"]);
    world.restart();
    assert_eq!(remembered(&world, "x"), ["1"]);
    assert_eq!(world.counts("dying"), (0, 0, 0));
}

#[test]
fn an_exchange_that_is_deleted_takes_its_history_along() {
    let (mut world, mut client) = on_disk();
    client.send(persistent("x", "old"));
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    declare_as(&mut client, "x", FieldTable::new(), true);
    drop(client);
    assert_eq!(remembered(&world, "x"), [] as [&str; 0]);
    world.restart_from_checkpoint();
    assert_eq!(remembered(&world, "x"), [] as [&str; 0]);
}

#[test]
fn the_history_of_an_exchange_from_before_there_was_any_on_the_disk_begins_now() {
    let key = [&b"x\x01\x00/x"[..]].concat();
    let value = [ExchangeKind::RecentHistory as u8, 0];
    let mut world = WorldOnDisk::of(&[Record::Defined { key: &key, value: &value }]);
    let mut client = world.connect();
    client.send(persistent("x", "1"));
    drop(client);
    for _ in 0..2 {
        world.restart();
        assert_eq!(remembered(&world, "x"), ["1"]);
    }
}

/// A client of a broker with a durable exchange x that remembers thirty messages, more than the store takes
/// at once.
pub fn with_large_history() -> (WorldOnDisk, Client) {
    let (world, mut client) = on_disk();
    declare_as(&mut client, "large", FieldTable::new().with("x-recent-history-length", 100), true);
    let bytes = BATCH_BYTES as usize / 20;
    for nth in 0..30 {
        client.send(persistent("large", &format!("{nth}{}", ".".repeat(bytes))));
    }
    declare_with(&mut client, "later", true, &FieldTable::new());
    (world, client)
}

#[test]
fn a_history_of_more_than_the_store_takes_at_once_is_sent_in_portions() {
    let (world, mut client) = with_large_history();
    let appends = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        seen.fetch_add(usize::from(call == Call::Append), Ordering::Relaxed);
        None
    });
    client.bind("later", "large", "");
    assert!((5..20).contains(&appends.load(Ordering::Relaxed)), "{appends:?}");
    let bodies = client.pop_all("later");
    let names: Vec<&str> = bodies.iter().map(|body| body.trim_end_matches('.')).collect();
    assert_eq!(names, texts(0..30));
}

#[test]
fn what_is_published_while_a_queue_is_bound_comes_to_it_once() {
    let (world, mut client) = with_history(Some(500));
    let is_over = AtomicBool::new(false);
    let publish = |first: usize| {
        let mut client = world.connect();
        let mut number = first;
        while !is_over.load(Ordering::Relaxed) {
            client.publish("x", "", &number.to_string());
            number += 2;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| publish(0));
        scope.spawn(|| publish(1));
        for _ in 0..100 {
            client.declare("q");
            client.bind("q", "x", "");
            let bodies = client.pop_all("q");
            client.delete("q");
            let different: BTreeSet<&String> = bodies.iter().collect();
            if different.len() < bodies.len() {
                is_over.store(true, Ordering::Relaxed);
            }
            assert_eq!(different.len(), bodies.len());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
