//! Moving messages to queues that refuse them: these stay where they are.

use crate::support::{Client, Message, World, WorldOnDisk, declare_with, on_a_thread, owned};
use courser_broker::Broker;
use courser_broker::admin::{MoveTo, Relocated, Selection, WriteTarget};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;

fn persistent(queue: &str, body: &str) -> Message {
    Message::new("", queue, body).with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Durable queues `from` and `to`, which has these arguments.
fn with_queues(world: &World, arguments: &FieldTable) -> Client {
    let mut client = world.connect();
    declare_with(&mut client, "from", true, &FieldTable::new());
    declare_with(&mut client, "to", true, arguments);
    client
}

fn relocate(world: &World, to: &MoveTo) -> Relocated {
    let anywhere = |_: WriteTarget<'_>| Some(true);
    let all = Selection::default();
    let moved = world.broker.admin().relocate("/", b"from", &all, to, &anywhere, false);
    moved.expect("it can be done")
}

fn move_all(world: &World) -> usize {
    world.broker.admin().move_messages("/", b"from", b"to", None).expect("both are there")
}

#[test]
fn a_message_that_is_larger_than_the_room_that_is_left_stays() {
    let mut world = WorldOnDisk::new();
    let small =
        FieldTable::new().with("x-max-length-bytes", 1000).with("x-overflow", "reject-publish");
    let mut client = with_queues(&world, &small);
    client.send(persistent("from", "fits"));
    client.send(persistent("from", &"x".repeat(2000)));
    client.disconnect();
    assert_eq!(move_all(&world), 1);
    assert_eq!(move_all(&world), 0);
    let through_an_exchange = MoveTo::Exchange(owned(""), Some(owned("to")));
    for to in [MoveTo::Queue(owned("to")), through_an_exchange] {
        let done = relocate(&world, &to);
        assert_eq!((done.moved, done.is_partial), (0, true), "{to:?}");
    }
    world.restart();
    assert_eq!((world.counts("from"), world.counts("to")), ((1, 0, 0), (1, 0, 0)));
}

#[test]
fn a_message_is_moved_though_the_last_room_is_taken_at_the_same_moment() {
    let mut world = WorldOnDisk::new();
    let one = FieldTable::new().with("x-max-length", 1).with("x-overflow", "reject-publish");
    let mut client = with_queues(&world, &one);
    client.send(persistent("from", "moved"));
    let mut other = world.connect();
    let publish = move || {
        other.publish("", "to", "published");
        other.disconnect();
    };
    world.store().before_next_append(|| on_a_thread(publish));
    assert_eq!(relocate(&world, &MoveTo::Queue(owned("to"))).moved, 1);
    assert_eq!((world.counts("from"), world.counts("to")), ((0, 0, 0), (2, 0, 0)));
    client.disconnect();
    world.restart();
    assert_eq!(world.connect().pop_all("to"), ["moved"]);
}

/// Deletes the queue `to` on a thread of its own.
fn delete_target(broker: Arc<Broker>) {
    let deleted = on_a_thread(|| broker.admin().delete_queue("/", b"to", false, false));
    deleted.expect("it is there");
}

#[test]
fn a_move_ends_when_its_target_is_deleted_between_two_portions() {
    let world = WorldOnDisk::new();
    let mut client = with_queues(&world, &FieldTable::new());
    (0..300).for_each(|_| client.send(persistent("from", "x")));
    let broker = Arc::clone(&world.broker);
    world.store().before_next_append(|| delete_target(broker));
    let moved = world.broker.admin().move_messages("/", b"from", b"to", None);
    assert_eq!(moved.expect_err("it is deleted").code, 404);
    assert_eq!(world.counts("from"), (300 - 256, 0, 0), "only one portion went before");
}

#[test]
fn what_would_go_to_a_queue_that_was_just_deleted_stays() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "from", true, &FieldTable::new());
    client.declare("to");
    client.send(persistent("from", "x"));
    let mut broker = Some(Arc::clone(&world.broker));
    world.store().set_faults(move |call| {
        if call == Call::Read {
            broker.take().into_iter().for_each(delete_target);
        }
        None
    });
    assert_eq!(move_all(&world), 0);
    assert_eq!(world.counts("from"), (1, 0, 0));
}

#[test]
fn a_message_stays_while_the_other_queue_holds_one_of_the_same() {
    let world = WorldOnDisk::new();
    let mut client = with_queues(&world, &FieldTable::new().with("x-message-deduplication", true));
    let mut send = |queue: &str, id: &str| {
        let headers = FieldTable::new().with("x-deduplication-header", id);
        client.send(persistent(queue, id).headers(headers));
    };
    send("to", "7");
    ["7", "8", "8", "9"].iter().for_each(|id| send("from", id));
    assert_eq!(move_all(&world), 0, "the first one stays");
    let through_an_exchange = MoveTo::Exchange(owned(""), Some(owned("to")));
    for (to, moved, stay) in [(MoveTo::Queue(owned("to")), 2, 2), (through_an_exchange, 0, 2)] {
        let done = relocate(&world, &to);
        assert_eq!((done.moved, done.without_place), (moved, stay), "{to:?}");
    }
    assert_eq!(client.pop_all("to"), ["7", "8", "9"]);
    assert_eq!(move_all(&world), 2);
    assert_eq!(client.pop_all("to"), ["7", "8"]);
}

#[test]
fn a_message_is_moved_where_one_of_the_same_has_gone_on_a_full_disk() {
    let through_an_exchange = MoveTo::Exchange(owned(""), Some(owned("to")));
    for to in [None, Some(MoveTo::Queue(owned("to"))), Some(through_an_exchange)] {
        let mut world = WorldOnDisk::new();
        let mut client =
            with_queues(&world, &FieldTable::new().with("x-message-deduplication", true));
        for (queue, body) in [("to", "old"), ("from", "new")] {
            let headers = FieldTable::new().with("x-deduplication-header", "7");
            client.send(persistent(queue, body).headers(headers));
        }
        world.store().set_faults(|call| (call == Call::Settle).then_some(StoreError::Full));
        assert_eq!(client.pop("to").as_deref(), Some("old"));
        world.store().heal();
        let moved = to.as_ref().map_or_else(|| move_all(&world), |to| relocate(&world, to).moved);
        assert_eq!(moved, 1, "{to:?}");
        // What is confirmed makes durable what was moved.
        client.confirm_select();
        client.send(persistent("from", "later"));
        client.disconnect();
        world.flush();
        world.lose_power();
        assert_eq!(world.connect().pop_all("to"), ["new"], "{to:?}");
    }
}

#[test]
fn behind_a_lost_message_too_what_has_no_room_stays() {
    let world = WorldOnDisk::new();
    let arguments =
        FieldTable::new().with("x-max-length", 1_i64).with("x-overflow", "reject-publish");
    let mut client = with_queues(&world, &arguments);
    client.send(persistent("to", "first"));
    client.send(persistent("from", "damaged"));
    client.send(persistent("from", "second"));
    world.sync();
    world.damage(b"damaged");
    assert_eq!(move_all(&world), 0);
    assert_eq!(client.pop_all("from"), ["second"]);
    assert_eq!(client.pop_all("to"), ["first"]);
}
