//! `basic.ack`, `basic.nack`, `basic.reject` and `basic.recover`.

use crate::support::{Client, Heard, Message, Step, World, short};
use courser_codec::basic;

fn unknown(tag: u64) -> String {
    format!("406 PRECONDITION_FAILED - unknown delivery tag {tag}")
}

/// A consumer on channel 1 that was given these messages as tags 1, 2, ...
fn holding(world: &World, bodies: &[&str]) -> Client {
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", bodies);
    client.consume("q");
    assert_eq!(client.bodies(), bodies);
    client
}

fn nack(delivery_tag: u64, multiple: bool, requeue: bool) -> basic::Nack {
    basic::Nack { delivery_tag, multiple, requeue }
}

#[test]
fn an_acknowledged_message_is_done_with() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c"]);
    client.ack(2);
    assert_eq!(world.counts("q"), (0, 2, 1));
    client.ack(1);
    client.ack(3);
    assert_eq!(world.counts("q"), (0, 0, 1));
    client.close_channel(1);
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn multiple_acknowledges_everything_up_to_the_tag() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c", "d"]);
    client.ack(2);
    client.ack_through(3);
    assert_eq!(world.counts("q"), (0, 1, 1));
    client.close_channel(1);
    client.open_channel(1);
    assert_eq!(client.pop_all("q"), ["d"]);
}

#[test]
fn tag_zero_with_multiple_acknowledges_all_there_are_even_none() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b"]);
    client.ack_through(0);
    assert_eq!(world.counts("q"), (0, 0, 1));
    client.ack_through(0);
    client.tell(nack(0, true, true));
}

#[test]
fn a_tag_that_is_not_waiting_is_unknown() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c"]);
    client.ack(2);
    let ack = |delivery_tag, multiple| basic::Ack { delivery_tag, multiple };
    assert_eq!(client.refused(ack(99, false)), unknown(99));
    for (method, tag) in [
        (courser_codec::Method::from(ack(2, false)), 2),
        (ack(2, true).into(), 2),
        (ack(4, true).into(), 4),
        (ack(0, false).into(), 0),
        (nack(2, false, true).into(), 2),
        (nack(2, true, false).into(), 2),
        (basic::Reject { delivery_tag: 2, requeue: true }.into(), 2),
    ] {
        let mut client = holding(&World::new(), &["a", "b", "c"]);
        client.ack(2);
        assert_eq!(client.refused(method), unknown(tag), "{method:?}");
    }
}

#[test]
fn after_an_unknown_tag_everything_unacknowledged_returns() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c"]);
    client.ack(2);
    client.refused(basic::Ack { delivery_tag: 99, multiple: false });
    assert_eq!(client.pop_all("q"), ["a", "c"]);
}

#[test]
fn tags_belong_to_their_channel() {
    let world = World::new();
    let mut client = holding(&world, &["a"]);
    client.open_channel(2);
    let ack = basic::Ack { delivery_tag: 1, multiple: false };
    let answer = client.call_on(2, ack);
    assert_eq!(answer, crate::support::Heard::ChannelClosed(unknown(1)));
    client.ack(1);
}

#[test]
fn tags_count_from_one_again_on_a_channel_opened_anew() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b"]);
    client.close_channel(1);
    client.open_channel(1);
    client.consume("q");
    let tags: Vec<u64> = client.deliveries().iter().map(|delivery| delivery.tag).collect();
    assert_eq!(tags, [1, 2]);
}

#[test]
fn a_refused_message_is_gone_unless_it_is_to_be_requeued() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c", "d", "e"]);
    client.tell(nack(1, false, false));
    client.tell(basic::Reject { delivery_tag: 2, requeue: false });
    client.tell(nack(4, true, false));
    assert_eq!(world.counts("q"), (0, 1, 1));
    client.tell(basic::Reject { delivery_tag: 5, requeue: true });
    let [again] = &client.deliveries()[..] else { panic!("one delivery") };
    assert_eq!((again.text(), again.tag, again.redelivered), ("e", 6, true));
}

#[test]
fn nack_multiple_requeues_everything_up_to_the_tag_in_order() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c", "d"]);
    client.ack(2);
    client.tell(nack(3, true, true));
    assert_eq!(client.bodies(), ["a", "c"]);
    client.tell(nack(0, true, true));
    assert_eq!(client.bodies(), ["a", "c", "d"]);
}

#[test]
fn recover_brings_everything_unacknowledged_back_in_order() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b", "c"]);
    client.ack(2);
    client.recover();
    let again = client.deliveries();
    let seen: Vec<_> = again.iter().map(|one| (one.text(), one.tag, one.redelivered)).collect();
    assert_eq!(seen, [("a", 4, true), ("c", 5, true)]);
    client.tell(basic::RecoverAsync { requeue: true });
    assert_eq!(client.bodies(), ["a", "c"]);
}

#[test]
fn what_recover_takes_back_comes_again_behind_its_answer() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b"]);
    client.tell(basic::Recover { requeue: true });
    let heard = client.heard();
    assert_eq!(heard[0], Heard::Done("basic.recover-ok"));
    let again = |heard: &Heard| matches!(heard, Heard::Delivery(again) if again.redelivered);
    assert!(heard[1..].iter().all(again), "{heard:?}");
    assert_eq!(heard.len(), 3);
}

#[test]
fn recover_of_two_queues_keeps_the_order_of_each() {
    let world = World::new();
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    client.declare("r");
    client.fill("q", &["1", "2"]);
    client.fill("r", &["x"]);
    let first = other.get("q").expect("the first");
    client.consume("q");
    client.consume("r");
    other.requeue(first.tag);
    assert_eq!(client.bodies(), ["2", "x", "1"]);
    client.recover();
    let again = client.deliveries();
    let of_q = |one: &&crate::support::Delivery| one.routing_key == "q";
    let of_q: Vec<&str> = again.iter().filter(of_q).map(|one| one.text()).collect();
    assert_eq!(of_q, ["1", "2"]);
}

#[test]
fn recover_without_requeue_is_not_implemented() {
    let world = World::new();
    let text = "540 NOT_IMPLEMENTED - requeue=false";
    assert_eq!(world.connect().fatal(basic::Recover { requeue: false }), text);
    assert_eq!(world.connect().fatal(basic::RecoverAsync { requeue: false }), text);
}

#[test]
fn settling_with_a_message_of_a_deleted_queue_is_fine() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b"]);
    client.delete("q");
    client.heard();
    client.ack(1);
    client.requeue(2);
    client.declare("q");
    assert_eq!(world.counts("q"), (0, 0, 0));
}

#[test]
fn settlements_and_publishes_of_one_read_take_effect_in_order() {
    let world = World::new();
    let mut client = holding(&world, &["a", "b"]);
    let requeue = basic::Nack { delivery_tag: 2, multiple: false, requeue: true };
    client.read(&[
        Step::Call(1, basic::Ack { delivery_tag: 1, multiple: false }.into()),
        Step::Publish(1, Message::new("", "q", "c")),
        Step::Call(1, requeue.into()),
        Step::Call(1, basic::Get { queue: short("q"), no_ack: true }.into()),
    ]);
    assert_eq!(client.bodies(), ["c", "b"]);
    assert_eq!(world.counts("q"), (0, 2, 1));
}
