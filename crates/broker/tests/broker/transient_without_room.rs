//! Transient messages that the broker sends on alone while the store has no room for them: they stay where they are.

use crate::delayed::{START_MS, delayed, messages_delayed, run_until, with_exchange};
use crate::support::{WorldOnDisk, declare_with};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

/// Has the store take no transient message any more: memory is short, and the disk is full.
fn keep_nothing(world: &WorldOnDisk) {
    world.store().set_faults(|call| (call == Call::Keep).then_some(StoreError::Full));
}

#[test]
fn a_dead_letter_waits_for_room() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    let arguments = FieldTable::new()
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "to")
        .with("x-message-ttl", 1000);
    declare_with(&mut client, "from", false, &arguments);
    client.declare("to");
    client.publish("", "from", "x");
    keep_nothing(&world);
    run_until(&world, 2000);
    assert_eq!((world.counts("from").0, world.counts("to").0), (0, 0));
    world.store().heal();
    run_until(&world, 10_000);
    assert_eq!(client.pop_all("to"), ["x"]);
}

#[test]
fn a_delayed_message_waits_for_room() {
    let world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    client.send(delayed("x", 1000));
    keep_nothing(&world);
    run_until(&world, START_MS + 2000);
    assert_eq!((messages_delayed(&world), world.counts("q").0), (1, 0));
    world.store().heal();
    run_until(&world, START_MS + 10_000);
    assert_eq!(client.pop_all("q"), ["x"]);
}

#[test]
fn what_an_operator_moves_stays_without_room() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    for queue in ["from", "to"] {
        client.declare(queue);
    }
    client.publish("", "from", "x");
    keep_nothing(&world);
    let move_all = || world.broker.admin().move_messages("/", b"from", b"to", None);
    assert_eq!(move_all().expect_err("there is no room").code, 506);
    assert_eq!((world.counts("from").0, world.counts("to").0), (1, 0));
    world.store().heal();
    assert_eq!(move_all().expect("there is room"), 1);
    assert_eq!(client.pop_all("to"), ["x"]);
}
