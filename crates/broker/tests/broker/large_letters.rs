//! Dead letters of which one is too large for the log, with the copies that exchanges on its way keep or without them.

use crate::many_keepers::{remembered, with_delays};
use crate::recent_history_beside_others::history;
use crate::support::{BATCH_BYTES, Client, Message, WorldOnDisk, declare_with, short};
use courser_codec::{FieldTable, basic, exchange};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    for now_ms in [1_001_000, 1_002_000] {
        world.broker.tick(now_ms);
    }
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
            world.broker.tick(world.broker.now_ms() + 1000);
            world.store().set_faults(|_| None);
        }
        assert_eq!(client.pop_all("dead").len(), 0, "{overflow} {limit}");
        world.broker.tick(world.broker.now_ms() + 1000);
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
    world.broker.tick(1_001_000);
    assert_eq!(client.pop_all("dead").len(), 3);
}

#[test]
fn a_letter_that_is_too_large_for_all_delays_on_its_way_waits_until_it_is_not() {
    let world = WorldOnDisk::new();
    world.broker.set_time(1_000_000);
    let mut client = world.connect();
    let delays = 6;
    with_delays(&mut client, delays);
    declare_with(&mut client, "dead", true, &FieldTable::new());
    client.bind("dead", "d0", "");
    let arguments = FieldTable::new().with("x-dead-letter-exchange", "all");
    declare_with(&mut client, "q", true, &arguments);
    let large = BATCH_BYTES as usize / (delays - 1);
    client.send(persistent(large).headers(FieldTable::new().with("x-delay", 500)));
    refuse(&mut client);
    assert_eq!(world.counts("q"), (0, 0, 1));
    for nth in 1..delays {
        let name = format!("d{nth}");
        let exchange = short(&name);
        client.call(exchange::Delete { exchange, ..Default::default() });
    }
    for now_ms in [1_001_000, 1_002_000, 1_003_000] {
        world.broker.tick(now_ms);
    }
    assert_eq!(lengths(&client.pop_all("dead")), [large]);
}
