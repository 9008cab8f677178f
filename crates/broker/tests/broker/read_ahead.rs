//! What queues and consumers of streams have read ahead of the log counts, has a limit, and is given back.

use crate::delayed::persistent;
use crate::streams::{stream, try_read};
use crate::support::{Client, Heard, Message, WorldOnDisk, allocated_bytes, declare_with};
use courser_broker::Limits;
use courser_codec::FieldTable;

const READERS: usize = 20;
const BODY_BYTES: usize = 500_000;
const LONG_BYTES: usize = 3 << 20;
/// Beyond what it has read ahead.
const SOME_BYTES: i64 = 200_000;

fn with_memory(memory_high_bytes: u64) -> WorldOnDisk {
    let world = WorldOnDisk::with(Limits { memory_high_bytes, ..Limits::default() });
    world.broker.set_time(1000);
    world
}

fn send(client: &mut Client, world: &WorldOnDisk, exchange: &str, key: &str, bytes: usize) {
    for _ in 0..3 {
        let body = vec![7; bytes];
        client.send(persistent(Message::new(exchange, key, body)));
        world.flush();
    }
}

/// Queues in each of which two messages wait behind one that was taken.
fn queues(world: &WorldOnDisk, bytes: usize) -> Client {
    let mut client = world.connect();
    let names: Vec<String> = (0..READERS).map(|nth| format!("q{nth}")).collect();
    for name in &names {
        declare_with(&mut client, name, true, &FieldTable::new());
        client.bind(name, "amq.fanout", "");
    }
    send(&mut client, world, "amq.fanout", "", bytes);
    for name in &names {
        assert!(client.get(name).is_some());
    }
    client
}

fn readers(world: &WorldOnDisk) -> u64 {
    world.broker.admin().memory_uses().readers
}

#[test]
fn what_a_queue_has_read_ahead_counts_until_it_is_not_used_any_more() {
    let world = with_memory(1 << 30);
    let client = queues(&world, BODY_BYTES);
    let (held, allocated) = (readers(&world), allocated_bytes());
    assert!(held >= (READERS * BODY_BYTES) as u64, "{held}");
    (2..=6).for_each(|second| world.tick_all(second * 1000));
    assert_eq!(readers(&world), 0);
    let freed = allocated - allocated_bytes();
    assert!((freed - held as i64).abs() < SOME_BYTES, "{freed} of {held}");
    drop(client);
}

#[test]
fn what_a_queue_reads_ahead_is_kept_while_it_is_used() {
    let world = with_memory(1 << 30);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    for _ in 0..100 {
        client.send(persistent(Message::new("", "q", vec![7; 100])));
    }
    world.flush();
    for second in 2..20 {
        assert!(client.get("q").is_some());
        let held = readers(&world);
        assert!(held > 0);
        world.tick_all(second * 1000);
        assert_eq!(readers(&world), held);
    }
    client.purge("q");
    assert_eq!(readers(&world), 0);
}

#[test]
fn all_that_was_read_ahead_has_a_limit() {
    let world = with_memory(8 << 20);
    let client = queues(&world, BODY_BYTES);
    let held = readers(&world);
    assert!((1..=1 << 20).contains(&held), "{held}");
    drop(client);
}

#[test]
fn no_queue_keeps_a_very_long_message_that_it_has_read() {
    let world = with_memory(1 << 30);
    let before = allocated_bytes();
    let mut client = queues(&world, LONG_BYTES);
    assert_eq!(readers(&world), 0);
    drop(client.heard());
    let grown = allocated_bytes() - before;
    // The disk is in memory, too.
    assert!(grown < (READERS * LONG_BYTES) as i64, "{grown}");
}

#[test]
fn a_queue_reads_very_long_messages_once_for_a_consumer_that_takes_one_at_a_time() {
    const MESSAGES: u64 = 16;
    const MESSAGE_BYTES: u64 = 3 << 19;
    let world = with_memory(1 << 30);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    for _ in 0..MESSAGES {
        client.send(persistent(Message::new("", "q", vec![7; MESSAGE_BYTES as usize])));
        world.flush();
    }
    client.qos(1);
    let before = world.disk().read_bytes();
    client.consume("q");
    for tag in 1..=MESSAGES {
        assert_eq!(client.deliveries().len(), 1);
        client.ack(tag);
    }
    assert_eq!(world.counts("q"), (0, 0, 1));
    let (read, all) = (world.disk().read_bytes() - before, MESSAGES * MESSAGE_BYTES);
    // A block is read to know how long a message is.
    assert!((all..all + all / 5).contains(&read), "{read} of {all}");
}

/// A client with many consumers of a stream, each of which has a message and no credit for more.
fn consumers(world: &WorldOnDisk) -> Client {
    let mut client = world.connect();
    stream(&mut client, "s");
    send(&mut client, world, "", "s", BODY_BYTES);
    client.qos(1);
    let from_first = FieldTable::new().with("x-stream-offset", "first");
    for _ in 0..READERS {
        assert!(matches!(try_read(&mut client, "s", &from_first), Heard::ConsumeOk(_)));
    }
    assert_eq!(client.deliveries().len(), READERS);
    client
}

#[test]
fn what_consumers_of_a_stream_have_read_ahead_counts_until_it_is_not_used_any_more() {
    let world = with_memory(1 << 30);
    let mut client = consumers(&world);
    let (held, allocated) = (readers(&world), allocated_bytes());
    assert!(held >= (READERS * BODY_BYTES) as u64, "{held}");
    // Its connection is never silent for long.
    for second in 2..=6 {
        world.tick_all(second * 1000);
        client.send(Message::new("amq.fanout", "", "to no queue"));
    }
    assert_eq!(readers(&world), 0);
    let freed = allocated - allocated_bytes();
    assert!((freed - held as i64).abs() < SOME_BYTES, "{freed} of {held}");
    // They go on where they were.
    client.ack_through(0);
    assert_eq!(client.deliveries().len(), READERS);
}

#[test]
fn all_that_consumers_of_streams_have_read_ahead_has_a_limit() {
    let world = with_memory(8 << 20);
    let client = consumers(&world);
    let held = readers(&world);
    assert!((1..=1 << 20).contains(&held), "{held}");
    drop(client);
}
