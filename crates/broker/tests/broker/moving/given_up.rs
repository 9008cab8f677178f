//! A move is given up while something of the vhost is on its way to the log: nothing of it is kept where it was to arrive.

use super::{
    START_MS, V, dead, declare_exchange, enter, export, import, persistent, pieces, settings, sync,
};
use crate::checkpoints_within_changes::before_append;
use crate::support::{World, WorldOnDisk, declare_with, lasting};
use bytes::Bytes;
use courser_broker::admin::{Parameter, VhostView};
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::FieldTable;
use courser_journal::testing::Call;
use courser_store::StoreError;
use std::iter::from_fn;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// So long has what ends the arrival, if it does not wait; too short a time only finds less.
const A_MOMENT: Duration = Duration::from_millis(100);
/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What ends the arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    GivenUp,
    /// It arrives again then, without something that was in it.
    GivenUpAndTriedAgain,
    Deleted,
}

/// A vhost with one of everything, in a broker of its own.
fn source() -> WorldOnDisk {
    let world = WorldOnDisk::new();
    world.broker.set_time(START_MS);
    let admin = world.broker.admin();
    admin.change_vhost(V, |all| *all = settings()).expect("made");
    let policy = Policy {
        name: "p".to_owned(),
        pattern: "^stays$".to_owned(),
        apply_to: ApplyTo::All,
        priority: 1,
        definition: FieldTable::new().with("max-length", 1),
    };
    admin.set_policy(V, PolicyKind::User, policy).expect("a good policy");
    let [vhost, component, name, value] = [V, "shovel", "one", "1"].map(str::to_owned);
    admin.set_parameter(&Parameter { vhost, component, name, value }).expect("a good parameter");
    let mut client = enter(&world);
    let table = FieldTable::new;
    for (name, arguments) in [
        ("goes", dead(table())),
        ("stays", table()),
        ("counted", table().with("x-queue-type", "quorum")),
        ("s", table().with("x-queue-type", "stream")),
    ] {
        declare_with(&mut client, name, true, &arguments);
        client.send(persistent("", name, "m"));
    }
    let delayed_type = table().with("x-delayed-type", "fanout");
    declare_exchange(&mut client, "later", "x-delayed-message", &delayed_type);
    declare_exchange(&mut client, "recent", "x-recent-history", &table());
    client.bind("goes", "recent", "");
    client.bind_exchange("later", "recent", "");
    client.send(persistent("recent", "", "m"));
    client.send(persistent("later", "", "m").headers(table().with("x-delay", 1000)));
    client.get("counted").expect("a message");
    client.fail_on(1);
    client.disconnect();
    sync(&world);
    world
}

/// The pieces of the vhost, and what they are without some of its parts.
fn two_moves() -> [Vec<Bytes>; 2] {
    let source = source();
    let all = pieces(&source);
    let admin = source.broker.admin();
    admin.start_vhost(V, 0).expect("it is there");
    admin.delete_queue(V, b"goes", false, false).expect("it is there");
    admin.delete_exchange(V, b"later", false).expect("it is there");
    assert!(admin.clear_policy(V, PolicyKind::User, "p").expect("it is there"));
    assert!(admin.clear_parameter(V, "shovel", "one").expect("it is there"));
    [all, pieces(&source)]
}

/// What is said of a vhost, and what is in it.
fn shown(world: &World) -> (VhostView, Vec<String>, usize, usize) {
    let admin = world.broker.admin();
    let vhost = admin.vhost(V).expect("it is there");
    let queues = admin.queues(Some(V)).expect("it is there");
    let queues = queues.iter().map(|queue| queue.name.to_string()).collect();
    let policies = world.broker.vhost(V).expect("it is there").policies(PolicyKind::User).len();
    (vhost, queues, policies, admin.parameters(Some(V), None).expect("it is there").len())
}

/// Ends an arrival beside one of its appends. Returns whether there is such an append.
fn end_beside(nth: usize, end: End, [first, second]: &[Vec<Bytes>; 2]) -> bool {
    let mut world = WorldOnDisk::new();
    world.broker.set_time(START_MS);
    if end == End::Deleted {
        // Home knows it, and it comes home.
        world.broker.admin().change_vhost(V, |vhost| vhost.group = 1).expect("made");
    }
    let (held, begun, release) = lasting();
    before_append(world.store(), nth, Box::new(held));
    let is_held = thread::scope(|scope| {
        scope.spawn(|| {
            // It may be given up before it is whole.
            drop(import(&world, first));
            world.store().call_nothing();
        });
        if begun.recv().is_err() {
            return false;
        }
        let (tell, told) = channel();
        let admin = world.broker.admin();
        scope.spawn(move || {
            match end {
                End::Deleted => admin.delete_vhost(V).expect("it may be deleted"),
                _ => drop(admin.forget_arrival(V, 0).expect("forgotten")),
            }
            tell.send(())
        });
        let _ = told.recv_timeout(A_MOMENT);
        release.send(()).expect("it is waited for");
        true
    });
    if !is_held {
        return false;
    }
    if end == End::GivenUpAndTriedAgain {
        import(&world, second).expect("taken in");
        world.broker.admin().accept_vhost(V, None).expect("it has arrived");
        let before = shown(&world);
        world.restart();
        world.broker.set_time(START_MS);
        assert_eq!(shown(&world), before, "append {nth}");
        return true;
    }
    let (found, mut messages) = (world.found_by_restart(), 0);
    found.for_each_position(&mut |_| messages += 1);
    let keys: Vec<_> = found.definitions.keys().map(|key| key.escape_ascii().to_string()).collect();
    assert_eq!((keys, messages), (vec![], 0), "{end:?}, append {nth}");
    true
}

#[test]
fn nothing_is_kept_of_what_was_under_way_when_a_move_was_given_up() {
    let moves = two_moves();
    for end in [End::GivenUp, End::GivenUpAndTriedAgain, End::Deleted] {
        let appends = (0..).take_while(|nth| end_beside(*nth, end, &moves)).count();
        assert!(appends > 10, "{end:?}: {appends}");
    }
}

#[test]
fn what_could_not_be_given_up_as_a_whole_is_never_whole() {
    let [pieces, _] = two_moves();
    let world = WorldOnDisk::new();
    world.broker.set_time(START_MS);
    let admin = world.broker.admin();
    let mut arriving = admin.import_vhost(V, 0, &settings()).expect("it is not there");
    pieces.iter().for_each(|piece| arriving.take(piece).expect("taken in"));
    let fails = |call| (call == Call::Append).then_some(StoreError::TooLarge(7));
    world.store().set_faults(fails);
    admin.forget_arrival(V, 0).expect_err("it can't be kept");
    world.store().heal();
    arriving.finish().expect_err("some of it may be gone");
    admin.accept_vhost(V, None).expect_err("some of it may be gone");
}

/// Makes another vhost while the messages of this one are let go of. Returns why none of its name may arrive meanwhile.
fn refused_while(world: &WorldOnDisk, is_emptied: impl FnOnce() + Send) -> String {
    let (held, begun, release) = lasting();
    world.store().before_next_release(held);
    thread::scope(|scope| {
        scope.spawn(is_emptied);
        begun.recv().expect("it has messages");
        let (tell, told) = channel();
        scope.spawn(move || {
            world.broker.admin().change_vhost("other", |_| {}).expect("made");
            tell.send(())
        });
        let made = told.recv_timeout(PATIENCE);
        let refused = made.is_ok().then(|| {
            let arriving = world.broker.admin().import_vhost(V, 0, &settings());
            arriving.expect_err("what is there has its name").explanation
        });
        release.send(()).expect("it is waited for");
        refused.expect("others do not wait for it")
    })
}

#[test]
fn other_vhosts_are_changed_while_what_has_come_of_one_is_removed() {
    let [pieces, _] = two_moves();
    let world = WorldOnDisk::new();
    world.broker.set_time(START_MS);
    import(&world, &pieces).expect("taken in");
    let admin = world.broker.admin();
    let forget = || assert!(admin.forget_arrival(V, 0).expect("forgotten"));
    let refused = refused_while(&world, forget);
    assert!(refused.contains("not removed yet"), "{refused}");
    import(&world, &pieces).expect("nothing is left");
}

#[test]
fn other_vhosts_are_changed_while_what_one_has_left_is_removed() {
    let world = source();
    let admin = world.broker.admin();
    let known = admin.vhost_handle(V).expect("it is there");
    let mut leaving = export(&world);
    let all: Vec<Bytes> = from_fn(|| leaving.next_piece().expect("it can be read")).collect();
    leaving.hold().expect("it stands still");
    admin.set_vhost_group(&known, 1).expect("said");
    let clear = || assert_eq!(admin.clear_moved_vhosts().expect("removed"), [V]);
    let refused = refused_while(&world, clear);
    assert!(refused.contains("not removed yet"), "{refused}");
    import(&world, &all).expect("nothing is left");
}
