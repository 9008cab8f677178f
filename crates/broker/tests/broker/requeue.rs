//! What comes back from a consumer: to its original place, marked as redelivered.

use crate::support::{World, short};
use courser_codec::basic;

#[test]
fn a_requeued_message_goes_back_to_its_original_place() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2", "3", "4", "5"]);
    let tags: Vec<u64> = (0..4).map(|_| client.get("q").expect("a message").tag).collect();
    client.publish("", "q", "6");
    client.requeue(tags[2]);
    client.requeue(tags[0]);
    client.requeue(tags[3]);
    assert_eq!(client.pop_all("q"), ["1", "3", "4", "5", "6"]);
    client.requeue(tags[1]);
    client.publish("", "q", "7");
    assert_eq!(client.pop_all("q"), ["2", "7"]);
}

#[test]
fn messages_handed_straight_to_a_consumer_have_a_place_too() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.qos(2);
    let tag = consumer.consume("q");
    publisher.fill("q", &["1", "2", "3", "4"]);
    assert_eq!(consumer.bodies(), ["1", "2"]);
    consumer.cancel(&tag);
    consumer.requeue(2);
    assert_eq!(publisher.get("q").expect("a message").text(), "2");
    consumer.requeue(1);
    assert_eq!(publisher.pop_all("q"), ["1", "3", "4"]);
}

#[test]
fn only_what_was_delivered_before_is_marked_as_redelivered() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2"]);
    let first = client.get("q").expect("a message");
    assert!(!first.redelivered);
    client.requeue(first.tag);
    client.consume("q");
    let marks: Vec<_> = client.deliveries().iter().map(|one| one.redelivered).collect();
    assert_eq!(marks, [true, false]);
}

#[test]
fn a_closed_channel_gives_everything_unacknowledged_back_in_order() {
    let world = World::new();
    let (mut leaving, mut other) = (world.connect(), world.connect());
    leaving.declare("q");
    leaving.fill("q", &["1", "2", "3", "4", "5"]);
    leaving.qos(3);
    leaving.consume("q");
    assert_eq!(leaving.bodies(), ["1", "2", "3"]);
    leaving.ack(2);
    assert_eq!(leaving.bodies(), ["4"]);
    leaving.close_channel(1);
    other.consume("q");
    let seen: Vec<(String, bool)> =
        other.deliveries().iter().map(|one| (one.text().to_owned(), one.redelivered)).collect();
    let expected = [("1", true), ("3", true), ("4", true), ("5", false)];
    assert_eq!(seen, expected.map(|(text, again)| (text.to_owned(), again)));
}

#[test]
fn a_lost_connection_gives_everything_back_to_a_consumer_that_waits() {
    let world = World::new();
    let (mut leaving, mut other) = (world.connect(), world.connect());
    leaving.declare("q");
    leaving.consume("q");
    leaving.fill("q", &["1", "2"]);
    other.consume("q");
    assert_eq!(other.bodies(), Vec::<String>::new());
    drop(leaving);
    assert_eq!(other.bodies(), ["1", "2"]);
}

#[test]
fn what_two_consumers_give_back_is_merged_in_order() {
    let world = World::new();
    let (mut one, mut two, mut other) = (world.connect(), world.connect(), world.connect());
    one.declare("q");
    one.qos(3);
    two.qos(3);
    one.consume("q");
    two.consume("q");
    other.fill("q", &["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(one.bodies(), ["1", "3", "5"]);
    assert_eq!(two.bodies(), ["2", "4", "6"]);
    one.close_channel(1);
    two.close_channel(1);
    assert_eq!(other.pop_all("q"), ["1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_requeue_can_come_right_back_to_the_same_consumer() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.qos(1);
    client.consume("q");
    client.fill("q", &["1", "2"]);
    for tag in 1..=5 {
        let [again] = &client.deliveries()[..] else { panic!("one delivery") };
        assert_eq!((again.text(), again.tag, again.redelivered), ("1", tag, tag > 1));
        client.requeue(tag);
    }
}

#[test]
fn requeued_messages_are_polled_with_the_right_count_behind_them() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2", "3"]);
    let first = client.get("q").expect("a message");
    client.requeue(first.tag);
    let answer = client.call(basic::Get { queue: short("q"), no_ack: true });
    let crate::support::Heard::GetOk { delivery, left } = answer else { panic!("{answer:?}") };
    assert_eq!((delivery.text(), left, delivery.redelivered), ("1", 2, true));
}

#[test]
fn purged_messages_do_not_come_back_and_unacknowledged_ones_do() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2", "3"]);
    let first = client.get("q").expect("a message");
    assert_eq!(client.purge("q"), crate::support::Heard::Count(2));
    client.publish("", "q", "4");
    client.requeue(first.tag);
    assert_eq!(client.pop_all("q"), ["1", "4"]);
}

#[test]
fn a_long_backlog_keeps_its_order_whatever_is_taken_and_given_back() {
    const COUNT: usize = 6000;
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let bodies: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
    for read in bodies.chunks(100) {
        let read: Vec<&str> = read.iter().map(String::as_str).collect();
        client.fill("q", &read);
    }
    let mut seen = Vec::new();
    while let Some(polled) = client.get("q") {
        if polled.redelivered || seen.len() % 7 != 0 {
            seen.push(polled.text().to_owned());
            client.ack(polled.tag);
        } else {
            client.requeue(polled.tag);
        }
        if seen.len() % 1000 == 0 && seen.len() < COUNT / 2 {
            // Half of it is emptied while more comes.
            client.fill("q", &["more"]);
        }
    }
    let (more, first): (Vec<_>, Vec<_>) = seen.into_iter().partition(|body| body == "more");
    assert!(!more.is_empty());
    assert_eq!(first, bodies);
    assert_eq!(world.counts("q"), (0, 0, 0));
}
