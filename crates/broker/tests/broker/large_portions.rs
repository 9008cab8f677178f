//! Large messages that expire, are refused or fit no frames together: the bytes of what is done at once are bounded as well as its number.

use crate::long_headers::with_header;
use crate::support::{Client, Message, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, basic};

const T0: u64 = 1_000_000;
const TTL_MS: u64 = 100;
const MIB: u64 = 1 << 20;
const LARGE: usize = 32;
/// More than one portion of what no client gets, and much less than all.
const PORTION_BYTES_MAX: u64 = 8 * MIB;

fn ttl() -> FieldTable {
    FieldTable::new().with("x-message-ttl", TTL_MS as i64)
}

fn persistent(queue: &str, bytes: u64) -> Message {
    let message = Message::new("", queue, vec![b'm'; bytes as usize]);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// A queue `many` with large messages, and a queue `one` with a small one, which expire together; read of the log alone.
fn expiring() -> WorldOnDisk {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(T0);
    let mut client = world.connect();
    ["many", "one"].iter().for_each(|queue| declare_with(&mut client, queue, true, &ttl()));
    (0..LARGE).for_each(|_| client.send(persistent("many", MIB)));
    client.send(persistent("one", 1));
    world.sync();
    client.disconnect();
    world.restart();
    world.broker.set_time(T0);
    world
}

#[test]
fn a_queue_with_large_messages_to_expire_holds_up_no_other() {
    let world = expiring();
    let before = world.disk().read_bytes();
    // One turn of each timer.
    for _ in 0..2 {
        world.broker.tick(T0 + TTL_MS);
    }
    let read = world.disk().read_bytes() - before;
    assert!(read < PORTION_BYTES_MAX, "{read}");
    assert_eq!(world.counts("one"), (0, 0, 0));
    assert!(world.counts("many").0 > 0);
    world.tick_all(T0 + TTL_MS);
    assert_eq!(world.counts("many"), (0, 0, 0));
}

#[test]
fn large_messages_that_expire_before_a_consumer_do_so_in_portions() {
    let world = expiring();
    world.broker.set_time(T0 + TTL_MS);
    let mut client = world.connect();
    client.send(persistent("one", 1));
    let before = world.disk().read_bytes();
    client.consume("many");
    let read = world.disk().read_bytes() - before;
    assert!(read < PORTION_BYTES_MAX, "{read}");
    assert!(world.counts("many").0 > 0);
    world.tick_all(T0 + TTL_MS);
    assert_eq!(world.counts("many").0, 0);
    assert_eq!(client.deliveries().len(), 0);
}

/// Refuses all messages of `many` together.
fn refuse_all(client: &mut Client) {
    client.consume("many");
    let last = client.deliveries().last().expect("messages").tag;
    client.tell(basic::Nack { delivery_tag: last, multiple: true, requeue: false });
}

#[test]
fn sizes_of_large_messages_are_read_in_portions() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "many", true, &FieldTable::new());
    (0..LARGE).for_each(|_| client.send(persistent("many", MIB)));
    world.sync();
    client.disconnect();
    world.restart_without_sizes();
    let before = world.disk().read_bytes();
    let most = (LARGE as u64 / 2 * MIB) as i64;
    world.give_policy("many", FieldTable::new().with("max-length-bytes", most));
    world.connect().send(persistent("many", 1));
    let read = world.disk().read_bytes() - before;
    assert!((MIB..PORTION_BYTES_MAX).contains(&read), "{read}");
    world.tick_all(T0);
    assert_eq!(world.counts("many").0, LARGE / 2);
}

#[test]
fn large_dead_letters_are_posted_in_portions() {
    let world = WorldOnDisk::new();
    world.broker.set_time(T0);
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    let to_dead = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead");
    declare_with(&mut client, "many", true, &to_dead);
    (0..LARGE).for_each(|_| client.send(persistent("many", MIB)));
    refuse_all(&mut client);
    let posted = world.counts("dead").0;
    assert!((1..LARGE * 3 / 4).contains(&posted), "{posted}");
    world.tick_all(T0);
    assert_eq!(world.counts("dead").0, LARGE);
    assert_eq!(world.counts("many"), (0, 0, 1));
}

#[test]
fn large_dead_letters_that_no_queue_takes_are_read_in_portions() {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(T0);
    let mut client = world.connect();
    let careful = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "many", true, &careful);
    (0..LARGE).for_each(|_| client.send(persistent("many", MIB)));
    world.sync();
    client.disconnect();
    world.restart();
    world.broker.set_time(T0);
    let mut client = world.connect();
    client.consume("many");
    while client.deliveries().last().is_none_or(|last| last.tag < LARGE as u64) {
        world.tick_all(T0);
    }
    let before = world.disk().read_bytes();
    client.tell(basic::Nack { delivery_tag: 0, multiple: true, requeue: false });
    let read = world.disk().read_bytes() - before;
    assert!(read < LARGE as u64 * 3 / 4 * MIB, "{read}");
    world.tick_all(T0);
    declare_with(&mut client, "dead", true, &FieldTable::new());
    (1..=3).for_each(|tried| world.tick_all(T0 + tried * 1000));
    assert_eq!(world.counts("dead").0, LARGE);
}

/// A queue `many` with `count` large messages that do not fit the frames of `small`, and a last one that does; read of the log alone.
fn unfit(count: usize) -> (WorldOnDisk, Client) {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "many", true, &FieldTable::new());
    let body = "m".repeat(MIB as usize);
    let persist =
        |message: Message| message.with_properties(|properties| properties.delivery_mode = Some(2));
    (0..count).for_each(|_| client.send(persist(with_header("many", &body, 5000))));
    client.send(persist(Message::new("", "many", "last")));
    world.sync();
    client.disconnect();
    world.restart();
    world.broker.set_time(T0);
    let small = world.connect_with_frame_max(4096);
    (world, small)
}

#[test]
fn large_messages_that_fit_no_consumer_are_set_aside_in_portions() {
    let (world, mut small) = unfit(LARGE);
    let before = world.disk().read_bytes();
    small.consume("many");
    let read = world.disk().read_bytes() - before;
    assert!(read < PORTION_BYTES_MAX, "{read}");
    assert!(world.counts("many").0 > 0);
    world.tick_all(T0);
    assert_eq!(small.bodies(), ["last"]);
    assert_eq!(world.counts("many"), (0, LARGE + 1, 1));
}

#[test]
fn a_poll_passes_over_a_bounded_number_of_bytes() {
    let (world, mut small) = unfit(2 * LARGE);
    let before = world.disk().read_bytes();
    let polled = small.pop("many");
    let read = world.disk().read_bytes() - before;
    assert!(read < LARGE as u64 * MIB, "{read}");
    assert_eq!(polled, None);
    assert_eq!(world.counts("many"), (2 * LARGE + 1, 0, 0));
}

#[test]
fn a_poll_finds_what_is_behind_a_few_large_messages() {
    let (_world, mut small) = unfit(LARGE / 4);
    assert_eq!(small.pop("many"), Some("last".into()));
}
