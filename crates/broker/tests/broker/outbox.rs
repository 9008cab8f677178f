//! What waits for a client that does not read: bounded, and no other client's problem.

use crate::streams::{read, stream};
use crate::support::{Message, Step, World};
use courser_broker::Limits;
use std::time::Duration;

const HIGH: usize = 20_000;
const BODY: usize = 1000;

fn world() -> World {
    World::with(Limits { outbox_high_bytes: HIGH, ..Limits::default() })
}

fn publish(client: &mut crate::support::Client, count: usize) {
    let step = Step::Publish(1, Message::new("", "q", vec![b'x'; BODY]));
    client.read(&vec![step; count]);
}

#[test]
fn a_consumer_that_does_not_read_is_given_no_more_than_its_outbox_holds() {
    let world = world();
    let (mut publisher, mut stuck) = (world.connect(), world.connect());
    publisher.declare("q");
    stuck.consume("q");
    for _ in 0..20 {
        publish(&mut publisher, 50);
    }
    let (ready, unacked, _) = world.counts("q");
    assert_eq!(ready + unacked, 1000);
    // Frames around the body take some bytes of the bound.
    assert!((HIGH / BODY - 3..=HIGH / BODY + 1).contains(&unacked), "{unacked}");
}

#[test]
fn it_goes_on_in_order_as_soon_as_it_reads() {
    let world = world();
    let (mut publisher, mut stuck) = (world.connect(), world.connect());
    publisher.declare("q");
    stuck.consume_no_ack("q");
    let number = |number: usize| Message::new("", "q", format!("{number:01000}"));
    let steps: Vec<_> = (0..200).map(|at| Step::Publish(1, number(at))).collect();
    publisher.read(&steps);
    let seen: Vec<usize> =
        stuck.bodies().iter().map(|body| body.parse().expect("a number")).collect();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    publish(&mut publisher, 5);
    assert_eq!(stuck.bodies().len(), 5);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn one_stuck_consumer_does_not_keep_messages_from_another() {
    let world = world();
    let (mut publisher, mut stuck, mut other) = (world.connect(), world.connect(), world.connect());
    publisher.declare("q");
    stuck.consume_no_ack("q");
    other.consume_no_ack("q");
    let mut seen = 0;
    for _ in 0..50 {
        publish(&mut publisher, 20);
        seen += other.deliveries().len();
    }
    assert_eq!(world.counts("q").0, 0);
    assert!(seen >= 1000 - (HIGH / BODY + 1), "{seen}");
    assert_eq!(seen + stuck.deliveries().len(), 1000);
}

#[test]
fn a_stuck_connections_other_queues_stop_too_and_all_go_on_together() {
    let world = world();
    let (mut publisher, mut stuck) = (world.connect(), world.connect());
    for queue in ["q", "r", "s"] {
        publisher.declare(queue);
        stuck.consume_no_ack(queue);
        publisher.bind(queue, "amq.fanout", "");
    }
    for _ in 0..50 {
        publisher.send(Message::new("amq.fanout", "", vec![b'x'; BODY]));
    }
    let waiting: usize = ["q", "r", "s"].iter().map(|queue| world.counts(queue).0).sum();
    assert!(waiting >= 150 - (HIGH / BODY + 1), "{waiting}");
    assert_eq!(stuck.deliveries().len(), 150);
}

#[test]
fn one_message_larger_than_the_bound_still_goes_out() {
    let world = world();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.consume_no_ack("q");
    let large = Message::new("", "q", vec![b'x'; HIGH * 5]);
    publisher.read(&[Step::PublishLarge(1, large.clone()), Step::PublishLarge(1, large)]);
    assert_eq!(world.counts("q").0, 1);
    assert_eq!(consumer.deliveries().len(), 2);
}

#[test]
fn a_stuck_consumer_that_goes_gives_back_what_it_was_not_sent() {
    let world = world();
    let (mut publisher, mut stuck) = (world.connect(), world.connect());
    publisher.declare("q");
    stuck.consume("q");
    publish(&mut publisher, 100);
    stuck.disconnect();
    assert_eq!(world.counts("q"), (100, 0, 0));
}

#[test]
fn cancelling_a_stuck_consumer_leaves_the_rest_to_others() {
    let world = world();
    let (mut publisher, mut stuck, mut other) = (world.connect(), world.connect(), world.connect());
    publisher.declare("q");
    let tag = stuck.consume_no_ack("q");
    publish(&mut publisher, 100);
    let waiting = world.counts("q").0;
    assert!(waiting >= 100 - (HIGH / BODY + 1));
    // The request is read before anything of the outbox is sent.
    stuck.tell(courser_codec::basic::Cancel {
        consumer_tag: crate::support::short(&tag),
        nowait: true,
    });
    other.consume_no_ack("q");
    assert_eq!(other.deliveries().len(), waiting);
}

#[test]
fn a_publisher_waits_for_consumers_until_they_have_worked_off_half_of_the_backlog() {
    let world = World::with(Limits { pace_backlog: 10, ..Limits::default() });
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.qos(1);
    consumer.consume("q");
    publisher.fill("q", &["x"; 12]);
    let pace = flush_one(&mut publisher).expect("behind by more than 10");
    assert!(pace.wait_on(Duration::ZERO));
    for tag in 1..=6 {
        consumer.ack(tag);
    }
    assert!(pace.wait_on(Duration::ZERO), "6 wait");
    consumer.ack(7);
    assert!(!pace.wait_on(Duration::ZERO), "5 wait");
    assert!(flush_one(&mut publisher).is_none());
}

#[test]
fn publishers_that_wait_bring_10_000_messages_a_second_all_the_same() {
    let world = World::with(Limits { pace_backlog: 10, ..Limits::default() });
    let (mut publisher, mut other, mut consumer) =
        (world.connect(), world.connect(), world.connect());
    consumer.qos(1);
    for queue in ["q", "r"] {
        publisher.declare(queue);
        consumer.consume(queue);
        publisher.fill(queue, &["x"; 30]);
    }
    let pace = flush_one(&mut publisher).expect("behind by more than 10");
    let moment = Duration::from_micros(100);
    assert!(pace.wait_on(moment - Duration::from_nanos(1)));
    assert!(!pace.wait_on(moment), "it has published one");
    let of_other = other.publish_and_flush(&Message::new("", "r", "x")).expect("behind as well");
    assert!(pace.wait_on(moment), "each of two queues has half of them");
    assert!(of_other.wait_on(moment));
    assert!(!pace.wait_on(2 * moment));
    drop(of_other);
    assert!(!pace.wait_on(moment));
}

#[test]
fn queues_whose_publishers_wait_share_the_backlog_that_one_may_have() {
    let world = World::with(Limits { pace_backlog: 64, ..Limits::default() });
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    consumer.qos(1);
    for queue in ["q", "r"] {
        publisher.declare(queue);
        consumer.consume(queue);
    }
    publisher.fill("q", &["x"; 40]);
    assert!(flush_one(&mut publisher).is_none(), "40 of 64");
    let one = Message::new("", "r", "x");
    publisher.fill("r", &["x"; 70]);
    let waits = publisher.publish_and_flush(&one).expect("behind by more than 64");
    let waits_too = publisher.publish_and_flush(&one).expect("still behind");
    assert!(flush_one(&mut publisher).is_none(), "only one queue is behind");
    publisher.fill("q", &["x"; 30]);
    let of_q = flush_one(&mut publisher).expect("behind by more than 64");
    for tag in 1..=40 {
        consumer.ack(tag);
    }
    assert!(flush_one(&mut publisher).is_some(), "more than the half that it has of two");
    drop((waits, waits_too, of_q));
    assert!(flush_one(&mut publisher).is_none(), "less than the whole");
}

#[test]
fn consumers_that_take_next_to_nothing_are_not_waited_for() {
    let world = World::with(Limits { pace_backlog: 32, ..Limits::default() });
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    publisher.declare("q");
    consumer.qos(1);
    consumer.consume("q");
    publisher.fill("q", &["x"; 40]);
    for _ in 0..31 {
        assert!(flush_one(&mut publisher).expect("behind").wait_on(Duration::ZERO));
    }
    consumer.ack(1);
    let pace = flush_one(&mut publisher).expect("behind");
    assert!(!pace.wait_on(Duration::ZERO), "one of the last 32");
    for tag in 2..=4 {
        consumer.ack(tag);
    }
    for _ in 0..31 {
        assert!(!flush_one(&mut publisher).expect("behind").wait_on(Duration::ZERO));
    }
    let pace = flush_one(&mut publisher).expect("behind");
    assert!(pace.wait_on(Duration::ZERO), "three of the last 32");
}

/// Publishes one message; whom to keep pace with.
fn flush_one(publisher: &mut crate::support::Client) -> Option<courser_broker::Pace> {
    let message = Message::new("", "q", "x");
    publisher.publish_and_flush(&message)
}

#[test]
fn a_publisher_to_a_queue_without_consumers_is_not_slowed() {
    let world = World::with(Limits { pace_backlog: 10, ..Limits::default() });
    let mut publisher = world.connect();
    publisher.declare("q");
    publisher.fill("q", &["x"; 30]);
    assert!(flush_one(&mut publisher).is_none());
}

#[test]
fn a_busy_source_does_not_keep_a_connection_from_its_others() {
    let world = world();
    let (mut publisher, mut client) = (world.connect(), world.connect());
    for queue in ["busy", "busy too", "quiet"] {
        publisher.declare(queue);
        client.consume_no_ack(queue);
    }
    client.qos(60_000);
    for name in ["busy stream", "quiet stream"] {
        stream(&mut publisher, name);
        for _ in 0..2 {
            read(&mut client, name, "first");
        }
    }
    for (to, count) in [
        ("busy", 1000),
        ("busy too", 1000),
        ("busy stream", 1000),
        ("quiet", 10),
        ("quiet stream", 10),
    ] {
        publisher.read(&vec![Step::Publish(1, Message::new("", to, vec![b'x'; BODY])); count]);
    }
    let came: Vec<(String, String)> =
        client.deliveries().into_iter().map(|one| (one.routing_key, one.consumer)).collect();
    assert_eq!(came.len(), 4030);
    let mut firsts = std::collections::BTreeMap::new();
    for (nth, source) in came.iter().enumerate() {
        firsts.entry(source).or_insert(nth);
    }
    assert_eq!(firsts.len(), 7);
    // Two rounds of turns, each of which fills the outbox.
    let most = 2 * 7 * (HIGH / BODY + 1);
    assert!(firsts.values().all(|first| *first <= most), "{firsts:?}");
}
