//! `basic.consume` and `basic.cancel`.

use crate::support::{Heard, Message, Step, World, declare_with, guest, processor_time, short};
use courser_broker::{Identity, Limits};
use courser_codec::{FieldTable, FieldValue, Table, basic, queue};
use std::time::Duration;

fn consume(queue: &str) -> basic::Consume<'_> {
    basic::Consume { queue: short(queue), ..Default::default() }
}

#[test]
fn consume_ok_comes_before_the_first_delivery() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1", "2"]);
    client
        .read(&[Step::Call(1, basic::Consume { consumer_tag: short("t"), ..consume("q") }.into())]);
    let heard = client.heard();
    assert!(
        matches!(
            &heard[..],
            [Heard::ConsumeOk(tag), Heard::Delivery(one), Heard::Delivery(two)]
                if tag == "t" && one.tag == 1 && two.tag == 2 && one.consumer == "t"
        ),
        "{heard:?}"
    );
}

#[test]
fn the_broker_makes_up_a_tag_where_there_is_none() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let (one, two) = (client.consume("q"), client.consume("q"));
    assert!(one.starts_with("amq.ctag-"), "{one}");
    assert_ne!(one, two);
}

#[test]
fn a_tag_in_use_on_the_channel_ends_the_connection() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tagged = basic::Consume { consumer_tag: short("t"), ..consume("q") };
    client.consume_with(tagged);
    client.open_channel(2);
    client.consume_on(2, tagged);
    client.cancel("t");
    client.consume_with(tagged);
    let text = "530 NOT_ALLOWED - attempt to reuse consumer tag 't'";
    assert_eq!(client.fatal(tagged), text);
    assert_eq!(world.counts("q"), (0, 0, 0));
    let mut client = world.connect();
    client.consume_with(tagged);
    let missing = basic::Consume { queue: short("missing"), ..tagged };
    assert_eq!(client.fatal(missing), text, "whatever the queue");
    let mut client = world.connect();
    client.consume_with(tagged);
    let unnamed = basic::Consume { queue: short(""), ..tagged };
    assert_eq!(client.refused(unnamed), "404 NOT_FOUND - no previously declared queue");
}

#[test]
fn consuming_from_a_missing_queue_is_not_found() {
    let text = World::new().connect().refused(consume("q"));
    assert_eq!(text, "404 NOT_FOUND - no queue 'q' in vhost '/'");
}

#[test]
fn a_consumer_on_a_fresh_queue_does_not_wait_for_other_traffic() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    consumer.declare("q");
    consumer.consume_no_ack("q");
    publisher.publish("", "q", "1");
    assert_eq!(consumer.bodies(), ["1"]);
}

#[test]
fn a_consumer_hears_in_the_same_read_what_was_published_before_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.read(&[
        Step::Publish(1, Message::new("", "q", "1")),
        Step::Call(1, consume("q").into()),
        Step::Publish(1, Message::new("", "q", "2")),
    ]);
    assert_eq!(client.bodies(), ["1", "2"]);
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let world = World::new();
    let (mut one, mut two) = (world.connect(), world.connect());
    one.declare("q");
    let exclusive = basic::Consume { exclusive: true, ..consume("q") };
    let text = "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use";
    let tag = one.consume("q");
    assert_eq!(two.refused(exclusive), text, "another consumer is there already");
    one.cancel(&tag);
    one.consume_with(exclusive);
    assert_eq!(two.refused(consume("q")), text);
    assert_eq!(two.refused(exclusive), text);
    one.close_channel(1);
    two.consume_with(exclusive);
}

#[test]
fn after_cancel_ok_nothing_is_delivered_and_what_is_unacknowledged_stays_so() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tag = client.consume("q");
    client.fill("q", &["1"]);
    assert_eq!(client.bodies(), ["1"]);
    client.read(&[
        Step::Publish(1, Message::new("", "q", "2")),
        Step::Call(1, basic::Cancel { consumer_tag: short(&tag), nowait: false }.into()),
        Step::Publish(1, Message::new("", "q", "3")),
    ]);
    let heard = client.heard();
    assert!(
        matches!(&heard[..], [Heard::Delivery(two), Heard::CancelOk(_)] if two.text() == "2"),
        "{heard:?}"
    );
    assert_eq!(world.counts("q"), (1, 2, 0));
    client.ack(1);
    client.requeue(2);
    assert_eq!(client.pop_all("q"), ["2", "3"]);
}

#[test]
fn cancelling_an_unknown_tag_is_fine() {
    World::new().connect().cancel("unknown");
}

#[test]
fn nowait_consumes_and_cancels_without_a_word() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let consumer_tag = short("t");
    client.tell(basic::Consume { nowait: true, consumer_tag, ..consume("q") });
    assert_eq!(client.heard(), []);
    client.fill("q", &["1"]);
    assert_eq!(client.bodies(), ["1"]);
    client.tell(basic::Cancel { consumer_tag, nowait: true });
    assert_eq!(client.heard(), []);
    assert_eq!(world.counts("q"), (0, 1, 0));
}

#[test]
fn a_consumer_whose_queue_is_deleted_is_told_if_it_wants_to_know() {
    let world = World::new();
    let (mut wants, mut other) = (world.connect(), world.connect());
    let mut does_not = world.connect_as(Identity { cancel_notify: false, ..guest() });
    other.declare("q");
    wants.consume_with(basic::Consume { consumer_tag: short("w"), ..consume("q") });
    does_not.consume("q");
    other.delete("q");
    assert_eq!(wants.heard(), [Heard::Cancelled("w".into())]);
    assert_eq!(does_not.heard(), []);
    other.declare("q");
    wants.consume_with(basic::Consume { consumer_tag: short("w"), ..consume("q") });
    other.publish("", "q", "1");
    assert_eq!(wants.bodies(), ["1"], "the tag is free again");
}

#[test]
fn a_consumer_whose_exclusive_queue_went_is_told_too() {
    let world = World::new();
    let mut client = world.connect();
    client.call(queue::Declare { queue: short("q"), exclusive: true, ..Default::default() });
    client.consume_with(basic::Consume { consumer_tag: short("t"), ..consume("q") });
    let heard = client.delete("q");
    assert_eq!(heard, Heard::Count(0));
    assert_eq!(client.heard(), [Heard::Cancelled("t".into())]);
}

#[test]
fn a_priority_that_is_no_integer_is_refused() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let entries = FieldTable::new().with("x-priority", "high").to_entries();
    let text =
        client.refused(basic::Consume { arguments: Table::from_entries(&entries), ..consume("q") });
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \
         \"expected integer, got longstr\""
    );
    let entries = FieldTable::new().with("x-priority", FieldValue::I64(i64::MAX)).to_entries();
    client
        .consume_with(basic::Consume { arguments: Table::from_entries(&entries), ..consume("q") });
}

#[test]
fn a_channel_has_no_more_consumers_than_it_may() {
    let world = World::with(Limits { consumers_per_channel_max: 2, ..Limits::default() });
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    let tag = client.consume("q");
    client.cancel(&tag);
    client.consume("q");
    assert_eq!(
        client.refused(consume("q")),
        "406 PRECONDITION_FAILED - consumer limit (2) of channel 1 reached"
    );
}

#[test]
fn a_connection_has_no_more_consumers_than_it_may() {
    let world = World::with(Limits { consumers_per_connection_max: 3, ..Limits::default() });
    let mut client = world.connect();
    client.open_channel(2);
    client.declare("q");
    client.consume_on(2, consume("q"));
    let tags = [client.consume("q"), client.consume("q")];
    tags.iter().for_each(|tag| client.cancel(tag));
    client.consume("q");
    client.consume("q");
    assert_eq!(
        client.refused(consume("q")),
        "406 PRECONDITION_FAILED - consumer limit (3) of the connection reached"
    );
    client.consume("q");
}

#[test]
fn a_queue_has_no_more_consumers_than_it_may() {
    let world = World::with(Limits { consumers_per_queue_max: 2, ..Limits::default() });
    let mut clients = [world.connect(), world.connect(), world.connect()];
    clients[0].declare("q");
    clients[0].consume("q");
    clients[1].consume("q");
    assert_eq!(
        clients[2].refused(consume("q")),
        "406 PRECONDITION_FAILED - consumer limit (2) of queue 'q' in vhost '/' reached"
    );
    clients[0].disconnect();
    clients[2].consume("q");
}

/// What it takes of a processor to make this many consumers of one queue, and to end them with their
/// connection.
fn make_and_end_consumers(arguments: &FieldTable, count: usize) -> Duration {
    let world = World::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", false, arguments);
    let start = processor_time();
    for nth in 0..count {
        let number = 1 + (nth / 5000) as u16;
        if nth % 5000 == 0 {
            client.open_channel(number);
        }
        client.consume_on(number, consume("q"));
    }
    client.disconnect();
    assert_eq!(world.counts("q"), (0, 0, 0));
    processor_time() - start
}

#[test]
fn many_consumers_of_a_queue_cost_no_more_each_than_a_few() {
    let single = FieldTable::new().with("x-single-active-consumer", true);
    for arguments in [FieldTable::new(), single] {
        let few = make_and_end_consumers(&arguments, 2_500);
        let many = make_and_end_consumers(&arguments, 40_000);
        // Sixteen times as many; with what each costs rising with their number it would be 256.
        assert!(many < few * 80, "{few:?} for 2,500, {many:?} for 40,000");
    }
}
