//! `x-consumer-timeout` in quorum queues: a consumer that keeps a message for too long is cancelled.

use crate::consumer_timeout::{TIMEOUT_MS, tick, timed_out};
use crate::frame_costs::{cost, fill, large};
use crate::support::{
    Client, Heard, Message, Step, World, WorldOnDisk, declare_with, guest, headers, short,
};
use courser_broker::{Batch, Identity};
use courser_codec::{FieldTable, Method, Table, basic};

/// How long consumers of a quorum queue have that says nothing of it.
const QUORUM_MS: u64 = 1_800_000;

fn declare_quorum(client: &mut Client, name: &str) {
    declare_with(client, name, true, &quorum());
}

fn quorum() -> FieldTable {
    FieldTable::new().with("x-queue-type", "quorum")
}

fn consume_within(client: &mut Client, queue: &str, timeout_ms: i64) -> String {
    let entries = FieldTable::new().with("x-consumer-timeout", timeout_ms).to_entries();
    client.consume_with(basic::Consume {
        queue: short(queue),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    })
}

#[test]
fn a_consumer_of_a_quorum_queue_is_cancelled_after_half_an_hour_and_its_messages_return() {
    let world = World::new();
    tick(&world, 10_000);
    let (mut slow, mut other) = (world.connect(), world.connect());
    declare_quorum(&mut slow, "q");
    slow.declare("classic");
    slow.qos(2);
    let tag = slow.consume("q");
    slow.fill("q", &["1", "2", "3"]);
    assert_eq!(slow.bodies(), ["1", "2"]);
    tick(&world, 10_000 + QUORUM_MS - 1);
    assert_eq!(slow.heard(), []);
    tick(&world, 10_000 + QUORUM_MS);
    assert_eq!(slow.heard(), [Heard::Cancelled(tag)]);
    assert_eq!(world.counts("q"), (3, 0, 0));
    let again = other.get("q").expect("it is back");
    assert_eq!((again.text(), again.redelivered), ("1", true));
    // What comes too late settles nothing, above all not what another client has now.
    slow.ack(1);
    slow.tell(basic::Nack { delivery_tag: 2, multiple: true, requeue: false });
    assert_eq!(slow.heard(), []);
    assert_eq!(world.counts("q"), (2, 1, 0));
    // The channel goes on.
    slow.consume("q");
    assert_eq!(slow.bodies(), ["2", "3"]);
}

#[test]
fn a_consumer_that_is_too_slow_brings_its_message_no_closer_to_the_delivery_limit() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    let arguments = quorum().with("x-delivery-limit", 1);
    declare_with(&mut client, "q", true, &arguments);
    client.publish("", "q", "1");
    for nth in 1..=5 {
        client.consume("q");
        let delivery = client.deliveries().pop().expect("a delivery");
        assert_eq!(headers(&delivery).get("x-delivery-count"), None);
        tick(&world, 10_000 + nth * QUORUM_MS);
        assert!(matches!(client.heard()[..], [Heard::Cancelled(_)]));
    }
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn what_returns_from_a_consumer_that_is_gone_keeps_no_queue_that_expires() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    let arguments = quorum()
        .with("x-consumer-timeout", TIMEOUT_MS as i64)
        .with("x-expires", 2 * TIMEOUT_MS as i64);
    declare_with(&mut client, "q", true, &arguments);
    let tag = client.consume("q");
    client.publish("", "q", "1");
    assert_eq!(client.bodies(), ["1"]);
    client.cancel(&tag);
    tick(&world, 11_000);
    assert_eq!(world.counts("q"), (1, 0, 0));
    tick(&world, 12_000);
    assert!(!world.has_queue("q"));
}

#[test]
fn an_acknowledgement_that_is_under_way_when_its_time_is_over_leaves_no_queue_without_consumer() {
    let world = World::new();
    tick(&world, 10_000);
    let (mut first, mut second) = (world.connect(), world.connect());
    let arguments = quorum().with("x-single-active-consumer", true);
    declare_with(&mut first, "q", true, &arguments);
    consume_within(&mut first, "q", TIMEOUT_MS as i64);
    second.consume("q");
    // The timer fires before the end of the batch that the acknowledgement is in.
    let settles_late = |client: &mut Client, delivery_tag: u64, now_ms: u64| {
        let mut batch = Batch::default();
        let ack = Method::BasicAck(basic::Ack { delivery_tag, multiple: false });
        client.session().request(&mut batch, 1, &ack).expect("a delivery");
        tick(&world, now_ms);
        client.session().flush(&mut batch).expect("room");
    };
    first.publish("", "q", "1");
    assert_eq!(first.bodies(), ["1"]);
    settles_late(&mut first, 1, 11_000);
    assert_eq!(first.heard(), [], "it has settled all that it had");
    first.fill("q", &["2", "3"]);
    assert_eq!(first.bodies(), ["2", "3"]);
    settles_late(&mut first, 2, 12_000);
    assert!(matches!(first.heard()[..], [Heard::Cancelled(_)]));
    assert_eq!(second.bodies(), ["3"]);
}

#[test]
fn many_consumers_of_a_channel_that_are_overdue_at_once_are_looked_for_once() {
    const CONSUMERS: usize = 1000;
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare_quorum(&mut client, "q");
    client.qos(1);
    for _ in 0..CONSUMERS {
        consume_within(&mut client, "q", TIMEOUT_MS as i64);
    }
    client.read(&vec![Step::Publish(1, Message::new("", "q", "x")); CONSUMERS]);
    assert_eq!(world.counts("q"), (0, CONSUMERS, CONSUMERS));
    client.heard();
    let taken = cost(|| {
        tick(&world, 11_000);
    });
    assert!(taken <= 16 * CONSUMERS as u64, "{taken} steps");
    assert_eq!(client.heard().len(), CONSUMERS);
    assert_eq!(world.counts("q"), (CONSUMERS, 0, 0));
}

#[test]
fn the_end_of_an_overdue_consumer_costs_no_look_at_what_else_its_channel_has() {
    const OTHERS: usize = 50_000;
    let world = large();
    tick(&world, 10_000);
    let mut client = world.connect();
    client.declare("classic");
    declare_quorum(&mut client, "q");
    client.consume("classic");
    fill(&mut client, "classic", OTHERS / 2);
    consume_within(&mut client, "q", TIMEOUT_MS as i64);
    fill(&mut client, "q", 10);
    fill(&mut client, "classic", OTHERS / 2);
    client.heard();
    let taken = cost(|| {
        tick(&world, 11_000);
    });
    assert!(taken <= 100, "{taken} steps");
    assert!(matches!(client.heard()[..], [Heard::Cancelled(_)]));
    assert_eq!((world.counts("q"), world.counts("classic")), ((10, 0, 0), (0, OTHERS, 1)));
}

#[test]
fn what_an_overdue_consumer_has_settled_does_not_return_and_all_else_does() {
    const MESSAGES: u64 = 1000;
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare_quorum(&mut client, "q");
    let memory = world.broker.memory_used_bytes();
    consume_within(&mut client, "q", TIMEOUT_MS as i64);
    for turn in 0..3 {
        fill(&mut client, "q", MESSAGES as usize);
        // One of ten stays, and of the next turn all that are left of the last.
        let first = turn * MESSAGES + 1;
        (first..first + MESSAGES).rev().filter(|tag| tag % 10 != 3).for_each(|tag| client.ack(tag));
    }
    client.heard();
    assert_eq!(world.counts("q"), (0, 300, 1));
    tick(&world, 11_000);
    assert_eq!(world.counts("q"), (300, 0, 0));
    client.ack_through(0);
    client.purge("q");
    assert_eq!(world.counts("q"), (0, 0, 0));
    let left = world.broker.memory_used_bytes() as i64 - memory as i64;
    assert!(left < 400_000, "{left}");
}

#[test]
fn a_client_that_would_not_hear_of_the_end_of_its_consumer_loses_the_channel() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect_as(Identity { cancel_notify: false, ..guest() });
    declare_quorum(&mut client, "q");
    client.publish("", "q", "1");
    consume_within(&mut client, "q", TIMEOUT_MS as i64);
    assert_eq!(client.bodies(), ["1"]);
    tick(&world, 11_000);
    assert_eq!(client.heard(), [timed_out(1)]);
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn what_was_polled_or_is_settled_in_a_transaction_ends_the_channel() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    let arguments = quorum().with("x-consumer-timeout", TIMEOUT_MS as i64);
    declare_with(&mut client, "q", true, &arguments);
    client.fill("q", &["1"]);
    client.get("q").expect("a message");
    tick(&world, 11_000);
    assert_eq!(client.heard(), [timed_out(1)]);
    let mut client = world.connect();
    client.tx_select();
    client.consume("q");
    assert_eq!(client.bodies(), ["1"]);
    client.ack(1);
    tick(&world, 12_000);
    assert_eq!(client.heard(), [timed_out(1)]);
    assert_eq!(world.counts("q"), (1, 0, 0));
}

#[test]
fn consumers_of_a_quorum_queue_may_have_times_of_their_own() {
    let world = World::new();
    tick(&world, 10_000);
    let (mut patient, mut hasty) = (world.connect(), world.connect());
    declare_with(&mut patient, "q", true, &quorum().with("x-consumer-timeout", 5000_i64));
    patient.qos(1);
    hasty.qos(1);
    let patients = consume_within(&mut patient, "q", 9000);
    patient.publish("", "q", "1");
    let hastys = consume_within(&mut hasty, "q", 2000);
    patient.publish("", "q", "2");
    let mut usual = world.connect();
    usual.qos(1);
    let usuals = usual.consume("q");
    patient.publish("", "q", "3");
    let mut ends = Vec::new();
    for at_ms in [11_999, 12_000, 14_999, 15_000, 18_999, 19_000] {
        tick(&world, at_ms);
        for client in [&mut patient, &mut hasty, &mut usual] {
            let ended = |heard| match heard {
                Heard::Cancelled(tag) => Some((at_ms, tag)),
                _ => None,
            };
            ends.extend(client.heard().into_iter().filter_map(ended));
        }
    }
    assert_eq!(ends, [(12_000, hastys), (15_000, usuals), (19_000, patients)]);
}

#[test]
fn a_consumer_timeout_is_for_consumers_of_quorum_queues_only() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "classic", true, &FieldTable::new());
    declare_with(&mut client, "stream", true, &FieldTable::new().with("x-queue-type", "stream"));
    declare_quorum(&mut client, "quorum");
    client.disconnect();
    let invalid = |queue: &str, rest: &str| {
        format!(
            "406 PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue '{queue}' in vhost '/'{rest}"
        )
    };
    for (queue, value, why) in [
        ("classic", 1000_i64, " of queue type rabbit_classic_queue"),
        ("stream", 1000, " of queue type rabbit_stream_queue"),
        ("quorum", 0, ": {value_zero,0}"),
        ("quorum", -1, ": {value_negative,-1}"),
    ] {
        let mut client = world.connect();
        let entries = FieldTable::new().with("x-consumer-timeout", value).to_entries();
        let arguments = Table::from_entries(&entries);
        let consume = basic::Consume { queue: short(queue), arguments, ..Default::default() };
        assert_eq!(client.refused(consume), invalid(queue, why));
        client.disconnect();
    }
}

#[test]
fn the_next_single_active_consumer_follows_one_that_was_too_slow() {
    let world = World::new();
    tick(&world, 10_000);
    let (mut first, mut second) = (world.connect(), world.connect());
    let arguments = quorum().with("x-single-active-consumer", true);
    declare_with(&mut first, "q", true, &arguments);
    first.fill("q", &["1", "2"]);
    first.qos(1);
    let tag = consume_within(&mut first, "q", TIMEOUT_MS as i64);
    second.consume("q");
    assert_eq!((first.bodies().len(), second.bodies().len()), (1, 0));
    tick(&world, 11_000);
    assert_eq!(first.heard(), [Heard::Cancelled(tag)]);
    assert_eq!(second.bodies(), ["1", "2"]);
}

#[test]
fn what_a_client_keeps_too_long_counts_for_the_limit_of_its_channel_until_it_settles_it() {
    let world = World::new();
    tick(&world, 10_000);
    let mut client = world.connect();
    declare_quorum(&mut client, "q");
    client.fill("q", &["1", "2"]);
    client.qos_global(1);
    consume_within(&mut client, "q", TIMEOUT_MS as i64);
    assert_eq!(client.bodies(), ["1"]);
    tick(&world, 11_000);
    assert!(matches!(client.heard()[..], [Heard::Cancelled(_)]));
    client.consume("q");
    assert_eq!(client.bodies(), [] as [&str; 0]);
    client.ack(1);
    assert_eq!(client.bodies(), ["1"]);
    assert_eq!(world.counts("q"), (1, 1, 1));
}
