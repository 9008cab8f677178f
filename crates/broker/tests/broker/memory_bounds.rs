//! What clients make the broker hold besides waiting messages: it is counted, bounded and given back.

use crate::delayed::{delayed, with_exchange};
use crate::streams::{stream, try_read};
use crate::support::{Heard, Message, Step, World, declare_with, short};
use courser_broker::Limits;
use courser_codec::{FieldTable, FieldValue, Table, basic, exchange, queue};
use std::sync::Arc;

pub fn world_of(memory_high_bytes: u64) -> World {
    World::with(Limits { memory_high_bytes, ..Limits::default() })
}

/// A message of a kilobyte.
fn kilobyte() -> Message {
    Message::new("", "q", "x".repeat(1024))
}

#[test]
fn what_a_transaction_holds_counts_until_it_ends() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    // What is remembered of routes counts too.
    client.fill("q", &["x"]);
    client.pop("q");
    let before = world.broker.memory_used_bytes();
    client.tx_select();
    for _ in 0..100 {
        client.send(kilobyte());
    }
    let open = world.broker.memory_used_bytes();
    assert!((102_400..150_000).contains(&(open - before)), "{before}, {open}");
    client.rollback();
    assert_eq!(world.broker.memory_used_bytes(), before);
    client.send(kilobyte());
    client.commit();
    assert_eq!(client.pop("q").map(|body| body.len()), Some(1024));
    client.commit();
    assert_eq!(world.broker.memory_used_bytes(), before);
    client.send(kilobyte());
    client.disconnect();
    assert!(world.broker.memory_used_bytes() < before, "its channel is gone too");
}

#[test]
fn a_large_body_in_a_transaction_counts_once_and_for_what_transactions_may_have() {
    const LARGE: usize = 1_000_000;
    let world = world_of(10_000_000);
    let mut client = world.connect();
    client.declare("q");
    client.tx_select();
    let before = world.broker.memory_used_bytes();
    let large = || [Step::PublishLarge(1, Message::new("", "q", vec![b'x'; LARGE]))];
    client.read(&large());
    let open = world.broker.memory_used_bytes() - before;
    assert!((LARGE as u64..LARGE as u64 + 10_000).contains(&open), "{open}");
    client.read(&large());
    assert_eq!(client.heard(), []);
    client.read(&large());
    let heard = format!("{:?}", client.heard());
    assert!(heard.contains("memory limit (2500000 bytes) of open transactions"), "{heard}");
    assert_eq!(world.broker.memory_used_bytes() / LARGE as u64, 0, "its channel is closed");
    client.open_channel(1);
    client.tx_select();
    client.read(&large());
    client.commit();
    let committed = world.broker.memory_used_bytes() - before;
    assert!((LARGE as u64..LARGE as u64 + 10_000).contains(&committed), "{committed}");
}

#[test]
fn a_transaction_raises_the_alarm_with_what_waits() {
    let world = world_of(1_000_000);
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    for _ in 0..820 {
        other.send(kilobyte());
    }
    assert_eq!(world.broker.alarm(), None);
    client.tx_select();
    for _ in 0..180 {
        client.send(kilobyte());
    }
    assert_eq!(world.broker.alarm(), Some("low on memory"));
    client.rollback();
    client.read(&[]);
    while world.broker.alarm().is_some() {
        other.pop("q").expect("a message");
        other.read(&[]);
    }
}

#[test]
fn delayed_messages_that_are_due_far_from_each_other_raise_the_alarm() {
    let world = world_of(1_000_000);
    let mut client = with_exchange(&world);
    let mut messages = 0_i64;
    while world.broker.alarm().is_none() {
        messages += 1;
        client.send(delayed("x", messages << 24));
        client.read(&[]);
    }
    // Each is in memory, and takes 300 bytes for its time beside that.
    assert!((1000..2500).contains(&messages), "{messages}");
}

#[test]
fn open_transactions_together_are_bounded() {
    let world = world_of(400_000);
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    client.tx_select();
    other.tx_select();
    for _ in 0..60 {
        client.send(kilobyte());
    }
    for _ in 0..20 {
        other.send(kilobyte());
    }
    let mut refused = None;
    for _ in 0..60 {
        other.send(kilobyte());
        if let [heard] = &other.heard()[..] {
            refused = Some(format!("{heard:?}"));
            break;
        }
    }
    let text = refused.expect("a refusal");
    assert!(text.contains(
        "406 PRECONDITION_FAILED - memory limit (100000 bytes) of open transactions reached"
    ));
    assert_eq!(world.broker.alarm(), None, "what is not consumed raises no alarm by itself");
    client.commit();
    assert_eq!(world.counts("q").0, 60);
}

#[test]
fn the_ways_of_what_a_transaction_publishes_count_when_it_is_committed() {
    let world = world_of(8_000_000);
    let mut client = world.connect();
    for queue in 0..500 {
        let name = format!("q{queue}");
        client.declare(&name);
        client.bind(&name, "amq.fanout", "");
    }
    let to_all = Message::new("amq.fanout", "", "x");
    let with_key = |n: i32| {
        let keys = FieldValue::Array(vec![format!("k{n}").into()]);
        to_all.clone().headers(FieldTable::new().with("CC", keys))
    };
    client.tx_select();
    (0..100).for_each(|_| client.send(to_all.clone()));
    client.commit();
    assert_eq!(world.counts("q0").0, 100, "they all take the same way");
    let before = world.broker.memory_used_bytes();
    (0..1000).for_each(|n| client.send(with_key(n)));
    let refused = client.refused(courser_codec::tx::Commit {});
    assert!(refused.contains("of open transactions reached"), "{refused}");
    assert_eq!(world.counts("q0").0, 100, "none of it has taken effect");
    assert!(world.broker.memory_used_bytes() <= before);
    client.tx_select();
    (0..40).for_each(|n| client.send(with_key(n)));
    client.commit();
    assert_eq!(world.counts("q0").0, 140);
}

#[test]
fn the_transactions_of_a_connection_are_bounded_together() {
    let world = World::with(Limits { transaction_max_bytes: 10_000, ..Limits::default() });
    let mut client = world.connect();
    client.declare("q");
    client.open_channel(2);
    client.call_on(2, courser_codec::tx::Select {});
    client.tx_select();
    for _ in 0..5 {
        client.read(&[Step::Publish(2, kilobyte())]);
    }
    for _ in 0..3 {
        client.send(kilobyte());
    }
    assert_eq!(
        client.refused_publish(kilobyte()),
        "406 PRECONDITION_FAILED - transaction limit (10000 bytes) of the connection reached"
    );
    client.tx_select();
    client.send(kilobyte());
    client.commit();
    assert_eq!(world.counts("q").0, 1, "what the closed channel held is given back");
}

#[test]
fn the_books_of_what_is_unacknowledged_count_and_are_given_back() {
    let world = World::new();
    let (mut client, mut publisher) = (world.connect(), world.connect());
    client.declare("q");
    client.consume("q");
    let before = world.broker.memory_used_bytes() - world.broker.messages_bytes();
    let bodies = vec!["x"; 20_000];
    publisher.fill("q", &bodies);
    assert_eq!(client.deliveries().len(), 20_000);
    let books = |world: &World| world.broker.memory_used_bytes() - world.broker.messages_bytes();
    assert!(books(&world) > before + 20_000 * 50);
    client.ack_through(20_000);
    assert!(books(&world) < before + 300_000, "{before}, {}", books(&world));
}

#[test]
fn consumers_leave_no_more_unacknowledged_than_a_channel_may() {
    let world = World::with(Limits { unacked_per_channel_max: 3, ..Limits::default() });
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    client.consume_with(basic::Consume { queue: short("q"), ..Default::default() });
    client.fill("q", &["1", "2", "3", "4", "5"]);
    assert_eq!(client.bodies(), ["1", "2", "3"]);
    client.ack(2);
    assert_eq!(client.bodies(), ["4"]);
    client.ack_through(0);
    assert_eq!(client.bodies(), ["5"]);
}

#[test]
fn the_places_of_waiting_messages_count_and_are_given_back() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["x"]);
    client.pop("q");
    let books = |world: &World| world.broker.memory_used_bytes() - world.broker.messages_bytes();
    let before = books(&world);
    let bodies = vec!["x"; 20_000];
    client.fill("q", &bodies);
    let full = books(&world);
    assert!((20_000 * 16..20_000 * 32).contains(&(full - before)), "{before}, {full}");
    for _ in 0..19_000 {
        client.pop("q").expect("a message");
    }
    assert!(books(&world) < before + 60_000, "{before}, {}", books(&world));
    while client.pop("q").is_some() {}
    assert!(books(&world) < before + 2000, "{before}, {}", books(&world));
    client.fill("q", &bodies);
    client.purge("q");
    assert!(books(&world) < before + 2000, "{before}, {}", books(&world));
    declare_with(&mut client, "ranked", false, &FieldTable::new().with("x-max-priority", 3));
    client.fill("ranked", &bodies);
    assert!(books(&world) > before + 20_000 * 16);
    client.delete("ranked");
    // The queue itself is kept for the way to it, which is remembered.
    assert!(books(&world) < before + 3000, "{before}, {}", books(&world));
}

/// Says of itself that it is this one.
fn marked(number: u32) -> Message {
    let header = FieldTable::new().with("x-deduplication-header", number.to_string().as_str());
    Message::new("once", "", "x").headers(header)
}

#[test]
fn what_is_remembered_to_drop_repetitions_counts_and_is_bounded_together() {
    let world = world_of(4_000_000);
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-cache-size", 1_000_000);
    let entries = arguments.to_entries();
    let (exchange, kind) = (short("once"), short("x-message-deduplication"));
    let arguments = Table::from_entries(&entries);
    let before = world.broker.memory_used_bytes();
    client.call(exchange::Declare { exchange, kind, arguments, ..Default::default() });
    declare_with(&mut client, "q", false, &FieldTable::new().with("x-max-length", 1));
    client.bind("q", "once", "");
    for number in 0..60_000 {
        client.send(marked(number));
    }
    let full = world.broker.memory_used_bytes() - before;
    assert!((400_000..1_100_000).contains(&full), "{full}");
    assert_eq!(world.broker.alarm(), None, "consumers could not end it");
    client.pop("q").expect("the newest");
    client.send(marked(59_999));
    assert_eq!(client.pop("q"), None, "the newest are remembered");
    client.send(marked(0));
    assert!(client.pop("q").is_some(), "the oldest are forgotten");
    client.delete("q");
    client.call(exchange::Delete { exchange, ..Default::default() });
    // Until then the route is remembered, and with it what it goes through.
    client.publish("", "nowhere", "x");
    let after = world.broker.memory_used_bytes();
    assert!(after < before + 10_000, "{before}, {after}");
}

#[test]
fn no_channel_holds_on_to_a_route_that_its_connection_has_forgotten() {
    let world = World::new();
    let mut client = world.connect();
    client.open_channel(2);
    client.declare("q");
    client.declare("other");
    client.read(&[Step::Publish(2, Message::new("", "q", "x"))]);
    let vhost = world.broker.vhost("/").expect("always there");
    let queue = Arc::downgrade(&vhost.queue(b"q").expect("declared"));
    client.delete("q");
    client.publish("", "other", "x");
    assert!(queue.upgrade().is_none(), "the other channel remembers its way");
}

#[test]
fn the_filters_of_stream_readers_count_and_are_bounded_together() {
    let world = world_of(4_000_000);
    let mut client = world.connect();
    stream(&mut client, "s");
    client.qos(1);
    let values = (0..250).map(|nth| FieldValue::from(format!("{nth:0100}").as_str())).collect();
    let filter = FieldTable::new().with("x-stream-filter", FieldValue::Array(values));
    let before = world.broker.memory_used_bytes();
    let answer = try_read(&mut client, "s", &filter);
    let Heard::ConsumeOk(tag) = answer else { panic!("{answer:?}") };
    assert!(world.broker.memory_used_bytes() - before > 25_000);
    client.cancel(&tag);
    assert!(world.broker.memory_used_bytes() - before < 1000);
    let text = loop {
        if let Heard::ChannelClosed(text) = try_read(&mut client, "s", &filter) {
            break text;
        }
    };
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - memory limit (1000000 bytes) of channels, consumers and stream \
         filters reached"
    );
    assert!(world.broker.memory_used_bytes() < 1_050_000);
}

#[test]
fn an_exclusive_queue_that_expires_is_given_back_while_its_connection_lasts() {
    let world = World::new();
    world.broker.tick(1_000_000);
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-expires", 1).to_entries();
    let declare = |exclusive| queue::Declare {
        exclusive,
        arguments: Table::from_entries(&arguments),
        ..Default::default()
    };
    client.call(declare(true));
    world.broker.tick(1_001_000);
    let before = world.broker.memory_used_bytes();
    for nth in 2..202 {
        client.call(declare(true));
        world.broker.tick(1_000_000 + nth * 1000);
    }
    assert_eq!(world.broker.memory_used_bytes(), before);
}
