//! Content headers that do not fit a frame of a client's: nothing that the broker adds makes a message
//! such a one, and where a client accepts smaller frames only, the message holds up no other client.

use crate::frame_costs::cost;
use crate::streams::{messages, read, stream};
use crate::support::{Client, Heard, Message, World, deaths, declare_with, headers, short};
use courser_codec::{FieldTable, FieldValue, Table, basic};

/// What a content header of the largest size leaves for the value of a header `h`.
pub const LONGEST: usize = 131_072 - 8 - 4096 - (12 + 2 + 4 + 2 + 1 + 4);

pub fn with_header(queue: &str, body: &str, len: usize) -> Message {
    let long = FieldTable::new().with("h", FieldValue::LongStr(vec![b'y'; len]));
    Message::new("", queue, body).headers(long)
}

/// A queue `q` with a message between two others that does not fit `small`'s frames.
fn with_a_long_one(small: &mut Client) {
    small.declare("q");
    small.publish("", "q", "1");
    small.send(with_header("q", "long", 5000));
    small.publish("", "q", "3");
}

#[test]
fn a_consumer_gets_what_fits_its_frames_and_the_rest_returns_when_it_is_cancelled() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    with_a_long_one(&mut large);
    small.qos(1);
    let tag = small.consume("q");
    for (number, body) in [(1, "1"), (2, "3")] {
        assert_eq!(small.bodies(), [body]);
        small.ack(number);
    }
    // Also one that comes while a consumer waits.
    large.send(with_header("q", "long too", 5000));
    assert_eq!(small.heard(), []);
    assert_eq!(world.counts("q"), (0, 2, 1));
    small.cancel(&tag);
    assert_eq!(large.pop_all("q"), ["long", "long too"]);
}

#[test]
fn very_much_that_is_set_aside_returns_in_portions_and_to_its_places() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    let tag = small.consume("q");
    // Those with the shortest headers return first.
    let bodies: Vec<String> = (0..2500).map(|n| n.to_string()).collect();
    for (n, body) in bodies.iter().enumerate() {
        large.send(with_header("q", body, 8000 - n));
    }
    assert_eq!(world.counts("q"), (0, 2500, 1));
    small.cancel(&tag);
    let (returned, left, _) = world.counts("q");
    assert!(returned > 0 && left > 0, "{returned} and {left}");
    // For a consumer that comes meanwhile the rest stays where it is.
    let tag = small.consume("q");
    world.tick_all(1000);
    assert_eq!(world.counts("q"), (0, 2500, 1));
    small.cancel(&tag);
    world.tick_all(2000);
    assert_eq!(world.counts("q"), (2500, 0, 0));
    assert_eq!(large.pop_all("q"), bodies);
}

#[test]
fn what_is_set_aside_is_not_acknowledged_with_what_comes_behind_it() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    with_a_long_one(&mut large);
    small.consume("q");
    small.ack_through(2);
    assert_eq!(world.counts("q"), (0, 1, 1));
    small.close_channel(1);
    assert_eq!(large.pop_all("q"), ["long"]);
}

#[test]
fn a_consumer_without_acknowledgements_gets_what_fits_too() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    small.consume_no_ack("q");
    with_a_long_one(&mut large);
    assert_eq!(small.bodies(), ["1", "3"]);
    small.disconnect();
    assert_eq!(large.pop_all("q"), ["long"]);
}

#[test]
fn a_consumer_that_accepts_larger_frames_gets_what_others_can_not() {
    let world = World::new();
    let mut large = world.connect();
    let mut small = [world.connect_with_frame_max(4096), world.connect_with_frame_max(4096)];
    large.declare("q");
    small[0].consume("q");
    large.consume("q");
    small[1].consume("q");
    for n in 0..5 {
        large.send(with_header("q", &format!("long {n}"), 5000));
    }
    large.publish("", "q", "short");
    let expected: Vec<String> = (0..5).map(|n| format!("long {n}")).collect();
    assert_eq!(large.bodies(), expected);
    assert_eq!(small.iter_mut().flat_map(Client::bodies).collect::<Vec<_>>(), ["short"]);
}

#[test]
fn what_is_set_aside_goes_to_a_consumer_that_accepts_it_when_that_may_take_more_or_comes() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    large.qos(1);
    large.consume("q");
    small.consume("q");
    let long = |n: usize| with_header("q", &format!("long {n}"), 5000);
    (0..3).for_each(|n| large.send(long(n)));
    assert_eq!(large.bodies(), ["long 0"], "it may have no more");
    large.publish("", "q", "short");
    assert_eq!(small.bodies(), ["short"]);
    assert_eq!(world.counts("q"), (0, 4, 2));
    for n in 1..3 {
        large.ack(n);
        let delivery = large.deliveries().remove(0);
        assert_eq!((delivery.text(), delivery.redelivered), (&*format!("long {n}"), false));
    }
    (3..6).for_each(|n| large.send(long(n)));
    let mut other = world.connect();
    other.consume("q");
    assert_eq!(other.bodies(), ["long 3", "long 4", "long 5"]);
    (6..600).for_each(|n| other.send(long(n)));
    let got: Vec<_> = other.bodies();
    assert_eq!((got.len(), &*got[593]), (594, "long 599"));
    assert_eq!(small.heard(), []);
}

#[test]
fn a_consumer_of_a_lower_priority_gets_what_does_not_fit_the_others() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    large.consume("q");
    let first = FieldTable::new().with("x-priority", 10).to_entries();
    let arguments = Table::from_entries(&first);
    small.consume_with(basic::Consume { queue: short("q"), arguments, ..Default::default() });
    (0..3).for_each(|n| large.send(with_header("q", &format!("long {n}"), 5000)));
    large.publish("", "q", "short");
    assert_eq!(large.bodies(), ["long 0", "long 1", "long 2"]);
    assert_eq!(small.bodies(), ["short"]);
}

#[test]
fn what_is_set_aside_goes_to_the_next_single_active_consumer() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    let single = FieldTable::new().with("x-single-active-consumer", true);
    declare_with(&mut large, "q", false, &single);
    let tag = small.consume("q");
    large.consume("q");
    large.send(with_header("q", "long", 5000));
    assert_eq!(large.bodies(), Vec::<String>::new(), "it waits");
    assert_eq!(world.counts("q"), (0, 1, 2));
    small.cancel(&tag);
    assert_eq!(large.bodies(), ["long"]);
}

#[test]
fn what_is_set_aside_can_be_polled_by_a_client_that_accepts_it_and_waits_when_no_consumer_is_left()
{
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    with_a_long_one(&mut large);
    let tag = small.consume("q");
    assert_eq!(small.bodies(), ["1", "3"]);
    assert_eq!(
        large.get("q").map(|got| (got.text().to_owned(), got.redelivered)),
        Some(("long".into(), false))
    );
    large.send(with_header("q", "another", 5000));
    assert_eq!(world.counts("q"), (0, 4, 1));
    small.ack_through(2);
    small.cancel(&tag);
    assert_eq!(world.counts("q"), (1, 1, 0));
}

#[test]
fn a_poll_passes_over_what_does_not_fit() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    for n in 0..300 {
        large.send(with_header("q", &n.to_string(), 5000));
    }
    assert_eq!(small.pop("q"), None, "some at a time");
    large.call(courser_codec::queue::Purge { queue: short("q"), ..Default::default() });
    with_a_long_one(&mut large);
    assert_eq!(small.pop_all("q"), ["1", "3"]);
    let kept = large.get("q").expect("the message");
    assert!(!kept.redelivered, "it was not delivered");
    assert_eq!(kept.text(), "long");
}

#[test]
fn what_a_poll_passes_over_counts() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    large.declare("q");
    (0..100).for_each(|_| large.send(with_header("q", "long", 5000)));
    let taken = cost(|| assert!(small.get("q").is_none()));
    assert!(taken >= 100 * 5000 / 64, "{taken}");
    assert_eq!(large.pop_all("q").len(), 100);
}

#[test]
fn a_reader_of_a_stream_goes_on_behind_what_does_not_fit() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    stream(&mut large, "s");
    large.publish("", "s", "1");
    large.send(with_header("s", "long", 5000));
    large.publish("", "s", "3");
    small.qos(10);
    read(&mut small, "s", "first");
    assert_eq!(messages(&mut small), [(0, "1".into()), (2, "3".into())]);
}

#[test]
fn an_operator_is_told() {
    let world = World::new();
    let (mut large, mut small) = (world.connect(), world.connect_with_frame_max(4096));
    with_a_long_one(&mut large);
    let unfit = || world.broker.admin().queue("/", b"q").expect("the queue").unfit;
    assert_eq!(unfit(), 0);
    small.consume("q");
    assert_eq!(unfit(), 1);
}

#[test]
fn a_publish_leaves_room_for_what_the_broker_adds() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.send(with_header("q", "fits", LONGEST));
    let most = 131_072 - 8 - 4096;
    assert_eq!(
        client.refused_publish(with_header("q", "too long", LONGEST + 1)),
        format!(
            "406 PRECONDITION_FAILED - content header of {} bytes is larger than the most that may be \
             published ({most} bytes): shorten the headers",
            most + 1
        )
    );
    assert_eq!(client.pop_all("q"), ["fits"]);
}

#[test]
fn the_longest_header_goes_through_streams_returns_and_dead_letters() {
    let world = World::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    client.send(with_header("s", "read", LONGEST));
    client.qos(10);
    read(&mut client, "s", "first");
    assert_eq!(messages(&mut client), [(0, "read".into())]);

    client.declare("dead");
    let quorum = FieldTable::new().with("x-queue-type", "quorum");
    let letters =
        quorum.with("x-dead-letter-exchange", "").with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "q", true, &letters.with("x-delivery-limit", 2));
    client.send(with_header("q", "returned", LONGEST));
    for count in [None, Some(1), Some(2)] {
        let delivery = client.get("q").expect("the message");
        let seen = headers(&delivery).get("x-delivery-count").and_then(FieldValue::as_integer);
        assert_eq!(seen, count);
        client.fail_on(delivery.tag);
    }
    let letter = client.get("dead").expect("the letter");
    assert_eq!(deaths(&letter), ["q delivery_limit 1"]);
}

#[test]
fn a_letter_with_many_keys_says_one_of_them_twice() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("dead");
    client.declare_exchange("dx", "fanout");
    client.bind("dead", "dx", "");
    let letters = FieldTable::new().with("x-dead-letter-exchange", "dx");
    declare_with(&mut client, "q", false, &letters);
    let keys: Vec<FieldValue> = (0..7000).map(|n| format!("x{n:0>4}").as_str().into()).collect();
    client.send(Message::new("", "q", "m").headers(FieldTable::new().with("CC", keys)));
    let tag = client.get("q").expect("the message").tag;
    client.tell(basic::Reject { delivery_tag: tag, requeue: false });
    let letter = client.get("dead").expect("the letter, in a frame of the usual size");
    assert_eq!(deaths(&letter), ["q rejected 1"]);
    let headers = headers(&letter);
    assert_eq!(headers.get("CC").and_then(FieldValue::as_array).map(<[_]>::len), Some(7000));
}

#[test]
fn a_copy_of_what_is_traced_leaves_out_what_does_not_fit() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.declare("trace");
    client.bind("trace", "amq.rabbitmq.trace", "#");
    world.broker.admin().change_vhost("/", |settings| settings.tracing = true).expect("a vhost");
    client.consume_no_ack("trace");
    client.send(with_header("q", "long", LONGEST));
    let keys: Vec<FieldValue> = (0..7000).map(|n| format!("x{n:0>4}").as_str().into()).collect();
    client.send(Message::new("", "q", "keys").headers(FieldTable::new().with("CC", keys)));
    let copies = client.deliveries();
    assert_eq!(copies.iter().map(|copy| copy.text()).collect::<Vec<_>>(), ["long", "keys"]);
    let (whole, cut) = (headers(&copies[0]), headers(&copies[1]));
    assert_eq!(whole.get("shortened"), None);
    assert_eq!(cut.get("shortened"), Some(&FieldValue::Bool(true)));
    let keys = cut.get("routing_keys").and_then(FieldValue::as_array).expect("some keys");
    assert_eq!(keys[0], "q".into());
    assert!(client.is_connected());
    assert_eq!(client.heard(), Vec::<Heard>::new());
}
