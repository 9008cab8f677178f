//! Queues that hand out nothing for a while.

use crate::streams::{read, stream};
use crate::support::{World, WorldOnDisk, declare_with, on_a_thread};
use courser_broker::admin::EventKind;
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

#[test]
fn consumers_get_nothing_of_a_paused_queue_and_everything_when_it_is_resumed() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    let admin = world.broker.admin();
    let mut follower = admin.follow();
    assert_eq!(admin.pause_queue("/", b"q"), Ok(true));
    assert_eq!(admin.pause_queue("/", b"q"), Ok(false));
    client.publish("", "q", "1");
    client.publish("", "q", "2");
    assert!(client.heard().is_empty());
    assert_eq!(world.counts("q"), (2, 0, 1));
    assert!(admin.queue("/", b"q").expect("the queue").paused);
    assert_eq!(admin.resume_queue("/", b"q"), Ok(true));
    assert_eq!(admin.resume_queue("/", b"q"), Ok(false));
    assert_eq!(client.bodies(), ["1", "2"]);
    client.publish("", "q", "3");
    assert_eq!(client.bodies(), ["3"]);
    let kinds: Vec<EventKind> = follower.take(10).events.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [EventKind::QueuePaused, EventKind::QueueResumed]);
}

#[test]
fn what_comes_back_and_who_comes_anew_wait_for_the_end_of_the_pause() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.consume("q");
    client.publish("", "q", "1");
    assert_eq!(client.bodies(), ["1"]);
    let admin = world.broker.admin();
    admin.pause_queue("/", b"q").expect("the queue");
    client.requeue(1);
    let mut other = world.connect();
    other.consume("q");
    assert!(client.heard().is_empty() && other.heard().is_empty());
    assert_eq!(world.counts("q"), (1, 0, 2));
    admin.resume_queue("/", b"q").expect("the queue");
    assert_eq!(client.heard().len() + other.heard().len(), 1);
}

#[test]
fn a_paused_queue_looks_empty_to_those_who_poll_it_but_not_to_its_operator() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    client.fill("q", &["1"]);
    let admin = world.broker.admin();
    admin.pause_queue("/", b"q").expect("the queue");
    assert!(client.get("q").is_none());
    assert_eq!(admin.peek("/", b"q", 0, 5, 9).expect("the queue").len(), 1);
    assert_eq!(admin.purge_some("/", b"q", 1), Ok(1));
}

#[test]
fn readers_of_a_paused_stream_stand_still() {
    let world = World::new();
    let mut client = world.connect();
    stream(&mut client, "s");
    client.fill("s", &["1", "2"]);
    let admin = world.broker.admin();
    admin.pause_queue("/", b"s").expect("the queue");
    client.qos(10);
    read(&mut client, "s", "first");
    client.publish("", "s", "3");
    assert!(client.heard().is_empty());
    admin.resume_queue("/", b"s").expect("the queue");
    assert_eq!(client.bodies(), ["1", "2", "3"]);
}

#[test]
fn a_pause_survives_a_restart() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    for name in ["paused", "resumed"] {
        declare_with(&mut client, name, true, &FieldTable::new());
        world.broker.admin().pause_queue("/", name.as_bytes()).expect("the queue");
    }
    world.broker.admin().resume_queue("/", b"resumed").expect("the queue");
    drop(client);
    for by_checkpoint in [false, true] {
        match by_checkpoint {
            false => world.restart(),
            true => world.restart_from_checkpoint(),
        }
        let admin = world.broker.admin();
        let is_paused = |name: &[u8]| admin.queue("/", name).expect("the queue").paused;
        assert!(is_paused(b"paused") && !is_paused(b"resumed"), "{by_checkpoint}");
    }
}

#[test]
fn what_comes_in_before_a_pause_turns_out_not_to_be_kept_is_handed_out() {
    let world = WorldOnDisk::new();
    let (mut client, mut publisher) = (world.connect(), world.connect());
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.consume("q");
    world.store().before_next_append(move || {
        on_a_thread(|| publisher.publish("", "q", "meanwhile"));
    });
    world.store().set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
    let admin = world.broker.admin();
    let fault = admin.pause_queue("/", b"q").expect_err("there is no room");
    assert_eq!(fault.code, 506);
    assert!(!admin.queue("/", b"q").expect("the queue").paused);
    assert_eq!(client.bodies(), ["meanwhile"]);
}
