//! Vhosts, queues and exchanges as an operator sees them.

use crate::support::{World, declare_with, owned};
use courser_broker::admin::PageRequest;
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::FieldTable;

#[test]
fn a_queue_is_shown_with_what_it_holds_and_what_it_was_declared_with() {
    let world = World::new();
    let mut client = world.connect();
    let arguments = FieldTable::new().with("x-max-length", 10_i64);
    declare_with(&mut client, "q", false, &arguments);
    client.publish("", "q", "one");
    client.publish("", "q", "two");
    let queue = world.broker.admin().queue("/", b"q").expect("the queue");
    assert_eq!((queue.vhost.as_str(), queue.queue_type), ("/", "classic"));
    assert_eq!((queue.ready, queue.unacked, queue.consumers), (2, 0, 0));
    assert_eq!(queue.arguments.get("x-max-length").and_then(|most| most.as_integer()), Some(10));
    assert!(queue.policy.is_none() && queue.effective_definition.is_empty());
}

#[test]
fn a_queue_is_shown_with_the_policies_that_count_for_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let policy = |name: &str, most: i64| Policy {
        name: name.to_owned(),
        pattern: "^q$".to_owned(),
        apply_to: ApplyTo::Queues,
        priority: 0,
        definition: FieldTable::new().with("max-length", most),
    };
    let broker = &world.broker;
    broker.set_policy("/", PolicyKind::User, policy("wish", 10)).expect("a good policy");
    broker.set_policy("/", PolicyKind::Operator, policy("bound", 5)).expect("a good policy");
    let queue = broker.admin().queue("/", b"q").expect("the queue");
    assert_eq!(queue.policy.as_deref(), Some("wish"));
    assert_eq!(queue.operator_policy.as_deref(), Some("bound"));
    let most = queue.effective_definition.get("max-length").and_then(|most| most.as_integer());
    assert_eq!(most, Some(5));
}

#[test]
fn the_exchanges_of_a_vhost_are_listed_by_name_with_the_predefined_ones() {
    let world = World::new();
    world.connect().declare_exchange("mine", "topic");
    let listing = world.broker.admin().exchanges(Some("/")).expect("the vhost");
    let shown: Vec<(String, &str, bool)> = listing
        .iter()
        .map(|exchange| (exchange.name.to_string(), exchange.kind, exchange.predefined))
        .collect();
    let predefined = [
        ("", "direct"),
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
        ("amq.rabbitmq.trace", "topic"),
        ("amq.topic", "topic"),
    ];
    let mut expected: Vec<_> = predefined.map(|(name, kind)| (name.to_owned(), kind, true)).into();
    expected.push(("mine".to_owned(), "topic", false));
    assert_eq!(shown, expected);
}

#[test]
fn a_vhost_is_shown_with_how_much_is_in_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("a");
    client.declare("b");
    client.bind("a", "amq.fanout", "");
    client.publish("", "b", "one");
    let admin = world.broker.admin();
    let vhost = admin.vhost("/").expect("the default vhost");
    assert_eq!((vhost.queues, vhost.bindings, vhost.connections), (2, 1, 1));
    assert_eq!(admin.message_totals("/").expect("the vhost").ready, 1);
    assert!(admin.vhost("nope").is_none());
}

#[test]
fn what_is_not_there_is_404_and_a_deleted_queue_leaves_its_list() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("q");
    let admin = world.broker.admin();
    assert_eq!(admin.queue("/", b"nope").expect_err("there is none").code, 404);
    assert_eq!(admin.queues(Some("nope")).expect_err("there is none").code, 404);
    client.delete("q");
    assert_eq!(admin.queue("/", b"q").expect_err("it is gone").code, 404);
    assert!(admin.queues(None).expect("all vhosts").is_empty());
}

#[test]
fn a_queue_made_anew_under_its_name_is_listed_once() {
    let world = World::new();
    let mut client = world.connect();
    for _ in 0..3 {
        client.declare("q");
        client.delete("q");
    }
    client.declare("q");
    let page = world.broker.admin().queues(Some("/")).expect("the vhost");
    let page = page.page(&PageRequest::first(10));
    assert_eq!((page.items.len(), page.total), (1, 1));
    assert_eq!(page.items[0].name, owned("q"));
}
