//! What connections keep of messages that have come in part: counted, bounded, and shared by all of them.

use crate::support::{Message, World, short};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::Limits;
use courser_codec::basic;

const MIB: usize = 1 << 20;

fn world() -> World {
    let memory_high_bytes = 64 * MIB as u64;
    World::with(Limits { memory_high_bytes, message_max_bytes: MIB as u64, ..Limits::default() })
}

fn to(exchange: &'static str) -> basic::Publish<'static> {
    basic::Publish { exchange: short(exchange), ..Default::default() }
}

#[test]
fn what_has_come_in_part_counts_until_it_is_whole_or_its_connection_ends() {
    let world = world();
    let (mut one, mut other) = (world.connect(), world.connect());
    let before = world.broker.memory_used_bytes();
    one.session().hold_incomplete(3 * MIB).expect("room");
    other.session().hold_incomplete(2 * MIB).expect("room");
    assert_eq!(world.broker.memory_used_bytes() - before, 5 * MIB as u64);
    one.session().hold_incomplete(0).expect("room");
    assert_eq!(world.broker.memory_used_bytes() - before, 2 * MIB as u64);
    other.disconnect();
    assert!(world.broker.memory_used_bytes() <= before);
}

#[test]
fn connections_share_half_of_the_memory_and_newcomers_find_some_of_it() {
    let world = world();
    let mut most = Vec::new();
    let mut clients: Vec<_> = (0..5).map(|_| world.connect()).collect();
    for client in &mut clients {
        let mut held = 0;
        let refused = loop {
            match client.session().hold_incomplete(held + MIB / 8) {
                Ok(()) => held += MIB / 8,
                Err(fault) => break fault,
            }
        };
        assert_eq!(refused.code, 506, "{refused}");
        assert!(refused.closes_connection());
        most.push(held);
    }
    assert_eq!(most[..3], [16 * MIB, 8 * MIB, 4 * MIB], "half of what the others leave");
    assert!(most.iter().sum::<usize>() <= 32 * MIB);
    assert!(most[4] >= MIB / 8, "{most:?}");
    let mut last = world.connect();
    last.session().hold_incomplete(MIB / 1024 * 4).expect("what every connection may have");
    clients.remove(0).disconnect();
    last.session().hold_incomplete(4 * MIB).expect("room that another has left");
}

#[test]
fn many_connections_that_each_hold_a_little_share_half_of_the_memory_as_well() {
    let world = world();
    let mut clients: Vec<_> = (0..400).map(|_| world.connect()).collect();
    let mut held = 0;
    let mut refused = 0;
    for client in &mut clients {
        match client.session().hold_incomplete(200 * 1024) {
            Ok(()) => held += 200 * 1024,
            Err(fault) => {
                assert_eq!(fault.code, 506, "{fault}");
                refused += 1;
            }
        }
    }
    assert!((31 * MIB..=32 * MIB).contains(&held), "{held}");
    assert!(refused > 200, "{refused}");
    assert!(world.broker.admin().memory_uses().incomplete <= 32 * MIB as u64);
}

#[test]
fn one_of_the_largest_messages_finds_room_however_early_the_alarm_begins() {
    let limits = Limits { memory_high_bytes: MIB as u64, ..Limits::default() };
    let largest = limits.message_max_bytes as usize;
    let world = World::with(limits);
    let mut client = world.connect();
    client.session().hold_incomplete(largest + MIB / 8).expect("room");
    client.session().hold_incomplete(3 * largest).expect_err("three of them");
}

#[test]
fn what_has_come_in_part_raises_the_alarm_with_what_waits_but_not_alone() {
    let limits = Limits { memory_high_bytes: 4 * MIB as u64, ..Limits::default() };
    let world = World::with(limits);
    let (mut client, mut other) = (world.connect(), world.connect());
    client.declare("q");
    client.session().hold_incomplete(16 * MIB).expect("room");
    assert_eq!(world.broker.alarm(), None, "its end could not be waited for");
    for _ in 0..3 {
        other.send(Message::new("", "q", "x".repeat(MIB)));
    }
    assert_eq!(world.broker.alarm(), Some("low on memory"));
    client.session().hold_incomplete(0).expect("room");
    assert_eq!(world.broker.alarm(), None);
}

#[test]
fn a_publish_is_refused_before_its_body_has_come() {
    let world = world();
    let mut client = world.connect();
    client.session().admit_publish(&to("")).expect("the default exchange");
    client.session().admit_publish(&to("amq.direct")).expect("an exchange");
    let unknown = client.session().admit_publish(&to("none")).expect_err("no exchange");
    assert_eq!(unknown.code, 404, "{unknown}");
    let admin = world.broker.admin();
    admin.create_user(User::new("u", PasswordHash::none())).expect("a user");
    admin.set_permission("u", "/", Permission::default()).expect("a permission");
    let refused = world
        .connect_user("u")
        .session()
        .admit_publish(&to("amq.direct"))
        .expect_err("no permission");
    assert_eq!(refused.code, 403, "{refused}");
}
