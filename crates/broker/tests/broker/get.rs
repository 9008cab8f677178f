//! `basic.get`.

use crate::support::{Heard, Message, World, short};
use courser_codec::basic;

#[test]
fn get_takes_the_oldest_message_and_says_how_many_are_left() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["a", "b", "c"]);
    for (body, left) in [("a", 2), ("b", 1), ("c", 0)] {
        let answer = client.call(basic::Get { queue: short("q"), no_ack: false });
        let Heard::GetOk { delivery, left: told } = answer else { panic!("{answer:?}") };
        assert_eq!((delivery.text(), told, delivery.redelivered), (body, left, false));
    }
    assert_eq!(client.get("q"), None);
    assert_eq!(world.counts("q"), (0, 3, 0));
}

#[test]
fn get_without_ack_forgets_the_message() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["a"]);
    assert_eq!(client.pop("q").as_deref(), Some("a"));
    assert_eq!(world.counts("q"), (0, 0, 0));
    let ack = basic::Ack { delivery_tag: 1, multiple: false };
    assert_eq!(client.refused(ack), "406 PRECONDITION_FAILED - unknown delivery tag 1");
}

#[test]
fn polled_and_delivered_messages_are_numbered_together() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("r");
    client.fill("q", &["1", "3"]);
    client.fill("r", &["2"]);
    assert_eq!(client.get("q").map(|polled| polled.tag), Some(1));
    client.consume("r");
    assert_eq!(client.deliveries()[0].tag, 2);
    assert_eq!(client.get("q").map(|polled| polled.tag), Some(3));
    client.ack_through(3);
    assert_eq!((world.counts("q"), world.counts("r")), ((0, 0, 0), (0, 0, 1)));
}

#[test]
fn get_is_not_held_to_any_prefetch() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["a", "b", "c"]);
    client.qos(1);
    client.qos_global(1);
    for body in ["a", "b", "c"] {
        assert_eq!(client.get("q").expect("a message").text(), body);
    }
    client.consume("q");
    client.publish("", "q", "d");
    assert_eq!(client.bodies(), ["d"], "and does not use the consumers' prefetch up");
}

#[test]
fn a_missing_queue_is_not_found() {
    let world = World::new();
    let get = basic::Get { queue: short("q"), no_ack: true };
    let text = world.connect().refused(get);
    assert_eq!(text, "404 NOT_FOUND - no queue 'q' in vhost '/'");
}

#[test]
fn what_was_published_in_the_same_read_can_be_polled() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.read(&[
        crate::support::Step::Publish(1, Message::new("", "q", "a")),
        crate::support::Step::Call(1, basic::Get { queue: short("q"), no_ack: true }.into()),
    ]);
    assert!(
        matches!(&client.heard()[..], [Heard::GetOk { delivery, .. }] if delivery.text() == "a")
    );
}

#[test]
fn a_channel_does_not_hold_on_to_queues_that_it_has_polled() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let queue = world.vhost().queue(b"q").expect("the queue");
    client.fill("q", &["a", "b"]);
    for _ in 0..2 {
        let polled = client.get("q").expect("a message");
        client.ack(polled.tag);
    }
    client.delete("q");
    // The latest route and the latest acknowledgement are remembered; these are for others.
    client.declare("r");
    client.fill("r", &["c"]);
    let polled = client.get("r").expect("a message");
    client.ack(polled.tag);
    assert_eq!(std::sync::Arc::strong_count(&queue), 1, "this test's own");
}
