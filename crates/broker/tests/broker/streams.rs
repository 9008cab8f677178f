//! Streams: many readers of one log, each from its own place.

use crate::support::{Client, Delivery, Heard, Message, Step, World, short};
use courser_codec::{FieldTable, FieldValue, Table, basic, queue};

/// Declares a stream with these arguments; the answer.
pub fn declare(client: &mut Client, name: &str, arguments: FieldTable) -> Heard {
    let entries = arguments.with("x-queue-type", "stream").to_entries();
    let answer = client.call(queue::Declare {
        queue: short(name),
        durable: true,
        arguments: Table::from_entries(&entries),
        ..Default::default()
    });
    if matches!(answer, Heard::ChannelClosed(_)) {
        client.open_channel(1);
    }
    answer
}

/// Declares a stream that nothing is special about.
pub fn stream(client: &mut Client, name: &str) {
    assert!(matches!(declare(client, name, FieldTable::new()), Heard::DeclareOk { .. }));
}

/// Consumes with these arguments; the answer.
pub fn try_read(client: &mut Client, name: &str, arguments: &FieldTable) -> Heard {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    client.call(basic::Consume { queue: short(name), arguments, ..Default::default() })
}

/// Consumes from a place in a stream.
pub fn read(client: &mut Client, name: &str, start: impl Into<FieldValue>) -> String {
    let arguments = FieldTable::new().with("x-stream-offset", start);
    match try_read(client, name, &arguments) {
        Heard::ConsumeOk(tag) => tag,
        other => panic!("no consumer: {other:?}"),
    }
}

/// The offset that a delivery carries.
pub fn offset(delivery: &Delivery) -> i64 {
    let headers = delivery.properties.headers.as_ref().expect("headers");
    match headers.get("x-stream-offset") {
        Some(FieldValue::I64(offset)) => *offset,
        other => panic!("no offset: {other:?}"),
    }
}

/// Offsets and bodies of what came.
pub fn messages(client: &mut Client) -> Vec<(i64, String)> {
    let deliveries = client.deliveries();
    deliveries.iter().map(|one| (offset(one), one.text().to_owned())).collect()
}

pub fn reader(world: &World, prefetch: u16) -> Client {
    let mut client = world.connect();
    client.qos(prefetch);
    client
}

/// A stream `s` with the messages `0`, `1` and so on.
pub fn filled(world: &World, count: usize) -> Client {
    let mut client = world.connect();
    stream(&mut client, "s");
    fill(&mut client, 0..count);
    client
}

pub fn fill(client: &mut Client, numbers: std::ops::Range<usize>) {
    let message = |number: usize| Step::Publish(1, Message::new("", "s", number.to_string()));
    let steps: Vec<_> = numbers.map(message).collect();
    client.read(&steps);
}

pub fn expected(numbers: std::ops::Range<usize>) -> Vec<(i64, String)> {
    numbers.map(|number| (number as i64, number.to_string())).collect()
}

#[test]
fn every_reader_gets_every_message_with_its_offset() {
    let world = World::new();
    let mut publisher = filled(&world, 3);
    let mut early = reader(&world, 100);
    read(&mut early, "s", "first");
    assert_eq!(messages(&mut early), expected(0..3));
    let mut late = reader(&world, 100);
    read(&mut late, "s", "first");
    fill(&mut publisher, 3..5);
    assert_eq!(messages(&mut early), expected(3..5));
    assert_eq!(messages(&mut late), expected(0..5));
    assert_eq!(world.counts("s"), (5, 0, 2));
}

#[test]
fn a_reader_begins_where_it_asks_to() {
    let world = World::new();
    let mut publisher = filled(&world, 3000);
    let from = |start: FieldValue, first: usize| {
        let mut client = reader(&world, 0xffff);
        read(&mut client, "s", start);
        assert_eq!(messages(&mut client), expected(first..3000));
    };
    from("first".into(), 0);
    from("last".into(), 2999);
    from("next".into(), 3000);
    from(0.into(), 0);
    from((-1).into(), 0);
    from(1023.into(), 1023);
    from(1024_i64.into(), 1024);
    from(2998_i64.into(), 2998);
    let mut client = reader(&world, 100);
    read(&mut client, "s", 3001);
    let mut other = reader(&world, 100);
    assert!(matches!(try_read(&mut other, "s", &FieldTable::new()), Heard::ConsumeOk(_)));
    fill(&mut publisher, 3000..3001);
    fill(&mut publisher, 3001..3002);
    assert_eq!(messages(&mut client), expected(3001..3002));
    assert_eq!(messages(&mut other), expected(3000..3002));
}

#[test]
fn a_reader_begins_at_a_time() {
    let world = World::new();
    let mut publisher = filled(&world, 0);
    for number in 0..100 {
        world.broker.set_time(1_000_000 + number as u64 / 2 * 1500);
        fill(&mut publisher, number..number + 1);
    }
    let from = |start: FieldValue, first: usize| {
        let mut client = reader(&world, 100);
        read(&mut client, "s", start);
        assert_eq!(messages(&mut client), expected(first..100), "{first}");
    };
    from(FieldValue::Timestamp(0), 0);
    from(FieldValue::Timestamp(1000), 0);
    from(FieldValue::Timestamp(1001), 2);
    from(FieldValue::Timestamp(1003), 4);
    from(FieldValue::Timestamp(2000), 100);
    // The last came at 1,073,500, which is now.
    from("3s".into(), 94);
    from("1m".into(), 18);
    from("1h".into(), 0);
}

#[test]
fn an_acknowledgement_gives_credit_and_takes_nothing_away() {
    let world = World::new();
    let _publisher = filled(&world, 10);
    let mut client = reader(&world, 3);
    read(&mut client, "s", "first");
    assert_eq!(messages(&mut client), expected(0..3));
    client.ack(2);
    assert_eq!(messages(&mut client), expected(3..4));
    client.requeue(1);
    assert_eq!(messages(&mut client), expected(4..5));
    client.tell(basic::Reject { delivery_tag: 3, requeue: false });
    assert_eq!(messages(&mut client), expected(5..6));
    client.ack_through(6);
    assert_eq!(messages(&mut client), expected(6..9));
    assert_eq!(world.counts("s").0, 10);
    client.close_channel(1);
    client.open_channel(1);
    client.qos(100);
    read(&mut client, "s", "first");
    let deliveries = client.deliveries();
    assert_eq!(deliveries.len(), 10);
    assert!(deliveries.iter().all(|delivery| !delivery.redelivered));
}

#[test]
fn a_slow_reader_holds_up_no_other() {
    let world = World::new();
    let mut publisher = filled(&world, 0);
    let mut slow = reader(&world, 1);
    read(&mut slow, "s", "first");
    let mut fast = reader(&world, 0xffff);
    read(&mut fast, "s", "first");
    fill(&mut publisher, 0..20_000);
    assert_eq!(messages(&mut fast), expected(0..20_000));
    assert_eq!(messages(&mut slow), expected(0..1));
    for number in 1..5_usize {
        slow.ack(number as u64);
        assert_eq!(messages(&mut slow), expected(number..number + 1));
    }
}

#[test]
fn readers_of_one_connection_and_of_one_channel_have_places_of_their_own() {
    let world = World::new();
    let mut publisher = filled(&world, 4);
    let mut client = reader(&world, 100);
    let first = read(&mut client, "s", "first");
    let last = read(&mut client, "s", "last");
    fill(&mut publisher, 4..5);
    let deliveries = client.deliveries();
    let of = |tag: &str| -> Vec<i64> {
        deliveries.iter().filter(|one| one.consumer == tag).map(offset).collect()
    };
    assert_eq!(of(&first), [0, 1, 2, 3, 4]);
    assert_eq!(of(&last), [3, 4]);
    client.cancel(&first);
    fill(&mut publisher, 5..6);
    assert_eq!(messages(&mut client), expected(5..6));
    client.cancel(&last);
    fill(&mut publisher, 6..7);
    assert_eq!(messages(&mut client), []);
    let again = read(&mut client, "s", 5);
    assert_eq!(messages(&mut client), expected(5..7));
    client.cancel(&again);
}

#[test]
fn stopped_flow_stops_a_reader() {
    let world = World::new();
    let _publisher = filled(&world, 4);
    let mut client = reader(&world, 100);
    let stop = courser_codec::channel::Flow { active: false };
    assert_eq!(client.call(stop), Heard::FlowOk(false));
    read(&mut client, "s", "first");
    assert_eq!(messages(&mut client), []);
    let go_on = courser_codec::channel::Flow { active: true };
    assert_eq!(client.call(go_on), Heard::FlowOk(true));
    assert_eq!(messages(&mut client), expected(0..4));
}

#[test]
fn readers_are_told_when_the_stream_is_deleted() {
    let world = World::new();
    let mut client = filled(&world, 2);
    let mut other = reader(&world, 10);
    let tag = read(&mut other, "s", "next");
    let if_empty = queue::Delete { queue: short("s"), if_empty: true, ..Default::default() };
    assert_eq!(
        client.refused(if_empty),
        "406 PRECONDITION_FAILED - queue 's' in vhost '/' not empty"
    );
    assert_eq!(client.delete("s"), Heard::Count(2));
    assert_eq!(other.heard(), [Heard::Cancelled(tag)]);
    stream(&mut client, "s");
    fill(&mut client, 0..1);
    assert_eq!(other.heard(), []);
    assert_eq!(world.counts("s"), (1, 0, 0));
}

#[test]
fn a_reader_gets_only_what_passes_its_filter() {
    let world = World::new();
    let mut publisher = filled(&world, 0);
    let with = |value: Option<&str>| {
        let mut headers = FieldTable::new().with("x", 1);
        if let Some(value) = value {
            headers = headers.with("x-stream-filter-value", value);
        }
        Message::new("", "s", value.unwrap_or("none")).headers(headers)
    };
    let values = [Some("a"), None, Some("b"), Some("c")];
    for round in 0..2000 {
        publisher.send(with(values[round % 4]));
    }
    let count = |arguments: FieldTable| {
        let mut client = reader(&world, 0xffff);
        let arguments = arguments.with("x-stream-offset", "first");
        assert!(matches!(try_read(&mut client, "s", &arguments), Heard::ConsumeOk(_)));
        let mut bodies: Vec<String> = Vec::new();
        // A reader that finds little goes on when others on its connection had their turn.
        for _ in 0..10 {
            bodies.append(&mut client.bodies());
        }
        bodies.sort();
        let found = bodies.len();
        bodies.dedup();
        (found, bodies.join(","))
    };
    let filter = |value: FieldValue| FieldTable::new().with("x-stream-filter", value);
    assert_eq!(count(filter("a".into())), (500, "a".into()));
    assert_eq!(count(filter("z".into())), (0, String::new()));
    let both = || FieldValue::Array(vec!["a".into(), "c".into()]);
    assert_eq!(count(filter(both())), (1000, "a,c".into()));
    let too = filter(both()).with("x-stream-match-unfiltered", true);
    assert_eq!(count(too), (1500, "a,c,none".into()));
    assert_eq!(count(FieldTable::new()), (2000, "a,b,c,none".into()));
}

#[test]
fn the_offset_stands_among_the_other_properties() {
    let world = World::new();
    let mut publisher = filled(&world, 0);
    let full = Message::new("", "s", "full").with_properties(|properties| {
        properties.content_type = Some(crate::support::owned("text/plain"));
        properties.content_encoding = Some(crate::support::owned("utf-8"));
        properties.priority = Some(4);
        properties.message_id = Some(crate::support::owned("m"));
        let headers = FieldTable::new().with("a", 1).with("x-stream-offset", 77_i64);
        properties.headers = Some(headers.with("b", "two"));
    });
    publisher.send(full);
    publisher.send(Message::new("", "s", "bare"));
    let mut client = reader(&world, 10);
    read(&mut client, "s", "first");
    let deliveries = client.deliveries();
    let [full, bare] = &deliveries[..] else { panic!("{deliveries:?}") };
    let expected = FieldTable::new().with("x-stream-offset", 0_i64).with("a", 1).with("b", "two");
    assert_eq!(full.properties.headers, Some(expected));
    assert_eq!(full.properties.content_type, Some(crate::support::owned("text/plain")));
    assert_eq!(full.properties.content_encoding, Some(crate::support::owned("utf-8")));
    assert_eq!(full.properties.priority, Some(4));
    assert_eq!(full.properties.message_id, Some(crate::support::owned("m")));
    assert_eq!((offset(bare), bare.text()), (1, "bare"));
}

#[test]
fn a_large_message_is_read_in_frames() {
    let world = World::new();
    let mut client = filled(&world, 0);
    let body = "x".repeat(300_000);
    client.read(&[Step::PublishLarge(1, Message::new("", "s", &body))]);
    let mut other = reader(&world, 10);
    read(&mut other, "s", "first");
    assert_eq!(messages(&mut other), [(0, body)]);
}
