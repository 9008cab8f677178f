//! The memory of a queue goes with it, whatever connections know of it.

use crate::memory_bounds::world_of;
use crate::streams::{filled, read};
use crate::support::{Client, Heard, Message, World, allocated_bytes, declare_with, guest, short};
use courser_broker::{Identity, Limits};
use courser_codec::{FieldTable, Table, basic, queue};
use std::sync::Arc;

const QUEUES: usize = 2000;
/// What is allocated besides what counts: room for a few of everything.
const SPARE: i64 = 131_072;

/// What was allocated and not counted while `act` ran.
fn uncounted(world: &World, act: impl FnOnce()) -> i64 {
    let now = || allocated_bytes() - world.broker.memory_used_bytes() as i64;
    let before = now();
    act();
    now() - before
}

fn names() -> Vec<String> {
    (0..QUEUES).map(|nth| format!("q{nth}")).collect()
}

#[test]
fn exclusive_queues_that_expired_together_keep_no_room_while_their_connection_lasts() {
    let world = World::new();
    world.tick_all(1_000_000);
    let mut client = world.connect();
    client.declare("stays");
    let kept = uncounted(&world, || {
        for name in names() {
            let arguments = FieldTable::new().with("x-expires", 1000).to_entries();
            client.call(queue::Declare {
                queue: short(&name),
                exclusive: true,
                arguments: Table::from_entries(&arguments),
                ..Default::default()
            });
        }
        world.tick_all(1_010_000);
        assert!(!world.has_queue("q0"));
    });
    assert!(kept <= SPARE, "{kept}");
}

#[test]
fn queues_that_waited_for_the_limit_of_a_channel_keep_no_room() {
    let world = World::new();
    let mut client = world.connect();
    client.qos_global(1);
    client.declare("first");
    client.publish("", "first", "x");
    client.consume("first");
    assert_eq!(client.deliveries().len(), 1);
    let kept = uncounted(&world, || {
        for name in names() {
            client.declare(&name);
            client.publish("", &name, "x");
            let tag = client.consume(&name);
            client.cancel(&tag);
        }
        assert_eq!(client.deliveries(), []);
        for name in names() {
            client.delete(&name);
        }
    });
    assert!(kept <= SPARE, "{kept}");
}

#[test]
fn queues_that_had_more_for_a_client_that_takes_nothing_keep_no_room() {
    let world = World::with(Limits { outbox_high_bytes: 1024, ..Limits::default() });
    let (mut other, mut client) = (world.connect(), world.connect());
    let kept = uncounted(&world, || {
        for name in names() {
            other.declare(&name);
            client.consume_no_ack(&name);
        }
        other.publish("", "q0", &"x".repeat(2048));
        for name in names() {
            other.publish("", &name, "x");
        }
        for name in names() {
            other.delete(&name);
        }
    });
    // Those of which routes are remembered are there.
    assert!(kept <= 4 * SPARE, "{kept}");
    assert_eq!(client.deliveries().len(), 1);
}

#[test]
fn queues_of_direct_replies_keep_no_room_while_their_channels_last() {
    const CHANNELS: u16 = 500;
    let world = World::new();
    let mut client = world.connect();
    (2..CHANNELS + 2).for_each(|number| client.open_channel(number));
    let kept = uncounted(&world, || {
        for number in 2..CHANNELS + 2 {
            let queue = short("amq.rabbitmq.reply-to");
            let replies = basic::Consume { queue, no_ack: true, ..Default::default() };
            let tag = client.consume_on(number, replies);
            let cancel = basic::Cancel { consumer_tag: short(&tag), nowait: false };
            assert_eq!(client.call_on(number, cancel), Heard::CancelOk(tag.clone()));
        }
    });
    assert!(kept <= SPARE / 2, "{kept}");
}

#[test]
fn readers_that_are_blocked_let_go_of_a_stream_that_is_deleted() {
    let world = World::new();
    let mut owner = filled(&world, 2);
    let mut client = world.connect_as(Identity { cancel_notify: false, ..guest() });
    client.qos(1);
    read(&mut client, "s", "first");
    assert_eq!(client.deliveries().len(), 1);
    let stream = Arc::downgrade(&world.vhost().queue(b"s").expect("declared"));
    owner.delete("s");
    assert!(client.is_woken());
    client.ack(1);
    client.session().release_memory();
    owner.session().release_memory();
    assert!(stream.upgrade().is_none());
}

#[test]
fn deleted_queues_of_which_something_is_unacknowledged_are_bounded() {
    let world = world_of(4_000_000);
    let (mut owner, mut client): (Client, Client) = (world.connect(), world.connect());
    client.open_channel(2);
    let refused = (0..5000).find_map(|_| {
        owner.declare("q");
        owner.send(Message::new("", "q", "x"));
        let get = basic::Get { queue: short("q"), no_ack: false };
        let got = client.call_on(2, get);
        if let Heard::ChannelClosed(text) = &got {
            return Some(text.clone());
        }
        assert!(matches!(got, Heard::GetOk { .. }), "{got:?}");
        owner.delete("q");
        None
    });
    let refused = refused.expect("it is bounded");
    assert!(
        refused.starts_with("406 PRECONDITION_FAILED - memory limit (1000000 bytes)"),
        "{refused}"
    );
    assert!(world.broker.memory_used_bytes() < 1_100_000);
    declare_with(&mut owner, "another", false, &FieldTable::new());
    owner.publish("", "another", "x");
    assert_eq!(client.get("another").map(|got| got.tag), Some(1));
}

#[test]
fn what_a_deleted_queue_has_handed_out_can_be_acknowledged() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.publish("", "q", "x");
    let tag = client.get("q").expect("a message").tag;
    client.delete("q");
    client.ack(tag);
    assert_eq!(client.heard(), []);
}
