//! A vhost that comes, or goes on, follows the policies of the configuration before any client is let in: what these keep is not
//! lost to the first of them.

use super::{START_MS, V, enter, import, persistent, pieces, settings, sync};
use crate::delayed::run_until;
use crate::support::{World, WorldOnDisk, declare_with};
use courser_broker::admin::VhostHandle;
use courser_broker::{ApplyTo, Limits, Policy, PolicyKind};
use courser_codec::FieldTable;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

const HOUR_MS: u64 = 3_600_000;

type Look = Box<dyn FnMut() -> bool>;

thread_local! {
    /// Called whenever this thread matches names, until it says that it is done.
    static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
}

fn thread_time() -> Duration {
    // Taken meanwhile: it may match names itself.
    if let Some(mut look) = LOOK.take()
        && !look()
    {
        LOOK.set(Some(look));
    }
    Duration::ZERO
}

fn world() -> WorldOnDisk {
    WorldOnDisk::with(Limits { thread_time, ..Limits::default() })
}

/// A queue whose messages live for a second, with one of them, and a queue for the dead.
fn found(world: &World) {
    world.broker.set_time(START_MS);
    world.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let mut client = enter(world);
    let short_lived = FieldTable::new().with("x-message-ttl", 1000);
    declare_with(&mut client, "retry", true, &short_lived);
    declare_with(&mut client, "dead", true, &FieldTable::new());
    client.send(persistent("", "retry", "old"));
    client.disconnect();
}

/// Has the configuration keep the dead.
fn configure(world: &World) {
    let definition =
        FieldTable::new().with("dead-letter-exchange", "").with("dead-letter-routing-key", "dead");
    let (name, pattern) = ("keep".to_owned(), "^retry$".to_owned());
    let policy = Policy { name, pattern, apply_to: ApplyTo::Queues, priority: 0, definition };
    let configured = vec![(V.to_owned(), PolicyKind::User, policy)];
    world.broker.configure_policies(configured).expect("good policies");
}

/// Does something that lets clients in: the first of them publishes at once, also in between. Returns what is dead then.
fn dead_after(world: &World, let_in: impl FnOnce()) -> usize {
    world.broker.set_time(START_MS + HOUR_MS);
    let broker = Arc::clone(&world.broker);
    let look = move || {
        let Some(vhost) = broker.vhost(V) else { return false };
        if vhost.admit("guest").is_err() {
            return false;
        }
        let mut client = World { broker: Arc::clone(&broker), log: None }.connect_to(vhost);
        client.send(persistent("", "retry", "new"));
        client.disconnect();
        true
    };
    LOOK.set(Some(Box::new(look.clone())));
    let_in();
    if LOOK.take().is_some() {
        assert!(look(), "no client is let in");
    }
    world.broker.admin().queue(V, b"dead").expect("it is there").ready
}

/// Another broker, that of group 0, to which the vhost is to come.
fn target() -> (WorldOnDisk, VhostHandle) {
    let target = world();
    let admin = target.broker.admin();
    target.broker.set_time(START_MS);
    admin.change_vhost(V, |vhost| vhost.group = 1).expect("made");
    let known = admin.vhost_handle(V).expect("it is there");
    (target, known)
}

fn source() -> WorldOnDisk {
    let source = world();
    found(&source);
    sync(&source);
    source
}

#[test]
fn an_arrival_follows_them_whenever_they_come() {
    let source = source();
    let all = pieces(&source);
    for when in ["before", "between", "behind"] {
        let (target, known) = target();
        let admin = target.broker.admin();
        if when == "before" {
            configure(&target);
        }
        let mut import = admin.import_vhost(V, 0, &settings()).expect("it begins");
        all.iter().for_each(|piece| import.take(piece).expect("taken in"));
        if when == "between" {
            configure(&target);
        }
        import.finish().expect("it is whole");
        if when == "behind" {
            configure(&target);
        }
        let accept = || admin.accept_vhost(V, Some(&known)).expect("it has arrived");
        assert_eq!(dead_after(&target, accept), 1, "{when}");
    }
}

#[test]
fn an_arrival_follows_them_after_a_restart() {
    let source = source();
    let (mut target, _) = target();
    import(&target, &pieces(&source)).expect("taken in");
    sync(&target);
    target.lose_power();
    configure(&target);
    let admin = target.broker.admin();
    let known = admin.vhost_handle(V).expect("it is there");
    let accept = || admin.accept_vhost(V, Some(&known)).expect("it has arrived");
    assert_eq!(dead_after(&target, accept), 1);
}

#[test]
fn what_was_held_follows_them_after_a_restart() {
    let mut world = source();
    let mut export = super::export(&world);
    while export.next_piece().expect("it can be read").is_some() {}
    export.hold().expect("it stands still");
    sync(&world);
    world.lose_power();
    configure(&world);
    let admin = world.broker.admin();
    let go_on = || assert!(admin.start_vhost(V, 0).expect("it is there"));
    assert_eq!(dead_after(&world, go_on), 1);
}

#[test]
fn nothing_comes_of_those_that_are_changed_while_it_stands_still_until_it_goes_on() {
    let world = source();
    let admin = world.broker.admin();
    admin.stop_vhost(V, 0).expect("it is there");
    let messages = || admin.queue(V, b"retry").expect("it is there").ready;
    let definition = FieldTable::new().with("max-length", 0);
    let (name, pattern) = ("none".to_owned(), ".*".to_owned());
    let policy = Policy { name, pattern, apply_to: ApplyTo::Queues, priority: 0, definition };
    let configured = vec![(V.to_owned(), PolicyKind::User, policy)];
    world.broker.configure_policies(configured).expect("good policies");
    run_until(&world, START_MS + 10);
    assert_eq!(messages(), 1);
    assert!(admin.start_vhost(V, 0).expect("it is there"));
    run_until(&world, START_MS + 20);
    assert_eq!(messages(), 0);
}
