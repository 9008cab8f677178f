//! Which consumer gets the next message: turns, priorities, and no consumer left out.

use crate::support::{Client, Message, Step, World, WorldOnDisk, declare_with, lasting, short};
use courser_codec::{FieldTable, Table, basic};
use std::thread;
use std::time::Duration;

/// How long a test waits for what never comes if something is wrong.
const STUCK: Duration = Duration::from_secs(60);

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

fn fill(client: &mut Client, count: usize) {
    let bodies = numbers(count);
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    client.fill("q", &bodies);
}

fn consume_with_priority(client: &mut Client, priority: i32) {
    let entries = FieldTable::new().with("x-priority", priority).to_entries();
    client.consume_with(basic::Consume {
        queue: short("q"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    });
}

#[test]
fn consumers_take_turns() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let mut consumers = [world.connect(), world.connect(), world.connect()];
    for consumer in &mut consumers {
        consumer.consume_no_ack("q");
    }
    fill(&mut publisher, 9);
    for (nth, consumer) in consumers.iter_mut().enumerate() {
        let expected: Vec<String> = [nth, nth + 3, nth + 6].map(|n| n.to_string()).into();
        assert_eq!(consumer.bodies(), expected);
    }
    for _ in 0..3 {
        publisher.publish("", "q", "single");
    }
    for consumer in &mut consumers {
        assert_eq!(consumer.bodies(), ["single"], "also over several reads");
    }
}

#[test]
fn what_has_expired_takes_no_consumers_turn() {
    let world = World::new();
    world.broker.set_time(1000);
    let (mut first, mut second) = (world.connect(), world.connect());
    first.declare("q");
    first.consume("q");
    first.send(Message::new("", "q", "at once or never").expiration("0"));
    assert_eq!(first.deliveries().len(), 1);
    second.consume("q");
    first.requeue(1);
    assert_eq!(world.counts("q"), (0, 0, 2));
    first.publish("", "q", "next");
    assert_eq!((first.bodies(), second.bodies()), (vec!["next".to_owned()], vec![]));
}

#[test]
fn consumers_of_one_channel_take_turns_too() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tags = [client.consume_no_ack("q"), client.consume_no_ack("q")];
    fill(&mut client, 4);
    let order: Vec<String> = client.deliveries().into_iter().map(|one| one.consumer).collect();
    assert_eq!(order, [&*tags[0], &*tags[1], &*tags[0], &*tags[1]]);
}

#[test]
fn a_backlog_is_shared_fairly_by_consumers_that_acknowledge() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    fill(&mut publisher, 300);
    let mut consumers = [world.connect(), world.connect(), world.connect()];
    for consumer in &mut consumers {
        consumer.qos(2);
        consumer.consume("q");
    }
    let mut counts = [0; 3];
    while world.counts("q") != (0, 0, 3) {
        for (consumer, count) in consumers.iter_mut().zip(&mut counts) {
            for delivery in consumer.deliveries() {
                consumer.ack(delivery.tag);
                *count += 1;
            }
        }
    }
    assert_eq!(counts.iter().sum::<i32>(), 300);
    assert!(counts.iter().all(|count| (80..=120).contains(count)), "{counts:?}");
}

#[test]
fn a_consumer_that_joins_later_is_not_left_out() {
    let world = World::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    first.declare("q");
    first.consume_no_ack("q");
    fill(&mut first, 5);
    assert_eq!(first.bodies().len(), 5);
    second.consume_no_ack("q");
    fill(&mut first, 4);
    assert_eq!((first.bodies().len(), second.bodies().len()), (2, 2));
}

#[test]
fn turns_go_on_when_a_consumer_leaves() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let mut consumers: Vec<Client> = (0..4).map(|_| world.connect()).collect();
    for consumer in &mut consumers {
        consumer.consume_no_ack("q");
    }
    fill(&mut publisher, 5);
    consumers.remove(1).disconnect();
    consumers.remove(2).disconnect();
    for consumer in &mut consumers {
        consumer.bodies();
    }
    fill(&mut publisher, 6);
    assert_eq!(consumers[0].bodies().len(), 3);
    assert_eq!(consumers[1].bodies().len(), 3);
}

#[test]
fn a_higher_priority_gets_everything_that_it_can_take() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let (mut low, mut normal, mut high) = (world.connect(), world.connect(), world.connect());
    for consumer in [&mut low, &mut normal, &mut high] {
        consumer.qos(2);
    }
    consume_with_priority(&mut low, -5);
    normal.consume("q");
    consume_with_priority(&mut high, 10);
    fill(&mut publisher, 5);
    assert_eq!(high.bodies(), ["0", "1"]);
    assert_eq!(normal.bodies(), ["2", "3"]);
    assert_eq!(low.bodies(), ["4"]);
    high.ack(1);
    publisher.publish("", "q", "next");
    assert_eq!(high.bodies(), ["next"]);
    assert_eq!(low.bodies(), Vec::<String>::new());
}

#[test]
fn equal_priorities_take_turns() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let mut consumers = [world.connect(), world.connect(), world.connect()];
    for (consumer, priority) in consumers.iter_mut().zip([1, 1, 0]) {
        consume_with_priority(consumer, priority);
    }
    fill(&mut publisher, 6);
    let counts: Vec<usize> = consumers.iter_mut().map(|one| one.bodies().len()).collect();
    assert_eq!(counts, [3, 3, 0]);
}

#[test]
fn many_consumers_of_one_queue_all_get_something() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let tags: Vec<String> = (0..1000).map(|_| client.consume_no_ack("q")).collect();
    fill(&mut client, 1000);
    let mut served: Vec<String> = client.deliveries().into_iter().map(|one| one.consumer).collect();
    assert_eq!(served, tags);
    served.dedup();
    assert_eq!(served.len(), 1000);
    assert_eq!(world.counts("q"), (0, 0, 1000));
}

#[test]
fn a_channel_that_closes_takes_no_turn_from_who_consumes_since_then() {
    let world = WorldOnDisk::new();
    let (mut first, mut second) = (world.connect(), world.connect());
    let limit = FieldTable::new().with("x-delivery-limit", 5_i64);
    declare_with(&mut first, "p", true, &limit);
    first.declare("q");
    for (queue, body) in [("p", "p1"), ("q", "q1"), ("q", "q2"), ("q", "q3")] {
        let message = Message::new("", queue, body);
        let message = message.with_properties(|of| of.delivery_mode = Some(2));
        first.read(&[Step::Publish(1, message)]);
    }
    world.flush();
    // A limit of each consumer and one of the channel.
    first.qos(1);
    first.qos_global(5);
    first.consume("p");
    first.consume("q");
    assert_eq!(first.bodies(), ["p1", "q1"]);
    second.qos(1);
    world.flush();
    let (held, begun, release) = lasting();
    world.store().before_next_append(held);
    // What p gets back is told to the log before q gets anything back; a consumer comes meanwhile.
    thread::scope(|scope| {
        scope.spawn(|| first.disconnect());
        begun.recv_timeout(STUCK).expect("the log is told");
        second.consume("q");
        release.send(()).expect("it waits");
    });
    assert_eq!(second.bodies(), ["q2"]);
    second.ack_through(0);
    assert_eq!(second.bodies(), ["q1"]);
}
