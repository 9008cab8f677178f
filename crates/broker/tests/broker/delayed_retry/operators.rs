//! What an operator takes and gives back untouched, as no client has had it, does not wait, and what waits is left alone.

use super::{T0_MS, delayed, give_back, persistent, retrying};
use crate::support::{World, WorldOnDisk, declare_with, headers, owned};
use courser_broker::admin::{GetMode, MoveTo, Selection};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;

/// The messages 1 to 3, so large that each is read by itself, and another queue `to`.
fn with_messages() -> WorldOnDisk {
    let world = WorldOnDisk::new();
    world.tick_all(T0_MS);
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &retrying("all"));
    declare_with(&mut client, "to", true, &FieldTable::new());
    ["1", "2", "3"].iter().for_each(|body| client.send(persistent(&body.repeat(50_000))));
    world.sync();
    world
}

fn all_are_ready_and_have_never_come_back(world: &World) {
    assert_eq!((world.counts("q"), delayed(world)), ((3, 0, 0), 0));
    let mut client = world.connect();
    for begin in ["1", "2", "3"] {
        let delivery = client.get("q").expect("it is there");
        assert_eq!(&delivery.text()[..1], begin);
        assert!(!headers(&delivery).iter().any(|(name, _)| name.as_bytes().starts_with(b"x-")));
    }
}

#[test]
fn what_could_not_be_moved_is_ready_at_once() {
    let ways: [fn(&World) -> u16; 2] = [
        |world| {
            let moved = world.broker.admin().move_messages("/", b"q", b"to", None);
            moved.expect_err("there is no room").code
        },
        |world| {
            let (all, to) = (Selection::default(), MoveTo::Queue(owned("to")));
            let admin = world.broker.admin();
            let moved = admin.relocate("/", b"q", &all, &to, &|_| Some(true), false);
            moved.expect_err("there is no room").code
        },
    ];
    for move_all in ways {
        let world = with_messages();
        world.store().set_faults(|call| (call == Call::Append).then_some(StoreError::Full));
        assert_eq!(move_all(&world), 506);
        world.store().heal();
        all_are_ready_and_have_never_come_back(&world);
    }
}

#[test]
fn what_an_operator_has_got_before_the_disk_could_not_be_read_is_ready_at_once() {
    let world = with_messages();
    world.make_unreadable("3".repeat(50_000).as_bytes());
    let got = world.broker.admin().get("/", b"q", 3, GetMode::Acknowledge, 1, 1 << 20);
    assert_eq!(got.expect_err("it can't be read").code, 541);
    world.fail_reads(false);
    all_are_ready_and_have_never_come_back(&world);
}

#[test]
fn what_waits_is_neither_peeked_at_nor_got_nor_moved_nor_purged_in_part() {
    let ways: [fn(&World) -> usize; 5] = [
        |world| world.broker.admin().peek("/", b"q", 0, 10, 1).expect("the queue").len(),
        |world| {
            let admin = world.broker.admin();
            admin.get("/", b"q", 10, GetMode::Acknowledge, 1, 1 << 20).expect("the queue").len()
        },
        |world| world.broker.admin().move_messages("/", b"q", b"to", None).expect("both"),
        |world| {
            let (all, to) = (Selection::default(), MoveTo::Queue(owned("to")));
            let admin = world.broker.admin();
            admin.relocate("/", b"q", &all, &to, &|_| Some(true), false).expect("both").moved
        },
        |world| world.broker.admin().purge_some("/", b"q", 10).expect("the queue"),
    ];
    for handle in ways {
        let world = with_messages();
        give_back(&mut world.connect(), true);
        assert_eq!((handle(&world), delayed(&world)), (2, 1));
        world.tick_all(T0_MS + 400);
        assert_eq!(&world.connect().pop("q").expect("it is back")[..1], "1");
    }
}
