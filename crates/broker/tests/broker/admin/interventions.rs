//! Ending what clients have begun.

use crate::streams::{read, stream};
use crate::support::{Client, Heard, Message, World, declare_with, guest};
use courser_broker::Identity;
use courser_broker::admin::ConnectionDetails;
use courser_codec::FieldTable;

fn connect(world: &World, name: &str, cancel_notify: bool) -> Client {
    connect_with_frames(world, name, cancel_notify, 131_072)
}

fn connect_with_frames(world: &World, name: &str, cancel_notify: bool, frame_max: usize) -> Client {
    let identity = Identity { cancel_notify, ..guest() };
    let details = ConnectionDetails { name: name.to_owned(), ..ConnectionDetails::default() };
    let session = world.broker.open_connection(world.vhost(), identity, frame_max, details);
    Client::new(session, frame_max, std::sync::Weak::new())
}

fn cancel(world: &World, tag: &str) {
    world.broker.admin().cancel_consumer("one", 1, tag.as_bytes()).expect("it is there");
}

#[test]
fn a_cancelled_consumer_gets_nothing_more_and_keeps_what_it_has() {
    let world = World::new();
    let mut client = connect(&world, "one", true);
    client.declare("q");
    let tag = client.consume("q");
    client.publish("", "q", "before");
    cancel(&world, &tag);
    client.publish("", "q", "after");
    let heard = client.heard();
    assert!(matches!(&heard[0], Heard::Delivery(delivery) if delivery.text() == "before"));
    assert_eq!(heard[1..], [Heard::Cancelled(tag.clone())]);
    assert_eq!(world.counts("q"), (1, 1, 0));
    client.ack(1);
    assert_eq!(world.counts("q"), (1, 0, 0));
    // It may cancel it all the same, and use the tag again.
    client.cancel(&tag);
    client.consume("q");
    assert_eq!(client.bodies(), ["after"]);
}

#[test]
fn a_client_that_does_not_want_to_hear_of_it_is_told_nothing() {
    let world = World::new();
    let mut client = connect(&world, "one", false);
    client.declare("q");
    let tag = client.consume("q");
    cancel(&world, &tag);
    assert!(client.heard().is_empty());
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn the_next_consumer_takes_the_place_of_a_cancelled_single_active_one() {
    let world = World::new();
    let mut client = connect(&world, "one", true);
    let arguments = FieldTable::new().with("x-single-active-consumer", true);
    declare_with(&mut client, "q", false, &arguments);
    let tag = client.consume("q");
    let mut other = world.connect();
    other.consume("q");
    cancel(&world, &tag);
    client.publish("", "q", "next");
    assert_eq!(other.bodies(), ["next"]);
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer_also_if_that_is_cancelled() {
    let world = World::new();
    let mut client = connect(&world, "one", true);
    client.call(courser_codec::queue::Declare {
        queue: crate::support::short("q"),
        auto_delete: true,
        ..Default::default()
    });
    let tag = client.consume("q");
    cancel(&world, &tag);
    assert!(!world.has_queue("q"));
}

#[test]
fn a_cancelled_reader_of_a_stream_reads_no_more() {
    let world = World::new();
    let mut client = connect(&world, "one", true);
    stream(&mut client, "s");
    client.qos(10);
    let tag = read(&mut client, "s", "first");
    cancel(&world, &tag);
    client.publish("", "s", "after");
    assert_eq!(client.heard(), [Heard::Cancelled(tag)]);
}

#[test]
fn a_consumer_that_is_not_there_cant_be_cancelled() {
    let world = World::new();
    let _client = connect(&world, "one", true);
    let admin = world.broker.admin();
    for (connection, channel) in [("one", 1), ("one", 2), ("two", 1)] {
        assert_eq!(admin.cancel_consumer(connection, channel, b"t").expect_err("none").code, 404);
    }
}

#[test]
fn a_channel_is_closed_with_the_operators_reason_and_its_connection_stays() {
    let world = World::new();
    let mut client = connect(&world, "one", true);
    client.open_channel(2);
    let admin = world.broker.admin();
    admin.close_channel("one", 2, "too much").expect("it is there");
    let faults = client.session().outbox().take_faults();
    assert_eq!(faults.len(), 1);
    let (channel, fault) = &faults[0];
    assert_eq!((*channel, fault.closes_connection()), (2, false));
    assert_eq!(fault.to_string(), "406 PRECONDITION_FAILED - too much");
    assert_eq!(admin.close_channel("one", 3, "").expect_err("there is none").code, 404);
}

#[test]
fn what_was_set_aside_with_a_cancelled_consumer_returns() {
    let world = World::new();
    let mut large = world.connect();
    let mut small = connect_with_frames(&world, "one", true, 4096);
    large.declare("q");
    let tag = small.consume("q");
    let long = FieldTable::new().with("h", "y".repeat(5000).as_str());
    large.send(Message::new("", "q", "long").headers(long));
    assert_eq!(world.counts("q"), (0, 1, 1));
    cancel(&world, &tag);
    assert_eq!(large.pop_all("q"), ["long"]);
}
