//! `x-delayed-message`: messages that wait for their time before they are routed.

use crate::support::{Client, Heard, Message, Step, World, owned, short};
use courser_codec::{FieldTable, FieldValue, Table, exchange, queue, tx};

pub const START_MS: u64 = 1_800_000_000_000;
/// Coarser than the coarsest bucket.
pub const DAYS_MS: u64 = 9 * 24 * 3600 * 1000;

pub fn declare_as(client: &mut Client, arguments: FieldTable, durable: bool) -> Heard {
    let entries = arguments.to_entries();
    client.call(exchange::Declare {
        exchange: short("x"),
        kind: short("x-delayed-message"),
        arguments: Table::from_entries(&entries),
        durable,
        ..Default::default()
    })
}

pub fn delayed_type(kind: &str) -> FieldTable {
    FieldTable::new().with("x-delayed-type", kind)
}

/// A client of a broker with a delayed direct exchange, to which the queue q is bound.
pub fn with_exchange(world: &World) -> Client {
    world.broker.set_time(START_MS);
    let mut client = world.connect();
    let declared = declare_as(&mut client, delayed_type("direct"), true);
    assert_eq!(declared, Heard::Done("exchange.declare-ok"));
    client.call(queue::Declare { queue: short("q"), durable: true, ..Default::default() });
    client.bind("q", "x", "k");
    client
}

pub fn delayed(body: &str, delay_ms: impl Into<FieldValue>) -> Message {
    Message::new("x", "k", body).headers(FieldTable::new().with("x-delay", delay_ms))
}

pub fn persistent(message: Message) -> Message {
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Lets time pass until `now_ms`, as the server's timer task does.
pub fn run_until(world: &World, now_ms: u64) {
    for _ in 0..1000 {
        match world.broker.tick(now_ms) {
            Some(next_ms) if next_ms <= now_ms => {}
            _ => return,
        }
    }
    panic!("the broker never comes to an end");
}

pub fn messages_delayed(world: &World) -> usize {
    world.vhost().exchange(b"x").expect("it is there").messages_delayed()
}

#[test]
fn a_message_arrives_when_its_time_has_come_and_not_before() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.send(delayed("later", 5000));
    run_until(&world, START_MS + 4999);
    assert_eq!(client.pop("q"), None);
    assert_eq!(messages_delayed(&world), 1);
    run_until(&world, START_MS + 5000);
    assert_eq!(client.pop_all("q"), ["later"]);
    assert_eq!(messages_delayed(&world), 0);
}

#[test]
fn a_consumer_that_waits_is_woken_for_it() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let mut consumer = world.connect();
    consumer.consume_no_ack("q");
    client.send(delayed("later", 100));
    run_until(&world, START_MS + 100);
    assert_eq!(consumer.bodies(), ["later"]);
}

#[test]
fn messages_arrive_in_the_order_of_their_times_then_of_their_coming() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let messages = [("c", 70_000), ("a", 10), ("d", 20_000_000), ("b1", 300), ("b2", 300)];
    let steps: Vec<_> =
        messages.iter().map(|(body, ms)| Step::Publish(1, delayed(body, *ms))).collect();
    client.read(&steps);
    run_until(&world, START_MS + 30_000_000);
    assert_eq!(client.pop_all("q"), ["a", "b1", "b2", "c", "d"]);
}

#[test]
fn every_time_is_kept_to_the_millisecond() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let times = [1, 255, 256, 257, 65_535, 65_536, 65_537, 16_777_215, 16_777_217, DAYS_MS];
    for time in times {
        client.send(delayed(&time.to_string(), time as i64));
    }
    for time in times {
        run_until(&world, START_MS + time - 1);
        assert_eq!(client.pop("q"), None, "{time}");
        run_until(&world, START_MS + time);
        assert_eq!(client.pop_all("q"), [time.to_string()]);
    }
    assert_eq!(world.broker.tick(START_MS + DAYS_MS), None);
}

#[test]
fn thousands_that_are_due_at_once_all_arrive_a_bounded_number_a_tick() {
    let world = World::new();
    let mut client = with_exchange(&world);
    for nth in 0..20_000 {
        client.send(delayed("m", 1000 + nth % 3));
    }
    let next_ms = world.broker.tick(START_MS + 2000);
    assert!(next_ms.is_some_and(|next_ms| next_ms <= START_MS + 2000), "there is more to do");
    run_until(&world, START_MS + 2000);
    assert_eq!(world.counts("q").0, 20_000);
}

#[test]
fn without_a_delay_a_message_goes_on_at_once() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let unchanged: [FieldValue; 6] = [
        0.into(),
        (-500).into(),
        "soon".into(),
        FieldValue::Bool(true),
        FieldValue::I64(i64::MAX),
        FieldValue::Void,
    ];
    client.publish("x", "k", "plain");
    assert_eq!(client.pop_all("q"), ["plain"]);
    for value in unchanged {
        client.send(delayed("now", value.clone()));
        let headers = client.get("q").expect("a message").properties.headers.expect("headers");
        assert_eq!(headers.get("x-delay"), Some(&value));
    }
}

#[test]
fn the_delay_can_be_of_any_number_type_or_text() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let values: [FieldValue; 6] = [
        FieldValue::U8(100),
        FieldValue::I16(100),
        FieldValue::U32(100),
        FieldValue::I64(100),
        FieldValue::F64(99.7),
        "100".into(),
    ];
    for value in values {
        client.send(delayed("m", value));
    }
    run_until(&world, START_MS + 99);
    assert_eq!(client.pop("q"), None);
    run_until(&world, START_MS + 100);
    assert_eq!(world.counts("q").0, 6);
}

#[test]
fn who_gets_it_sees_the_delay_with_the_sign_turned() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let headers = FieldTable::new().with("a", 1).with("x-delay", 5000).with("b", "text");
    let message = Message::new("x", "k", "m").headers(headers);
    client.send(message.with_properties(|properties| properties.message_id = Some(owned("id"))));
    run_until(&world, START_MS + 5000);
    let delivery = client.get("q").expect("a message");
    let expected = FieldTable::new().with("a", 1).with("x-delay", -5000).with("b", "text");
    assert_eq!(delivery.properties.headers, Some(expected));
    assert_eq!(delivery.properties.message_id, Some(owned("id")));
    assert_eq!((&*delivery.exchange, &*delivery.routing_key), ("x", "k"));
    assert!(!delivery.redelivered);
}

#[test]
fn it_is_routed_by_the_bindings_of_its_time() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.send(delayed("m", 100));
    client.unbind("q", "x", "k");
    client.declare("later");
    client.bind("later", "x", "k");
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("later"), ["m"]);
    assert_eq!(client.pop("q"), None);
}

#[test]
fn any_type_can_be_delayed() {
    for (kind, key) in
        [("fanout", ""), ("topic", "#"), ("x-consistent-hash", "1"), ("x-random", "")]
    {
        let world = World::new();
        world.broker.set_time(START_MS);
        let mut client = world.connect();
        declare_as(&mut client, delayed_type(kind), false);
        client.declare("q");
        client.bind("q", "x", key);
        client.send(delayed("m", 100));
        assert_eq!(client.pop("q"), None);
        run_until(&world, START_MS + 100);
        assert_eq!(client.pop_all("q"), ["m"], "{kind}");
    }
}

#[test]
fn a_delayed_exchange_behind_another_exchange_delays_too_but_only_once() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.declare_exchange("front", "fanout");
    client.bind_exchange("x", "front", "");
    client.declare("direct");
    client.bind("direct", "front", "");
    let headers = FieldTable::new().with("x-delay", 100);
    client.send(Message::new("front", "k", "m").headers(headers));
    assert_eq!(client.pop_all("direct"), ["m"]);
    assert_eq!(client.pop("q"), None);
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("q"), ["m"]);
}

#[test]
fn a_mandatory_message_that_waits_is_not_returned() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.unbind("q", "x", "k");
    client.send(delayed("m", 100).mandatory());
    run_until(&world, START_MS + 100);
    assert_eq!(client.heard(), []);
    client.send(Message::new("x", "k", "now").mandatory());
    assert!(matches!(&client.heard()[..], [Heard::Return { .. }]));
}

#[test]
fn what_finds_no_queue_in_its_time_goes_to_the_alternate_exchange() {
    let world = World::new();
    world.broker.set_time(START_MS);
    let mut client = world.connect();
    declare_as(&mut client, delayed_type("direct").with("alternate-exchange", "spare"), true);
    client.declare_exchange("spare", "fanout");
    client.declare("rest");
    client.bind("rest", "spare", "");
    client.send(delayed("m", 100));
    assert_eq!(client.pop("rest"), None, "not while it waits");
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("rest"), ["m"]);
}

#[test]
fn copies_wait_too_and_bcc_is_not_shown() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.declare("bcc");
    client.bind("bcc", "x", "hidden");
    let bcc = FieldValue::Array(vec!["hidden".into()]);
    let headers = FieldTable::new().with("x-delay", 100).with("BCC", bcc);
    client.send(Message::new("x", "k", "m").headers(headers));
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("bcc"), ["m"]);
    let headers = client.get("q").expect("a message").properties.headers;
    assert_eq!(headers, Some(FieldTable::new().with("x-delay", -100)));
}

#[test]
fn a_transaction_begins_to_wait_at_its_commit() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.call(tx::Select {});
    client.send(persistent(delayed("durable", 100)));
    client.send(delayed("transient", 100));
    run_until(&world, START_MS + 1000);
    assert_eq!(messages_delayed(&world), 0);
    assert_eq!(client.call(tx::Commit {}), Heard::Done("tx.commit-ok"));
    assert_eq!(messages_delayed(&world), 2);
    run_until(&world, START_MS + 1100);
    assert_eq!(world.counts("q").0, 2);
}

#[test]
fn deleting_the_exchange_drops_what_waits() {
    let world = World::new();
    let mut client = with_exchange(&world);
    client.send(delayed("m", 100));
    client.call(exchange::Delete { exchange: short("x"), ..Default::default() });
    assert_eq!(world.broker.tick(START_MS + 100), None);
    assert_eq!(client.pop("q"), None);
}

#[test]
fn a_type_that_cannot_be_delayed_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    let mut number = FieldTable::new();
    number.insert(owned("x-delayed-type"), FieldValue::I32(5));
    let exists = "Invalid argument, 'x-delayed-type' must be an existing exchange type";
    let cases = [
        (FieldTable::new(), exists),
        (number, exists),
        (delayed_type("foo"), "unknown exchange type 'foo'"),
        (
            delayed_type("x-delayed-message"),
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
        (
            delayed_type("x-recent-history"),
            "Invalid argument, 'x-recent-history' can't be used for 'x-delayed-type'",
        ),
        (
            delayed_type("x-consistent-hash").with("hash-property", "foo"),
            "Unsupported property: foo",
        ),
    ];
    for (arguments, text) in cases {
        let answer = declare_as(&mut client, arguments, true);
        assert_eq!(answer, Heard::ChannelClosed(format!("406 PRECONDITION_FAILED - {text}")));
        client.open_channel(1);
    }
}

#[test]
fn a_queue_that_drops_what_it_had_does_so_when_the_time_has_come() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let arguments = FieldTable::new().with("x-message-deduplication", true);
    let arguments = arguments.with("x-cache-size", 10).to_entries();
    let declare = queue::Declare {
        queue: short("once"),
        arguments: Table::from_entries(&arguments),
        ..Default::default()
    };
    let declared = client.call(declare);
    assert!(matches!(declared, Heard::DeclareOk { .. }), "{declared:?}");
    client.bind("once", "x", "k");
    for _ in 0..2 {
        let headers = FieldTable::new().with("x-delay", 100).with("x-deduplication-header", "id");
        client.send(Message::new("x", "k", "m").headers(headers));
    }
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("once"), ["m"]);
    assert_eq!(client.pop_all("q"), ["m", "m"]);
}

#[test]
fn a_full_queue_that_refuses_is_passed_over() {
    let world = World::new();
    let mut client = with_exchange(&world);
    let arguments = FieldTable::new().with("x-max-length", 1).with("x-overflow", "reject-publish");
    let entries = arguments.to_entries();
    let (queue, arguments) = (short("small"), Table::from_entries(&entries));
    client.call(queue::Declare { queue, arguments, ..Default::default() });
    client.bind("small", "x", "k");
    for body in ["1", "2"] {
        client.send(delayed(body, 100));
    }
    run_until(&world, START_MS + 100);
    assert_eq!(client.pop_all("small"), ["1"]);
    assert_eq!(client.pop_all("q"), ["1", "2"]);
}
