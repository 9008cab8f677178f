//! A limit of bytes for a queue that is long already: what waits is read in portions, the newest first.

use crate::support::{Client, Message, Step, World, WorldOnDisk, declare_with};
use courser_broker::steps;
use courser_codec::{FieldTable, basic};
use courser_journal::testing::Call;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than are packed together, and not a multiple of it.
const MESSAGES: usize = 3_333;
const NOW_MS: u64 = 1_000_000;

/// The body of the message with this number.
fn body(number: usize) -> String {
    format!("{number:0width$}", width = 4 + number % 7)
}

fn limit(bytes: usize) -> FieldTable {
    FieldTable::new().with("max-length-bytes", bytes as i64)
}

fn fill(client: &mut Client, arguments: &FieldTable) {
    declare_with(client, "q", true, arguments);
    let message = |number: usize| {
        Message::new("", "q", body(number)).with_properties(|properties| {
            properties.delivery_mode = Some(2);
            properties.priority = Some((number % 3) as u8);
        })
    };
    client.read(&(0..MESSAGES).map(|number| Step::Publish(1, message(number))).collect::<Vec<_>>());
}

/// How many of the last of `numbers` there may be.
fn left(numbers: &[usize], bytes: usize) -> &[usize] {
    let mut total = 0;
    let too_many = |number: &usize| {
        total += body(*number).len();
        total > bytes
    };
    &numbers[numbers.iter().rev().position(too_many).map_or(0, |left| numbers.len() - left)..]
}

fn assert_left(world: &World, client: &mut Client, numbers: &[usize]) {
    world.tick_all(NOW_MS);
    let expected: Vec<_> = numbers.iter().map(|number| body(*number)).collect();
    assert_eq!(client.pop_all("q"), expected);
}

#[test]
fn a_limit_of_bytes_for_a_long_queue_reads_what_waits_in_portions() {
    let world = WorldOnDisk::new();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    fill(&mut client, &FieldTable::new());
    let before = steps();
    world.give_policy("q", limit(9_000));
    assert!(steps() - before < 100, "{} steps, as there may be many queues", steps() - before);
    assert_left(&world, &mut client, left(&(0..MESSAGES).collect::<Vec<_>>(), 9_000));
}

#[test]
fn what_came_back_before_a_limit_of_bytes_counts_as_what_is_oldest() {
    for (returned, bytes) in [(700, 20_000), (700, 23_000), (MESSAGES, 9_000)] {
        let world = WorldOnDisk::new();
        world.broker.set_time(NOW_MS);
        let mut client = world.connect();
        fill(&mut client, &FieldTable::new());
        (0..returned).for_each(|_| drop(client.get("q").expect("it waits")));
        client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: true });
        world.give_policy("q", limit(bytes));
        assert_left(&world, &mut client, left(&(0..MESSAGES).collect::<Vec<_>>(), bytes));
    }
}

#[test]
fn what_comes_and_goes_while_sizes_are_read_is_counted_once() {
    let world = WorldOnDisk::new();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    fill(&mut client, &FieldTable::new());
    world.give_policy("q", limit(18_000));
    let first = client.get("q").expect("it waits");
    assert_eq!(client.get("q").map(|second| second.text().to_owned()), Some(body(1)));
    client.requeue(first.tag);
    let (x, y) = ("x".repeat(100), "y".repeat(100));
    client.fill("q", &[x.as_str(), y.as_str()]);
    world.tick_all(NOW_MS);
    let waits: Vec<_> = (0..MESSAGES).filter(|number| *number != 1).collect();
    let mut expected: Vec<_> = left(&waits, 17_800).iter().map(|number| body(*number)).collect();
    expected.extend([x, y]);
    assert_eq!(client.pop_all("q"), expected);
}

#[test]
fn a_limit_of_bytes_for_a_long_queue_with_priorities_leaves_what_comes_last() {
    let world = WorldOnDisk::new();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    fill(&mut client, &FieldTable::new().with("x-max-priority", 2));
    let in_order: Vec<_> =
        (0..3).rev().flat_map(|rank| (0..MESSAGES).filter(move |one| one % 3 == rank)).collect();
    world.give_policy("q", limit(9_000));
    assert_left(&world, &mut client, left(&in_order, 9_000));
}

#[test]
fn a_limit_of_bytes_that_was_there_before_a_restart_holds_after_it() {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    fill(&mut client, &FieldTable::new());
    world.give_policy("q", limit(15_000));
    world.sync();
    client.disconnect();
    world.restart();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    client.send(Message::new("", "q", "z".repeat(1_000)));
    world.tick_all(NOW_MS);
    let mut expected: Vec<_> = left(&(0..MESSAGES).collect::<Vec<_>>(), 14_000)
        .iter()
        .map(|number| body(*number))
        .collect();
    expected.push("z".repeat(1_000));
    assert_eq!(client.pop_all("q"), expected);
}

/// Counts the messages that are read of the log from now on.
fn count_reads(world: &WorldOnDisk) -> Arc<AtomicUsize> {
    let reads = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&reads);
    world.store().set_faults(move |call| {
        counting.fetch_add(usize::from(call == Call::Read), Ordering::Relaxed);
        None
    });
    reads
}

/// A durable queue that is full with ten bytes in each of so many messages.
fn full_queue(client: &mut Client, messages: usize) {
    let limit = FieldTable::new().with("x-max-length-bytes", 10 * messages as i64);
    declare_with(client, "q", true, &limit);
    let message = Message::new("", "q", "x".repeat(10));
    let message = message.with_properties(|properties| properties.delivery_mode = Some(2));
    (0..messages).for_each(|_| client.send(message.clone()));
}

#[test]
fn after_a_restart_sizes_are_known_without_reading() {
    for restart in [WorldOnDisk::restart, WorldOnDisk::restart_from_checkpoint] {
        let mut world = WorldOnDisk::new();
        let mut client = world.connect();
        full_queue(&mut client, 300);
        client.disconnect();
        restart(&mut world);
        let reads = count_reads(&world);
        let mut client = world.connect();
        client.publish("", "q", "y");
        assert_eq!(world.counts("q").0, 300, "the oldest leaves at once");
        assert!(reads.load(Ordering::Relaxed) <= 1, "only the head is read, which might expire");
    }
}

#[test]
fn what_comes_back_is_counted_without_reading() {
    let world = WorldOnDisk::without_memory();
    let mut client = world.connect();
    full_queue(&mut client, 20);
    (0..20).for_each(|_| drop(client.get("q").expect("it waits")));
    let reads = count_reads(&world);
    client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: true });
    client.publish("", "q", "y");
    assert_eq!(world.counts("q").0, 20);
    assert_eq!(reads.load(Ordering::Relaxed), 0);
}

#[test]
fn sizes_that_are_not_known_are_read_in_portions() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    full_queue(&mut client, 400);
    client.disconnect();
    world.restart_without_sizes();
    let reads = count_reads(&world);
    let mut client = world.connect();
    client.publish("", "q", "y");
    let read = reads.load(Ordering::Relaxed);
    assert!((1..200).contains(&read), "{read}");
    world.tick_all(NOW_MS);
    assert_eq!(world.counts("q").0, 400);
}
