//! Queues and exchanges with many bindings are removed: what is published meanwhile does not wait for the last of these, nor
//! does it take a way that is going.

use crate::support::{Client, Heard, Message, World, WorldOnDisk, declare_with, short};
use courser_broker::admin::Admin;
use courser_codec::{FieldTable, Table, exchange, queue};
use std::thread;

/// Bindings that go at once; with fewer, too few threads would have a turn meanwhile.
const MANY: usize = 10_000;
/// In each, a publisher mostly has several turns while these go.
const TRIES: usize = 20;
/// Bindings that take more than one portion.
const SOME: i64 = 600;

/// What `x` leads to by many bindings, or by one with many behind it: what has the key `going.N`.
struct Removal {
    make: fn(&mut Client),
    bind: fn(&mut Client),
    remove: fn(&Admin),
}

const A_QUEUE: Removal = Removal {
    make: |client| client.declare("going"),
    bind: |client| (0..MANY).for_each(|nth| client.bind("going", "x", &format!("going.{nth}"))),
    remove: |admin| {
        admin.delete_queue("/", b"going", false, false).expect("it is there");
    },
};

const A_DESTINATION: Removal = Removal {
    make: |client| {
        client.declare_exchange("going", "fanout");
        client.declare("behind");
    },
    bind: |client| {
        client.bind("behind", "going", "");
        (0..MANY).for_each(|nth| client.bind_exchange("going", "x", &format!("going.{nth}")));
    },
    remove: |admin| admin.delete_exchange("/", b"going", false).expect("it is there"),
};

const A_SOURCE: Removal = Removal {
    make: A_DESTINATION.make,
    bind: |client| {
        client.bind_exchange("going", "x", "going.*");
        (0..MANY).for_each(|nth| client.bind("behind", "going", &nth.to_string()));
    },
    remove: A_DESTINATION.remove,
};

/// Declares an exchange that survives.
fn exchange(client: &mut Client, name: &str, kind: &str, auto_delete: bool, arguments: FieldTable) {
    let entries = arguments.to_entries();
    let (exchange, kind, arguments) = (short(name), short(kind), Table::from_entries(&entries));
    let declare = exchange::Declare {
        exchange,
        kind,
        arguments,
        auto_delete,
        durable: true,
        ..Default::default()
    };
    assert_eq!(client.call(declare), Heard::Done("exchange.declare-ok"));
}

/// Whether a message has found its way after the first binding was gone and before the last one was.
fn is_routed_beside(removal: &Removal) -> bool {
    let world = World::new();
    let mut client = world.connect();
    exchange(
        &mut client,
        "x",
        "topic",
        false,
        FieldTable::new().with("alternate-exchange", "amq.fanout"),
    );
    ["stays", "rest"].iter().for_each(|queue| client.declare(queue));
    client.bind("stays", "x", "stays.*");
    client.bind("rest", "amq.fanout", "");
    let admin = world.broker.admin();
    let used = || admin.memory_uses().definitions;
    let without = used();
    (removal.make)(&mut client);
    let unbound = used();
    (removal.bind)(&mut client);
    // Fewer are used only when a binding is gone, too.
    let whole = used() - (unbound - without);
    let (mut nth, mut late, mut is_routed) = (0, 0, false);
    thread::scope(|scope| {
        let removing = scope.spawn(|| (removal.remove)(&admin));
        while !removing.is_finished() {
            let has_begun = used() < whole;
            // Others than the last ones: no route is remembered.
            client.publish("x", &format!("stays.{nth}"), "x");
            let key = format!("going.{}", nth % MANY);
            client.publish("x", &key, if has_begun { "late" } else { "early" });
            is_routed |= has_begun && used() > unbound;
            late += usize::from(has_begun);
            nth += 1;
        }
    });
    assert_eq!(client.pop_all("stays").len(), nth, "bindings of others stay");
    let rest = client.pop_all("rest");
    assert_eq!(rest.iter().filter(|body| *body == "late").count(), late, "they go nowhere else");
    is_routed
}

#[test]
fn messages_are_routed_while_the_bindings_to_a_queue_go() {
    assert!((0..TRIES).any(|_| is_routed_beside(&A_QUEUE)), "they wait for the last of these");
}

#[test]
fn messages_are_routed_while_the_bindings_to_an_exchange_go() {
    assert!(
        (0..TRIES).any(|_| is_routed_beside(&A_DESTINATION)),
        "they wait for the last of these"
    );
}

#[test]
fn messages_are_routed_while_the_bindings_of_an_exchange_go() {
    assert!((0..TRIES).any(|_| is_routed_beside(&A_SOURCE)), "they wait for the last of these");
}

fn bind(client: &mut Client, queue: &str, exchange: &str, kind: &str) {
    for nth in 1..=SOME {
        let key = if kind == "headers" { String::new() } else { nth.to_string() };
        let entries = FieldTable::new().with("nth", nth).to_entries();
        let (queue, exchange, routing_key) = (short(queue), short(exchange), short(&key));
        let arguments = Table::from_entries(&entries);
        let bind = queue::Bind { queue, exchange, routing_key, arguments, ..Default::default() };
        assert_eq!(client.call(bind), Heard::Done("queue.bind-ok"));
    }
}

/// That bindings lead from an exchange to `stays` and nowhere else, and messages as well.
fn check(world: &World, kind: &str) {
    let bindings = world.broker.admin().bindings_from("/", kind.as_bytes(), &mut |_| true);
    let bindings = bindings.expect("the exchange stays");
    assert_eq!(bindings.len(), SOME as usize, "{kind}");
    assert!(bindings.iter().all(|one| one.destination.as_bytes() == b"stays"), "{kind}");
    let mut client = world.connect();
    for nth in 1..=SOME {
        let message = Message::new(kind, &nth.to_string(), "x");
        client.send(message.headers(FieldTable::new().with("nth", nth)));
    }
    assert_eq!(client.pop_all("stays").len(), SOME as usize, "{kind}");
    client.disconnect();
}

#[test]
fn of_two_destinations_the_bindings_of_one_go_from_exchanges_of_all_kinds() {
    let kinds = "direct fanout topic headers x-consistent-hash x-random x-modulus-hash";
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    for queue in ["going", "stays"] {
        declare_with(&mut client, queue, true, &FieldTable::new());
    }
    for kind in kinds.split(' ') {
        exchange(&mut client, kind, kind, true, FieldTable::new());
        ["going", "stays"].iter().for_each(|queue| bind(&mut client, queue, kind, kind));
    }
    exchange(&mut client, "alone", "direct", true, FieldTable::new());
    bind(&mut client, "going", "alone", "direct");
    assert_eq!(client.delete("going"), Heard::Count(0));
    client.disconnect();
    for _ in 0..2 {
        kinds.split(' ').for_each(|kind| check(&world, kind));
        assert!(!world.has_exchange("alone"), "it goes with its last binding");
        world.restart();
    }
}
