//! `x-consistent-hash`: every key has its queue, by weight, and keeps it as far as possible.

use crate::support::{Client, Heard, Message, World, owned, short};
use courser_codec::{FieldTable, FieldValue, Table, exchange, queue};

fn declare(client: &mut Client, arguments: FieldTable) -> Heard {
    let entries = arguments.to_entries();
    client.call(exchange::Declare {
        exchange: short("x"),
        kind: short("x-consistent-hash"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

fn bound(world: &World, weights: &[&str]) -> Client {
    let mut client = world.connect();
    client.declare_exchange("x", "x-consistent-hash");
    for (nth, weight) in weights.iter().enumerate() {
        add(&mut client, nth, weight);
    }
    client
}

fn add(client: &mut Client, nth: usize, weight: &str) {
    let queue = format!("q{nth}");
    client.declare(&queue);
    client.bind(&queue, "x", weight);
}

/// Publishes one message for each key; which queue each went to.
fn ways(client: &mut Client, world: &World, queues: usize, keys: usize) -> Vec<usize> {
    let names: Vec<String> = (0..queues).map(|nth| format!("q{nth}")).collect();
    let mut ways = Vec::new();
    for key in 0..keys {
        client.publish("x", &format!("key.{key}"), "m");
        let got: Vec<usize> = (0..queues).filter(|nth| world.counts(&names[*nth]).0 > 0).collect();
        let [one] = got[..] else { panic!("{got:?} got a message") };
        client.pop(&names[one]);
        ways.push(one);
    }
    ways
}

fn shares(ways: &[usize], queues: usize) -> Vec<usize> {
    (0..queues).map(|queue| ways.iter().filter(|way| **way == queue).count()).collect()
}

#[test]
fn queues_get_messages_in_proportion_to_their_weights() {
    let world = World::new();
    let mut client = bound(&world, &["1", "1", "2", "4"]);
    let ways = ways(&mut client, &world, 4, 8000);
    let shares = shares(&ways, 4);
    for (share, expected) in shares.iter().zip([1000, 1000, 2000, 4000]) {
        assert!(share.abs_diff(expected) < 200, "{shares:?}");
    }
}

#[test]
fn a_new_queue_takes_its_share_and_moves_nothing_else() {
    let world = World::new();
    let mut client = bound(&world, &["1", "1", "1", "1"]);
    let before = ways(&mut client, &world, 4, 4000);
    add(&mut client, 4, "1");
    let after = ways(&mut client, &world, 5, 4000);
    let moved: Vec<_> =
        before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(moved.iter().all(|(_, now)| **now == 4), "only to the new one");
    assert!((700..900).contains(&moved.len()), "{} moved", moved.len());
    client.delete("q4");
    assert_eq!(ways(&mut client, &world, 4, 4000), before, "and back again");
}

#[test]
fn a_queue_that_goes_leaves_the_keys_of_the_others_where_they_are() {
    let world = World::new();
    let mut client = bound(&world, &["1", "3", "2"]);
    let before = ways(&mut client, &world, 3, 1000);
    client.unbind("q1", "x", "3");
    client.purge("q1");
    let after = ways(&mut client, &world, 3, 1000);
    for (before, after) in before.iter().zip(&after) {
        assert!(if *before == 1 { *after != 1 } else { before == after });
    }
}

#[test]
fn the_same_names_give_the_same_ways_in_another_broker() {
    let way = |order: [usize; 3]| {
        let world = World::new();
        let mut client = world.connect();
        client.declare_exchange("x", "x-consistent-hash");
        order.iter().for_each(|nth| add(&mut client, *nth, "1"));
        ways(&mut client, &world, 3, 100)
    };
    assert_eq!(way([0, 1, 2]), way([2, 0, 1]));
}

#[test]
fn the_greatest_weight_of_a_queue_that_is_bound_twice_counts() {
    let world = World::new();
    let mut client = bound(&world, &["50", "50"]);
    let before = ways(&mut client, &world, 2, 500);
    client.bind("q1", "x", "1");
    assert_eq!(ways(&mut client, &world, 2, 500), before);
    client.unbind("q1", "x", "50");
    let after = ways(&mut client, &world, 2, 500);
    assert!(shares(&after, 2)[0] > 450, "the second binding is left");
    client.bind("q1", "x", "50");
    assert_eq!(ways(&mut client, &world, 2, 500), before, "they may come back in any order");
}

#[test]
fn a_header_or_a_property_can_be_hashed_instead_of_the_routing_key() {
    type Change = fn(Message, &str) -> Message;
    let cases: [(&str, &str, Change); 4] = [
        ("hash-header", "customer", |message, text| {
            message.headers(FieldTable::new().with("customer", text))
        }),
        ("hash-property", "message_id", |message, text| {
            message.with_properties(|properties| properties.message_id = Some(owned(text)))
        }),
        ("hash-property", "correlation_id", |message, text| {
            message.with_properties(|properties| properties.correlation_id = Some(owned(text)))
        }),
        ("hash-property", "timestamp", |message, text| {
            let seconds = text.parse().ok();
            message.with_properties(|properties| properties.timestamp = seconds)
        }),
    ];
    for (argument, value, change) in cases {
        let world = World::new();
        let mut client = world.connect();
        let declared = declare(&mut client, FieldTable::new().with(argument, value));
        assert_eq!(declared, Heard::Done("exchange.declare-ok"));
        (0..3).for_each(|nth| add(&mut client, nth, "1"));
        for nth in 0..60 {
            client.send(change(Message::new("x", &format!("key {nth}"), "m"), "7"));
        }
        let mut counts = ["q0", "q1", "q2"].map(|queue| world.counts(queue).0);
        counts.sort_unstable();
        assert_eq!(counts, [0, 0, 60], "{value}: the routing key is not looked at");
        for nth in 0..300 {
            client.send(change(Message::new("x", "the same key", "m"), &nth.to_string()));
        }
        let counts = ["q0", "q1", "q2"].map(|queue| world.counts(queue).0);
        assert!(counts.iter().all(|count| *count >= 60), "{value}: {counts:?}");
    }
}

#[test]
fn a_binding_key_that_is_no_weight_is_refused() {
    let world = World::new();
    let mut client = bound(&world, &["1"]);
    let cases = [
        ("abc", "must be an integer: <<\"abc\">>"),
        ("", "must be an integer: <<>>"),
        ("0", "must be greater than 0"),
        ("-3", "must be greater than 0"),
    ];
    for (key, text) in cases {
        let (queue, exchange, routing_key) = (short("q0"), short("x"), short(key));
        let refused =
            client.refused(queue::Bind { queue, exchange, routing_key, ..Default::default() });
        assert_eq!(refused, format!("406 PRECONDITION_FAILED - The binding key {text}"));
    }
}

#[test]
fn arguments_that_say_nothing_clear_are_refused() {
    let world = World::new();
    let mut client = world.connect();
    let both = FieldTable::new().with("hash-header", "h").with("hash-property", "message_id");
    let mut number = FieldTable::new();
    number.insert(owned("hash-header"), FieldValue::I32(5));
    let cases = [
        (both, "hash-header and hash-property are mutually exclusive"),
        (FieldTable::new().with("hash-property", "foo"), "Unsupported property: foo"),
        (number, "invalid type 'signedint' for arg 'hash-header'"),
    ];
    for (arguments, text) in cases {
        let answer = declare(&mut client, arguments);
        assert_eq!(answer, Heard::ChannelClosed(format!("406 PRECONDITION_FAILED - {text}")));
        client.open_channel(1);
    }
    assert!(!world.has_exchange("x"));
}
