//! A message is read from a slow disk, or very much is deleted: no timer waits for that but those of the same queue or exchange, and
//! others that take long.

use crate::delayed::{START_MS, delayed, persistent, with_exchange};
use crate::support::{Message, World, WorldOnDisk, declare_with};
use courser_codec::FieldTable;
use std::path::PathBuf;

/// When what is in the log is due, and when the timers that are to go on meanwhile.
const DUE_MS: u64 = START_MS + 1000;
const LATER_MS: u64 = DUE_MS + 100;

/// Starts the broker again and checks that timers go on while `read` waits for the disk. Then all are done.
fn check_timers_go_on(world: &mut WorldOnDisk, read: fn(&World)) {
    world.restart();
    let (broker, running) = (&world.broker, &**world);
    broker.set_time(DUE_MS);
    let mut client = world.connect();
    declare_with(&mut client, "passing", false, &FieldTable::new().with("x-message-ttl", 100));
    client.fill("passing", &["m"]);
    let names = world.disk().names();
    let is_segment = |name: &&PathBuf| name.extension().is_some_and(|what| what == "log");
    let segment = names.iter().find(is_segment).expect("a segment");
    let held = world.disk().hold_reads(segment).expect("it is there");
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(running));
        assert!(held.wait_until_reached());
        while broker.tick_promptly(LATER_MS).is_some_and(|next_ms| next_ms <= LATER_MS) {}
        assert_eq!(world.counts("passing"), (0, 0, 0));
        assert!(!reading.is_finished());
        assert!(broker.first_due(LATER_MS).is_some(), "it is known that something stands still");
        assert!(held.let_go(), "a timer has waited for the read");
        reading.join().expect("no panic");
    });
    while broker.next_reading_ms().is_some() {
        broker.tick_reading(LATER_MS);
    }
    assert_eq!(broker.first_due(LATER_MS), None);
}

/// Fires the timers that have to read.
fn fire(world: &World) {
    world.broker.tick_promptly(DUE_MS);
    world.broker.tick_reading(DUE_MS);
}

/// With a queue that looks at its first message once it is started.
fn with_queue() -> WorldOnDisk {
    let world = WorldOnDisk::new();
    world.broker.set_time(START_MS);
    let mut client = world.connect();
    declare_with(&mut client, "kept", true, &FieldTable::new().with("x-message-ttl", 3_600_000));
    client.send(persistent(Message::new("", "kept", "m")));
    client.disconnect();
    world
}

#[test]
fn a_queue_that_looks_at_its_first_message_holds_up_no_timer_of_another() {
    let mut world = with_queue();
    check_timers_go_on(&mut world, fire);
    assert_eq!(world.connect().pop_all("kept"), ["m"]);
}

#[test]
fn a_queue_from_which_a_client_reads_holds_up_no_timer_of_another() {
    let mut world = with_queue();
    check_timers_go_on(&mut world, |world| assert_eq!(world.connect().pop_all("kept"), ["m"]));
}

#[test]
fn a_delayed_message_that_is_read_holds_up_no_other_timer() {
    let mut world = WorldOnDisk::new();
    let mut client = with_exchange(&world);
    client.send(persistent(delayed("m", 1000)));
    client.disconnect();
    check_timers_go_on(&mut world, fire);
    assert_eq!(world.connect().pop_all("q"), ["m"]);
}

#[test]
fn an_unused_queue_with_very_many_bindings_goes_where_no_other_timer_waits_for_it() {
    for (bindings, takes_long) in [(10, false), (5001, true)] {
        let world = World::new();
        world.broker.set_time(START_MS);
        let mut client = world.connect();
        let (lease, ttl) = (("x-expires", 1000), ("x-message-ttl", 1100));
        for (queue, (argument, ms)) in [("unused", lease), ("passing", ttl)] {
            declare_with(&mut client, queue, false, &FieldTable::new().with(argument, ms));
        }
        (0..bindings).for_each(|nth| client.bind("unused", "amq.direct", &nth.to_string()));
        client.fill("passing", &["m"]);
        while world.broker.tick_promptly(LATER_MS).is_some_and(|next_ms| next_ms <= LATER_MS) {}
        assert_eq!(world.counts("passing"), (0, 0, 0));
        assert_eq!(world.has_queue("unused"), takes_long, "{bindings} bindings");
        while world.broker.next_reading_ms().is_some() {
            world.broker.tick_reading(LATER_MS);
        }
        assert!(!world.has_queue("unused"));
    }
}
