//! Declares beside deletions: nothing is made without the rights for it, even if it was there a moment ago.

use crate::support::{Client, Heard, WorldOnDisk, declare_with, lasting, short};
use courser_auth::{PasswordHash, Permission, User};
use courser_broker::admin::{Admin, ExchangeKind, ExchangeSettings, NewQueue};
use courser_codec::{FieldTable, Table, exchange, queue};
use std::thread;
use std::time::Duration;

/// How long a thread gets to come as far as it can while changes of names are held up. Too short a time only finds less.
const AHEAD: Duration = Duration::from_millis(100);

/// A world with a user who may declare anything, and nothing else.
fn world() -> WorldOnDisk {
    let world = WorldOnDisk::new();
    let admin = world.broker.admin();
    admin.create_user(User::new("u", PasswordHash::none())).expect("a user");
    let permission = Permission { configure: ".*".to_owned(), ..Permission::default() };
    admin.set_permission("u", "/", permission).expect("a permission");
    world
}

/// Deletes something, and declares it while that waits for another change.
fn declare_beside(
    world: &WorldOnDisk,
    delete: impl FnOnce(&Admin) + Send,
    declare: impl FnOnce() + Send,
) {
    let (held, begun, release) = lasting();
    world.store().before_next_append(held);
    let admin = world.broker.admin();
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = NewQueue { durable: true, ..NewQueue::default() };
            admin.declare_queue("/", "other", other).expect("a new queue");
        });
        begun.recv().expect("it begins");
        scope.spawn(|| delete(&admin));
        thread::sleep(AHEAD);
        scope.spawn(declare);
        thread::sleep(AHEAD);
        release.send(()).expect("it is waited for");
    });
}

fn declare_queue(client: &mut Client, arguments: &FieldTable) -> Heard {
    let entries = arguments.to_entries();
    let arguments = Table::from_entries(&entries);
    client.call(queue::Declare { queue: short("q"), arguments, ..Default::default() })
}

#[test]
fn a_queue_is_not_made_without_the_right_to_its_dead_letter_exchange() {
    let world = world();
    let dead = FieldTable::new().with("x-dead-letter-exchange", "amq.fanout");
    let mut owner = world.connect();
    declare_with(&mut owner, "q", false, &dead);
    let mut client = world.connect_user("u");
    let heard = declare_queue(&mut client, &dead);
    assert!(matches!(heard, Heard::DeclareOk { .. }), "it is there already: {heard:?}");
    declare_beside(
        &world,
        |admin| assert_eq!(admin.delete_queue("/", b"q", false, false), Ok(0)),
        || drop(declare_queue(&mut client, &dead)),
    );
    assert!(!world.has_queue("q"));
    owner.disconnect();
}

#[test]
fn an_exchange_is_not_made_without_the_right_to_its_alternate_exchange() {
    let world = world();
    let arguments = FieldTable::new().with("alternate-exchange", "amq.fanout");
    let settings = ExchangeSettings {
        kind: ExchangeKind::Direct,
        durable: false,
        auto_delete: false,
        internal: false,
        arguments: arguments.clone(),
    };
    world.broker.admin().declare_exchange("/", "x", &settings).expect("a new exchange");
    let entries = arguments.to_entries();
    let declare = || exchange::Declare {
        exchange: short("x"),
        kind: short("direct"),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    let mut client = world.connect_user("u");
    assert!(matches!(client.call(declare()), Heard::Done(_)), "it is there already");
    declare_beside(
        &world,
        |admin| admin.delete_exchange("/", b"x", false).expect("it is there"),
        || drop(client.call(declare())),
    );
    assert!(!world.has_exchange("x"));
}
