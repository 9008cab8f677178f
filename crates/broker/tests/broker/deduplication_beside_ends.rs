//! `x-message-deduplication` without a cache, where a message comes while the end of the same one is under way to the log.

use crate::checkpoints_within_changes::before_append;
use crate::deduplication_by_presence::{End, apart, send};
use crate::support::{Client, Heard, Message, WorldOnDisk, declare_with, short};
use courser_broker::Limits;
use courser_codec::{FieldTable, basic, queue};
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// After so long something is not only slow.
const STUCK: Duration = Duration::from_secs(60);

fn no_ack_consumer() -> basic::Consume<'static> {
    basic::Consume { queue: short("q"), no_ack: true, nowait: true, ..Default::default() }
}

/// What ends the message with the identifier `a`, or publishes one that ends at once.
const ENDS: [(&str, End); 7] = [
    ("consume", |_, client| client.tell(no_ack_consumer())),
    ("publish to a consumer", |_, client| {
        client.tell(no_ack_consumer());
        send(client, "a", "old");
    }),
    ("purge", |_, client| {
        client.tell(queue::Purge { queue: short("q"), nowait: true });
    }),
    ("expiry", |world, _| assert!(world.broker.tick(2000) != Some(0))),
    ("get", |_, client| client.tell(basic::Get { queue: short("q"), no_ack: true })),
    ("ack", |_, client| {
        let delivery_tag = client.get("q").expect("a message").tag;
        client.tell(basic::Ack { delivery_tag, multiple: false });
    }),
    ("reject", |_, client| {
        let delivery_tag = client.get("q").expect("a message").tag;
        client.tell(basic::Reject { delivery_tag, requeue: false });
    }),
];

/// A world with the queue `q`, in which there is a message with the identifier `a` for an end that does not publish it; a client of
/// which a consumer has no room for another message, and one that publishes with confirms.
fn world_before(name: &str) -> (WorldOnDisk, Client, Client) {
    let world = WorldOnDisk::with(Limits { outbox_high_bytes: 64, ..Limits::default() });
    let (mut client, mut other) = (world.connect(), world.connect());
    declare_with(&mut client, "q", true, &apart().with("x-message-ttl", 1000));
    other.confirm_select();
    if !publishes(name) {
        send(&mut client, "a", "old");
    }
    world.flush();
    (world, client, other)
}

fn publishes(name: &str) -> bool {
    name.starts_with("publish")
}

#[test]
fn what_comes_before_the_log_knows_that_the_same_is_gone_does_not_make_room_for_that() {
    let mut lost = Vec::new();
    for (name, end) in ENDS {
        let (mut world, mut client, mut other) = world_before(name);
        let (log, vhost) = (world.log(), Arc::clone(&world.vhost()));
        let (tell, told) = channel();
        // Another client publishes as soon as it can, and has that confirmed.
        let publish_beside = move || {
            let publish = || {
                send(&mut other, "a", "new");
                log.flush();
                let confirmed = matches!(other.heard()[..], [Heard::Confirm { .. }]);
                let queue = vhost.queue(b"q").expect("it is there");
                (confirmed, queue.status().ready)
            };
            let published = thread::scope(|scope| scope.spawn(publish).join());
            tell.send(published.expect("no panic")).expect("it is waited for");
        };
        before_append(world.store(), usize::from(publishes(name)), Box::new(publish_beside));
        end(&world, &mut client);
        let (confirmed, ready) = told.recv_timeout(STUCK).expect("the log is told");
        assert!(confirmed, "{name}");
        drop(client);
        world.lose_power();
        // What is told of the end is lost. Either the new one was the same as what has not gone, or it is there.
        let there = world.connect().pop_all("q");
        if there != [if ready == 0 { "old" } else { "new" }] {
            lost.push(name);
        }
    }
    assert_eq!(lost, [""; 0]);
}

#[test]
fn what_comes_after_the_same_has_gone_on_a_full_disk_does_not_make_room_for_that() {
    let mut lost = Vec::new();
    for (name, end) in ENDS {
        let (mut world, mut client, mut other) = world_before(name);
        world.store().set_faults(|call| (call == Call::Settle).then_some(StoreError::Full));
        end(&world, &mut client);
        client.disconnect();
        // There is room, and no checkpoint has been made.
        world.store().set_faults(|_| None);
        send(&mut other, "a", "new");
        world.flush();
        assert!(matches!(other.heard()[..], [Heard::Confirm { .. }]), "{name}");
        assert_eq!(world.counts("q").0, 1, "{name}");
        world.lose_power();
        if world.connect().pop_all("q") != ["new"] {
            lost.push(name);
        }
    }
    assert_eq!(lost, [""; 0]);
}

#[test]
fn what_is_the_same_as_one_whose_end_finds_no_room_is_refused() {
    for (name, end) in ENDS {
        let (mut world, mut client, mut other) = world_before(name);
        world.store().set_faults(|call| (call == Call::Settle).then_some(StoreError::Full));
        end(&world, &mut client);
        client.disconnect();
        let mut has_room = false;
        world.store().set_faults(move |call| {
            let finds_room = call != Call::Append || mem::replace(&mut has_room, true);
            (!finds_room).then_some(StoreError::Full)
        });
        send(&mut other, "a", "refused");
        let heard = other.heard();
        let is_refused =
            matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("506 "));
        assert!(is_refused, "{name}: {heard:?}");
        let mut other = world.connect();
        other.confirm_select();
        send(&mut other, "a", "new");
        world.flush();
        assert!(matches!(other.heard()[..], [Heard::Confirm { .. }]), "{name}");
        world.lose_power();
        assert_eq!(world.connect().pop_all("q"), ["new"], "{name}");
    }
}

#[test]
fn what_comes_while_the_log_is_told_that_the_same_has_gone_is_not_dropped() {
    let (mut world, mut client, mut other) = world_before("get");
    send(&mut client, "b", "old");
    world.store().set_faults(|call| (call == Call::Settle).then_some(StoreError::Full));
    client.tell(queue::Purge { queue: short("q"), nowait: true });
    world.store().set_faults(|_| None);
    let (begin, begun) = channel();
    let (tell, told) = channel();
    world.store().before_next_append(move || {
        begin.send(()).expect("the other client waits");
        // Long enough for one that does not wait.
        let _ = told.recv_timeout(Duration::from_millis(200));
    });
    let beside = &mut other;
    thread::scope(|scope| {
        scope.spawn(move || {
            begun.recv().expect("the log is about to be told");
            send(beside, "a", "new");
            // No other thread may wait for it any more.
            let _ = tell.send(());
        });
        send(&mut client, "b", "new");
    });
    world.flush();
    assert!(matches!(other.heard()[..], [Heard::Confirm { .. }]));
    assert_eq!(world.counts("q").0, 2);
    drop((client, other));
    world.lose_power();
    assert_eq!(world.connect().pop_all("q"), ["new", "new"]);
}

#[test]
fn a_traced_copy_comes_where_the_same_has_gone_on_a_full_disk() {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "trace", true, &apart().with("x-deduplication-header", "node"));
    client.bind("trace", "amq.rabbitmq.trace", "publish.#");
    let old = Message::new("", "trace", "old").headers(FieldTable::new().with("node", "courser"));
    client.send(old.with_properties(|properties| properties.delivery_mode = Some(2)));
    world.store().set_faults(|call| (call == Call::Settle).then_some(StoreError::Full));
    assert_eq!(client.pop("trace").as_deref(), Some("old"));
    world.store().set_faults(|_| None);
    world.broker.admin().change_vhost("/", |settings| settings.tracing = true).expect("a vhost");
    client.publish("amq.direct", "nowhere", "traced");
    assert_eq!(client.pop_all("trace"), ["traced"]);
}

#[test]
fn what_comes_before_the_log_knows_that_the_same_is_refused_is_refused_as_well() {
    for overflow in ["reject-publish", "reject-publish-dlx"] {
        let mut world = WorldOnDisk::new();
        let (mut client, mut other) = (world.connect(), world.connect());
        let arguments = apart().with("x-max-length", 1).with("x-overflow", overflow);
        declare_with(&mut client, "q", true, &arguments);
        send(&mut client, "z", "in the way");
        for each in [&mut client, &mut other] {
            each.confirm_select();
        }
        world.flush();
        let (tell, told) = channel();
        // Another client makes room and publishes when the refused message is in the log, and its end is not.
        let log = world.log();
        let publish_beside = move || {
            let publish = || {
                let in_the_way = other.pop("q");
                send(&mut other, "a", "new");
                log.flush();
                (in_the_way, other.heard())
            };
            let published = thread::scope(|scope| scope.spawn(publish).join());
            tell.send(published.expect("no panic")).expect("it is waited for");
        };
        before_append(world.store(), 1, Box::new(publish_beside));
        send(&mut client, "a", "old");
        let (in_the_way, heard) = told.recv_timeout(STUCK).expect("the log is told");
        assert_eq!(in_the_way.as_deref(), Some("in the way"));
        world.flush();
        assert_eq!(client.heard(), [Heard::Refused { channel: 1, tag: 1 }], "{overflow}");
        assert_eq!(heard, [Heard::Refused { channel: 1, tag: 1 }], "{overflow}");
        // It may come once that is settled.
        send(&mut client, "a", "later");
        world.flush();
        drop(client);
        world.lose_power();
        assert_eq!(world.connect().pop_all("q"), ["later"], "{overflow}");
    }
}
