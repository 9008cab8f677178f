//! What clients hear when the store has no room, or has failed.

use crate::support::{Client, Heard, Message, Step, WorldOnDisk, declare_with};
use courser_codec::{FieldTable, FieldValue, Method, basic, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A client that has confirms on, and a durable queue `q`.
pub fn publisher(world: &WorldOnDisk) -> Client {
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.confirm_select();
    client.heard();
    client
}

fn persistent(bytes: usize) -> Message {
    let message = Message::new("", "q", vec![7; bytes]);
    message.with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Publishes until the connection is closed. Returns why, how many were sent, and how many confirmed.
fn publish_until_closed(client: &mut Client, steps: &[Step<'_>]) -> (String, u64, u64) {
    let (mut sent, mut confirmed) = (0, 0);
    loop {
        client.read(steps);
        sent += 1;
        for heard in client.heard() {
            match heard {
                Heard::Confirm { through, .. } => confirmed = through,
                Heard::ConnectionClosed(why) => return (why, sent, confirmed),
                _ => {}
            }
        }
        assert!(sent < 1000, "nothing was refused");
    }
}

#[test]
fn a_publish_that_there_is_no_room_for_is_never_confirmed() {
    let count = Method::from(queue::Declare {
        queue: "q".try_into().expect("short"),
        passive: true,
        ..Default::default()
    });
    for steps in [
        vec![Step::Publish(1, persistent(100_000))],
        vec![Step::PublishLarge(1, persistent(100_000))],
        // What follows in the same read is what finds out.
        vec![Step::Publish(1, persistent(100_000)), Step::Call(1, count)],
    ] {
        let world = WorldOnDisk::new();
        let mut client = publisher(&world);
        world.fill_disk();
        let (why, sent, confirmed) = publish_until_closed(&mut client, &steps);
        assert!(why.starts_with("506 "), "{why}");
        assert!(confirmed < sent, "{confirmed} of {sent}");
    }
}

#[test]
fn a_client_is_told_that_the_leader_has_changed_where_the_store_says_so() {
    let world = WorldOnDisk::new();
    let mut client = publisher(&world);
    world.store().set_faults(|call| (call == Call::Append).then_some(StoreError::Deposed));
    let (why, ..) = publish_until_closed(&mut client, &[Step::Publish(1, persistent(1))]);
    assert_eq!(why, "320 CONNECTION_FORCED - the leader of the vhost has changed");
}

#[test]
fn a_publish_that_there_is_no_room_for_reaches_none_of_its_queues() {
    let alone = Message::new("amq.fanout", "", "x");
    let with_key =
        alone.clone().headers(FieldTable::new().with("CC", FieldValue::Array(vec!["k".into()])));
    for message in [alone, with_key] {
        let world = WorldOnDisk::new();
        let (mut publisher, mut consumer) = (world.connect(), world.connect());
        for queue in ["consumed", "waiting"] {
            publisher.declare(queue);
            publisher.bind(queue, "amq.fanout", "");
        }
        let consumed = "consumed".try_into().expect("short");
        consumer.call(basic::Consume { queue: consumed, no_ack: true, ..Default::default() });
        world.store().set_faults(|call| (call == Call::Keep).then_some(StoreError::Full));
        publisher.send(message.clone());
        let heard = publisher.heard();
        assert!(
            matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("506 ")),
            "{heard:?}"
        );
        assert_eq!(consumer.bodies(), Vec::<String>::new());
        world.store().heal();
        world.connect().send(message);
        assert_eq!(consumer.bodies(), ["x"]);
        assert_eq!(world.counts("waiting").0, 1);
    }
}

#[test]
fn what_a_client_hears_of_a_store_that_has_failed_names_no_file() {
    let world = WorldOnDisk::new();
    let mut client = publisher(&world);
    client.send(persistent(1));
    world.break_disk();
    let (why, ..) = publish_until_closed(&mut client, &[Step::Publish(1, persistent(1))]);
    assert_eq!(why, "541 INTERNAL_ERROR - the store has failed; the broker's log says more");
}

/// Durable queues that are all deleted while the disk is full, and how often their removal was tried to be appended.
fn removed_without_room(world: &WorldOnDisk) -> usize {
    let mut client = world.connect();
    let names: Vec<String> = (0..20).map(|number| format!("removed {number}")).collect();
    for name in &names {
        declare_with(&mut client, name, true, &FieldTable::new());
    }
    world.sync();
    let appends = Arc::new(AtomicUsize::new(0));
    world.store().set_full(true);
    world.store().set_faults({
        let appends = Arc::clone(&appends);
        move |call| {
            (call == Call::Append).then(|| {
                appends.fetch_add(1, Ordering::Relaxed);
                StoreError::Full
            })
        }
    });
    for name in &names {
        assert_eq!(client.delete(name), Heard::Count(0));
    }
    appends.load(Ordering::Relaxed)
}

/// Declares one while there is room, behind the removals.
fn declare_behind_removals(mut world: WorldOnDisk) {
    world.store().set_full(false);
    let mut client = world.connect();
    declare_with(&mut client, "another", true, &FieldTable::new());
    world.sync();
    client.disconnect();
    world.restart();
    let queues = world.broker.admin().queues(Some("/")).expect("a vhost");
    assert_eq!(queues.len(), 1);
    assert!(world.broker.admin().queue("/", b"another").is_ok());
}

#[test]
fn a_removal_without_room_does_not_try_all_earlier_ones_again() {
    let world = WorldOnDisk::new();
    assert_eq!(removed_without_room(&world), 1, "the first finds that there is no room");
    world.store().heal();
    declare_behind_removals(world);
}
