//! `x-max-priority`: what matters more is delivered first, what matters as much in its order.

use crate::support::{Client, Message, Step, World, WorldOnDisk, short};
use courser_codec::{FieldTable, Table, queue};
use proptest::prelude::*;
use std::cmp::Reverse;

fn declare(client: &mut Client, highest: u8) {
    let entries = FieldTable::new().with("x-max-priority", highest).to_entries();
    let arguments = Table::from_entries(&entries);
    client.tell(queue::Declare {
        queue: short("q"),
        durable: true,
        nowait: true,
        arguments,
        ..Default::default()
    });
}

fn message(body: &str, priority: Option<u8>) -> Message {
    Message::new("", "q", body).with_properties(|properties| {
        properties.priority = priority;
        properties.delivery_mode = Some(2);
    })
}

/// Publishes messages named after their priority and their number, all in one read.
fn fill(client: &mut Client, priorities: &[u8]) {
    let steps: Vec<_> = priorities
        .iter()
        .enumerate()
        .map(|(nth, priority)| {
            Step::Publish(1, message(&format!("{priority}.{nth}"), Some(*priority)))
        })
        .collect();
    client.read(&steps);
}

#[test]
fn higher_priorities_come_first_and_equal_ones_in_their_order() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 10);
    fill(&mut client, &[1, 5, 0, 10, 5, 1]);
    assert_eq!(client.pop_all("q"), ["10.3", "5.1", "5.4", "1.0", "1.5", "0.2"]);
    fill(&mut client, &[5, 10, 5]);
    client.consume_no_ack("q");
    assert_eq!(client.bodies(), ["10.1", "5.0", "5.2"]);
}

#[test]
fn no_priority_is_the_lowest_and_more_than_the_queue_has_is_its_highest() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 3);
    client.send(message("none", None));
    client.send(message("highest", Some(3)));
    client.send(message("beyond", Some(200)));
    client.send(message("one", Some(1)));
    assert_eq!(client.pop_all("q"), ["highest", "beyond", "one", "none"]);
}

#[test]
fn all_255_priorities_are_kept_apart() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 255);
    let priorities: Vec<u8> = (0..=255).collect();
    fill(&mut client, &priorities);
    assert_eq!(world.counts("q"), (256, 0, 0));
    let expected: Vec<String> = (0..=255).rev().map(|one| format!("{one}.{one}")).collect();
    assert_eq!(client.pop_all("q"), expected);
}

#[test]
fn priorities_do_not_matter_to_a_queue_without_them() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    fill(&mut client, &[0, 9, 5]);
    assert_eq!(client.pop_all("q"), ["0.0", "9.1", "5.2"]);
}

#[test]
fn a_consumer_that_waits_gets_what_comes_as_it_comes() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 9);
    client.qos(2);
    client.consume("q");
    fill(&mut client, &[0, 1, 2, 9, 5]);
    assert_eq!(client.bodies(), ["0.0", "1.1"]);
    client.ack_through(2);
    assert_eq!(client.bodies(), ["9.3", "5.4"]);
    client.ack_through(4);
    assert_eq!(client.bodies(), ["2.2"]);
}

#[test]
fn a_requeued_message_returns_to_its_place_among_those_of_its_priority() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 9);
    fill(&mut client, &[5, 5, 5, 1, 1]);
    let tags: Vec<u64> = (0..5).map(|_| client.get("q").expect("a message").tag).collect();
    fill(&mut client, &[5, 9, 1]);
    for tag in [tags[4], tags[1], tags[3]] {
        client.requeue(tag);
    }
    assert_eq!(client.pop_all("q"), ["9.1", "5.1", "5.0", "1.3", "1.4", "1.2"]);
    client.requeue(tags[2]);
    client.requeue(tags[0]);
    assert_eq!(client.pop_all("q"), ["5.0", "5.2"]);
}

#[test]
fn what_went_straight_to_a_consumer_returns_to_its_priority() {
    let world = World::new();
    let (mut publisher, mut consumer) = (world.connect(), world.connect());
    declare(&mut publisher, 9);
    consumer.qos(3);
    consumer.consume("q");
    fill(&mut publisher, &[1, 9, 1, 9, 1]);
    assert_eq!(consumer.bodies(), ["1.0", "9.1", "1.2"]);
    consumer.disconnect();
    let got: Vec<_> = std::iter::from_fn(|| publisher.get("q")).collect();
    let bodies: Vec<&str> = got.iter().map(|one| one.text()).collect();
    assert_eq!(bodies, ["9.1", "9.3", "1.0", "1.2", "1.4"]);
    let redelivered: Vec<bool> = got.iter().map(|one| one.redelivered).collect();
    assert_eq!(redelivered, [true, false, true, true, false]);
}

#[test]
fn a_purge_empties_all_priorities() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 9);
    fill(&mut client, &[0, 5, 9]);
    let unacked = client.get("q").expect("a message").tag;
    client.purge("q");
    assert_eq!(world.counts("q"), (0, 1, 0));
    fill(&mut client, &[9, 0]);
    client.requeue(unacked);
    assert_eq!(client.pop_all("q"), ["9.2", "9.0", "0.1"]);
}

#[test]
fn priorities_survive_a_restart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare(&mut client, 9);
    fill(&mut client, &[1, 5, 0, 9, 5]);
    client.disconnect();
    world.restart();
    assert_eq!(world.counts("q"), (5, 0, 0));
    let mut client = world.connect();
    assert_eq!(client.get("q").expect("a message").text(), "9.3");
    fill(&mut client, &[9, 5]);
    client.disconnect();
    world.restart_from_checkpoint();
    let mut client = world.connect();
    let bodies = ["9.3", "9.0", "5.1", "5.4", "5.1", "1.0", "0.2"];
    assert_eq!(client.pop_all("q"), bodies);
}

/// Something that happens to the queue.
#[derive(Clone, Debug)]
enum Op {
    Publish(u8),
    Get,
    Requeue(usize),
    Ack(usize),
    Restart,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => any::<u8>().prop_map(Op::Publish),
        4 => Just(Op::Get),
        2 => any::<usize>().prop_map(Op::Requeue),
        2 => any::<usize>().prop_map(Op::Ack),
        1 => Just(Op::Restart),
    ];
    prop::collection::vec(op, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_next_message_is_always_the_oldest_of_the_highest_priority(ops in ops()) {
        const HIGHEST: u8 = 20;
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        declare(&mut client, HIGHEST);
        // Number and priority of what waits, and of what is unacknowledged with its delivery tag.
        let mut waiting: Vec<(u8, usize)> = Vec::new();
        let mut unacked: Vec<((u8, usize), u64)> = Vec::new();
        for (nth, op) in ops.into_iter().enumerate() {
            match op {
                Op::Publish(priority) => {
                    client.send(message(&nth.to_string(), Some(priority)));
                    waiting.push((priority.min(HIGHEST), nth));
                }
                Op::Get => {
                    let next = waiting.iter().copied();
                    let next = next.min_by_key(|(priority, nth)| (Reverse(*priority), *nth));
                    let got = client.get("q");
                    let wanted = next.map(|(_, nth)| nth.to_string());
                    prop_assert_eq!(got.as_ref().map(|got| got.text().to_owned()), wanted);
                    if let (Some(next), Some(got)) = (next, got) {
                        waiting.retain(|one| *one != next);
                        unacked.push((next, got.tag));
                    }
                }
                Op::Requeue(which) if !unacked.is_empty() => {
                    let (one, tag) = unacked.swap_remove(which % unacked.len());
                    client.requeue(tag);
                    waiting.push(one);
                }
                Op::Ack(which) if !unacked.is_empty() => {
                    let (_, tag) = unacked.swap_remove(which % unacked.len());
                    client.ack(tag);
                }
                Op::Requeue(_) | Op::Ack(_) => {}
                Op::Restart => {
                    client.disconnect();
                    world.restart_from_checkpoint();
                    client = world.connect();
                    waiting.extend(unacked.drain(..).map(|(one, _)| one));
                }
            }
            prop_assert_eq!(world.counts("q"), (waiting.len(), unacked.len(), 0));
        }
    }
}

#[test]
fn a_highest_priority_of_zero_is_none() {
    let world = World::new();
    let mut client = world.connect();
    declare(&mut client, 0);
    fill(&mut client, &[1, 5, 0]);
    assert_eq!(client.pop_all("q"), ["1.0", "5.1", "0.2"]);
}
