//! Dead letters of which one is too large for the log, with the copies that exchanges on its way keep or without them.

use crate::many_keepers::{remembered, with_delays};
use crate::recent_history_beside_others::history;
use crate::support::{BATCH_BYTES, Client, Message, WorldOnDisk, declare_with, short};
use courser_codec::{FieldTable, basic, exchange};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// After so long a letter is tried again that was too large.
const MINUTE_MS: u64 = 60_000;
/// Delays that take a copy each of a letter.
const DELAYS: usize = 6;
/// Bytes of one that is too large for all of them together.
const LARGE: usize = BATCH_BYTES as usize / (DELAYS - 1);

/// A durable queue `q` whose dead letters wait in several delays, of which the first sends them to the durable queue `dead`.
fn with_letters_to_delays(world: &WorldOnDisk) -> Client {
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    with_delays(&mut client, DELAYS);
    declare_with(&mut client, "dead", true, &FieldTable::new());
    client.bind("dead", "d0", "");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "all");
    declare_with(&mut client, "q", true, &arguments);
    client
}

fn delayed() -> FieldTable {
    FieldTable::new().with("x-delay", 500)
}

/// Deletes all delays but the first.
fn leave_one_delay(client: &mut Client) {
    for nth in 1..DELAYS {
        let name = format!("d{nth}");
        let exchange = short(&name);
        client.call(exchange::Delete { exchange, ..Default::default() });
    }
}

/// Publishes a message that the client, who consumes from `q`, refuses.
fn reject_one(client: &mut Client, bytes: usize) {
    client.send(persistent(bytes).headers(delayed()));
    let delivery_tag = client.deliveries().remove(0).tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
}

/// A durable queue `q` whose dead letters go to the durable queue `dead`, and are remembered on the way.
fn declared(world: &WorldOnDisk) -> Client {
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    history(&mut client, "h", 20, true);
    declare_with(&mut client, "dead", true, &FieldTable::new());
    client.bind("dead", "h", "");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "h");
    declare_with(&mut client, "q", true, &arguments);
    client
}

/// Publishes messages of so many bytes to `q`, and refuses them together.
fn refuse_all(client: &mut Client, sizes: &[usize]) {
    sizes.iter().for_each(|size| client.send(persistent(*size)));
    refuse(client);
}

fn persistent(bytes: usize) -> Message {
    let message = Message::new("", "q", vec![b'm'; bytes]);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Refuses all messages of `q` together.
fn refuse(client: &mut Client) {
    client.consume("q");
    let last = client.deliveries().last().expect("messages").tag;
    client.tell(basic::Nack { delivery_tag: last, multiple: true, requeue: false });
}

fn lengths(bodies: &[String]) -> Vec<usize> {
    bodies.iter().map(String::len).collect()
}

#[test]
fn a_letter_that_is_too_large_with_its_copies_goes_without_them_and_holds_up_no_other() {
    let world = WorldOnDisk::new();
    let mut client = declared(&world);
    let large = BATCH_BYTES as usize / 2 + 1000;
    refuse_all(&mut client, &[1, 2, large, 3, 4]);
    assert_eq!(lengths(&client.pop_all("dead")), [1, 2, large, 3, 4]);
    assert_eq!(remembered(&mut client, "h"), [1, 2, 3, 4]);
    assert_eq!(world.counts("q"), (0, 0, 1));
}

#[test]
fn a_letter_that_is_too_large_alone_waits_and_holds_up_no_other() {
    let world = WorldOnDisk::new();
    let mut client = declared(&world);
    let mut appends = 0;
    world.store().set_faults(move |call| {
        // Behind the publishes come all letters together, the first alone, and that without copies.
        appends += usize::from(call == Call::Append);
        let is_too_large = call == Call::Append && (4..=6).contains(&appends);
        is_too_large.then_some(StoreError::TooLarge(1 << 30))
    });
    refuse_all(&mut client, &[1, 2, 3]);
    assert_eq!(lengths(&client.pop_all("dead")), [2, 3]);
    world.broker.tick(1_059_999);
    assert_eq!(lengths(&client.pop_all("dead")), [0; 0]);
    world.broker.tick(1_060_000);
    assert_eq!(lengths(&client.pop_all("dead")), [1]);
}

#[test]
fn letters_that_are_too_large_are_kept_within_the_limits_of_their_queue() {
    for (overflow, limit, most) in [
        ("drop-head", "x-max-length", 3),
        ("reject-publish", "x-max-length", 3),
        ("drop-head", "x-max-length-bytes", 35),
        ("reject-publish", "x-max-length-bytes", 35),
    ] {
        let world = WorldOnDisk::new();
        world.broker.set_time(1_000_000);
        let mut client = world.connect();
        declare_with(&mut client, "dead", true, &FieldTable::new());
        let arguments = FieldTable::new()
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "dead")
            .with("x-overflow", overflow)
            .with(limit, most);
        declare_with(&mut client, "q", true, &arguments);
        client.consume("q");
        for _ in 0..10 {
            // The consumer gets it at once, whatever waits elsewhere.
            client.send(persistent(10));
            let delivery_tag = client.deliveries().remove(0).tag;
            let too_large = StoreError::TooLarge(1 << 30);
            world.store().set_faults(move |call| (call == Call::Append).then(|| too_large.clone()));
            client.tell(basic::Reject { delivery_tag, requeue: false });
            world.broker.tick(world.broker.now_ms() + MINUTE_MS);
            world.store().set_faults(|_| None);
        }
        assert_eq!(client.pop_all("dead").len(), 0, "{overflow} {limit}");
        world.broker.tick(world.broker.now_ms() + MINUTE_MS);
        assert_eq!(client.pop_all("dead").len(), 3, "{overflow} {limit}");
    }
}

#[test]
fn a_letter_that_is_too_large_and_finds_no_room_has_no_kept_one_tried_again() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "dead")
        .with("x-max-length", 3);
    declare_with(&mut client, "q", true, &arguments);
    client.consume("q");
    let mut tried = Vec::new();
    for _ in 0..5 {
        client.send(persistent(10));
        let delivery_tag = client.deliveries().remove(0).tag;
        let appends = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&appends);
        world.store().set_faults(move |call| {
            (call == Call::Append).then(|| {
                seen.fetch_add(1, Ordering::Relaxed);
                StoreError::TooLarge(1 << 30)
            })
        });
        client.tell(basic::Reject { delivery_tag, requeue: false });
        world.broker.tick(1_000_000);
        world.store().set_faults(|_| None);
        tried.push(appends.load(Ordering::Relaxed));
    }
    // The new letter with copies, and without them.
    assert_eq!(tried, [2; 5]);
    world.broker.tick(1_000_000 + MINUTE_MS);
    assert_eq!(client.pop_all("dead").len(), 3);
}

#[test]
fn a_letter_that_arrives_has_none_tried_again_that_is_too_large() {
    let world = WorldOnDisk::new();
    let mut client = with_letters_to_delays(&world);
    client.consume("q");
    for _ in 0..3 {
        reject_one(&mut client, LARGE);
    }
    let appends = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&appends);
    world.store().set_faults(move |call| {
        seen.fetch_add(usize::from(call == Call::Append), Ordering::Relaxed);
        None
    });
    let mut taken = Vec::new();
    for _ in 0..5 {
        reject_one(&mut client, 1);
        world.broker.tick(1_000_000);
        taken.push(appends.swap(0, Ordering::Relaxed));
    }
    world.store().set_faults(|_| None);
    // The publish, and the letter.
    assert_eq!(taken, [2; 5]);
    leave_one_delay(&mut client);
    for now_ms in [1_000_000 + MINUTE_MS, 1_001_000 + MINUTE_MS, 1_002_000 + MINUTE_MS] {
        world.broker.tick(now_ms);
    }
    assert_eq!(lengths(&client.pop_all("dead")), [1, 1, 1, 1, 1, LARGE, LARGE, LARGE]);
}

#[test]
fn a_letter_that_is_too_large_for_all_delays_on_its_way_waits_until_it_is_not() {
    let world = WorldOnDisk::new();
    let mut client = with_letters_to_delays(&world);
    client.send(persistent(LARGE).headers(delayed()));
    refuse(&mut client);
    assert_eq!(world.counts("q"), (0, 0, 1));
    leave_one_delay(&mut client);
    for now_ms in [1_000_000 + MINUTE_MS, 1_001_000 + MINUTE_MS] {
        world.broker.tick(now_ms);
    }
    assert_eq!(lengths(&client.pop_all("dead")), [LARGE]);
}

#[test]
fn a_letter_that_is_too_large_is_tried_again_beside_many_that_have_no_way() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    declare_with(&mut client, "dead", true, &FieldTable::new());
    client.bind("dead", "amq.direct", "dead");
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "amq.direct")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &arguments);
    client.bind("q", "amq.fanout", "");
    client.consume("q");
    let receive = |client: &mut Client, key: &str| {
        let message = Message::new("amq.fanout", key, key);
        client.send(message.with_properties(|properties| properties.delivery_mode = Some(2)));
        client.deliveries().remove(0).tag
    };
    let delivery_tag = receive(&mut client, "dead");
    let too_large = StoreError::TooLarge(1 << 30);
    world.store().set_faults(move |call| (call == Call::Append).then(|| too_large.clone()));
    client.tell(basic::Reject { delivery_tag, requeue: false });
    world.store().heal();
    // More than are tried again in one go.
    for _ in 0..300 {
        let delivery_tag = receive(&mut client, "to no queue");
        client.tell(basic::Reject { delivery_tag, requeue: false });
    }
    world.broker.tick(1_000_000 + MINUTE_MS - 1);
    assert_eq!(client.pop_all("dead").len(), 0);
    for now_ms in [1_000_000 + MINUTE_MS, 1_001_000 + MINUTE_MS] {
        world.broker.tick(now_ms);
    }
    assert_eq!(client.pop_all("dead"), ["dead"]);
}
