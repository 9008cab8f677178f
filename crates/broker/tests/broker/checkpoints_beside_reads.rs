//! A message is read from a slow disk, and a checkpoint begins, or a vhost is to stand still: others wait for none of these.

use crate::support::{Message, WorldOnDisk, declare_with};
use courser_broker::VhostLimits;
use courser_codec::FieldTable;
use courser_journal::testing::Hold;
use courser_store::{ShardId, ShardState};
use std::path::PathBuf;
use std::time::Duration;

/// Time enough for a checkpoint to get where it waits.
const A_WHILE: Duration = Duration::from_millis(200);

fn lasting(queue: &str) -> Message {
    Message::new("", queue, "m").with_properties(|properties| properties.delivery_mode = Some(2))
}

/// Has who reads a message wait.
fn hold_reads(world: &WorldOnDisk) -> Hold {
    let names = world.disk().names();
    let is_segment = |name: &&PathBuf| name.extension().is_some_and(|what| what == "log");
    let segment = names.iter().find(is_segment).expect("a segment");
    world.disk().hold_reads(segment).expect("it is there")
}

#[test]
fn a_publisher_waits_for_no_message_that_is_read_beside_a_checkpoint() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    for queue in ["first", "second"] {
        declare_with(&mut client, queue, true, &FieldTable::new());
    }
    client.send(lasting("first"));
    client.disconnect();
    world.restart();
    let (mut client, mut publisher) = (world.connect(), world.connect());
    let read = hold_reads(&world);
    let state = world.broker.state_of(ShardId::HOME).expect("it is open");
    std::thread::scope(|scope| {
        let popping = scope.spawn(move || client.pop_all("first").len());
        assert!(read.wait_until_reached());
        let starting = scope.spawn(|| state.start());
        std::thread::sleep(A_WHILE);
        publisher.send(lasting("second"));
        assert!(!popping.is_finished());
        assert!(!starting.is_finished(), "what is being read has not taken effect");
        assert!(read.let_go(), "the publisher has waited for the read");
        assert_eq!(popping.join().expect("no panic"), 1);
        starting.join().expect("no panic");
    });
    assert_eq!(publisher.pop_all("second").len(), 1);
}

#[test]
fn a_vhost_that_is_to_stand_still_beside_a_read_holds_up_no_other() {
    const NOW_MS: u64 = 1_000_000;
    let mut world = WorldOnDisk::new();
    world.broker.set_time(NOW_MS);
    let mut client = world.connect();
    let ttl = FieldTable::new().with("x-message-ttl", 1000);
    declare_with(&mut client, "first", true, &ttl);
    client.send(lasting("first"));
    client.disconnect();
    world.restart();
    let read = hold_reads(&world);
    let broker = &world.broker;
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| broker.tick(NOW_MS));
        assert!(read.wait_until_reached());
        let stopping = scope.spawn(|| broker.admin().stop_vhost("/", 0));
        std::thread::sleep(A_WHILE);
        broker.define_vhost("other", VhostLimits::default()).expect("another vhost");
        assert!(!reading.is_finished());
        assert!(!stopping.is_finished(), "what is being read has not been done");
        assert!(read.let_go(), "the other vhost has waited for the read");
        reading.join().expect("no panic");
        assert_eq!(stopping.join().expect("no panic").expect("it is there"), 0);
    });
}
