//! What an operator changes without a connection.

use crate::support::{World, WorldOnDisk, owned};
use courser_broker::admin::{EventKind, NewBinding, NewQueue};
use courser_broker::{ExchangeKind, ExchangeSettings};
use courser_codec::FieldTable;

fn exchange(kind: ExchangeKind) -> ExchangeSettings {
    ExchangeSettings {
        kind,
        durable: false,
        auto_delete: false,
        internal: false,
        arguments: FieldTable::new(),
    }
}

fn binding(source: &str, queue: &str, key: &str) -> NewBinding {
    NewBinding {
        source: owned(source),
        destination: owned(queue),
        to_queue: true,
        routing_key: owned(key),
        arguments: FieldTable::new(),
    }
}

#[test]
fn a_topology_is_made_and_taken_down_again() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.declare_exchange("/", "x", &exchange(ExchangeKind::Topic)).expect("a new exchange");
    admin.declare_queue("/", "q", NewQueue::default()).expect("a new queue");
    admin.bind("/", binding("x", "q", "a.*")).expect("both are there");
    let mut client = world.connect();
    client.publish("x", "a.b", "one");
    assert_eq!(world.counts("q").0, 1);
    assert_eq!(admin.purge_queue("/", b"q").expect("the queue"), 1);
    admin.unbind("/", binding("x", "q", "a.*")).expect("it is bound");
    client.publish("x", "a.b", "two");
    assert_eq!(world.counts("q").0, 0);
    client.publish("", "q", "three");
    let refused = admin.delete_queue("/", b"q", false, true).expect_err("it is not empty");
    assert_eq!(
        (refused.code, refused.explanation.as_str()),
        (406, "queue 'q' in vhost '/' not empty")
    );
    assert_eq!(admin.delete_queue("/", b"q", false, false).expect("the queue"), 1);
    admin.delete_exchange("/", b"x", false).expect("the exchange");
    assert!(!world.has_queue("q") && !world.has_exchange("x"));
    assert_eq!(admin.delete_exchange("/", b"x", false).expect_err("gone").code, 404);
}

#[test]
fn what_contradicts_what_is_there_is_refused_as_for_a_client() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.declare_queue("/", "q", NewQueue::default()).expect("a new queue");
    let durable = NewQueue { durable: true, ..NewQueue::default() };
    assert_eq!(admin.declare_queue("/", "q", durable).expect_err("another one").code, 406);
    assert_eq!(
        admin.declare_queue("/", "amq.x", NewQueue::default()).expect_err("reserved").code,
        403
    );
    assert_eq!(
        admin.declare_queue("no", "q", NewQueue::default()).expect_err("no vhost").code,
        404
    );
    assert_eq!(admin.bind("/", binding("no", "q", "")).expect_err("no exchange").code, 404);
    let long = "x".repeat(256);
    assert_eq!(
        admin.declare_queue("/", &long, NewQueue::default()).expect_err("too long").code,
        406
    );
}

#[test]
fn a_deleted_vhost_goes_with_everything_in_it_and_its_clients_are_told() {
    let world = World::new();
    let admin = world.broker.admin();
    assert!(admin.change_vhost("v", |_| {}).expect("a new vhost"));
    assert!(!admin.change_vhost("v", |_| {}).expect("it is there"));
    let vhost = world.broker.vhost("v").expect("the vhost");
    let mut client = world.connect_to(std::sync::Arc::clone(&vhost));
    client.declare("q");
    client.declare_exchange("x", "fanout");
    client.bind("q", "x", "");
    client.fill("q", &["one", "two"]);
    let mut other = world.connect();
    other.declare("q");
    let mut follower = admin.follow();
    admin.delete_vhost("v").expect("it is there");
    let faults = client.session().outbox().take_faults();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].0, faults[0].1.code), (0, 320));
    assert_eq!(faults[0].1.explanation, "vhost 'v' is deleted");
    assert!(other.session().outbox().take_faults().is_empty());
    assert!(world.has_queue("q"), "in the other vhost");
    assert!(admin.vhost("v").is_none() && vhost.queue(b"q").is_none());
    assert_eq!(admin.delete_vhost("v").expect_err("gone").code, 404);
    let kinds: Vec<EventKind> = follower.take(100).events.iter().map(|one| one.kind).collect();
    let expected = [EventKind::QueueDeleted, EventKind::ExchangeDeleted, EventKind::VhostDeleted];
    assert_eq!(kinds, expected);
}

#[test]
fn nothing_can_be_made_any_more_in_a_vhost_that_was_deleted() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.change_vhost("v", |_| {}).expect("a new vhost");
    let vhost = world.broker.vhost("v").expect("the vhost");
    let mut client = world.connect_to(std::sync::Arc::clone(&vhost));
    admin.delete_vhost("v").expect("it is there");
    let declare = courser_codec::queue::Declare {
        queue: crate::support::short("late"),
        ..Default::default()
    };
    assert!(client.fatal(declare).contains("vhost 'v' is deleted"));
    // Who comes in at the last moment is told as well.
    assert!(!world.connect_to(vhost).is_connected());
    // Another one of the same name is a new one.
    assert!(admin.change_vhost("v", |_| {}).expect("a new vhost"));
    assert_eq!(admin.vhost("v").expect("the vhost").queues, 0);
}

#[test]
fn a_deleted_vhost_does_not_come_back_with_a_restart() {
    let mut world = WorldOnDisk::new();
    {
        let admin = world.broker.admin();
        for name in ["gone", "stays"] {
            admin.change_vhost(name, |_| {}).expect("a new vhost");
            let durable = NewQueue { durable: true, ..NewQueue::default() };
            admin.declare_queue(name, "q", durable).expect("a new queue");
        }
        admin.delete_vhost("gone").expect("it is there");
    }
    world.restart();
    let admin = world.broker.admin();
    assert!(admin.vhost("gone").is_none());
    assert_eq!(admin.vhost("stays").expect("the vhost").queues, 1);
}

#[test]
fn names_that_no_client_could_use_are_refused() {
    let world = World::new();
    let admin = world.broker.admin();
    admin.declare_queue("/", "q", NewQueue::default()).expect("a new queue");
    for name in ["a\nb", "a\rb"] {
        let refused = [
            admin.declare_queue("/", name, NewQueue::default()),
            admin.declare_exchange("/", name, &exchange(ExchangeKind::Topic)),
            admin.bind("/", binding("amq.\ntopic", "q", "key")),
            admin.bind("/", binding("amq.topic", "\rq", "key")),
        ];
        for refused in refused {
            let fault = refused.expect_err("it has a line break");
            assert_eq!((fault.code, &*fault.explanation), (406, "a name has no line breaks"));
        }
    }
    let fault = admin.declare_queue("/", "", NewQueue::default()).expect_err("it has no name");
    assert_eq!((fault.code, &*fault.explanation), (406, "a queue needs a name"));
}
