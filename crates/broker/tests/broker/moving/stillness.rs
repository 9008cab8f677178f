//! A vhost that stands still.

use super::contents::{assert_same, contents};
use super::{START_MS, V, enter, found, import, persistent, pieces, sync};
use crate::delayed::run_until;
use crate::support::{Heard, World, WorldOnDisk, declare_with, owned};
use courser_broker::admin::{Export, GetMode, MoveTo, NewQueue, Parameter, Selection};
use courser_broker::{Fault, PolicyKind};
use courser_codec::FieldTable;

const HOUR_MS: u64 = 3_600_000;

/// A vhost in which something is due soon, of every kind of timer.
fn world() -> WorldOnDisk {
    let world = WorldOnDisk::new();
    found(&world);
    let mut client = enter(&world);
    client.send(persistent("all", "x", "for all").expiration("500"));
    let headers = FieldTable::new().with("x-delay", 1000);
    client.send(persistent("later", "a.b", "later").headers(headers));
    client.disconnect();
    sync(&world);
    world
}

#[test]
fn clients_are_told_to_go_and_none_gets_in() {
    let world = world();
    let admin = world.broker.admin();
    let (mut inside, mut other) = (enter(&world), world.connect());
    assert_eq!(admin.stop_vhost(V, 0).expect("it is there"), 1);
    let told = inside.heard();
    let [Heard::ConnectionClosed(text)] = &told[..] else { panic!("not told: {told:?}") };
    assert!(text.starts_with("320 CONNECTION_FORCED - vhost 'v' is being moved"), "{text}");
    assert_eq!(other.heard(), []);
    assert_eq!(admin.stop_vhost(V, 0).expect("it is there"), 0);
    let vhost = world.broker.vhost(V).expect("it is there");
    assert_eq!(vhost.admit("guest").err().expect("refused").code, 320);
    assert!(admin.start_vhost(V, 0).expect("it is there"));
    assert!(!admin.start_vhost(V, 0).expect("it is there"), "it goes on already");
    drop(vhost.admit("guest").expect("let in"));
}

#[test]
fn what_was_unacknowledged_is_back_before_it_is_read_out() {
    let world = world();
    let admin = world.broker.admin();
    let mut client = enter(&world);
    let delivery = client.get("plain").expect("a message");
    assert_eq!(admin.stop_vhost(V, 0).expect("it is there"), 1);
    let refused = admin.export_vhost(V).expect_err("a client is in it");
    assert!(refused.explanation.contains("1 connections"), "{refused}");
    client.disconnect();
    assert!(delivery.text() == "for all");
    admin.export_vhost(V).expect("no client is in it");
}

#[test]
fn nothing_comes_of_its_timers_until_it_goes_on() {
    let world = world();
    let admin = world.broker.admin();
    let before = contents(&world);
    admin.stop_vhost(V, 0).expect("it is there");
    run_until(&world, START_MS + HOUR_MS);
    assert_same(&contents(&world), &before);
    assert!(admin.start_vhost(V, 0).expect("it is there"));
    run_until(&world, START_MS + HOUR_MS);
    let after = contents(&world);
    let bodies = |queue: &str| after.get(queue).map_or(0, Vec::len);
    // What has expired is gone, or dead, and what was due is there.
    assert_eq!((bodies("plain"), bodies("ranked"), bodies("held")), (1, 1, 0));
    assert!(bodies("dead") > 0);
}

/// Has a queue in the vhost that goes when no client has used it for a second.
fn lease(world: &World) {
    let mut client = enter(world);
    declare_with(&mut client, "lease", true, &FieldTable::new().with("x-expires", 1000));
    client.disconnect();
}

/// The lease has just begun, and ends like any other.
fn assert_leased_anew(world: &WorldOnDisk, since_ms: u64) {
    let is_there = || world.broker.admin().queue(V, b"lease").is_ok();
    for after_ms in [0, 999] {
        run_until(world, since_ms + after_ms);
        assert!(is_there(), "{after_ms}");
    }
    run_until(world, since_ms + 1000);
    assert!(!is_there());
}

#[test]
fn no_queue_expires_because_its_clients_were_kept_out() {
    let source = world();
    lease(&source);
    let admin = source.broker.admin();
    let all = pieces(&source);
    let target = WorldOnDisk::new();
    target.broker.set_time(START_MS);
    import(&target, &all).expect("taken in");
    for world in [&source, &target] {
        run_until(world, START_MS + HOUR_MS);
    }
    assert!(admin.start_vhost(V, 0).expect("it is there"));
    assert_leased_anew(&source, START_MS + HOUR_MS);
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    assert_leased_anew(&target, START_MS + HOUR_MS);
}

#[test]
fn operators_can_look_and_change_nothing() {
    let world = world();
    let admin = world.broker.admin();
    admin.stop_vhost(V, 0).expect("it is there");
    let before = contents(&world);
    let queue = NewQueue { durable: true, ..NewQueue::default() };
    let (vhost, component, name) = (V.to_owned(), "c".to_owned(), "n".to_owned());
    let parameter = Parameter { vhost, component, name, value: "1".to_owned() };
    let selection = Selection::default();
    let to = MoveTo::Queue(owned("other"));
    let refused: [Option<Fault>; 11] = [
        admin.declare_queue(V, "new", queue).err(),
        admin.delete_queue(V, b"plain", false, false).err(),
        admin.delete_exchange(V, b"all", false).err(),
        admin.purge_queue(V, b"plain").err(),
        admin.purge_some(V, b"plain", 1).err(),
        admin.get(V, b"plain", 1, GetMode::Acknowledge, 100, 100).err(),
        admin.move_messages(V, b"plain", b"other", None).err(),
        admin.relocate(V, b"plain", &selection, &to, &|_| Some(true), false).err(),
        admin.resume_queue(V, b"held").err(),
        admin.set_parameter(&parameter).err(),
        admin.clear_parameter(V, "shovel", "one").err(),
    ];
    for (nth, fault) in refused.into_iter().enumerate() {
        assert_eq!(fault.map(|fault| fault.code), Some(320), "{nth}");
    }
    assert!(admin.clear_policy(V, PolicyKind::User, "alternate").is_err());
    assert_same(&contents(&world), &before);
}

#[test]
fn an_export_ends_when_the_vhost_goes_on() {
    let world = world();
    let admin = world.broker.admin();
    assert!(admin.export_vhost(V).is_err(), "it does not stand still");
    let mut export = super::export(&world);
    admin.start_vhost(V, 0).expect("it is there");
    admin.stop_vhost(V, 0).expect("it is there");
    let refused = export.next_piece().expect_err("it may have changed");
    assert!(refused.explanation.contains("begin again"), "{refused}");
}

#[test]
fn what_is_held_stands_still_through_restarts_until_it_goes_on() {
    let mut world = world();
    let mut export = super::export(&world);
    let admin = world.broker.admin();
    assert!(super::export(&world).hold().is_err(), "it has not been read out");
    while export.next_piece().expect("it can be read").is_some() {}
    export.hold().expect("it stands still");
    assert_eq!(admin.held_vhosts(), [V]);
    drop(admin);
    sync(&world);
    for round in 0..3 {
        match round {
            0 => world.lose_power(),
            1 => world.restart_from_checkpoint(),
            _ => {}
        }
        let vhost = world.broker.vhost(V).expect("it is there");
        assert_eq!(vhost.admit("guest").err().expect("refused").code, 320, "{round}");
    }
    assert!(world.broker.admin().start_vhost(V, 0).expect("it is there"));
    sync(&world);
    world.lose_power();
    world.broker.set_time(START_MS);
    assert_eq!(world.broker.admin().held_vhosts(), [""; 0]);
    drop(enter(&world));
}

#[test]
fn one_that_went_on_meanwhile_is_not_held() {
    let world = world();
    let mut export = super::export(&world);
    while export.next_piece().expect("it can be read").is_some() {}
    let admin = world.broker.admin();
    admin.start_vhost(V, 0).expect("it is there");
    admin.stop_vhost(V, 0).expect("it is there");
    assert!(export.hold().is_err(), "it may have changed");
    assert_eq!(admin.held_vhosts(), [""; 0]);
}

/// Reads a vhost to its end.
fn read_out(world: &WorldOnDisk) -> Export {
    let mut export = world.broker.admin().export_vhost(V).expect("no client is in it");
    while export.next_piece().expect("it can be read").is_some() {}
    export
}

#[test]
fn of_two_moves_the_later_one_has_the_vhost() {
    let mut world = world();
    let admin = world.broker.admin();
    assert_eq!(admin.stop_vhost(V, 1).expect("it is there"), 0);
    let mut earlier = admin.export_vhost(V).expect("no client is in it");
    assert_eq!(admin.stop_vhost(V, 2).expect("it is a later one"), 0);
    earlier.next_piece().expect_err("it has no right to it any more");
    admin.stop_vhost(V, 1).expect_err("a later one has it");
    // Also before it is held.
    assert!(!admin.start_vhost(V, 1).expect("it is there"));
    read_out(&world).hold().expect("it stands still");
    assert!(!admin.start_vhost(V, 1).expect("it is there"));
    assert_eq!((admin.held_vhosts(), admin.still_vhosts()), (vec![V.into()], vec![V.into()]));
    drop(admin);
    sync(&world);
    world.lose_power();
    let admin = world.broker.admin();
    assert!(!admin.start_vhost(V, 1).expect("it is there"), "not after a restart either");
    assert!(admin.start_vhost(V, 2).expect("it is there"));
    assert!(admin.held_vhosts().is_empty() && admin.still_vhosts().is_empty());
}

#[test]
fn a_move_that_has_ended_does_not_stop_the_vhost_again() {
    let world = world();
    let admin = world.broker.admin();
    // It was given up before it had begun.
    assert!(!admin.start_vhost(V, 3).expect("it is there"));
    for ended in [1, 3] {
        let refused = admin.stop_vhost(V, ended).expect_err("it has ended");
        assert!(refused.explanation.contains("has ended"), "{refused}");
    }
    assert!(admin.still_vhosts().is_empty());
    admin.stop_vhost(V, 4).expect("the next one");
}
